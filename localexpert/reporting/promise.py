"""`Promise`: losses that forecasts expect of themselves, beside what came of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert.distribution.answers import (
    ExpectedMean,
    expected_by_loss,
    loss_variances,
    mean_of_rows,
)
from localexpert.distribution.predictive import PredictiveDistribution

_COVERAGE = 0.95


@dataclass(frozen=True)
class KeptPromise:
    """The mean loss of some rows, as expected and as it was.

    Parameters
    ----------
    expected : ExpectedMean
        With the interval that should hold 95 % of means.
    realised : float
    p_value : float
        Probability of a mean at least as far off, if outcomes came from the
        forecasts; 1 where losses are not finite or certain.
    """

    expected: ExpectedMean
    realised: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Promise:
    """A loss of every row, as expected and as it was.

    Parameters
    ----------
    means, variances : ndarrays of shape (n,)
        Of the loss of an outcome from the forecast.
    realised : ndarray of shape (n,)
    """

    means: Float64Array
    variances: Float64Array
    realised: Float64Array

    @classmethod
    def of(cls, y: Float64Array, dist: PredictiveDistribution, loss: str) -> Promise:
        """Return the expected and the realised "crps" or "abs_error" of outcomes."""
        means = expected_by_loss(dist.law)[loss]
        variances = loss_variances(dist.law, loss, means)
        realised = dist.crps(y) if loss == "crps" else np.abs(y - dist.median())
        return cls(means, variances, realised)

    def over(self, rows: Any = slice(None)) -> KeptPromise:
        """Return what was expected of some rows and what came."""
        expected = mean_of_rows(self.means[rows], self.variances[rows], _COVERAGE)
        realised = float(self.realised[rows].mean())
        # The sum's deviation over n: the mean's, if rows are independent.
        sd = float(np.sqrt(self.variances[rows].sum())) / expected.n_rows
        known = np.isfinite(sd) and sd > 0.0
        away = abs(realised - expected.mean) / sd if known else 0.0
        return KeptPromise(expected, realised, float(2.0 * ndtr(-away)))
