"""Scores of forecasts whose targets are known only in part."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from scipy.stats import chisquare

from calibration._validation import (
    check_integer,
    check_level,
    check_same_length,
    check_vector,
    check_weights,
    refuse,
)
from calibration.typing import Float64Array
from localexpert._validation import check_increasing
from localexpert.distribution.predictive import (
    PredictiveDistribution,
    check_distribution,
    check_outcomes,
)
from localexpert.law.steps import draw_shares
from localexpert.partial.outcomes import (
    is_partial,
    product_limit,
    read_ends,
    read_right,
)

# Thresholds at which fewer rows than this share are not yet censored do not count.
_LEAST_SHARE = 0.05
# Levels of the quantiles between which a row's CDF is read, how many limits of all rows
# are between them, and rows in memory at a time.
_LEVELS, _N_SHARED, _CHUNK = ndtr(np.linspace(-3.5, 3.5, 71)), 41, 4096


def _check_ends(
    y: Any, dist: PredictiveDistribution, name: str = "y_true"
) -> tuple[Float64Array, Float64Array]:
    """Return lower and upper ends (n,) of the targets of what must be a forecast."""
    check_distribution(dist)
    lower, upper = read_ends(y, name)
    check_same_length(len(dist), "`dist`", len(lower), name)
    return dist.law.snap(lower), dist.law.snap(upper)


def known_levels(
    y: Any, dist: PredictiveDistribution, name: str = "y_true"
) -> tuple[Float64Array, Float64Array]:
    """Return between which levels of its forecast each target lies.

    Parameters
    ----------
    y : array-like of shape (n, 2) or structured array of shape (n,)
    dist : PredictiveDistribution
        Of n rows.
    name : str
        Name of the targets in errors.

    Returns
    -------
    below, upto : ndarrays of shape (n,)
        P(Y < lower) and P(Y <= upper); equal for known targets of a smooth law.
    """
    lower, upper = _check_ends(y, dist, name)
    below = dist.law.cdf_left(lower[:, None])[:, 0]
    return below, np.maximum(dist.law.cdf(upper[:, None])[:, 0], below)


def log_losses(y: Any, dist: PredictiveDistribution) -> Float64Array:
    """Return -log density of known targets, and -log probability of intervals, (n,)."""
    if not is_partial(y):
        return -dist.logpdf(check_outcomes(y, dist, "y_true"))
    return losses_between(*_check_ends(y, dist), dist)


def losses_between(
    lower: Float64Array, upper: Float64Array, dist: PredictiveDistribution
) -> Float64Array:
    """Return the same for targets of which these are the ends, shapes (n,)."""
    known = lower == upper
    with np.errstate(divide="ignore"):
        losses = -np.log(dist.prob_between(lower, upper))
    if known.any():
        losses[known] = -dist[known].logpdf(lower[known])
    return losses


def covered_shares(
    y: Any, dist: PredictiveDistribution, coverage: float, name: str = "y_true"
) -> Float64Array:
    """Return the share of each target's levels that a central interval holds, (n,).

    Targets are numbers (n,), or have two ends.
    """
    if not is_partial(y):
        return check_distribution(dist).covered(check_outcomes(y, dist, name), coverage)
    tail = 0.5 * (1.0 - check_level(coverage, "coverage"))
    return _shares_within(*known_levels(y, dist, name), tail, 1.0 - tail)


def pit_values(
    y: Any,
    dist: PredictiveDistribution,
    random_state: int | np.random.Generator | None,
    name: str = "y_true",
) -> Float64Array:
    """Return PIT values (n,) of targets (n,), or with two ends.

    They are drawn from jumps of the CDF, and between the levels of two ends. Without a
    seed they are in the middle.
    """
    if not is_partial(y):
        outcomes = check_outcomes(y, dist, name)
        return dist.pit(outcomes, random_state)
    below, upto = known_levels(y, dist, name)
    middle = random_state is None
    share = 0.5 if middle else draw_shares(random_state, below.shape)
    return below + share * (upto - below)


def _shares_within(
    below: Float64Array, upto: Float64Array, low: float, high: float
) -> Float64Array:
    """Return the shares of levels that lie in [low, high); a single level is 0 or 1."""
    held = np.minimum(upto, high) - np.maximum(below, low)
    width = upto - below
    inside = (below >= low) & ((below < high) | (high == 1.0))
    shares = np.maximum(held, 0.0) / np.where(width > 0.0, width, 1.0)
    return np.where(width > 0.0, shares, inside)


def d_calibration_test(
    y_true: ArrayLike, dist: PredictiveDistribution, *, n_bins: int = 10
) -> tuple[float, float]:
    r"""Return the test of D-calibration: PIT values are uniform, censored ones spread.

    Parameters
    ----------
    y_true : array-like of shape (n, 2) or structured array of shape (n,)
        Targets as `fit` takes them.
    dist : PredictiveDistribution
        Of n rows.
    n_bins : int
        Bins of equal width between 0 and 1.

    Returns
    -------
    statistic : float
        Pearson's chi-squared of the bins' counts.
    p_value : float
        With `n_bins` - 1 degrees of freedom. Spread rows vary less than counts, so true
        forecasts are refused less often than the p-value says.

    Notes
    -----
    A target between two ends counts in all bins between the levels of its ends, in
    proportion: for one censored at c, uniform from F(c) to 1. `pit_test` draws instead,
    and is exact.

    References
    ----------
    Haider, Hoehn, Davis & Greiner (2020), Effective ways to build and evaluate
    individual survival distributions.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from localexpert import PredictiveDistribution, censored, d_calibration_test
    >>> dist = PredictiveDistribution.from_scipy(stats.expon(scale=np.ones(100)))
    >>> life = dist.ppf(np.linspace(0.005, 0.995, 100))
    >>> y = censored(np.minimum(life, 1.0), event=life <= 1.0)
    >>> d_calibration_test(y, dist)[1] > 0.99
    True
    """
    below, upto = known_levels(y_true, dist)
    k = check_integer(n_bins, "n_bins", 2)
    bins = pairwise(np.linspace(0.0, 1.0, k + 1))
    found = chisquare([_shares_within(below, upto, *ends).sum() for ends in bins])
    return float(found.statistic), float(found.pvalue)


@dataclass(frozen=True, eq=False)
class _Steps:
    """P(C > t) of one distribution for all rows, asked as a forecast of each is."""

    times: Float64Array
    shares: Float64Array

    def __getitem__(self, _: slice) -> _Steps:
        return self

    def sf(
        self, t: Float64Array, side: Literal["left", "right"] = "right"
    ) -> Float64Array:
        """Return the share not censored until t, or before it, of the shape of t."""
        steps = np.append(1.0, self.shares)
        return np.asarray(steps[np.searchsorted(self.times, t, side)])


def _not_before(
    time: Float64Array, limits: PredictiveDistribution | _Steps
) -> Float64Array:
    """Return P(C >= time) of every row, shape (n,): events come before limits."""
    if isinstance(limits, _Steps):
        return limits.sf(time, "left")
    return limits.law.levels(time[:, None], left=True)[1][:, 0]


def crps_losses(
    y: Any, dist: PredictiveDistribution, censoring: Any, weight: Float64Array
) -> Float64Array:
    """Return the rows' CRPS, of two ends by inverse probabilities of censoring, (n,).

    See `crps_score`. The integral is a sum over cells of thresholds, which end at
    quantiles of the row and at limits, and the CDF is read in their middles.
    """
    if not is_partial(y):
        if censoring is not None:
            rule = "be None where `y_true` is one number for each row"
            refuse("censoring", rule, type(censoring).__name__)
        return dist.crps(check_outcomes(y, dist, "y_true"))
    time, event, limits = _read_censored(y, dist, censoring, weight)
    if event.all() and censoring is None:
        return dist.crps(time)
    limit = np.full(len(time), np.inf)
    if isinstance(limits, PredictiveDistribution):
        limit = limits.ppf(1.0 - _LEAST_SHARE)
    elif (few := limits.shares < _LEAST_SHARE).any():
        limit[:] = limits.times[few][0]
    limited = np.unique(time[~event & (weight > 0.0)])
    place = np.linspace(0, len(limited) - 1, min(len(limited), _N_SHARED)).astype(int)
    shared = limited[place, None]
    losses = np.empty(len(time))
    for start in range(0, len(time), _CHUNK):
        rows = slice(start, start + _CHUNK)
        own, n = dist[rows].quantiles(_LEVELS).T, len(time[rows])
        edges = np.concatenate([own, np.tile(shared, (1, n)), time[None, rows]])
        edges = np.sort(np.minimum(edges, limit[rows]), axis=0)
        middle, width = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges, axis=0)
        alive = middle < time[rows]
        ends = _not_before(time[rows], limits[rows])
        left = np.where(alive, limits[rows].sf(middle), ends)
        held = (alive | event[rows]) & (width > 0.0)
        # The PIT is the CDF, or the middle of its jump if an edge was left out there.
        gap = np.where(held, dist[rows].pit(middle) - ~alive, 0.0)
        losses[rows] = (width * gap**2 / np.where(held, left, 1.0)).sum(axis=0)
    return losses


def _read_censored(
    y: Any, dist: PredictiveDistribution, censoring: Any, weight: Float64Array
) -> tuple[Float64Array, NDArray[np.bool_], PredictiveDistribution | _Steps]:
    """Return times, whether they are those of events, and the law of the limits."""
    check_distribution(dist)
    time, event = read_right(y, "y_true")
    check_same_length(len(dist), "`dist`", len(time), "y_true")
    time = dist.law.snap(time)
    if isinstance(censoring, PredictiveDistribution):
        check_same_length(len(time), "`dist`", len(censoring), "censoring")
        return time, event, censoring
    if censoring is None:
        return time, event, _Steps(*product_limit(time, event, weight, limits=True))
    known, seen = read_right(censoring, "censoring")
    known, weight = dist.law.snap(known), np.ones(len(known))
    return time, event, _Steps(*product_limit(known, seen, weight, limits=True))


def survival_brier_score(
    y_true: ArrayLike,
    dist: PredictiveDistribution,
    times: ArrayLike,
    *,
    censoring: Any = None,
    sample_weight: ArrayLike | None = None,
) -> Float64Array:
    r"""Return the Brier score of the survival function at given times.

    Parameters
    ----------
    y_true : array-like of shape (n, 2) or structured array of shape (n,)
        Targets as `fit` takes them, known or right-censored.
    dist : PredictiveDistribution
        Of n rows.
    times : array-like of shape (k,)
        Increasing.
    censoring : PredictiveDistribution or targets, optional
        When rows are censored. Targets (m, 2), such as those of the training rows: by
        their Kaplan-Meier estimate. A forecast of n rows: the distribution of each
        row's limit C, where censoring depends on features. Default: the Kaplan-Meier
        estimate of `y_true`.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    ndarray of shape (k,)

    Notes
    -----
    With the share :math:`G(t) = P(C > t)` that is not yet censored it is the mean of

    .. math:: \frac{1\{T_i > t\}}{G(t)} F_i(t)^2
        + \frac{1\{T_i \le t\} \, \delta_i}{G(T_i-)} (1 - F_i(t))^2,

    where :math:`T_i` is the target or the limit, and :math:`\delta_i` says whether the
    target is known. A target that equals its limit is known, as is usual. So rows that
    are still seen stand for those that are not. It is the score of the full targets in
    expectation if limits follow G, independently of targets given what G depends on.

    References
    ----------
    Graf, Schmoor, Sauerbrei & Schumacher (1999), Assessment and comparison of
    prognostic classification schemes for survival data.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution, survival_brier_score, censored
    >>> rows = [[0.5, 0.25, 0.25], [0.2, 0.2, 0.6], [0.1, 0.3, 0.6]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[1, 2, 3], masses=rows)
    >>> y = censored([1, 2, 3], event=[1, 0, 1])
    >>> survival_brier_score(y, dist, [1, 1.5]).round(3)
    array([0.1, 0.1])
    """
    weight = check_weights(sample_weight, len(check_distribution(dist)))
    time, event, limits = _read_censored(y_true, dist, censoring, weight)
    t = check_vector(times, "times")
    check_increasing(t, "times")
    at = dist.law.snap(t)[:, None]
    dead = event & (time <= at)
    left = np.where(dead, _not_before(time, limits), limits.sf(at))
    held = dead | (time > at)
    lost = (held & (weight > 0.0) & ~(left > 0.0)).any(axis=1)
    if lost.any():
        rule = "leave rows that are not yet censored at every one of `times`"
        refuse("censoring", rule, f"none at {t[lost][0]:g}")
    gap = dist.cdf(at) - dead
    losses = np.where(held, gap**2 / np.where(left > 0.0, left, 1.0), 0.0)
    return np.asarray(losses @ weight / weight.sum())


def integrated_brier_score(
    y_true: ArrayLike,
    dist: PredictiveDistribution,
    times: ArrayLike,
    *,
    censoring: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean of `survival_brier_score` over a range of times, by trapezia.

    Parameters
    ----------
    y_true : array-like of shape (n, 2) or structured array of shape (n,)
    dist : PredictiveDistribution
        Of n rows.
    times : array-like of shape (k,)
        Increasing, two or more.
    censoring : PredictiveDistribution or targets, optional
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        The integral over the distance from the first to the last of `times`.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution, censored, integrated_brier_score
    >>> rows = [[0.5, 0.25, 0.25], [0.2, 0.2, 0.6], [0.1, 0.3, 0.6]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[1, 2, 3], masses=rows)
    >>> y = censored([1, 2, 3], event=[1, 0, 1])
    >>> round(integrated_brier_score(y, dist, [1, 1.5, 1.9]), 3)
    0.1
    """
    t = check_vector(times, "times")
    if len(t) < 2:
        refuse("times", "hold at least two times", f"{len(t)}")
    options = {"censoring": censoring, "sample_weight": sample_weight}
    scores = survival_brier_score(y_true, dist, t, **options)
    return float(np.trapezoid(scores, t) / (t[-1] - t[0]))


