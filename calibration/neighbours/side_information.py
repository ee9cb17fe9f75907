"""What calibrators that need more than a score share."""

from __future__ import annotations

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from calibration._validation import (
    check_choice,
    check_in_unit,
    check_number,
    check_vector,
)
from calibration.base.calibrators import SCALES, Scale, find_constant, forget_fit
from calibration.storage import Saved
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class SideInformationCalibrator(Saved, BaseEstimator):
    """Base of calibrators whose `predict` needs something beside the score.

    They are not `ScoreCalibrator`s, which predict from a score alone, but keep to
    the same conventions: labels coded 0 and 1, weights that count repetitions, a
    scale that is never guessed, and of one class only or one distinct score the
    constant (n1 + 1) / (n + 2), with a `CalibrationWarning`.

    The answer is the rate of ones among some calibration rows, to which `smoothing`
    rows at the base rate are added.
    """

    scale: Scale
    smoothing: float
    base_rate_: float
    constant_: float | None

    def _check_parameters(self) -> None:
        check_choice(self.scale, "scale", SCALES)
        check_number(self.smoothing, "smoothing", 0.0)

    def _check_scores(self, scores: ArrayLike) -> Float64Array:
        """Return scores (n,) that are probabilities if `scale` says so."""
        values = check_vector(scores, "scores")
        if self.scale == "probability":
            name = 'scores` with `scale="probability"'
            check_in_unit(float(values.min()), float(values.max()), name)
        return values

    def _settle(self, summary: ScoreSummary, stacklevel: int) -> None:
        """Forget, and learn the base rate, or a constant if there is no more."""
        forget_fit(self)
        self.base_rate_ = summary.base_rate
        self.constant_ = find_constant(self, summary, stacklevel=stacklevel + 1)

    def _rate(self, weight0: Float64Array, weight1: Float64Array) -> Float64Array:
        """Return the smoothed rate of ones, shape (n,)."""
        ones = weight1 + self.smoothing * self.base_rate_
        return ones / (weight0 + weight1 + self.smoothing)
