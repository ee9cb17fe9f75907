"""Another prior: move forecasts to it, find it without labels, and test for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, softmax
from scipy.stats import chi2, f

from calibration._validation import (
    as_numbers,
    check_columns,
    check_integer,
    check_labels,
    check_level,
    check_number,
    check_order,
    check_probabilities,
    check_rows,
    check_same_length,
    check_weights,
    names_of_columns,
    refuse,
    show,
)
from calibration.drift.shares import MatchedMeans, fit_shares, profile, share_interval
from calibration.typing import Float64Array, Int64Array

# The sum of a prior may differ from 1 by this much.
_ROUNDING = 1e-6


def read_forecasts(p: ArrayLike, name: str) -> Float64Array:
    """Return probabilities (n,) of class 1, or (n, k)."""
    numbers = as_numbers(p, name)
    if numbers.ndim < 2 or numbers.shape[1:] == (1,):
        return check_probabilities(numbers, name)
    return check_rows(numbers, name)


def read_prior(prior: Any, name: str, rows: Float64Array, p: Any) -> Float64Array:
    """Return the prior of each class, shape (k,). All are positive and sum to 1.

    A pandas series must have the names of `p`, or the numbers of columns, in the same
    order. This matters because `value_counts` sorts by size.
    """
    if rows.ndim == 1:
        if isinstance(prior, np.ndarray) and prior.size == 1:
            prior = prior.item()
        share = check_number(prior, name, 0.0, 1.0, open_low=True, open_high=True)
        return np.array([1.0 - share, share])
    shares = as_numbers(prior, name)
    if shares.shape != rows.shape[1:]:
        rule = f"hold a prior for each of the {rows.shape[1]} classes"
        refuse(name, rule, f"shape {shares.shape}")
    if hasattr(prior, "iloc"):
        check_order(prior.to_frame().T, names_of_columns(p) or None, name)
    bad = ~((shares > 0.0) & (shares < 1.0))
    if bad.any():
        refuse(name, "lie in (0, 1)", show(shares[bad][0]))
    total = float(shares.sum())
    if abs(total - 1.0) > _ROUNDING:
        refuse(name, "sum to 1", f"a sum of {show(total)}")
    return shares


def read_labelled_rows(
    p_old: ArrayLike,
    y_old: ArrayLike,
    rows: Float64Array,
    sample_weight: ArrayLike | None = None,
) -> tuple[Float64Array, Int64Array, Float64Array]:
    """Return forecasts and columns of labelled rows. Each class has two or more.

    Parameters
    ----------
    p_old : array-like of shape (m,) or (m, k)
    y_old : array-like of shape (m,)
    rows : ndarray of shape (n,) or (n, k)
        Forecasts of the new rows. The labelled forecasts must be of the same kind.
    sample_weight : array-like of shape (m,), optional
        Numbers of repetitions. Rows of weight 0 are left out.

    Returns
    -------
    forecasts : ndarray of shape (m,) or (m, k)
    columns, weight : ndarrays of shape (m,)
    """
    held = read_forecasts(p_old, "p_old")
    if held.shape[1:] != rows.shape[1:]:
        rule = f"have the columns of `p`, shape {rows.shape}"
        refuse("p_old", rule, f"shape {held.shape}")
    k = 2 if held.ndim == 1 else held.shape[1]
    if held.ndim == 1:
        columns = check_labels(y_old, "y_old").astype(np.int64)
    else:
        columns = check_columns(y_old, k, None, "y_old", nameable=False)
    check_same_length(len(held), "`p_old`", len(columns), "y_old")
    weight = check_weights(sample_weight, len(columns), "sample_weight_old")
    counts = np.bincount(columns, weights=weight, minlength=k)
    if counts.min() < 2.0:
        got = f"{counts.min():g} of {np.argmin(counts)}"
        refuse("y_old", "hold every class twice or more", got)
    kept = weight > 0.0
    return held[kept], columns[kept], weight[kept]


def class_ratios(rows: Float64Array, prior: Float64Array) -> Float64Array:
    """Return densities of the classes, shape (n, k), up to a factor of the row."""
    table = np.column_stack([1.0 - rows, rows]) if rows.ndim == 1 else rows
    # The greatest value of a row is 1, for any prior, so nothing overflows.
    with np.errstate(divide="ignore"):
        logs = np.log(table) - np.log(prior)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


# A likelihood is summed up to this many deviations, and at this many places. If it does
# not end, the sum goes this far in log-odds.
_FAR, _MIDDLES, _ENDLESS = 4.5, (np.arange(64) + 0.5) / 64, 10.0
# New priors vary around old ones by this standard deviation, in log-odds.
_SPREAD = 2.0
# Score functions are taken at shares that are made this even, and this often.
_EVEN, _ROUNDS = 0.02, 3


def shift_prior(p: ArrayLike, old: ArrayLike, new: ArrayLike) -> Float64Array:
    r"""Return the forecasts that hold if classes have another prior.

    Parameters
    ----------
    p : array-like of shape (n,) or (n, k)
        Probabilities of class 1, or of k classes, calibrated under the old prior.
    old, new : float, or array-like of shape (k,)
        Priors of class 1 in (0, 1), or of the k classes. The old one is the prior of
        the rows that calibrators were fitted on: `base_rate_` of a calibrator,
        `class_prior_` of a `CalibratedClassifier`.

    Returns
    -------
    ndarray of shape (n,) or (n, k)
        0 stays 0 and 1 stays 1.

    Notes
    -----
    Suppose that only the prior :math:`\pi` changes, and the rows of each class look as
    before. Then by Bayes's rule

    .. math:: p'_k = \frac{p_k \pi'_k / \pi_k}{\sum_j p_j \pi'_j / \pi_j}.

    References
    ----------
    Saerens, Latinne & Decaestecker (2002), Adjusting the outputs of a classifier to
    new a priori probabilities.

    Examples
    --------
    >>> from calibration import shift_prior
    >>> shift_prior([0.0, 0.5, 0.9, 1.0], old=0.5, new=0.02).round(3)
    array([0.   , 0.02 , 0.155, 1.   ])
    >>> shift_prior([[0.2, 0.3, 0.5]], [0.2, 0.3, 0.5], [0.1, 0.1, 0.8]).round(3)
    array([[0.1, 0.1, 0.8]])
    """
    rows = read_forecasts(p, "p")
    before, after = read_prior(old, "old", rows, p), read_prior(new, "new", rows, p)
    if rows.ndim == 1:
        return np.asarray(expit(logit(rows) + (logit(after) - logit(before))[1]))
    with np.errstate(divide="ignore"):
        logs = np.log(rows) + np.log(after) - np.log(before)
    return np.asarray(softmax(logs, axis=1))


@dataclass(frozen=True, eq=False)
class PriorEstimate:
    """The prior of rows without labels.

    Parameters
    ----------
    prior : float, or ndarray of shape (k,)
        Prior of class 1, or of k classes: `new` of `shift_prior`. It is never 0 or 1.
    interval : ndarray of shape (2,) or (k, 2)
        Ends of the interval of each class.
    most_likely : float, or ndarray of shape (k,)
        The limit of expectation-maximisation. It may be 0.
    coverage : float
        Coverage of the interval.
    n_rows : float
        Number of rows without labels, or the sum of their weights.

    Examples
    --------
    >>> from calibration import estimate_prior
    >>> estimate = estimate_prior([0.1, 0.2, 0.3, 0.9], old=0.5)
    >>> round(estimate.prior, 2), estimate.interval.round(2)
    (0.36, array([0.  , 0.91]))
    """

    prior: float | Float64Array
    interval: Float64Array
    most_likely: float | Float64Array
    coverage: float
    n_rows: float


def estimate_prior(
    p: ArrayLike,
    old: ArrayLike,
    *,
    p_old: ArrayLike | None = None,
    y_old: ArrayLike | None = None,
    coverage: float = 0.95,
    sample_weight: ArrayLike | None = None,
    sample_weight_old: ArrayLike | None = None,
) -> PriorEstimate:
    r"""Return the prior of rows without labels, by expectation-maximisation.

    Parameters
    ----------
    p : array-like of shape (n,) or (n, k)
        Probabilities of class 1, or of k classes, calibrated under the old prior. The
        rows may have another prior.
    old : float, or array-like of shape (k,)
        The old prior, as in `shift_prior`.
    p_old : array-like of shape (m,) or (m, k), optional
        Probabilities of the rows that calibrators were fitted on, out of fold:
        ``cross_val_predict(calibrator, scores, y, cv=cv)`` of m held-out scores, with
        `cv` such as ``StratifiedKFold(5, shuffle=True)``. They must be out of fold,
        since a calibrator knows the labels of its own rows.
    y_old : array-like of shape (m,), optional
        Their labels, coded 0 and 1, or as numbers of columns.
    coverage : float
        Coverage of the interval, in (0, 1).
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions of the rows without labels.
    sample_weight_old : array-like of shape (m,), optional
        Numbers of repetitions of the labelled rows.

    Returns
    -------
    PriorEstimate

    Notes
    -----
    The likelihood ratios :math:`r_k(s) = p_k / \pi_k` are densities of scores in the
    classes, up to a common factor. So the new prior maximises

    .. math:: \ell(\pi') = \sum_i \log \sum_k \pi'_k r_k(s_i),

    EM is one way to the maximum: it shifts the forecasts, takes their mean as the
    prior, and repeats (Saerens et al.). The maximum is `most_likely`. The interval
    holds the priors whose profile likelihood is within half a quantile of
    :math:`\chi^2_1` of the maximum. `prior` is the mean under this likelihood and a law
    of new priors. In this law their log-odds are normal around those of the old ones,
    with a standard deviation of 2. There are two reasons for it. A few hundred rows may
    hold too little of a rare class to tell it from none, and forecasts moved to a prior
    of 0 have an infinite loss. And if scores say little, priors near the old one are
    more likely. (If they say nothing, this mean is .073 for an old prior of .02.) This
    treats the ratios as known. If calibrators were fitted on few rows, the
    interval is too short. If they have the wrong shape, the estimate is off.

    Rows of the old prior remove both assumptions. The score functions are :math:`g_k =
    r_k / \sum_j \pi'_j r_j`. At the maximum their mean over the new rows is 1. If the
    ratios are right, their mean over old rows mixed by the new prior is 1 too. Here the
    two means are made equal, whether they are 1 or not, as in Lipton et al. The shares
    are those with the least

    .. math:: (\bar g - G \pi')^T \Sigma^{-1} (\bar g - G \pi'), \qquad
        \Sigma = \frac{cov(g)}{n} + \sum_k \frac{\pi_k'^2 cov_k(g)}{m_k},

    Here G holds the means over the :math:`m_k` old rows of each class, and cov(g) is
    that of old rows mixed by the new prior. The interval holds the shares that are
    within :math:`\chi^2_1` of the least value. All this is valid if only the prior has
    changed; `prior_shift_test` checks this.

    Isotonic regression separates the classes better in its own rows than in new rows.
    With forecasts of its own rows, 95 % intervals held the prior in .72 to .93 of
    samples (500 to 2000 labelled rows, priors of .02 to .3). With forecasts out of fold
    it was .95 to .97. For calibrators with two or three parameters it was .94 to .97
    either way.

    References
    ----------
    Saerens, Latinne & Decaestecker (2002), Adjusting the outputs of a classifier to
    new a priori probabilities. Lipton, Wang & Smola (2018), Detecting and correcting
    for label shift with black box predictors. Kim, Carbonetto, Stephens & Anitescu
    (2020), A fast algorithm for maximum likelihood estimation of mixture proportions.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import estimate_prior
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(size=4000) < 0.02
    >>> scores = rng.normal(2.0 * y)
    >>> p = 1.0 / (1.0 + np.exp(-2.0 * scores + 2.0))  # right if half of y are 1
    >>> estimate = estimate_prior(p, old=0.5)
    >>> round(estimate.prior, 3), estimate.interval.round(3)
    (0.02, array([0.01 , 0.029]))
    """
    rows = read_forecasts(p, "p")
    prior = read_prior(old, "old", rows, p)
    level = check_level(coverage, "coverage")
    check_order(p_old, names_of_columns(p), "p_old")
    weight = check_weights(sample_weight, len(rows))
    labelled = _read_labelled(p_old, y_old, sample_weight_old, rows)
    held = weight > 0.0
    ratios, weight = class_ratios(rows[held], prior), weight[held]
    fit = fit_shares(ratios, weight, prior)
    shares, drop, k = fit.shares, float(chi2.ppf(level, 1)), len(prior)
    likelihood: Callable[[int, float], float]
    if labelled is None:
        likelihood, top = partial(profile, ratios, weight, fit), fit.log_likelihood
    else:
        p_held, columns, weight_old = labelled
        old_ratios = class_ratios(p_held, prior)
        parts = [columns == j for j in range(k)]
        matched = _match_scores(
            [ratios, *(old_ratios[part] for part in parts)],
            [weight, *(weight_old[part] for part in parts)],
            shares,
        )
        distance, _, shares = matched.nearest()
        likelihood, top = matched.log_likelihood, -0.5 * distance
    ends = [
        share_interval(partial(likelihood, j), float(shares[j]), top - 0.5 * drop)
        for j in range(k)
    ]
    intervals, reach = np.array(ends), _FAR / float(np.sqrt(drop))
    means = _mean_shares(likelihood, prior, shares, intervals, reach)
    n = float(weight.sum())
    if rows.ndim == 1:
        one, best = float(means[1]), float(shares[1])
        return PriorEstimate(one, intervals[1], best, level, n)
    return PriorEstimate(means, intervals, shares, level, n)


def _mean_shares(
    likelihood: Callable[[int, float], float],
    old: Float64Array,
    shares: Float64Array,
    intervals: Float64Array,
    reach: float,
) -> Float64Array:
    """Return the means (k,) of shares, by a likelihood and a law around the old ones.

    Parameters
    ----------
    likelihood : callable
        The logarithm of the likelihood at a given share of class j.
    old, shares : ndarrays of shape (k,)
        The old prior, and the most likely new one.
    intervals : ndarray of shape (k, 2)
    reach : float
        The interval times this covers the whole likelihood.
    """
    means = shares.copy()
    for j, share in enumerate(shares):
        centre, best = logit(old[j]), logit(share)
        low, high = logit(intervals[j])
        first, last = _span(centre, best, low, high, reach)
        odds = first + (last - first) * _MIDDLES
        at = expit(odds)
        logs = np.array([likelihood(j, one) for one in at])
        logs -= 0.5 * ((odds - centre) / _SPREAD) ** 2
        weights = np.exp(logs - logs.max())
        means[j] = at @ weights / weights.sum()
    return np.asarray(means / means.sum())


def _span(
    centre: float, best: float, low: float, high: float, reach: float
) -> tuple[float, float]:
    """Return the range of log-odds that matters, for ends that may be infinite."""
    known = [one for one in (centre, best, low, high) if np.isfinite(one)]
    spans = []
    for end, endless in ((low, min(known) - _ENDLESS), (high, max(known) + _ENDLESS)):
        closed = np.isfinite(end) and np.isfinite(best)
        spans.append(best + reach * (end - best) if closed else endless)
    return spans[0], spans[1]


def _read_labelled(
    p_old: ArrayLike | None,
    y_old: ArrayLike | None,
    sample_weight: ArrayLike | None,
    rows: Float64Array,
) -> tuple[Float64Array, Int64Array, Float64Array] | None:
    """Return forecasts, columns and weights of the labelled rows that have weight."""
    if (p_old is None) != (y_old is None):
        given, absent = ("p_old", "y_old") if y_old is None else ("y_old", "p_old")
        refuse(absent, f"be given with `{given}`", "None")
    if p_old is None or y_old is None:
        if sample_weight is not None:
            refuse("p_old", "be given with `sample_weight_old`", "None")
        return None
    return read_labelled_rows(p_old, y_old, rows, sample_weight)


def _match_scores(
    parts: list[Float64Array], weights: list[Float64Array], shares: Float64Array
) -> MatchedMeans:
    """Return means of the score functions of the likelihood, at its own shares.

    The means over the old rows are known for any ratios. They tell more if the shares
    at which they are taken are nearer to the truth.

    Parameters
    ----------
    parts : list of 1 + k ndarrays of shape (n, k)
        Ratios of the new rows, then of the old rows of each class.
    weights : list of 1 + k ndarrays of shape (n,)
    shares : ndarray of shape (k,)
    """
    for _ in range(_ROUNDS):
        # No share is 0, so the functions are bounded by 1 / share.
        near = (1.0 - _EVEN) * shares + _EVEN / len(shares)
        functions = [part / (part @ near)[:, None] for part in parts]
        matched = MatchedMeans.of(functions, weights)
        shares = matched.nearest()[2]
    return matched


# Rows of the smallest sample that a bin should have, then the greatest number of bins.
_ROWS_PER_BIN = 10
_MOST_BINS = 10


@dataclass(frozen=True, eq=False)
class PriorShiftTest:
    """Result of a test of whether only the prior has changed.

    Parameters
    ----------
    statistic : float
        Squared distance of the bins' shares from those of the best mixture.
    dof : int
        Degrees of freedom of its law, which is chi-squared for many rows.
    p_value : float
        Chance of a statistic at least as large if only the prior has changed. If it is
        small, these rows are no mixture of the old classes.
    prior : float, or ndarray of shape (k,)
        Prior of the best mixture: of class 1, or of k classes.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import prior_shift_test
    >>> p = np.linspace(0.0, 1.0, 101)
    >>> y = np.random.default_rng(0).uniform(size=101) < p
    >>> prior_shift_test(p[::2], p, y).p_value > 0.05
    True
    """

    statistic: float
    dof: int
    p_value: float
    prior: float | Float64Array


def prior_shift_test(
    p: ArrayLike, p_old: ArrayLike, y_old: ArrayLike, *, n_bins: int | None = None
) -> PriorShiftTest:
    r"""Test whether new rows differ from labelled ones only in the prior.

    Parameters
    ----------
    p : array-like of shape (n,) or (n, k)
        Scores or forecasts of the new rows: of class 1 in [0, 1], or of k classes. They
        need not be calibrated.
    p_old : array-like of shape (m,) or (m, k)
        The same for labelled rows on which the classifier was not fitted. Both must
        come from one and the same map. Forecasts out of fold come from the maps of
        several folds. Those of step maps, such as isotonic ones, take other values in
        each fold.
    y_old : array-like of shape (m,)
        Their labels, coded 0 and 1, or as numbers of columns.
    n_bins : int, optional
        Number of bins with about equal numbers of rows, at least 3. With k classes, the
        column of each class has this many bins. Default: 3 to 10, with 10 rows of the
        rarest class for each bin.

    Returns
    -------
    PriorShiftTest

    Notes
    -----
    If only the prior has changed, the new scores are a mixture of the old scores of the
    classes. Let :math:`h` be the shares of the new rows in the bins, :math:`M_k` those
    of the labelled rows of class k, and :math:`\pi` a free prior. Then

    .. math:: \min_\pi (h - M \pi)^T \Sigma^{-1} (h - M \pi), \qquad
        \Sigma = \frac{cov(h)}{n} + \sum_k \frac{\pi_k^2 cov_k}{m_k},

    is chi-squared for many rows. Here cov(h) is that of old rows mixed by :math:`\pi`,
    because few new rows do not show their own. The degrees of freedom are the bins that
    vary freely, less k - 1, plus one for each class whose share is 0. Since
    :math:`\Sigma` is estimated, the p-value is that of an F law, as for Hotelling's
    statistic with two covariances (Nel & van der Merwe 1986). The labelled rows are a
    sample like the new ones, so a few hundred of them show only gross changes. Without
    labels, no test can see a change that looks like a mixture. An example is a change
    of labels in rows whose scores stay the same.

    References
    ----------
    Lipton, Wang & Smola (2018), Detecting and correcting for label shift with black
    box predictors. Ferguson (1996), A course in large sample theory (minimum
    chi-squared). Nel & van der Merwe (1986), A solution to the multivariate
    Behrens-Fisher problem.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import prior_shift_test
    >>> rng = np.random.default_rng(1)
    >>> def draw(n, prior, move=0.0):
    ...     y = rng.uniform(size=n) < prior
    ...     return 1.0 / (1.0 + np.exp(-rng.normal(2.0 * y - 1.0 + move, size=n))), y
    >>> p_old, y_old = draw(2000, prior=0.5)
    >>> prior_shift_test(draw(2000, prior=0.1)[0], p_old, y_old).p_value > 0.05
    True
    >>> prior_shift_test(draw(2000, 0.1, move=-0.5)[0], p_old, y_old).p_value < 0.001
    True
    """
    rows = read_forecasts(p, "p")
    check_order(p_old, names_of_columns(p), "p_old")
    held, columns, _ = read_labelled_rows(p_old, y_old, rows)
    counts = np.bincount(columns)
    if n_bins is None:
        fewest = min(len(rows), int(counts.min()))
        n_bins = min(max(fewest // _ROWS_PER_BIN, 3), _MOST_BINS)
    n_bins = check_integer(n_bins, "n_bins", 3)
    parts = [held[columns == j] for j in range(len(counts))]
    matched = MatchedMeans.of(_count_bins([rows, *parts], n_bins))
    # A mixture always fits if there are no more bins than classes.
    if matched.rank < len(counts):
        rule = f"take values in more than {len(counts)} bins, the number of classes"
        refuse("p", rule, 1 + matched.rank)
    statistic, rank, shares = matched.nearest()
    dof = max(rank - int((shares > 0.0).sum()) + 1, 1)
    rest = max(matched.freedom(shares) - dof + 1.0, 1.0)
    p_value = f.sf(statistic / dof * rest / (rest + dof - 1.0), dof, rest)
    prior = float(shares[1]) if rows.ndim == 1 else shares
    return PriorShiftTest(statistic, dof, float(p_value), prior)


def _count_bins(parts: list[Float64Array], n_bins: int) -> list[Float64Array]:
    """Return which bins the rows of each part are in, arrays (n, q) of 0 and 1.

    The bins are made from all rows together and do not use labels.
    """
    pooled = np.concatenate(parts)
    inside = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    tables = [part[:, None] if part.ndim == 1 else part for part in parts]
    columns = pooled[:, None] if pooled.ndim == 1 else pooled
    found: list[list[Float64Array]] = [[] for _ in parts]
    for j in range(columns.shape[1]):
        edges = np.unique(np.quantile(columns[:, j], inside))
        for table, held in zip(tables, found, strict=True):
            place = np.searchsorted(edges, table[:, j], side="left")
            # The bins cover all rows, so one bin follows from the others.
            held.append((place[:, None] == np.arange(len(edges))).astype(np.float64))
    return [np.hstack(held) for held in found]
