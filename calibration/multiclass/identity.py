"""Doing nothing, as a calibrator of several classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibration.multiclass.base import ClassScale, MulticlassCalibrator
from calibration.multiclass.class_scores import ClassScores
from calibration.multiclass.log_probabilities import (
    LogProbabilityScale,
    to_probabilities,
)
from calibration.typing import Float64Array


class MulticlassIdentityCalibrator(MulticlassCalibrator):
    """Predict the scores themselves: the candidate that every calibrator has to beat.

    Parameters
    ----------
    classes : sequence of k names, optional
        Of the columns; default their numbers, 0 to k - 1.
    scale : {"probability", "logit"}
        What a score is; of logits the softmax is returned.

    Examples
    --------
    >>> from calibration import MulticlassIdentityCalibrator
    >>> scores = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    >>> MulticlassIdentityCalibrator().fit(scores, [0, 1]).predict(scores[:1])
    array([[0.5 , 0.25, 0.25]])
    """

    scale_: LogProbabilityScale

    def __init__(
        self,
        *,
        classes: Sequence[Any] | None = None,
        scale: ClassScale = "probability",
    ):
        self.classes = classes
        self.scale = scale

    def _find_constant(self, data: ClassScores) -> None:
        """Return None: nothing is learned of the labels."""

    def _fit(self, data: ClassScores) -> None:
        # What a 0 counts as where a logarithm is asked for.
        self.scale_ = LogProbabilityScale.of(self.scale, data.scores, data.n)

    def _predict(self, table: Float64Array) -> Float64Array:
        if self.scale == "probability":
            return table.copy()
        return to_probabilities(self.scale_(table))

    def log_predict(self, table: Float64Array) -> Float64Array:
        """Return log-probabilities of checked scores (n, k), shape (k, n)."""
        return self.scale_(table)
