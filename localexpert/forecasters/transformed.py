"""A road to an increasing function of the target, whose laws are carried back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.forecasters.around import ForecasterAround
from localexpert.forecasters.forecaster import RoadForecaster
from localexpert.law.bounds import clip, cut
from localexpert.law.law import Law
from localexpert.law.transform import carry_law
from localexpert.law.value_map import ValueMap

# Rows whose means are looked at, and how many ranges of y beyond it is far.
_ROWS_LOOKED_AT, _FAR = 500, 3.0


@dataclass
class TransformedForecaster(ForecasterAround):
    """Fit laws of z = func(y), and answer with those of y.

    Parameters
    ----------
    forecaster : RoadForecaster
        Unfitted, of smooth laws.
    values : ValueMap
        From z to y: `func` is the inverse of what is applied to the target.

    Attributes
    ----------
    domain_ : (float, float)
        The values of z that are those of some y.
    """

    forecaster: RoadForecaster
    values: ValueMap

    def begin(self, sample: Sample) -> float:
        """Begin the road to z; what it tells is in other units than those of y."""
        inner = self._forward(sample)
        self.domain_ = self.values.domain(float(inner.y.min()), float(inner.y.max()))
        self.forecaster.begin(inner)
        return 0.0

    def finish(self, sample: Sample) -> Self:
        """Finish the road to z."""
        super().finish(self._forward(sample))
        self._warn_of_far(sample.y[sample.weight > 0.0])
        return self

    def _warn_of_far(self, y: Float64Array) -> None:
        """Say so where forecasts of some rows have means far from all targets."""
        law = self.law_of(
            self.oof_placed(np.arange(len(self.judged_))[:_ROWS_LOOKED_AT])
        )
        means, room = law.moments()[:, 0], _FAR * np.ptp(y)
        far = ~((means > y.min() - room) & (means < y.max() + room))
        if far.any():
            msg = (
                f"`roads` has a road to {self.values.inverse!r} of y whose forecasts "
                f"have means far from all targets in {far.mean():.0%} of the rows, "
                f"such as {means[far][0]:.3g}: what is nearly impossible there is huge "
                "in y. Take a function that bends less."
            )
            warnings.warn(msg, CalibrationWarning, stacklevel=2)

    def law_ahead(self, places: Rows, y: Float64Array) -> Law:
        """Return the laws of the road to z, carried back."""
        return super().law_ahead(places, self.values.inverse(y))

    def _read_law(self, law: Law) -> Law:
        """Return a law carried back."""
        # What a model forecasts of z beyond where func increases is no y at all.
        if law.ordered:
            law = clip(law, *self.domain_, law.end_width)
        else:
            law = cut(law, *self.domain_)
        return carry_law(law, self.values)

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        thresholds, p = self.forecaster.points(table)
        return self.values.forward(thresholds), p

    def recall_targets(self) -> Float64Array:
        """Return the targets of the judged rows."""
        z = self.forecaster.recall_targets()
        return self.values.forward(z[:, None])[:, 0]

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored, in units of z."""
        return {"transform": repr(self.values.inverse), **self.forecaster.choices()}

    def _forward(self, sample: Sample) -> Sample:
        """Return the rows with z; where y has no weight it may be anything."""
        present = sample.weight > 0.0
        y = np.where(present, sample.y, sample.y[present][0])
        return replace(sample, y=self.values.inverse(y))
