"""`MetaFeatures`: features of a distribution for a meta-regressor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.experts.thresholds import (
    cuts_between,
    is_discrete,
    place_thresholds,
)

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
_MOMENTS = ("mean", "std", "skew")


@dataclass(frozen=True, eq=False)
class MetaFeatures:
    """Moments, quantiles and probabilities of predictive laws as columns.

    Parameters
    ----------
    thresholds : ndarray of shape (N,)
        Values of y whose P(Y <= v) is a column each.
    """

    thresholds: Float64Array

    @classmethod
    def place(
        cls, y: Float64Array, weight: Float64Array, thresholds: Any, n_thresholds: int
    ) -> MetaFeatures:
        """Return those of a target.

        Parameters
        ----------
        y, weight : ndarrays of shape (n,)
        thresholds : {"quantile", "uniform"} or array-like
            As in `place_thresholds`; of a discrete target all midpoints.
        n_thresholds : int

        Returns
        -------
        MetaFeatures
        """
        values = np.unique(y[weight > 0.0])
        if len(values) == 1:
            return cls(values)
        if isinstance(thresholds, str) and is_discrete(y, sample_weight=weight):
            return cls(cuts_between(values))
        return cls(place_thresholds(y, n_thresholds, thresholds, weight))

    @property
    def names(self) -> list[str]:
        """Names of the columns, each once."""
        # As many digits as tell the thresholds apart.
        for digits in range(4, 18):
            labels = [f"{v:.{digits}g}" for v in self.thresholds]
            if len(set(labels)) == len(labels):
                break
        quantiles = [f"quantile {level:g}" for level in LEVELS]
        return [*_MOMENTS, *quantiles, *(f"P(y <= {label})" for label in labels)]

    def of(self, dist: PredictiveDistribution) -> Float64Array:
        """Return the columns of every row.

        Parameters
        ----------
        dist : PredictiveDistribution
            Of n rows.

        Returns
        -------
        ndarray of shape (n, q)
            In the order of `names`.
        """
        moments = dist.mean(), dist.std(), dist.skew()
        probabilities = dist.cdf_at(self.thresholds)
        return np.column_stack([*moments, dist.quantiles(LEVELS), probabilities])
