"""Calibrators that need more than a score: an interval of each row, or its features.

`ACPCalibrator` gives each row its own bin. `SBACalibrator` gives it its neighbours.
"""

from __future__ import annotations

import warnings
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import validate_data

from calibration._kernels.evaluate import count_below, window_sums
from calibration._validation import (
    all_or_nothing,
    as_numbers,
    check_finite,
    check_integer,
    check_labels,
    check_number,
    check_order,
    check_same_length,
    check_weights,
    is_auto,
    refuse,
    show,
    warn_of_light,
)
from calibration.base.calibrators import (
    Scale,
    ScaledEstimator,
    SummaryEstimator,
    find_constant,
    prior_rate,
)
from calibration.exceptions import CalibrationWarning
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array, Int64Array


class SideInformationCalibrator(ScaledEstimator):
    """Base of calibrators whose `predict` needs more than the score.

    They are not `ScoreCalibrator`s, which predict from a score alone, but they keep the
    same conventions. Labels are coded 0 and 1. Weights count repetitions. The scale is
    never guessed. With one class only, or one distinct score, the answer is the
    constant (n1 + 1) / (n + 2), with a `CalibrationWarning`.

    The answer is the rate of ones among some calibration rows. `smoothing` rows at the
    base rate are added to them.
    """

    smoothing: float
    base_rate_: float
    constant_: float | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self.smoothing, "smoothing", 0.0)

    def _settle(self, summary: ScoreSummary, stacklevel: int) -> None:
        """Learn the base rate, or a constant if there is no more."""
        self.base_rate_ = prior_rate(summary)
        self.constant_ = find_constant(self, summary, stacklevel=stacklevel + 1)

    def _evidence(self, rates: Float64Array) -> Float64Array:
        """Return the log-likelihood ratios that rates of ones (n,) stand for."""
        if self.constant_ is not None:
            # If all rows have one answer, this answer is no evidence.
            return np.zeros(len(rates))
        return np.asarray(logit(rates) - logit(self.base_rate_))

    def _rate(self, weight0: Float64Array, weight1: Float64Array) -> Float64Array:
        """Return the smoothed rate of ones, shape (n,)."""
        ones = weight1 + self.smoothing * self.base_rate_
        return ones / (weight0 + weight1 + self.smoothing)


# Rounding may put a score outside its interval by this share of the score.
_ROUNDING = 1e-12
# Factors for intervals. 1 comes first: it stays unless another is better.
_FACTORS = (1.0, *(2.0**k for k in range(-8, 5) if k))


