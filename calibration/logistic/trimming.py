"""Rueping's robust calibration: fit, drop what fits worst, fit again."""

from __future__ import annotations

import warnings
from typing import cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibration._validation import check_integer, check_number, refuse
from calibration.base.calibrators import Scale, ScoreCalibrator
from calibration.exceptions import CalibrationWarning
from calibration.logistic.polynomial import PlattCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class TrimmedCalibrator(ScoreCalibrator):
    r"""Any calibrator, fitted again without the rows that it fitted worst.

    Parameters
    ----------
    calibrator : ScoreCalibrator, optional
        It is cloned, its scale is set to `scale`, and it is fitted. Default:
        `PlattCalibrator()`.
    max_error : float
        Rows with \|y - P(y = 1)\| above this are dropped; in [0.5, 1).
    max_rounds : int
        Most times to drop rows and fit again. It stops earlier when the rows no longer
        change.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    calibrator_ : ScoreCalibrator
        The fitted calibrator.
    trimmed_weight_ : float
        Weight of the rows dropped from its fit.
    n_rounds_ : int
        Times that rows were dropped.

    Notes
    -----
    Each time, rows are dropped from all of the data again. Dropping those with loss
    -log P(label) > c and fitting the others by maximum likelihood are the two steps of
    coordinate descent on sum_i w_i min(-log P(y_i), c), c = -log(1 - max_error). In
    this log loss no single row counts more than c.

    Trimming assumes that large errors are wrong labels or wrong scores. If they are
    not, it does harm: among rows with P(y = 1) < 1 - max_error every 1 is dropped, and
    the rest says 0. The nearer `max_error` is to 1, the less it can change. If it would
    drop a whole class, nothing is dropped, with a `CalibrationWarning`.

    References
    ----------
    Rueping (2006), Robust probabilistic calibration. ECML.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import PlattCalibrator
    >>> from calibration.logistic.trimming import TrimmedCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(scale=2.0, size=2000)
    >>> y = rng.uniform(size=2000) < 1.0 / (1.0 + np.exp(-scores))
    >>> wrong = np.append(scores, np.full(40, -12.0)), np.append(y, np.ones(40))
    >>> PlattCalibrator(scale="logit").fit(*wrong).coef_.round(1)
    array([0.5])
    >>> robust = TrimmedCalibrator(max_error=0.99, scale="logit").fit(*wrong)
    >>> robust.calibrator_.coef_.round(1), robust.trimmed_weight_
    (array([1.1]), 41.0)
    """

    calibrator_: ScoreCalibrator
    trimmed_weight_: float
    n_rounds_: int

    def __init__(
        self,
        calibrator: ScoreCalibrator | None = None,
        max_error: float = 0.99,
        max_rounds: int = 10,
        *,
        scale: Scale = "probability",
    ):
        self.calibrator = calibrator
        self.max_error = max_error
        self.max_rounds = max_rounds
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._make()._check_parameters()
        check_number(self.max_error, "max_error", 0.5, 1.0, open_high=True)
        check_integer(self.max_rounds, "max_rounds", 1)

    def _make(self) -> ScoreCalibrator:
        inner = PlattCalibrator() if self.calibrator is None else self.calibrator
        if not isinstance(inner, ScoreCalibrator):
            rule = "be a ScoreCalibrator, for instance IsotonicCalibrator()"
            refuse("calibrator", rule, f"{inner!r}", TypeError)
        return cast(ScoreCalibrator, clone(inner).set_params(scale=self.scale))

    def _fit(self, summary: ScoreSummary) -> None:
        self.calibrator_ = self._make().fit_summary(summary)
        self.trimmed_weight_, self.n_rounds_ = 0.0, 0
        kept: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None
        while self.n_rounds_ < self.max_rounds:
            p = self.calibrator_.predict(summary.scores)
            # A zero errs by p, a one by 1 - p.
            now = p <= self.max_error, 1.0 - p <= self.max_error
            # The same rows again give the same fit: coordinate descent has ended.
            if kept is not None and all(map(np.array_equal, kept, now)):
                return
            kept = now
            part = _keep(summary, *kept)
            if part is None:
                self._warn(summary)
                return
            if part.n == summary.n:
                return
            self.calibrator_ = self._make().fit_summary(part)
            self.trimmed_weight_ = summary.n - part.n
            self.n_rounds_ += 1

    def _warn(self, summary: ScoreSummary) -> None:
        """Say that the limit would leave one class, and fit to all rows."""
        msg = (
            f"`max_error` of {self.max_error:g} would drop every row of a class; "
            "TrimmedCalibrator drops none."
        )
        warnings.warn(msg, CalibrationWarning, stacklevel=6)
        self.calibrator_ = self._make().fit_summary(summary)
        self.trimmed_weight_, self.n_rounds_ = 0.0, 0

    def _fit_constant(self, summary: ScoreSummary, constant: float) -> None:
        self.calibrator_ = self._make()
        self.calibrator_._fit_constant(summary, constant)
        self.trimmed_weight_, self.n_rounds_ = 0.0, 0

    def _find_base_rate(self, summary: ScoreSummary, constant: float | None) -> float:
        # The prior of the rows that were kept, since the answers are for these rows.
        if constant is None:
            return self.calibrator_.base_rate_
        return super()._find_base_rate(summary, constant)

    def _predict(self, values: Float64Array) -> Float64Array:
        return self.calibrator_._predict(values)

    def _answer_log_odds(self, values: Float64Array) -> Float64Array:
        return self.calibrator_._answer_log_odds(values)


def _keep(
    summary: ScoreSummary, zeros: NDArray[np.bool_], ones: NDArray[np.bool_]
) -> ScoreSummary | None:
    """Return the zeros and ones kept per cell, or None if one class is gone."""
    weight0 = np.where(zeros, summary.weight0, 0.0)
    weight1 = np.where(ones, summary.weight1, 0.0)
    if weight0.max() == 0.0 or weight1.max() == 0.0:
        return None
    # A cell without rows must not exist.
    held = weight0 + weight1 > 0.0
    return ScoreSummary(summary.scores[held], weight0[held], weight1[held])
