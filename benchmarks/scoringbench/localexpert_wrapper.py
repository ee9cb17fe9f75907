"""localexpert for ScoringBench: this file goes to its `univariate/wrappers/`.

Reference: J. Landsgesell & P. Knoll (2026), ScoringBench, arXiv 2603.29928. Licence of
localexpert: BSD-3-Clause. Forecasts reach the benchmark as quantiles; those of a target
with few values reach it as the exact probabilities of these values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scoringbench.univariate.wrappers.base import (
    DistributionPrediction,
    ProbabilisticWrapper,
)

if TYPE_CHECKING:
    from localexpert import PredictiveDistribution

# The benchmark adds what lies beyond the outermost levels to the outermost quantiles.
TAILS = np.array([1e-4, 1e-3])
LEVELS = np.concatenate([TAILS, np.arange(1, 200) / 200.0, 1.0 - TAILS[::-1]])


class LocalExpertWrapper(ProbabilisticWrapper):
    """`localexpert.LocalExpertRegressor` behind the interface of ScoringBench.

    Parameters
    ----------
    **options
        Of the regressor. The seed is that of the benchmark unless it is given.
    """

    def __init__(self, **options: Any) -> None:
        self.options = {"random_state": 42, **options}

    def fit(self, X: Any, y: Any) -> LocalExpertWrapper:
        """Fit the regressor, and keep the range of its targets."""
        from localexpert import LocalExpertRegressor

        self._set_train_range(y)
        self.model = LocalExpertRegressor(**self.options)
        self.model.fit(X, np.asarray(y, dtype=float))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the means of the forecasts."""
        return self.model.predict(X)

    def predict_distribution(self, X: Any) -> DistributionPrediction:
        """Return the forecasts in the benchmark's container."""
        dist = self.model.predict_dist(X)
        told = {"mean": dist.mean(), "train_range": self._y_train_range}
        if dist.coefficients.shape[1] == 0:
            return DistributionPrediction.from_histogram(*bins_of_atoms(dist), **told)
        levels = dist.quantiles(LEVELS)
        return DistributionPrediction.from_multi_quantile(levels, LEVELS, **told)


def bins_of_atoms(dist: PredictiveDistribution) -> tuple[np.ndarray, np.ndarray]:
    """Return edges (n, 2A) and masses (n, 2A - 1): a bin without width per value."""
    edges = np.tile(np.repeat(dist.atoms, 2), (len(dist), 1))
    masses = np.zeros((len(dist), edges.shape[1] - 1))
    masses[:, ::2] = dist.masses
    return edges, masses
