"""One binary calibrator per class, and the coupling that makes answers sum to one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

import numpy as np
from sklearn.base import clone

from calibration._validation import check_choice
from calibration.base.calibrators import ScoreCalibrator
from calibration.base.log_odds import LogOddsCalibrator
from calibration.multiclass.base import ClassScale, MulticlassCalibrator
from calibration.multiclass.class_scores import ClassScores
from calibration.multiclass.log_probabilities import LEAST, LogProbabilityScale
from calibration.multiclass.names import as_calibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class OneVsRestCalibrator(MulticlassCalibrator):
    r"""A binary calibrator for each class against the others, made to sum to one.

    Parameters
    ----------
    calibrator : str or ScoreCalibrator
        It is cloned for each class, and its `scale` is set to `scale`. It may be the
        name of a family, such as "isotonic".
    coupling : {"normalize", "least_squares"}
        How the k answers become probabilities that sum to one. "normalize" divides by
        their sum. "least_squares" takes the nearest point of the simplex, which may
        give a class almost nothing.
    classes : sequence of k names, optional
        Names of the columns. Default: their numbers, 0 to k - 1.
    scale : {"probability", "logit"}
        What a score is.

    Attributes
    ----------
    calibrators_ : list of k ScoreCalibrator
        The fitted calibrator of each class. A class without rows has the constant
        1 / (n + 2).

    Notes
    -----
    .. math:: P(y = j | p) = \frac{g_j(p_j)}{\sum_i g_i(p_i)} \quad\text{or}\quad
        \operatorname*{argmin}_{q \ge 0,\, \sum_i q_i = 1} \sum_i (q_i - g_i(p_i))^2,

    Here :math:`g_j` is learned from all rows, with the label 1 where y = j. The nearest
    point is :math:`q_i = \max(g_i - \tau, 0)`, and a 0 counts as the least float.
    Logits enter as the log-odds of the class against the others. Maps of steps and
    lines may say 0 and 1, which n rows cannot know. They are clipped to [1/(2n+2), 1 -
    1/(2n+2)], so that no class is ruled out.

    References
    ----------
    Zadrozny & Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates. Duchi, Shalev-Shwartz, Singer & Chandra (2008), Efficient
    projections onto the l1-ball, figure 1.

    Examples
    --------
    >>> from calibration import OneVsRestCalibrator
    >>> scores = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]] * 20
    >>> calibrator = OneVsRestCalibrator("isotonic").fit(scores, [0, 1, 2] * 20)
    >>> calibrator.predict([[0.7, 0.2, 0.1]]).argmax()
    np.int64(0)
    """

    calibrators_: list[ScoreCalibrator]

    def __init__(
        self,
        calibrator: str | ScoreCalibrator = "quadratic",
        coupling: Literal["normalize", "least_squares"] = "normalize",
        *,
        classes: Sequence[Any] | None = None,
        scale: ClassScale = "probability",
    ):
        self.calibrator = calibrator
        self.coupling = coupling
        self.classes = classes
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.coupling, "coupling", ("normalize", "least_squares"))
        self._make()._check_parameters()

    def _make(self) -> ScoreCalibrator:
        """Return a binary calibrator that is not fitted."""
        one = clone(as_calibrator(self.calibrator))
        return cast(ScoreCalibrator, one.set_params(scale=self.scale))

    def _fit_table(self, data: ClassScores) -> None:
        tasks = data.share(("tasks", self.scale), lambda: self._summarize(data))
        self.calibrators_ = [self._fit_one(summary) for summary in tasks]

    def _summarize(self, data: ClassScores) -> list[ScoreSummary]:
        """Return each class against the others."""
        return [
            ScoreSummary.from_scores(column, data.labels == j, data.weight)
            for j, column in enumerate(_against_rest(data.scores, self.scale))
        ]

    def _fit_one(self, summary: ScoreSummary) -> ScoreCalibrator:
        """Return the calibrator of one class."""
        one = self._make()
        if min(summary.n0, summary.n1) > 0.0 and summary.n_cells > 1:
            return one.fit_summary(summary)
        # With hundreds of classes some may have no rows. They get their documented
        # constant, without a warning for each.
        one._fit_constant(summary, (summary.n1 + 1.0) / (summary.n + 2.0))
        one.n_fit_ = summary.n
        return one

    def _predict_table(self, table: Float64Array) -> Float64Array:
        p = np.empty(table.shape)
        columns = _against_rest(table, self.scale)
        for j, (one, column) in enumerate(zip(self.calibrators_, columns, strict=True)):
            p[:, j] = one.predict(column)
            if not isinstance(one, LogOddsCalibrator):
                # Half a row in n + 1, as in other averages of maps.
                edge = 0.5 / (one.n_fit_ + 1.0)
                np.clip(p[:, j], edge, 1.0 - edge, out=p[:, j])
        if self.coupling == "least_squares":
            p = _nearest_on_simplex(p)
        # Rounding may make a formula say 0 for all classes.
        np.maximum(p, LEAST, out=p)
        p /= p.sum(axis=1, keepdims=True)
        return p


def _nearest_on_simplex(table: Float64Array) -> Float64Array:
    """Return max(v - tau, 0) of each row v, tau such that the row sums to one."""
    largest = -np.sort(-table, axis=1)
    numbers = np.arange(1.0, table.shape[1] + 1.0)
    # The value of tau if only so many of the largest stay positive, and whether all do.
    shifts = (np.cumsum(largest, axis=1) - 1.0) / numbers
    count = (largest > shifts).sum(axis=1, keepdims=True)
    tau = np.take_along_axis(shifts, count - 1, axis=1)
    return np.asarray(np.maximum(table - tau, 0.0))


def _against_rest(table: Float64Array, scale: str) -> Iterator[Float64Array]:
    """Yield the scores of each class against the others, on the same scale.

    For logits this is the log-odds log(p_j / sum_(i != j) p_i). It is exact where p_j
    rounds to 1.
    """
    if scale == "probability":
        yield from np.ascontiguousarray(table.T)
        return
    z = LogProbabilityScale("logit")(table)
    for j in range(len(z)):
        others = np.delete(z, j, axis=0)
        top = others.max(axis=0)
        yield z[j] - (top + np.log(np.exp(others - top).sum(axis=0)))
