"""Adaptive calibration of predictions (ACP): a bin of its own for each row."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._kernels.evaluate import count_below
from calibration._validation import (
    as_numbers,
    check_labels,
    check_weights,
    refuse,
    show,
)
from calibration.base.calibrators import Scale, SummaryEstimator
from calibration.exceptions import CalibrationWarning
from calibration.neighbours.side_information import SideInformationCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array, Int64Array

# By this share of a score, its interval may miss it through rounding.
_ROUNDING = 1e-12
# What intervals may be multiplied by, 1 first: it stays unless another is better.
_FACTORS = (1.0, *(2.0**k for k in range(-8, 5) if k))


class ACPCalibrator(SideInformationCalibrator, SummaryEstimator):
    r"""Adaptive calibration of predictions: the event rate of a row's own interval.

    It needs an interval per prediction, for instance the classifier's confidence
    interval; `logistic_intervals` makes it for logistic regression.

    Parameters
    ----------
    smoothing : float
        Rows at the base rate that are added to every interval. 0 gives plain event
        rates, which may be 0 or 1.
    scale : {"probability", "logit", "real"}
        What a score is. Intervals are on the scale of the scores.

    Attributes
    ----------
    scores_ : ndarray of shape (n_cells,)
        Distinct calibration scores.
    factor_ : float
        What intervals are multiplied by about their score; 1 without any at `fit`.
    cumulative0_, cumulative1_ : ndarrays of shape (n_cells + 1,)
        Weight of each class below each of them, and in all.
    base_rate_ : float
        Share of class 1.
    constant_ : float or None
        The answer where there was nothing to learn.

    Notes
    -----
    The answer is the mean label of the calibration rows with low <= score <= high:
    histogram binning whose bin is wide where the classifier is unsure. Two binary
    searches and a difference of cumulative sums give it in O(log n).

    How wide an interval should be is another question than what it holds with 95 %:
    where the event rate is no increasing function of the score, intervals that are
    much narrower do better. Given intervals at `fit`, those of the calibration rows
    are multiplied about their scores by 1/256, 1/128, ..., 16, and the factor with
    the least Brier score is kept, each row being forecast without itself; a row
    whose interval holds no other has the base rate.

    An interval that no calibration score lies in is stretched to the score nearest
    to the prediction (both, if two are equally near), with a `CalibrationWarning`.

    References
    ----------
    Jiang, Osl, Kim & Ohno-Machado (2012), Calibrating predictive model estimates to
    support personalized medicine.

    Examples
    --------
    >>> from calibration.neighbours.acp import ACPCalibrator
    >>> acp = ACPCalibrator().fit([0.1, 0.3, 0.4, 0.6, 0.9], [0, 0, 1, 0, 1])
    >>> acp.predict([0.4, 0.7], [[0.25, 0.55], [0.2, 1.0]])
    array([0.5, 0.5])

    Intervals of the calibration rows tell how wide they should be:

    >>> import numpy as np
    >>> scores = np.linspace(0.0, 1.0, 401)
    >>> y, wide = np.sin(20.0 * scores) > 0.0, scores[:, None] + [-0.5, 0.5]
    >>> ACPCalibrator().fit(scores, y, intervals=wide).factor_
    0.0078125
    """

    scores_: Float64Array
    cumulative0_: Float64Array
    cumulative1_: Float64Array
    factor_: float

    def __init__(self, *, smoothing: float = 0.0, scale: Scale = "probability"):
        self.smoothing = smoothing
        self.scale = scale

    def fit(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        intervals: ArrayLike | None = None,
    ) -> Self:
        """Learn from scores and labels, and from intervals how wide they should be.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores on the scale that `scale` names, of rows that the classifier has
            not seen.
        y : array-like of shape (n,)
            Labels coded 0 and 1.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.
        intervals : array-like of shape (n, 2), optional
            Low and high end of each score's interval, as `predict` gets them.

        Returns
        -------
        self
        """
        if intervals is None:
            return super().fit(scores, y, sample_weight)
        values = self._check_scores(scores)
        ends = _check_intervals(intervals, values)
        super().fit(values, y, sample_weight)
        if self.constant_ is None:
            ones, weight = check_labels(y), check_weights(sample_weight, len(values))
            held = weight > 0.0
            low, high = (end[held] for end in ends)
            self.factor_ = self._find_factor(
                values[held], ones[held], weight[held], low, high
            )
        return self

    def _learn(self, summary: ScoreSummary) -> None:
        self._settle(summary, stacklevel=6)
        self.factor_ = 1.0
        self.scores_ = summary.scores
        self.cumulative0_ = np.append(0.0, np.cumsum(summary.weight0))
        self.cumulative1_ = np.append(0.0, np.cumsum(summary.weight1))

    def predict(self, scores: ArrayLike, intervals: ArrayLike) -> Float64Array:
        """Return the calibrated probability of class 1.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
        intervals : array-like of shape (n, 2)
            Low and high end of each prediction's interval, which contains it.

        Returns
        -------
        ndarray of shape (n,)
        """
        values = self._read_scores(scores)
        low, high = _check_intervals(intervals, values)
        if self.constant_ is not None:
            return np.full(len(values), self.constant_)
        first, beyond = self._cells(values, low, high, self.factor_)
        empty = first == beyond
        if empty.any():
            first[empty], beyond[empty] = self._nearest(values[empty], first[empty])
            msg = (
                f"{int(empty.sum())} of {len(values)} `intervals` hold no calibration "
                "score; ACPCalibrator stretches them to the nearest."
            )
            warnings.warn(msg, CalibrationWarning, stacklevel=2)
        return self._rate(
            self.cumulative0_[beyond] - self.cumulative0_[first],
            self.cumulative1_[beyond] - self.cumulative1_[first],
        )

    def llr(self, scores: ArrayLike, intervals: ArrayLike) -> Float64Array:
        """Return log-likelihood ratios: evidence that is free of the training prior.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
        intervals : array-like of shape (n, 2)
            As of `predict`.

        Returns
        -------
        ndarray of shape (n,)
            As logit(`predict`) - logit(`base_rate_`): -inf and +inf where `predict`
            says 0 and 1, which takes a `smoothing` of 0.
        """
        return self._evidence(self.predict(scores, intervals))

    def _cells(
        self, values: Float64Array, low: Float64Array, high: Float64Array, factor: float
    ) -> tuple[Int64Array, Int64Array]:
        """First and beyond-last cell in intervals multiplied about their scores."""
        if factor != 1.0:
            low = values - factor * np.maximum(values - low, 0.0)
            high = values + factor * np.maximum(high - values, 0.0)
        # Cells with low <= score, that is score > the float below low.
        first = count_below(self.scores_, np.nextafter(low, -np.inf))
        return first, count_below(self.scores_, high)

    def _find_factor(
        self,
        values: Float64Array,
        ones: NDArray[np.bool_],
        weight: Float64Array,
        low: Float64Array,
        high: Float64Array,
    ) -> float:
        """Return the factor with the least Brier score of rows left out."""
        # Of a row that stands for several, one is left out.
        own = np.minimum(weight, 1.0)
        losses = []
        for factor in _FACTORS:
            first, beyond = self._cells(values, low, high, factor)
            weight0 = self.cumulative0_[beyond] - self.cumulative0_[first]
            weight1 = self.cumulative1_[beyond] - self.cumulative1_[first]
            weight0 = np.maximum(weight0 - np.where(ones, 0.0, own), 0.0)
            weight1 = np.maximum(weight1 - np.where(ones, own, 0.0), 0.0)
            alone = weight0 + weight1 <= _ROUNDING * self.cumulative0_[-1]
            rate = np.full(len(values), self.base_rate_)
            rate[~alone] = self._rate(weight0[~alone], weight1[~alone])
            losses.append(float(weight @ (rate - ones) ** 2))
        return _FACTORS[int(np.argmin(losses))]

    def _nearest(
        self, values: Float64Array, place: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """First and beyond-last cell nearest to values between place - 1 and place."""
        last = len(self.scores_) - 1
        below, above = np.maximum(place - 1, 0), np.minimum(place, last)
        to_below = np.where(place > 0, values - self.scores_[below], np.inf)
        to_above = np.where(place <= last, self.scores_[above] - values, np.inf)
        # `<=` on both sides: two that are equally near are both taken.
        first = np.where(to_below <= to_above, below, above)
        beyond = np.where(to_above <= to_below, above, below) + 1
        return first, beyond


def _check_intervals(
    intervals: ArrayLike, scores: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the ends of intervals that contain their scores, each of shape (n,)."""
    array = as_numbers(intervals, "intervals")
    if array.shape != (len(scores), 2):
        rule = f"have shape ({len(scores)}, 2), one row per score"
        refuse("intervals", rule, f"shape {array.shape}")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        place = int(np.argmin(finite))
        refuse("intervals", "be finite", f"{array[place].tolist()} at position {place}")
    # Ends computed as p -+ radius may round to the wrong side of p.
    slack = _ROUNDING * np.abs(scores)
    inside = (array[:, 0] <= scores + slack) & (scores - slack <= array[:, 1])
    if not inside.all():
        place = int(np.argmin(inside))
        got = (
            f"[{show(array[place, 0])}, {show(array[place, 1])}] for the score "
            f"{show(scores[place])} at position {place}"
        )
        refuse("intervals", "contain their predictions", got)
    return np.ascontiguousarray(array[:, 0]), np.ascontiguousarray(array[:, 1])
