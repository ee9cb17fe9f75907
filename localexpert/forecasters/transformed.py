"""`Carry`: an increasing function of the target is learned, laws are carried back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert.data.sample import Sample
from localexpert.forecasters.stepped import Step
from localexpert.law.bounds import clip, cut
from localexpert.law.law import Law
from localexpert.law.transform import ValueMap, carry_law

# So many ranges of y beyond it is far.
_FAR = 3.0


@dataclass
class Carry(Step):
    """Learn z = func(y), and carry laws of z to y.

    Parameters
    ----------
    values : ValueMap
        From z to y: `func` is the inverse of what is applied to the target.

    Attributes
    ----------
    domain_ : (float, float)
        The values of z that are those of some y.
    """

    values: ValueMap
    same_units: ClassVar[bool] = False

    def fit(self, sample: Sample) -> None:
        """Find out which z are those of some y."""
        z = self.there(sample.y[sample.weight > 0.0])
        self.domain_ = self.values.domain(float(z.min()), float(z.max()))

    def there(self, y: Float64Array) -> Float64Array:
        """Return z of targets (n,)."""
        return self.values.inverse(y)

    def back(self, z: Float64Array) -> Float64Array:
        """Return y of numbers z (n, k)."""
        return self.values.forward(z)

    def read(self, law: Law) -> Law:
        """Return a law carried back."""
        # What a model forecasts of z beyond where func increases is no y at all.
        if law.ordered:
            law = clip(law, *self.domain_, law.end_width)
        else:
            law = cut(law, *self.domain_)
        return carry_law(law, self.values)

    def check(self, law: Law, y: Float64Array) -> None:
        """Say so where forecasts of some rows have means far from all targets."""
        means, room = law.moments(2)[:, 0], _FAR * np.ptp(y)
        far = ~((means > y.min() - room) & (means < y.max() + room))
        if far.any():
            msg = (
                f"`roads` has a road to {self.values.inverse!r} of y whose forecasts "
                f"have means far from all targets in {far.mean():.0%} of the rows, "
                f"such as {means[far][0]:.3g}: what is nearly impossible there is huge "
                "in y. Take a function that bends less."
            )
            warnings.warn(msg, CalibrationWarning, stacklevel=2)

    def choices(self) -> dict[str, Any]:
        """Return the function; what the road chose is in units of z."""
        return {"transform": repr(self.values.inverse)}
