"""`Cells`: smooth laws of a discrete target, collected around its values."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.sample import Sample
from localexpert.data.target_values import count_values
from localexpert.experts.thresholds import cuts_between
from localexpert.forecasters.discrete import masses_between
from localexpert.forecasters.stepped import Step
from localexpert.forecasters.support import Support
from localexpert.law.law import Law
from localexpert.law.near_values import nearest_places
from localexpert.law.steps import cell_edges

# From so many values on a smooth law is learned of targets anywhere in their cells.
MANY_VALUES = 12


@dataclass
class Cells(Step):
    """Give each value the mass of a smooth law that is nearest to it.

    Where a target of many values is nearly a function of the features, a centre tells
    more than a question for each value does.

    Parameters
    ----------
    bounds : (float, float)
        Least and greatest value that is possible, met or not.
    atoms : ndarray of shape (A,)
        Values that the road learns as they are.
    random_state : int
        Draws where in its cell a target is learned.
    """

    bounds: tuple[float, float] = (-np.inf, np.inf)
    atoms: Float64Array = field(default_factory=lambda: np.empty(0))
    random_state: int = 0

    def fit(self, sample: Sample) -> None:
        """Look at which values there are."""
        self.met_, weight = count_values(sample.y, sample.weight)
        self.support_ = Support.of(self.met_, weight, self.bounds)
        self.n_ = float(sample.weight.sum())

    def there(self, y: Float64Array) -> Float64Array:
        """Return targets anywhere in their cells: so a smooth law has no steps.

        Of few values a smooth law tells more if it sees which they are.
        """
        if len(self.met_) < MANY_VALUES:
            return y
        rng = np.random.default_rng(self.random_state)
        values = self.support_.values
        edges, at = cell_edges(values), nearest_places(values, y)
        # A value that is far from others has a cell as wide as theirs.
        half = 0.5 * np.median(np.diff(edges))
        low = np.maximum(edges[at], values[at] - half)
        high = np.minimum(edges[at + 1], values[at] + half)
        drawn = low + rng.uniform(size=len(y)) * (high - low)
        return np.where(np.isin(y, self.atoms), y, drawn)

    def ahead(self, y: Float64Array) -> Float64Array:
        """Return targets as they are."""
        return y

    def recall(self, z: Float64Array) -> Float64Array:
        """Return the values in whose cells z is."""
        return self.met_[nearest_places(self.met_, z)]

    def read(self, law: Law) -> Law:
        """Return the law of the nearest value.

        One row besides is shared by all values, those met and, as a forecast's own mass
        would be, those that were not: these are many, and may lie far out.
        """
        values, shares = self.support_.values, self.support_.shares
        extra = shares.sum(axis=0) / len(shares)
        cuts = np.tile(cuts_between(values), (len(law), 1))
        cdf = np.maximum.accumulate(law.cdf(cuts), axis=1)
        return Law.discrete(values, masses_between(cdf, self.n_, extra))
