"""Doing nothing, as a calibrator of two classes or more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logit

from calibration.multiclass.base import ClassScale, EitherCalibrator
from calibration.multiclass.class_scores import ClassScores
from calibration.multiclass.log_probabilities import (
    LogProbabilityScale,
    to_probabilities,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class IdentityCalibrator(EitherCalibrator):
    """Predict the score itself: the candidate that every calibrator has to beat.

    Parameters
    ----------
    classes : sequence of k names, optional
        Of the columns of scores (n, k); default their numbers, 0 to k - 1.
    scale : {"probability", "logit"}
        What a score is; of log-odds the probability 1 / (1 + exp(-s)) is returned, of
        a row of logits the softmax.

    Examples
    --------
    >>> from calibration import IdentityCalibrator
    >>> IdentityCalibrator().fit([0.2, 0.8], [0, 1]).predict([0.3])
    array([0.3])
    >>> scores = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    >>> IdentityCalibrator().fit(scores, [0, 1]).predict(scores[:1])
    array([[0.5 , 0.25, 0.25]])
    """

    logs_: LogProbabilityScale
    _scales = ("probability", "logit")
    _learns = False

    def __init__(
        self,
        *,
        classes: Sequence[Any] | None = None,
        scale: ClassScale = "probability",
    ):
        self.classes = classes
        self.scale = scale

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        """Learn nothing."""

    def _predict(self, values: Float64Array) -> Float64Array:
        # Not through the log-odds, which would clip the outermost probabilities.
        if self.scale == "probability":
            return values.copy()
        return super()._predict(values)

    def _answer_log_odds(self, values: Float64Array) -> Float64Array:
        if self.scale == "probability":
            return np.asarray(logit(values))
        return super()._answer_log_odds(values)

    def _log_odds(self, x: Float64Array) -> Float64Array:
        return x

    def _find_constant(self, data: ClassScores) -> None:
        """Return None: nothing is learned of the labels."""

    def _fit_table(self, data: ClassScores) -> None:
        # What a 0 counts as where a logarithm is asked for.
        self.logs_ = LogProbabilityScale.of(self.scale, data.scores, data.n)

    def _predict_table(self, table: Float64Array) -> Float64Array:
        if self.scale == "probability":
            return table.copy()
        return to_probabilities(self.logs_(table))

    def log_predict(self, table: Float64Array) -> Float64Array:
        """Return log-probabilities of checked scores (n, k), shape (k, n)."""
        return self.logs_(table)
