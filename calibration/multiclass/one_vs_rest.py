"""One binary calibrator a class, and normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from sklearn.base import clone

from calibration.base.calibrators import ScoreCalibrator
from calibration.multiclass.base import ClassScale, MulticlassCalibrator
from calibration.multiclass.binary_tasks import columns_against_rest
from calibration.multiclass.class_scores import ClassScores
from calibration.selection.names import as_calibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class OneVsRestCalibrator(MulticlassCalibrator):
    r"""A binary calibrator for each class against the others, then normalisation.

    Parameters
    ----------
    calibrator : str or ScoreCalibrator
        Cloned for each class, its `scale` set to `scale`; or one of the names that
        `calibrator_names` lists, such as "isotonic".
    classes : sequence of k names, optional
        Of the columns; default their numbers, 0 to k - 1.
    scale : {"probability", "logit"}
        What a score is.

    Attributes
    ----------
    calibrators_ : list of k ScoreCalibrator
        The fitted calibrator of each class. A class without rows has the constant
        1 / (n + 2).
    shares_ : ndarray of shape (k,)
        (n_c + 1) / (n + k) of each class: the answer to a row in which every
        calibrator says 0.

    Notes
    -----
    .. math:: P(y = j | p) = \frac{g_j(p_j)}{\sum_i g_i(p_i)},

    :math:`g_j` learned from all rows with the label 1 where y = j. Logits enter by the
    log-odds of the class against the others.

    References
    ----------
    Zadrozny & Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates.

    Examples
    --------
    >>> from calibration import OneVsRestCalibrator
    >>> scores = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]] * 20
    >>> calibrator = OneVsRestCalibrator("isotonic").fit(scores, [0, 1, 2] * 20)
    >>> calibrator.predict([[0.7, 0.2, 0.1]]).argmax()
    np.int64(0)
    """

    calibrators_: list[ScoreCalibrator]
    shares_: Float64Array

    def __init__(
        self,
        calibrator: str | ScoreCalibrator = "quadratic",
        *,
        classes: Sequence[Any] | None = None,
        scale: ClassScale = "probability",
    ):
        self.calibrator = calibrator
        self.classes = classes
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._make()._check_parameters()

    def _make(self) -> ScoreCalibrator:
        """Return a binary calibrator that is not fitted."""
        one = clone(as_calibrator(self.calibrator))
        return cast(ScoreCalibrator, one.set_params(scale=self.scale))

    def _fit(self, data: ClassScores) -> None:
        counts = data.counts
        self.shares_ = (counts + 1.0) / (data.n + len(counts))
        self.calibrators_ = []
        tasks = columns_against_rest(data.scores, self.scale)
        for j, column in enumerate(tasks):
            summary = ScoreSummary.from_scores(column, data.labels == j, data.weight)
            self.calibrators_.append(self._fit_one(summary))

    def _fit_one(self, summary: ScoreSummary) -> ScoreCalibrator:
        """Return the calibrator of one class."""
        one = self._make()
        if min(summary.n0, summary.n1) > 0.0 and summary.n_cells > 1:
            return one.fit_summary(summary)
        # Of hundreds of classes some may lack rows: their documented constant, without
        # a warning for each.
        one._fit_constant(summary, (summary.n1 + 1.0) / (summary.n + 2.0))
        return one

    def _predict(self, table: Float64Array) -> Float64Array:
        p = np.empty(table.shape)
        tasks = columns_against_rest(table, self.scale)
        for j, column in enumerate(tasks):
            p[:, j] = self.calibrators_[j].predict(column)
        sums = p.sum(axis=1, keepdims=True)
        p[sums[:, 0] == 0.0] = self.shares_
        p /= np.where(sums == 0.0, self.shares_.sum(), sums)
        return p
