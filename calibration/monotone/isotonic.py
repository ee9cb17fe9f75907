"""Isotonic regression of the labels: plain, centred, bagged, and with honest ends."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from calibration._kernels.cells import group_means
from calibration._kernels.pav import (
    always_pooled,
    pool_adjacent_violators,
    pools_with_one_more,
    sum_of_bags,
)
from calibration._validation import (
    check_integer,
    check_number,
    check_optional_seed,
    check_span,
    refuse,
    show,
)
from calibration.base.calibrators import (
    BlockCalibrator,
    MapCalibrator,
    Scale,
    constant_map,
)
from calibration.maps import CalibrationMap, block_starts
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class IsotonicCalibrator(BlockCalibrator):
    r"""Isotonic regression by pool adjacent violators (PAV).

    Parameters
    ----------
    scale : {"probability", "logit", "real"}
        What a score is. The fit depends on the order of scores only.

    Attributes
    ----------
    map_ : CalibrationMap
        The steps, with class weights. A step lies midway between the last score of one
        block and the first of the next.

    Notes
    -----
    Among all increasing maps, the solution minimises every regular proper scoring rule
    of the training labels at once, at every weighting of the classes. Blocks at the
    ends may be 0 or 1. There the log loss of a new row may be infinite.

    References
    ----------
    Ayer et al. (1955), An empirical distribution function for sampling with
    incomplete information. Brummer & du Preez (2013), The PAV algorithm optimizes
    binary proper scoring rules.

    Examples
    --------
    >>> from calibration import IsotonicCalibrator
    >>> pav = IsotonicCalibrator().fit([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
    >>> pav.predict([0.1, 0.3, 0.6, 0.9])
    array([0. , 0.5, 0.5, 1. ])
    >>> pav.llr([0.1, 0.5, 0.9])
    array([-inf,   0.,  inf])
    """

    def llr_map(self) -> CalibrationMap:
        """Return `llr` as a map from scores to log-likelihood ratios (PAV-LLR).

        Returns
        -------
        CalibrationMap
            Steps of logit(map) - logit(base rate), where -inf and +inf are allowed.
            They do not depend on the weights of the two classes. Among all increasing
            maps they are the best at any prior (PAV-LLR). If training saw only one
            class, there is no evidence either way, and they are 0.
        """
        check_is_fitted(self)
        weight0, weight1 = self.map_.block_weights()
        n0, n1 = weight0.sum(), weight1.sum()
        if n0 == 0.0 or n1 == 0.0:
            return CalibrationMap.step(self.map_.knots, np.zeros(len(self.map_)))
        with np.errstate(divide="ignore"):
            # This is logit(n1 / n) - logit(N1 / N), computed without probabilities.
            ratio = np.log(weight1 / n1) - np.log(weight0 / n0)
        return CalibrationMap.step(self.map_.knots, ratio)

    def _evidence(self, values: Float64Array) -> Float64Array:
        return self.llr_map()(values)

    def _fit(self, summary: ScoreSummary) -> None:
        first, weight0, weight1 = pool_adjacent_violators(
            summary.weight0, summary.weight1
        )
        self.map_ = CalibrationMap.step(
            block_starts(summary.scores, first),
            weight1 / (weight0 + weight1),
            weight0,
            weight1,
        )


class CenteredIsotonicCalibrator(MapCalibrator):
    r"""Centred isotonic regression: strictly increasing between blocks.

    Parameters
    ----------
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        The map is linear between the blocks' mean scores, and flat beyond the first and
        last.

    Notes
    -----
    Each block of the isotonic regression is shrunk to one point at the weighted
    mean of its scores.

    References
    ----------
    Oron & Flournoy (2017), Centered isotonic regression: point and interval
    estimation for dose-response studies.

    Examples
    --------
    >>> from calibration import CenteredIsotonicCalibrator
    >>> cir = CenteredIsotonicCalibrator().fit([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
    >>> cir.predict([0.1, 0.275, 0.45, 0.9]).round(3)
    array([0.  , 0.25, 0.5 , 1.  ])
    """

    def _fit(self, summary: ScoreSummary) -> None:
        first, weight0, weight1 = pool_adjacent_violators(
            summary.weight0, summary.weight1
        )
        # The rates and the centres of blocks both increase strictly. So the line
        # between two blocks increases.
        weight = weight0 + weight1
        with np.errstate(over="ignore", invalid="ignore"):
            centers = group_means(summary.scores, summary.weight, first)
        if not np.isfinite(centers).all():
            low, high = map(show, summary.scores[[0, -1]])
            refuse("scores", "have means that are finite", f"them from {low} to {high}")
        check_span(centers[0], centers[-1])
        self.map_ = CalibrationMap.linear(centers, weight1 / weight)


# Bags are fitted in chunks of this size, whatever the number of threads. So the order
# of additions, and the last bit of the result, never depend on that number.
_CHUNK = 8


class BaggedIsotonicCalibrator(MapCalibrator):
    r"""The mean of isotonic regressions on bootstrap samples.

    Parameters
    ----------
    n_bags : int
        Number of bootstrap samples.
    max_samples : float
        Size of a sample as a share of n. Rows are drawn with replacement.
    random_state : int, RandomState instance or None
        Source of the seeds of the bags.
    n_jobs : int
        Number of threads. The result does not depend on it.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        The average map. It is constant over scores that every bag pools, and linear
        between.

    Notes
    -----
    1. Scores are sorted once. Neighbouring cells that every reweighting pools are
       summed.
    2. A bag draws ``max_samples * n`` rows with replacement, as counts per cell.
    3. PAV is run on the reweighted cells, in O(n).
    4. Its steps are added to a running sum. Steps 2 to 4 are repeated `n_bags` times.
    5. The sum divided by `n_bags` is one increasing map. It is as fast to apply as a
       single isotonic regression.

    A score that a bag did not draw takes the value of the nearest score that it drew.
    In a bounded summary with many rows per cell the counts are independent Poisson.

    References
    ----------
    Normandin (2017), Local expert regression and calibration for probabilistic
    classification (talk).

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import BaggedIsotonicCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < scores**2
    >>> bagged = BaggedIsotonicCalibrator(100, random_state=0).fit(scores, y)
    >>> np.abs(bagged.predict([0.2, 0.5, 0.8]) - [0.04, 0.25, 0.64]).max() < 0.05
    np.True_
    """

    def __init__(
        self,
        n_bags: int = 500,
        max_samples: float = 1.0,
        random_state: int | np.random.RandomState | None = None,
        *,
        n_jobs: int = 1,
        scale: Scale = "probability",
    ):
        self.n_bags = n_bags
        self.max_samples = max_samples
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer(self.n_bags, "n_bags", 1)
        check_number(self.max_samples, "max_samples", 0.0, 1.0, open_low=True)
        check_integer(self.n_jobs, "n_jobs", 1)
        if not isinstance(self.random_state, np.random.RandomState):
            check_optional_seed(self.random_state)

    def _fit(self, summary: ScoreSummary) -> None:
        first = always_pooled(summary.weight0, summary.weight1)
        last = np.append(first[1:] - 1, summary.n_cells - 1)
        low, high = summary.scores[first], summary.scores[last]
        # Every bag pools these groups. So all bags have fewer cells, and the fits are
        # the same.
        weight0 = np.add.reduceat(summary.weight0, first)
        weight1 = np.add.reduceat(summary.weight1, first)
        n_draws = max(1, round(self.max_samples * summary.n))

        fit_chunk = partial(sum_of_bags, weight0, weight1, low, high, n_draws)
        chunks = self._seed_chunks()
        # Use threads instead of processes, because the kernel releases the
        # interpreter's lock.
        with ThreadPoolExecutor(self.n_jobs) as pool:
            total = sum(pool.map(fit_chunk, chunks), np.zeros(len(first)))
        # Rounding of the running sums must not make the map fall, or leave [0, 1].
        values = np.clip(np.maximum.accumulate(total / self.n_bags), 0.0, 1.0)
        self.map_ = _plateaus(low, high, values)

    def _seed_chunks(self) -> list[NDArray[np.uint64]]:
        """Return the seeds of the bags, in chunks that threads share."""
        source = check_random_state(self.random_state)
        # The user's source is asked once. All else follows from these four numbers.
        entropy = source.randint(0, 2**31 - 1, size=4)
        state = np.random.SeedSequence(entropy.tolist())
        seeds = state.generate_state(self.n_bags, np.uint64).astype(np.uint64)
        return [seeds[i : i + _CHUNK] for i in range(0, self.n_bags, _CHUNK)]


def _plateaus(
    low: Float64Array, high: Float64Array, values: Float64Array
) -> CalibrationMap:
    """Return the map that is values[g] on [low[g], high[g]], and linear between.

    Neighbouring groups of one value share a plateau. A plateau of one point is one
    knot.
    """
    new = np.concatenate([[True], values[1:] != values[:-1]])
    first = np.flatnonzero(new)
    last = np.append(first[1:] - 1, len(values) - 1)
    ends = np.column_stack([low[first], high[last]]).ravel()
    heights = np.repeat(values[first], 2)
    kept = np.concatenate([[True], np.diff(ends) > 0.0])
    return CalibrationMap.linear(ends[kept], heights[kept])


class VennAbersCalibrator(MapCalibrator):
    r"""Inductive Venn-Abers predictor: isotonic regression with honest ends.

    Parameters
    ----------
    scale : {"probability", "logit", "real"}
        What a score is. The fit depends on the order of scores only.

    Attributes
    ----------
    lower_, upper_ : CalibrationMap
        The maps from score to p0 and to p1. Both increase.
    map_ : CalibrationMap
        The map from score to the merged probability. It increases too.

    Notes
    -----
    p0(s) and p1(s) are the values at s of two isotonic regressions. They are fitted to
    the calibration rows and one more row: (s, 0) for p0, (s, 1) for p1. If rows are
    exchangeable, the value for the true label is a calibrated forecast at any n.
    p1 - p0 says how much one label matters. It is about one over the weight of the
    block.

    The merged probability p1 / (1 - p0 + p1) has the least regret in log loss against
    the worse of the two. It is never 0 or 1, so its log loss is finite.

    For all scores at once, p0 and p1 are step functions. For each of them, one pass of
    PAV and one pass over its corners find it in O(n). It is applied in O(log n).

    With one class only, or one distinct score, all rows are one cell of ties. Then
    p0 = n1 / (n + 1) and p1 = (n1 + 1) / (n + 1). They are merged to
    (n1 + 1) / (n + 2).

    With ``CalibratedClassifier(..., ensemble=True)`` this is the cross Venn-Abers
    predictor. It merges the intervals of all folds by geometric means.

    References
    ----------
    Vovk & Petej (2014), Venn-Abers predictors. Vovk, Petej & Fedorova (2015),
    Large-scale probabilistic predictors with and without guarantees of validity.

    Examples
    --------
    >>> from calibration.monotone.isotonic import VennAbersCalibrator
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

    def predict_interval(self, scores: ArrayLike) -> Float64Array:
        """Return p0 and p1 of each score.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)

        Returns
        -------
        ndarray of shape (n, 2)
            The columns are p0 and p1, with p0 < p1.
        """
        values = self._read_scores(scores)
        return np.column_stack([self.lower_(values), self.upper_(values)])

    def _fit(self, summary: ScoreSummary) -> None:
        scores, weight0, weight1 = summary.scores, summary.weight0, summary.weight1
        pool0, pool1 = pools_with_one_more(weight0, weight1)
        upper = pool1 / (pool0 + pool1)
        # If the order and the classes are turned around, one more 0 becomes one more 1.
        pool1, pool0 = pools_with_one_more(weight1[::-1].copy(), weight0[::-1].copy())
        lower = (pool1 / (pool0 + pool1))[::-1]
        self.lower_ = _steps_up(scores, lower)
        self.upper_ = _steps_down(scores, upper)
        # p0 steps up at scores, and p1 just above them. Between all of these both are
        # constant.
        knots = np.unique(np.concatenate([self.lower_.knots, self.upper_.knots]))
        limits = zip(
            self.lower_._limits(knots), self.upper_._limits(knots), strict=True
        )
        # p1 / (1 - p0 + p1) is written so that rounding keeps it increasing.
        left, at, right = (1.0 / (1.0 + (1.0 - p0) / p1) for p0, p1 in limits)
        self.map_ = CalibrationMap(knots, left, at, right, "step")

    def _fit_constant(self, summary: ScoreSummary, constant: float) -> None:
        n1, total = summary.n1, summary.n + 1.0
        self.lower_, self.upper_, self.map_ = (
            constant_map(summary, value)
            for value in (n1 / total, (n1 + 1.0) / total, constant)
        )


def merge_intervals(intervals: Sequence[Float64Array]) -> Float64Array:
    """Merge the intervals [p0, p1] of several Venn-Abers predictors per row.

    The probability with the least regret in log loss is GM(p1) / (GM(1 - p0) + GM(p1)).
    Here GM is the geometric mean over the predictors (Vovk, Petej & Fedorova 2015,
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
    """Return the map that is values[i] from scores[i] up, and 0 below the first."""
    # Keep one knot for each step, and not one for each score.
    kept = np.append(True, values[1:] != values[:-1])
    knots, at = scores[kept], values[kept]
    return CalibrationMap(knots, np.append(0.0, at[:-1]), at, at, "step")


def _steps_down(scores: Float64Array, values: Float64Array) -> CalibrationMap:
    """Return the map that is values[i] from scores[i] down, and 1 above the last."""
    kept = np.append(values[1:] != values[:-1], True)
    knots, at = scores[kept], values[kept]
    return CalibrationMap(knots, at, at, np.append(at[1:], 1.0), "step")