class ACPCalibrator(SideInformationCalibrator, SummaryEstimator):
    r"""Adaptive calibration of predictions: the event rate in the interval of a row.

    It needs an interval for each prediction, for instance the classifier's confidence
    interval. `logistic_intervals` makes one for logistic regression.

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
        Intervals are multiplied by this about their score. It is 1 if `fit` got none.
    weight0_, weight1_ : ndarrays of shape (n_cells,)
        Weight of each class at these scores.
    base_rate_ : float
        Share of class 1.
    constant_ : float or None
        The answer if there was nothing to learn.

    Notes
    -----
    The answer is the mean label of the calibration rows with low <= score <= high. This
    is histogram binning with a bin that is wide where the classifier is unsure. Two
    binary searches and a difference of cumulative sums give it in O(log n).

    How wide the best interval is, and which interval holds 95 %, are two questions. If
    the event rate is no increasing function of the score, much narrower intervals do
    better. If `fit` gets intervals, it multiplies those of the calibration rows about
    their scores by 1/256, 1/128, ..., 16. It keeps the factor with the least Brier
    score, where each row is forecast without itself. If an interval holds no other row,
    its row gets the base rate.
    other row has the base rate.

    If no calibration score lies in an interval, the interval is stretched to the score
    that is nearest to the prediction, with a `CalibrationWarning`. If two scores are
    equally near, it is stretched to both.

    References
    ----------
    Jiang, Osl, Kim & Ohno-Machado (2012), Calibrating predictive model estimates to
    support personalized medicine.

    Examples
    --------
    >>> from calibration.neighbours.side_information import ACPCalibrator
    >>> acp = ACPCalibrator().fit([0.1, 0.3, 0.4, 0.6, 0.9], [0, 0, 1, 0, 1])
    >>> acp.predict([0.4, 0.7], [[0.25, 0.55], [0.2, 1.0]])
    array([0.5, 0.5])

    Intervals of the calibration rows show how wide they should be:

    >>> import numpy as np
    >>> scores = np.linspace(0.0, 1.0, 401)
    >>> y, wide = np.sin(20.0 * scores) > 0.0, scores[:, None] + [-0.5, 0.5]
    >>> ACPCalibrator().fit(scores, y, intervals=wide).factor_
    0.0078125
    """

    scores_: Float64Array
    weight0_: Float64Array
    weight1_: Float64Array
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
        """Learn from scores and labels. Learn from intervals how wide they should be.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores on the scale that `scale` names. The classifier has not seen their
            rows.
        y : array-like of shape (n,)
            Labels coded 0 and 1.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.
        intervals : array-like of shape (n, 2), optional
            Lower and upper end of each score's interval, as `predict` gets them.

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
        self.weight0_, self.weight1_ = summary.weight0, summary.weight1

    def predict(self, scores: ArrayLike, intervals: ArrayLike) -> Float64Array:
        """Return the calibrated probability of class 1.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
        intervals : array-like of shape (n, 2)
            Lower and upper end of each prediction's interval, which contains the
            prediction.

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
        return self._rate(*self._weights(first, beyond))

    def llr(self, scores: ArrayLike, intervals: ArrayLike) -> Float64Array:
        """Return log-likelihood ratios: evidence that is free of the training prior.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
        intervals : array-like of shape (n, 2)
            Intervals as in `predict`.

        Returns
        -------
        ndarray of shape (n,)
            It is logit(`predict`) - logit(`base_rate_`). This is -inf where `predict`
            says 0, and +inf where it says 1. Both need a `smoothing` of 0.
        """
        return self._evidence(self.predict(scores, intervals))

    def _cells(
        self, values: Float64Array, low: Float64Array, high: Float64Array, factor: float
    ) -> tuple[Int64Array, Int64Array]:
        """Return first cell and last + 1 of intervals multiplied about their scores."""
        if factor != 1.0:
            low = values - factor * np.maximum(values - low, 0.0)
            high = values + factor * np.maximum(high - values, 0.0)
        # These cells have low <= score, because the score is above the float below low.
        first = count_below(self.scores_, np.nextafter(low, -np.inf))
        return first, count_below(self.scores_, high)

    def _weights(
        self, first: Int64Array, beyond: Int64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the weights of both classes in windows of cells, shape (n,)."""
        length = beyond - first
        zero, one = self.weight0_, self.weight1_
        return window_sums(zero, first, length), window_sums(one, first, length)

    def _find_factor(
        self,
        values: Float64Array,
        ones: NDArray[np.bool_],
        weight: Float64Array,
        low: Float64Array,
        high: Float64Array,
    ) -> float:
        """Return the factor with the least Brier score of rows left out."""
        # If a row stands for several, one of them is left out.
        left_out = np.minimum(weight, 1.0)
        losses = []
        for factor in _FACTORS:
            first, beyond = self._cells(values, low, high, factor)
            weight0, weight1 = self._weights(first, beyond)
            weight0 = np.maximum(weight0 - np.where(ones, 0.0, left_out), 0.0)
            weight1 = np.maximum(weight1 - np.where(ones, left_out, 0.0), 0.0)
            alone = weight0 + weight1 <= _ROUNDING * left_out
            rate = np.full(len(values), self.base_rate_)
            rate[~alone] = self._rate(weight0[~alone], weight1[~alone])
            losses.append(float(weight @ (rate - ones) ** 2))
        return _FACTORS[int(np.argmin(losses))]

    def _nearest(
        self, values: Float64Array, place: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Return the cells (first, last + 1) nearest to values before `place`."""
        last = len(self.scores_) - 1
        below, above = np.maximum(place - 1, 0), np.minimum(place, last)
        to_below = np.where(place > 0, values - self.scores_[below], np.inf)
        to_above = np.where(place <= last, self.scores_[above] - values, np.inf)
        # `<=` on both sides takes both if two are equally near.
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
    check_finite(array, "intervals")
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


# Distances that differ by no more than this share are equal except for rounding.
_TIE = 1e-9
# At most this many distances are held at a time.
_CHUNK = 2**21


class SBACalibrator(SideInformationCalibrator):
    r"""Similarity binning averaging: the event rate of the nearest neighbours.

    It needs the features as well as the score. Neighbours are the calibration rows that
    are near in features and score together.

    Parameters
    ----------
    n_neighbors : int or "auto"
        Number k of neighbours. "auto" takes sqrt(n), rounded.
    score_weight : float
        Weight of the score's distance against that of one feature. Each feature and the
        score are first divided by their standard deviation.
    smoothing : float
        Rows at the base rate that are added to the neighbours. 0 gives plain event
        rates, which may be 0 or 1.
    scale : {"probability", "logit", "real"}
        What a score is. Distances are measured on it.

    Attributes
    ----------
    n_neighbors_ : int
        The number k that is used.
    units_ : ndarray of shape (n_features + 1,)
        Features and score are multiplied by these. It is 0 for a constant one.
    weight0_, weight1_ : ndarrays of shape (n_points,)
        Weight of each class in the distinct rows.
    search_ : NearestNeighbors
        The search for neighbours among them.
    reach_ : int
        Number of neighbours that are asked for first.
    base_rate_ : float
        Share of class 1.
    constant_ : float or None
        The answer if there was nothing to learn.
    n_features_in_ : int

    Notes
    -----
    Equal rows become one point with the weight of each class. The answer is the mean
    label of the nearest points that hold a weight of k. The points at the distance
    where k is reached share the rest of k in proportion to their weights. So the order
    of rows does not matter, nor whether rows are repeated or weighted.

    References
    ----------
    Bella, Ferri, Hernandez-Orallo & Ramirez-Quintana (2009), Similarity-binning
    averaging: a generalisation of binning calibration.

    Examples
    --------
    >>> from calibration.neighbours.side_information import SBACalibrator
    >>> X = [[0.0], [0.0], [5.0], [5.0]]
    >>> sba = SBACalibrator(2).fit(X, [0.4, 0.6, 0.4, 0.6], [0, 0, 1, 0])
    >>> sba.predict([[0.0], [5.0]], [0.5, 0.5])
    array([0. , 0.5])
    """

    n_neighbors_: int
    units_: Float64Array
    weight0_: Float64Array
    weight1_: Float64Array
    search_: NearestNeighbors
    reach_: int
    n_features_in_: int

    def __init__(
        self,
        n_neighbors: int | Literal["auto"] = "auto",
        *,
        score_weight: float = 1.0,
        smoothing: float = 0.0,
        scale: Scale = "probability",
    ):
        self.n_neighbors = n_neighbors
        self.score_weight = score_weight
        self.smoothing = smoothing
        self.scale = scale

    def fit(
        self,
        X: ArrayLike,
        scores: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Remember the calibration rows.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features. All must be numbers.
        scores : array-like of shape (n,) or (n, 1)
            Scores on the scale that `scale` names.
        y : array-like of shape (n,)
            Labels coded 0 and 1.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.

        Returns
        -------
        self
        """
        self._check_parameters()
        values = self._check_scores(scores)
        table = _check_table(X, len(values))
        summary = ScoreSummary.from_scores(values, y, sample_weight)
        warn_of_light(sample_weight)
        k = self._choose_k(summary.n)
        with all_or_nothing(self):
            self._settle(summary, stacklevel=3)
            validate_data(self, X, skip_check_array=True)
            self.n_neighbors_ = k
            if self.constant_ is None:
                ones = check_labels(y).astype(np.float64)
                weight = check_weights(sample_weight, len(values))
                rows = np.column_stack([table, values])
                self._remember(rows, weight * (1.0 - ones), weight * ones)
        return self

    def predict(self, X: ArrayLike, scores: ArrayLike) -> Float64Array:
        """Return the calibrated probability of class 1.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        scores : array-like of shape (n,) or (n, 1)

        Returns
        -------
        ndarray of shape (n,)
        """
        values = self._read_scores(scores)
        table = _check_table(X, len(values))
        if table.shape[1] != self.n_features_in_:
            rule = f"have {self.n_features_in_} features as in `fit`"
            refuse("X", rule, table.shape[1])
        known = getattr(self, "feature_names_in_", ())
        check_order(X, known, "X", allow_others=False)
        validate_data(self, X, reset=False, skip_check_array=True)
        if self.constant_ is not None:
            return np.full(len(values), self.constant_)
        points = (np.column_stack([table, values]) - self.center_) * self.units_
        return self._average(points, self.reach_)

    def llr(self, X: ArrayLike, scores: ArrayLike) -> Float64Array:
        """Return log-likelihood ratios: evidence that is free of the training prior.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        scores : array-like of shape (n,) or (n, 1)

        Returns
        -------
        ndarray of shape (n,)
            It is logit(`predict`) - logit(`base_rate_`). This is -inf where `predict`
            says 0, and +inf where it says 1. Both need a `smoothing` of 0.
        """
        return self._evidence(self.predict(X, scores))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_auto(self.n_neighbors):
            check_integer(self.n_neighbors, "n_neighbors", 1)
        check_number(self.score_weight, "score_weight", 0.0)

    def _choose_k(self, n: float) -> int:
        if self.n_neighbors == "auto":
            return max(1, round(float(np.sqrt(n))))
        if self.n_neighbors > n:
            rule = "not be greater than the number of rows (the sum of weights)"
            refuse("n_neighbors", rule, f"{self.n_neighbors} for {show(n)}")
        return int(self.n_neighbors)

    def _remember(
        self, rows: Float64Array, weight0: Float64Array, weight1: Float64Array
    ) -> None:
        """Merge equal rows into points, scale them, and build the search."""
        held = weight0 + weight1 > 0.0
        # Adding zero turns -0.0 into 0.0, its equal, so that no row has two names.
        points, place = np.unique(rows[held] + 0.0, axis=0, return_inverse=True)
        place = place.ravel()
        self.weight0_, self.weight1_ = np.zeros((2, len(points)))
        np.add.at(self.weight0_, place, weight0[held])
        np.add.at(self.weight1_, place, weight1[held])
        # The units use weighted moments, so that weights are repetitions here too.
        total = self.weight0_ + self.weight1_
        # Distances of many features lose digits far from 0.
        self.center_ = np.average(points, axis=0, weights=total)
        spread = points - self.center_
        deviation = np.sqrt(np.average(spread**2, axis=0, weights=total))
        varies = points.max(axis=0) > points.min(axis=0)
        self.units_ = np.where(varies, 1.0 / np.where(varies, deviation, 1.0), 0.0)
        self.units_[-1] *= self.score_weight
        # Any points of this number hold a weight of k. One more point shows ties.
        reach = np.searchsorted(np.cumsum(np.sort(total)), self.n_neighbors_)
        self.reach_ = min(int(reach) + 2, len(points))
        self.search_ = NearestNeighbors().fit(spread * self.units_)

    def _average(self, points: Float64Array, n_asked: int) -> Float64Array:
        """Return event rates around scaled points from `n_asked` neighbours or more."""
        # Chunks bound the memory for distances, for any number of rows.
        size = max(1, _CHUNK // n_asked)
        if len(points) > size:
            chunks = np.split(points, range(size, len(points), size))
            return np.concatenate([self._average(part, n_asked) for part in chunks])
        distance, index = self.search_.kneighbors(points, n_asked)
        weight0, weight1 = self.weight0_[index], self.weight1_[index]
        filled = np.cumsum(weight0 + weight1, axis=1) >= self.n_neighbors_
        # Rounding may leave the sum of all weights just short of k = n.
        last = np.where(filled.any(axis=1), filled.argmax(axis=1), n_asked - 1)
        radius = distance[np.arange(len(points)), last][:, None]
        inner = distance < radius * (1.0 - _TIE)
        shell = ~inner & (distance <= radius * (1.0 + _TIE))
        inner0, inner1 = (weight0 * inner).sum(axis=1), (weight1 * inner).sum(axis=1)
        shell0, shell1 = (weight0 * shell).sum(axis=1), (weight1 * shell).sum(axis=1)
        # Take the rest of k, as a share of the weight at the distance of the k-th. All
        # rows together may weigh less.
        share = (self.n_neighbors_ - inner0 - inner1) / (shell0 + shell1)
        share = np.minimum(share, 1.0)
        rate = self._rate(inner0 + share * shell0, inner1 + share * shell1)
        # More points at this distance may follow the neighbours that were asked for.
        cut = shell[:, -1] & (n_asked < len(self.weight0_))
        if cut.any():
            # Double the number. Few rows need this, and they need it only a few times.
            more = min(2 * n_asked, len(self.weight0_))
            rate[cut] = self._average(points[cut], more)
        return rate


def _check_table(X: ArrayLike, n: int) -> Float64Array:
    """Return features as a finite float64 array of shape (n, n_features)."""
    table = as_numbers(X, "X")
    if table.ndim != 2:
        refuse("X", "have shape (n, n_features)", f"shape {table.shape}")
    check_same_length(n, "`scores`", len(table), "X")
    check_finite(table, "X")
    return table
