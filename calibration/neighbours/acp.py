"""Adaptive calibration of predictions (ACP): a bin of its own for each row."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike

from calibration._kernels.evaluate import count_below
from calibration._validation import as_numbers, show
from calibration.base.calibrators import Scale, SummaryEstimator
from calibration.exceptions import CalibrationWarning
from calibration.neighbours.side_information import SideInformationCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array, Int64Array

# By this share of a score, its interval may miss it through rounding.
_ROUNDING = 1e-12


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
    """

    scores_: Float64Array
    cumulative0_: Float64Array
    cumulative1_: Float64Array

    def __init__(self, *, smoothing: float = 0.0, scale: Scale = "probability"):
        self.smoothing = smoothing
        self.scale = scale

    def _learn(self, summary: ScoreSummary) -> None:
        self._settle(summary, stacklevel=5)
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
        # Cells with low <= score, that is score > the float below low.
        first = count_below(self.scores_, np.nextafter(low, -np.inf))
        beyond = count_below(self.scores_, high)
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
        msg = (
            f"`intervals` must have shape ({len(scores)}, 2), one row per score, "
            f"got shape {array.shape}."
        )
        raise ValueError(msg)
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        place = int(np.argmin(finite))
        msg = (
            f"`intervals` must be finite, got {array[place].tolist()} "
            f"at position {place}."
        )
        raise ValueError(msg)
    # Ends computed as p -+ radius may round to the wrong side of p.
    slack = _ROUNDING * np.abs(scores)
    inside = (array[:, 0] <= scores + slack) & (scores - slack <= array[:, 1])
    if not inside.all():
        place = int(np.argmin(inside))
        msg = (
            "`intervals` must contain their predictions, "
            f"got [{show(array[place, 0])}, {show(array[place, 1])}] for the score "
            f"{show(scores[place])} at position {place}."
        )
        raise ValueError(msg)
    return np.ascontiguousarray(array[:, 0]), np.ascontiguousarray(array[:, 1])
