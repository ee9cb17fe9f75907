"""Doing nothing, as a calibrator."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import logit

from calibration.base.log_odds import LogOddsCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class IdentityCalibrator(LogOddsCalibrator):
    """Predict the score itself: the candidate that every calibrator has to beat.

    Parameters
    ----------
    scale : {"probability", "logit"}
        What a score is; of log-odds the probability 1 / (1 + exp(-s)) is returned.

    Examples
    --------
    >>> from calibration import IdentityCalibrator
    >>> IdentityCalibrator().fit([0.2, 0.8], [0, 1]).predict([0.3])
    array([0.3])
    """

    _scales = ("probability", "logit")
    _learns = False

    def __init__(self, *, scale: Literal["probability", "logit"] = "probability"):
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
