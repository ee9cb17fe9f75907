"""The Beta prior of bins, averages of such bins, and binning into quantiles (BBQ)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlogy

from calibration._kernels.binnings import (
    bin_moments,
    count_bins,
    quantile_starts,
    score_quantile_bins,
    twice_centres,
)
from calibration._validation import check_choice, check_level, check_number
from calibration.base.calibrators import (
    MapCalibrator,
    Scale,
    constant_map,
    criterion_logs,
)
from calibration.maps import (
    CalibrationMap,
    beta_interval,
    block_starts,
    edges_between,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array, Int64Array

BinScore: TypeAlias = Literal["k2", "bdeu"]

BIN_SCORES: tuple[str, ...] = ("k2", "bdeu")


def edge_rates(
    edges: Float64Array, score: BinScore, scale: Scale, base_rate: float
) -> Float64Array:
    """Return the rates at the edges of cells whose mean over a bin is its prior mean.

    With the score "k2" that mean is 1/2. With "bdeu" it is the middle of the bin on the
    axis of probabilities, which ends at 0 and 1. Real scores have no such middle, and
    take the base rate.

    Parameters
    ----------
    edges : ndarray of shape (m - 1,)
        Scores between neighbouring cells.
    score : {"k2", "bdeu"}
    scale : {"probability", "logit", "real"}
    base_rate : float

    Returns
    -------
    ndarray of shape (m + 1,)
    """
    if score == "k2":
        return np.full(len(edges) + 2, 0.5)
    if scale == "real":
        return np.full(len(edges) + 2, base_rate)
    inner = expit(edges) if scale == "logit" else edges
    return np.concatenate([[0.0], inner, [1.0]])


class AveragedBinsCalibrator(MapCalibrator):
    """Base of calibrators that average binnings into a mean and a variance."""

    variance_: CalibrationMap

    def predict_interval(
        self, scores: ArrayLike, coverage: float = 0.9
    ) -> Float64Array:
        """Return a posterior interval for the event rate at each score.

        The posterior of the rate is a mixture over binnings. It mixes the Beta laws of
        the bins that hold the score. The interval is the equal-tailed interval of one
        Beta law that has the mixture's mean (`map_`) and variance (`variance_`). So it
        allows for the doubt about the binning, and for the doubt within a bin. If
        binnings disagree sharply, its share of the mixture is only near `coverage`. The
        model assumes steps: it covers a smooth slope less often than it says (in
        simulation about 80 % at a `coverage` of 90 %, and steps 91 to 99 %). Between
        the knots of a linear map the bounds are linear, as the map is.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
        coverage : float
            Posterior probability of the interval, in (0, 1).

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper bounds.
        """
        values = self._read_scores(scores)
        coverage = check_level(coverage, "coverage")
        mean = self.map_.at
        # The mean and variance give a + b of the Beta law: v = m (1 - m) / (a + b + 1).
        count = mean * (1.0 - mean) / self.variance_.at - 1.0
        shapes = mean * count, (1.0 - mean) * count
        step = self.map_.kind == "step"
        make = CalibrationMap.step if step else CalibrationMap.linear
        bounds = beta_interval(*shapes, coverage)
        return np.column_stack([make(self.map_.knots, b)(values) for b in bounds])

    def _set_moments(
        self,
        make: Callable[[Float64Array, Float64Array], CalibrationMap],
        knots: Float64Array,
        mean: Float64Array,
        square: Float64Array,
        n: float,
    ) -> None:
        """Keep the mean and the variance of the rate as maps, free of rounding.

        Every bin is a Beta law of at most n + 2 counts, with at least .01 of each
        class. So mixtures of them lie within the bounds that are imposed here.

        Parameters
        ----------
        make : callable
            Makes a map of knots and values.
        knots : ndarray of shape (k,)
        mean, square : ndarrays of shape (k,)
            Posterior means of the rate and of its square.
        n : float
            Weight of all rows.
        """
        # From 1e14 rows on, a mean near 1 is rounded by more than the first bound.
        least = max(0.01 / (n + 2.0), np.finfo(np.float64).eps)
        mean = np.clip(mean, least, 1.0 - least)
        # A 0/1 variable of this mean has the greatest variance. Laws within (0, 1) have
        # less.
        most = mean * (1.0 - mean)
        variance = np.clip(square - mean**2, most / (n + 3.0), most / (1.0 + least))
        self.map_, self.variance_ = make(knots, mean), make(knots, variance)

    def _fit_constant(self, summary: ScoreSummary, constant: float) -> None:
        # This is the law Beta(n1 + 1, n0 + 1) of one bin under a uniform prior.
        variance = constant * (1.0 - constant) / (summary.n + 3.0)
        super()._fit_constant(summary, constant)
        self.variance_ = constant_map(summary, variance)


# A bin needs room for this many rows on average.
_LEAST_ROWS = 5
# At most this many bins are tried, which matters beyond 1e8 rows. Time grows with the
# square of their number.
_MOST_BINS = 5000


class BBQCalibrator(AveragedBinsCalibrator):
    r"""Bayesian binning into quantiles: an average of equal-frequency binnings.

    Parameters
    ----------
    score : {"bdeu", "k2"}
        Beta prior of a bin's event rate, worth two rows. "bdeu" has the middle of the
        bin as its mean, held within [.005, .995]. With ``scale="real"`` a middle is no
        probability, and the mean is the base rate. "k2" is uniform.
    spread : float
        C. Numbers of bins from n^(1/3) / C to C n^(1/3) are tried, rounded outwards.
        There is at least 1 bin. There are at most n / 5 and at most 5000.
    elbow : float
        The alpha of the elbow rule, which drops improbable binnings. inf keeps only the
        best.
    criterion : {"evidence", "bic", "aicc"}
        The weight of a binning. It is its marginal likelihood, or :math:`e^{-BIC/2}` or
        :math:`e^{-AICc/2}` at the bins' event rates, with a parameter per bin.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        The weighted mean of the binnings, as steps.
    variance_ : CalibrationMap
        Posterior variance of the event rate, in the same form.
    n_bins_ : ndarray of shape (k,)
        Numbers of bins that were asked for, for the binnings that were kept. The best
        is first. A constant fit has none.
    weights_ : ndarray of shape (k,)
        Their weights in the average, which add up to one.

    Notes
    -----
    All B bins but the last should hold floor(n / B) rows, as in the program of the
    method's authors. Ties are never split, and bins end midway between scores. All
    binnings are equally likely in advance, and weigh by the probability S of the
    labels. If two numbers of bins give the same binning, it counts once. S is
    normalised to maximum 1 and sorted downwards. The first k are averaged, where k is
    the least number with :math:`S_k - S_{k+1} \le \alpha \operatorname{var}(S)`. A tie
    with the best is kept. A bin predicts the posterior mean :math:`(n_1 + 2 p_b) / (n +
    2)` of its event rate.

    References
    ----------
    Pakdaman Naeini, Cooper & Hauskrecht (2015), Obtaining well calibrated
    probabilities using Bayesian binning. Pakdaman Naeini (2016), Obtaining accurate
    probabilities using classifier calibration, section 3.2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.binning.bbq import BBQCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=5000)
    >>> y = rng.uniform(size=5000) < scores**2
    >>> bbq = BBQCalibrator().fit(scores, y)
    >>> np.abs(bbq.predict([0.2, 0.5, 0.8]) - [0.04, 0.25, 0.64]).max() < 0.1
    np.True_
    """

    n_bins_: Int64Array
    weights_: Float64Array

    def __init__(
        self,
        score: BinScore = "bdeu",
        *,
        spread: float = 10.0,
        elbow: float = 0.001,
        criterion: Literal["evidence", "bic", "aicc"] = "evidence",
        scale: Scale = "probability",
    ):
        self.score = score
        self.spread = spread
        self.elbow = elbow
        self.criterion = criterion
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.score, "score", BIN_SCORES)
        check_number(self.spread, "spread", 1.0)
        check_number(self.elbow, "elbow", 0.0, open_high=False)
        check_choice(self.criterion, "criterion", ("evidence", "bic", "aicc"))

    def _fit(self, summary: ScoreSummary) -> None:
        scores, n, base_rate = summary.scores, summary.n, summary.base_rate
        # There is an edge between all neighbours. The edges of any binning are some of
        # these.
        edges = edges_between(scores[:-1], scores[1:])
        sum0 = np.append(0.0, np.cumsum(summary.weight0))
        sums = sum0, np.append(0.0, np.cumsum(summary.weight1))
        rates = edge_rates(edges, self.score, self.scale, base_rate)
        numbers, centres = self._numbers(n), twice_centres(*sums)
        if self.criterion == "evidence":
            log_scores = score_quantile_bins(*sums, rates, centres, numbers)
        else:
            tried = (quantile_starts(centres, number) for number in numbers)
            fits = np.array([_fit_bins(*sums, starts) for starts in tried])
            log_scores = criterion_logs(
                self.criterion, fits[:, 0], fits[:, 1].astype(np.int64), n
            )
        distinct = _distinct(centres, numbers, log_scores)
        numbers, log_scores = numbers[distinct], log_scores[distinct]
        # The elbow rule wants the greatest to be 1. Then no weight overflows.
        relative = np.exp(log_scores - log_scores.max())
        kept = select_by_elbow(relative, self.elbow)
        self.n_bins_ = numbers[kept]
        self.weights_ = relative[kept] / relative[kept].sum()
        binnings = [quantile_starts(centres, number) for number in self.n_bins_]
        starts, (mean, square) = _average(*sums, rates, binnings, self.weights_)
        knots = block_starts(scores, starts)
        self._set_moments(CalibrationMap.step, knots, mean, square, n)

    def _numbers(self, n: float) -> Int64Array:
        """Return the numbers of bins to try."""
        # With n^(1/3) bins, the bias and the noise of a histogram balance. The last
        # digits are dropped, because they differ from machine to machine.
        root = round(float(np.cbrt(n)), 9)
        wanted = math.ceil(min(root * self.spread, _MOST_BINS))
        most = max(1, min(math.ceil(n / _LEAST_ROWS), wanted))
        least = min(max(1, math.floor(root / self.spread)), most)
        return np.arange(least, most + 1)


def _fit_bins(
    sum0: Float64Array, sum1: Float64Array, starts: Int64Array
) -> tuple[float, int]:
    """Return the log-likelihood at the event rates of a binning, and how many bins."""
    ends = np.append(starts[1:], len(sum0) - 1)
    n0, n1, _ = count_bins(sum0, sum1, sum0, starts, ends)
    # A bin is empty if its weights are too small for the running sums.
    total = np.maximum(n0 + n1, np.finfo(np.float64).tiny)
    # The rate of zeros is a quotient of its own. It is kept if that of ones rounds to
    # 1.
    return float((xlogy(n1, n1 / total) + xlogy(n0, n0 / total)).sum()), len(starts)


def _average(
    sum0: Float64Array,
    sum1: Float64Array,
    rates: Float64Array,
    binnings: Sequence[Int64Array],
    weights: Float64Array,
) -> tuple[Int64Array, Float64Array]:
    """Average binnings. Return first cells of steps, and their moments (2, n_steps)."""
    sizes = [len(starts) for starts in binnings]
    cells, last = np.concatenate(binnings), np.cumsum(sizes) - 1
    ends = np.append(cells[1:], 0)
    ends[last] = len(sum0) - 1
    bins = count_bins(sum0, sum1, rates, cells, ends)
    moments = np.repeat(weights, sizes) * np.array(bin_moments(*bins))
    # A step function is kept as its jumps, so a sum of step functions is a sum of
    # jumps.
    before = np.roll(moments, 1, axis=1)
    before[:, cells == 0] = 0.0
    order = cells.argsort(kind="stable")
    starts = cells[order]
    last = np.append(starts[1:] != starts[:-1], True)
    return starts[last], (moments - before)[:, order].cumsum(axis=1)[:, last]


def select_by_elbow(scores: Float64Array, elbow: float) -> NDArray[np.intp]:
    """Return the places of the best scores, up to the first small drop.

    Parameters
    ----------
    scores : ndarray of shape (k,)
        Non-negative scores. The greatest is 1.
    elbow : float
        A drop is small if it is at most `elbow` times the variance of the scores.

    Returns
    -------
    ndarray of shape (k_kept,)
        Best first. Here k_kept = min{k : S_k - S_(k+1) <= elbow * var(S)}, where k is
        at least the number of scores that tie with the best.
    """
    order = (-scores).argsort(kind="stable")
    best_first = scores[order]
    ties = int((scores == best_first[0]).sum())
    # Start from the last tie, because a drop of 0 among the best is no elbow.
    drops = best_first[ties - 1 : -1] - best_first[ties:]
    most = elbow * scores.var() if elbow < np.inf else np.inf
    small = np.flatnonzero(drops <= most)
    n_kept = ties + int(small[0]) if len(small) else len(scores)
    return order[:n_kept]


def _distinct(
    centres: Float64Array, numbers: Int64Array, scores: Float64Array
) -> Int64Array:
    """Return the place of the first binning of each set of equal binnings.

    Equal binnings have equal scores. So only binnings with equal scores are compared
    cell by cell.
    """
    values = scores.tolist()
    count = Counter(values)
    places: dict[tuple[float, bytes], int] = {}
    for place, value in enumerate(values):
        many = count[value] > 1
        starts = quantile_starts(centres, numbers[place]).tobytes() if many else b""
        places.setdefault((value, starts), place)
    return np.array(list(places.values()))
