"""Venn-Abers prediction: two probabilities per score, and their merging."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from calibration._kernels.pav import pools_with_one_more
from calibration.base.calibrators import Scale, ScoreCalibrator, constant_map
from calibration.maps import CalibrationMap
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class VennAbersCalibrator(ScoreCalibrator):
    r"""Inductive Venn-Abers predictor: isotonic regression with honest ends.

    Parameters
    ----------
    scale : {"probability", "logit", "real"}
        What a score is. The fit depends on the order of scores only.

    Attributes
    ----------
    lower_, upper_ : CalibrationMap
        The maps from score to p0 and to p1, both increasing.
    map_ : CalibrationMap
        The merged probability, increasing too.

    Notes
    -----
    p0(s) and p1(s) are values at s of isotonic regressions. These are fitted to the
    calibration rows and one more row (s, 0), or (s, 1). If rows are exchangeable, the
    one of the true label is a calibrated forecast at any n. p1 - p0 says how much one
    label matters: about one over the weight of the block.

    The merged probability p1 / (1 - p0 + p1) has the least regret in log loss
    against the worse of the two. It is never 0 or 1, so its log loss is finite.

    For all scores at once, the two are step functions. For each, one pass of PAV and
    one pass over its corners find it in O(n). It is applied in O(log n).

    With one class only, or one distinct score, all rows are one cell of ties: p0 = n1 /
    (n + 1), p1 = (n1 + 1) / (n + 1), merged to (n1 + 1) / (n + 2).

    With ``CalibratedClassifier(..., ensemble=True)`` this is the cross Venn-Abers
    predictor, which merges the intervals of all folds by geometric means.

    References
    ----------
    Vovk & Petej (2014), Venn-Abers predictors. Vovk, Petej & Fedorova (2015),
    Large-scale probabilistic predictors with and without guarantees of validity.

    Examples
    --------
    >>> from calibration.monotone.venn_abers import VennAbersCalibrator
    >>> va = VennAbersCalibrator().fit([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
    >>> va.predict_interval([0.1, 0.5, 0.95]).round(3)
    array([[0.   , 0.5  ],
           [0.333, 0.667],
           [0.5  , 1.   ]])
    >>> va.predict([0.1, 0.5, 0.95]).round(3)
    array([0.333, 0.5  , 0.667])
    """

    lower_: CalibrationMap
    upper_: CalibrationMap
    map_: CalibrationMap

    def __init__(self, *, scale: Scale = "probability"):
        self.scale = scale

    def predict_interval(self, scores: ArrayLike) -> Float64Array:
        """Return p0 and p1 of each score.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)

        Returns
        -------
        ndarray of shape (n, 2)
            Columns p0 and p1, p0 < p1.
        """
        values = self._read_scores(scores)
        return np.column_stack([self.lower_(values), self.upper_(values)])

    def _fit(self, summary: ScoreSummary) -> None:
        scores, weight0, weight1 = summary.scores, summary.weight0, summary.weight1
        pool0, pool1 = pools_with_one_more(weight0, weight1)
        upper = pool1 / (pool0 + pool1)
        # One more 0 is one more 1 with the order and the classes turned around.
        pool1, pool0 = pools_with_one_more(weight1[::-1].copy(), weight0[::-1].copy())
        lower = (pool1 / (pool0 + pool1))[::-1]
        self.lower_ = _steps_up(scores, lower)
        self.upper_ = _steps_down(scores, upper)
        # p0 steps up at scores and p1 just above them: between all of these both are
        # constant.
        knots = np.unique(np.concatenate([self.lower_.knots, self.upper_.knots]))
        limits = zip(
            self.lower_._limits(knots), self.upper_._limits(knots), strict=True
        )
        # p1 / (1 - p0 + p1) so written that rounding keeps it increasing.
        left, at, right = (1.0 / (1.0 + (1.0 - p0) / p1) for p0, p1 in limits)
        self.map_ = CalibrationMap(knots, left, at, right, "step")

    def _fit_constant(self, summary: ScoreSummary, constant: float) -> None:
        n1, total = summary.n1, summary.n + 1.0
        self.lower_, self.upper_, self.map_ = (
            constant_map(summary, value)
            for value in (n1 / total, (n1 + 1.0) / total, constant)
        )

    def _predict(self, values: Float64Array) -> Float64Array:
        return self.map_(values)


def merge_intervals(intervals: Sequence[Float64Array]) -> Float64Array:
    """Merge the intervals [p0, p1] of several Venn-Abers predictors per row.

    The probability with the least regret in log loss is GM(p1) / (GM(1 - p0) +
    GM(p1)), GM the geometric mean over the predictors (Vovk, Petej & Fedorova 2015,
    section 4).

    Parameters
    ----------
    intervals : sequence of k ndarrays of shape (n, 2)

    Returns
    -------
    ndarray of shape (n,)
    """
    stacked = np.asarray(intervals)
    p0, p1 = stacked[..., 0], stacked[..., 1]
    return np.asarray(expit(np.mean(np.log(p1) - np.log1p(-p0), axis=0)))


def _steps_up(scores: Float64Array, values: Float64Array) -> CalibrationMap:
    """Return the map that is values[i] from scores[i] on, and 0 below the first."""
    # One knot a step, not one a score.
    kept = np.append(True, values[1:] != values[:-1])
    knots, at = scores[kept], values[kept]
    return CalibrationMap(knots, np.append(0.0, at[:-1]), at, at, "step")


def _steps_down(scores: Float64Array, values: Float64Array) -> CalibrationMap:
    """Return the map that is values[i] down from scores[i], and 1 above the last."""
    kept = np.append(values[1:] != values[:-1], True)
    knots, at = scores[kept], values[kept]
    return CalibrationMap(knots, at, at, np.append(at[1:], 1.0), "step")