def concordance_index(y_true: ArrayLike, forecast: Any) -> float:
    r"""Return Harrell's concordance: how often the forecast orders two rows rightly.

    Parameters
    ----------
    y_true : array-like of shape (n, 2) or structured array of shape (n,)
        Targets as `fit` takes them, known or right-censored.
    forecast : PredictiveDistribution or array-like of shape (n,)
        Numbers that are greater where targets are. Of distributions the restricted
        means up to the greatest time.

    Returns
    -------
    float
        Among the pairs whose order is known, the share that has the same order in the
        forecast; equal forecasts count one half.

    Notes
    -----
    The order of i and j is known if target i is known and row j has a greater target or
    limit, or an equal limit. It does not score the forecasts' spread; the CRPS does.

    References
    ----------
    Harrell, Lee & Mark (1996), Multivariable prognostic models.

    Examples
    --------
    >>> from localexpert import censored, concordance_index
    >>> concordance_index(censored([1, 2, 3], event=[1, 0, 1]), [1.5, 1.0, 2.0])
    0.5
    """
    time, event = read_right(y_true, "y_true")
    if isinstance(forecast, PredictiveDistribution):
        check_same_length(len(forecast), "`forecast`", len(time), "y_true")
        forecast = forecast.restricted_mean(float(time.max()))
    life = check_vector(forecast, "forecast")
    check_same_length(len(life), "`forecast`", len(time), "y_true")
    right = pairs = 0.0
    for i in np.flatnonzero(event):
        later = (time > time[i]) | ((time == time[i]) & ~event)
        right += (life[later] > life[i]).sum() + 0.5 * (life[later] == life[i]).sum()
        pairs += later.sum()
    if pairs == 0.0:
        refuse("y_true", "hold a pair of rows whose order is known", "none")
    return float(right / pairs)
