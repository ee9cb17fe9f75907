"""The base of calibrators that need more than a score: an interval, or features."""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from calibration._validation import check_number
from calibration.base.calibrators import ScaledEstimator, find_constant
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class SideInformationCalibrator(ScaledEstimator):
    """Base of calibrators whose `predict` needs something beside the score.

    They are not `ScoreCalibrator`s, which predict from a score alone, but keep to
    the same conventions: labels coded 0 and 1, weights that count repetitions, a
    scale that is never guessed, and of one class only or one distinct score the
    constant (n1 + 1) / (n + 2), with a `CalibrationWarning`.

    The answer is the rate of ones among some calibration rows, to which `smoothing`
    rows at the base rate are added.
    """

    smoothing: float
    base_rate_: float
    constant_: float | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self.smoothing, "smoothing", 0.0)

    def _settle(self, summary: ScoreSummary, stacklevel: int) -> None:
        """Learn the base rate, or a constant if there is no more."""
        self.base_rate_ = summary.base_rate
        self.constant_ = find_constant(self, summary, stacklevel=stacklevel + 1)

    def _evidence(self, rates: Float64Array) -> Float64Array:
        """Return the log-likelihood ratios that rates of ones (n,) stand for."""
        if self.constant_ is not None:
            # The one answer to all rows is no evidence.
            return np.zeros(len(rates))
        return np.asarray(logit(rates) - logit(self.base_rate_))

    def _rate(self, weight0: Float64Array, weight1: Float64Array) -> Float64Array:
        """Return the smoothed rate of ones, shape (n,)."""
        ones = weight1 + self.smoothing * self.base_rate_
        return ones / (weight0 + weight1 + self.smoothing)
