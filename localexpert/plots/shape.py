"""`ForecastShape`: density, spikes and CDF of one forecast, ready to be drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from calibration.typing import Float64Array
from localexpert.distribution.predictive import PredictiveDistribution

# Points of a curve: evenly spaced, and as many at evenly spaced levels of the CDF,
# which are dense where a density is high.
_N_POINTS = 400
# Jumps of the CDF below this are rounding.
_LEAST_MASS = 1e-12
# Probability left out at either end of a picture.
_TAIL = 0.005
# How many times the width of the central 80 % a tail may stretch a picture.
_REACH = 3.0
_MARGIN = 0.05


@dataclass(frozen=True)
class ForecastShape:
    """One forecast, split into a density and values of positive probability.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of one row.
    spikes, masses : ndarrays of shape (m,)
        Values of positive probability, increasing, and their probabilities.
    """

    dist: PredictiveDistribution
    spikes: Float64Array
    masses: Float64Array

    @classmethod
    def of(cls, dist: PredictiveDistribution, row: int) -> ForecastShape:
        """Read a row.

        Parameters
        ----------
        dist : PredictiveDistribution
        row : int

        Returns
        -------
        ForecastShape
        """
        one = dist[row]
        if not one.law.has_jumps:
            return cls(one, np.empty(0), np.empty(0))
        law = one.law.clipped
        values, jumps = law.atoms, law.masses[0]
        if law.all_jumps:
            values, jumps = (part[0] for part in law.steps())
        real = jumps > _LEAST_MASS
        return cls(one, values[real], jumps[real])

    @property
    def is_discrete(self) -> bool:
        """Whether the values hold all probability, so that no density is left."""
        return bool(self.masses.sum() > 1.0 - 1e-9)

    def window(self, extra: Iterable[float | None] = ()) -> tuple[float, float]:
        """Return the range of y to show: the central 99 %, long tails cut.

        Parameters
        ----------
        extra : iterable of float or None
            Values that must lie inside; None is no value.

        Returns
        -------
        low, high : float
        """
        low, lower, upper, high = self.dist.quantiles([_TAIL, 0.1, 0.9, 1.0 - _TAIL])[0]
        if not len(self.spikes):
            reach = _REACH * (upper - lower)
            low, high = max(low, lower - reach), min(high, upper + reach)
        inside = [float(value) for value in extra if value is not None]
        low, high = min([low, *inside]), max([high, *inside])
        margin = _MARGIN * (high - low) or 0.5 * max(abs(low), 1.0)
        return float(low - margin), float(high + margin)

    def grid(self, low: float, high: float) -> Float64Array:
        """Return values (g,) from low to high, within the support."""
        first, last = self.dist.law.support
        low, high = max(low, first), min(high, last)
        even = np.linspace(low, high, _N_POINTS)
        dense = self.dist.quantiles((np.arange(_N_POINTS) + 0.5) / _N_POINTS)[0]
        inside = (dense > low) & (dense < high)
        return np.unique(np.concatenate([even, dense[inside]]))

    def density(self, x: Float64Array) -> Float64Array:
        """Return the density without the spikes at x (g,)."""
        law = self.dist.law
        if not len(self.spikes):
            return self.dist.pdf(x[:, None])[:, 0]
        law = law.clipped
        assert law.curve is not None
        return np.asarray(law.rest[0] * np.exp(law.curve.densities(x[None, :])[1][0]))

    def steps(self, x: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return what to join to draw the CDF over x: twice each x where it jumps."""
        if not len(self.spikes):
            return x, self.dist.cdf_at(x)[0]
        seen = self.spikes[(self.spikes >= x[0]) & (self.spikes <= x[-1])]
        every = np.unique(np.concatenate([x, seen]))
        ends = self.dist.law.cdf_left(every[None, :]), self.dist.cdf_at(every)
        return np.repeat(every, 2), np.concatenate(ends).T.ravel()
