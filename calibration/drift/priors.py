"""Another prior: forecasts moved to it, and the prior found without labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, softmax
from scipy.stats import chi2

from calibration._validation import check_level
from calibration.drift.matched_shares import MatchedMeans
from calibration.drift.mixture_shares import fit_shares, profile, profile_interval
from calibration.drift.prior_rows import (
    class_ratios,
    read_forecasts,
    read_labelled_rows,
    read_prior,
)
from calibration.typing import Float64Array, Int64Array

# Where a likelihood is summed: up to so many deviations, at so many places.
_FAR, _MIDDLES = 4.5, (np.arange(64) + 0.5) / 64
# How even shares are made at which score functions are taken, and how often.
_EVEN, _ROUNDS = 0.02, 3


def shift_prior(p: ArrayLike, old: ArrayLike, new: ArrayLike) -> Float64Array:
    r"""Return forecasts as they are where classes have another prior.

    Parameters
    ----------
    p : array-like of shape (n,) or (n, k)
        Probabilities of class 1, or of k classes, calibrated under the old prior.
    old, new : float, or array-like of shape (k,)
        Priors of class 1 in (0, 1), or of the k classes. The old one is that of the
        rows that calibrators were fitted on: `base_rate_` of a calibrator,
        `class_prior_` of a `CalibratedClassifier`.

    Returns
    -------
    ndarray of shape (n,) or (n, k)
        0 stays 0 and 1 stays 1.

    Notes
    -----
    By Bayes's rule, if only the prior :math:`\pi` changes and not what rows of a
    class look like,

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
    before, after = read_prior(old, "old", rows), read_prior(new, "new", rows)
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
        Of class 1, or of k classes: `new` of `shift_prior`. Never 0 or 1.
    interval : ndarray of shape (2,) or (k, 2)
        Ends of the interval of each.
    most_likely : float, or ndarray of shape (k,)
        The limit of expectation-maximisation, which may be 0.
    coverage : float
        Of the interval.
    n_rows : int
        How many rows without labels.

    Examples
    --------
    >>> from calibration import estimate_prior
    >>> estimate = estimate_prior([0.1, 0.2, 0.3, 0.9], old=0.5)
    >>> round(estimate.prior, 2), estimate.interval.round(2)
    (0.38, array([0.  , 0.91]))
    """

    prior: float | Float64Array
    interval: Float64Array
    most_likely: float | Float64Array
    coverage: float
    n_rows: int


def estimate_prior(
    p: ArrayLike,
    old: ArrayLike,
    *,
    p_old: ArrayLike | None = None,
    y_old: ArrayLike | None = None,
    coverage: float = 0.95,
) -> PriorEstimate:
    r"""Return the prior of rows without labels, by expectation-maximisation.

    Parameters
    ----------
    p : array-like of shape (n,) or (n, k)
        Probabilities of class 1, or of k classes, calibrated under the old prior, of
        rows that may have another one.
    old : float, or array-like of shape (k,)
        The old prior, as in `shift_prior`.
    p_old : array-like of shape (m,) or (m, k), optional
        Such probabilities of the rows that calibrators were fitted on: forecasts of
        held-out scores, of which there are m.
    y_old : array-like of shape (m,), optional
        Their labels, coded 0 and 1, or as numbers of columns.
    coverage : float
        Of the interval, in (0, 1).

    Returns
    -------
    PriorEstimate

    Notes
    -----
    The likelihood ratios :math:`r_k(s) = p_k / \pi_k` are densities of scores in the
    classes up to a common factor, so that the new prior maximises

    .. math:: \ell(\pi') = \sum_i \log \sum_k \pi'_k r_k(s_i),

    of which EM is one way up: shift the forecasts, take their mean as the prior, and
    so on (Saerens et al.). The interval holds the priors whose profile likelihood is
    within half a quantile of :math:`\chi^2_1` of the maximum, which is `most_likely`;
    `prior` is the mean under this likelihood and a uniform law of priors. Of a rare
    class a few hundred rows may hold too little to be told from none, and forecasts
    moved to a prior of 0 have an infinite loss. Ratios are taken for known: where
    calibrators were fitted on few rows the interval is too short, and where they have
    the wrong shape the estimate is off.

    With rows of the old prior neither is taken for granted. At the maximum the score
    functions :math:`g_k = r_k / \sum_j \pi'_j r_j` have a mean of 1 over the new rows,
    as they have over old rows mixed by the new prior if ratios are right. Here the two
    means are made equal, whether they are 1 or not, as in Lipton et al.: the shares are
    those with the least

    .. math:: (\bar g - G \pi')^T \Sigma^{-1} (\bar g - G \pi'), \qquad
        \Sigma = \frac{cov(g)}{n} + \sum_k \frac{\pi_k'^2 cov_k(g)}{m_k},

    G being the means over the :math:`m_k` old rows of each class, and the interval
    holds those that are within :math:`\chi^2_1` of it. All of it holds if only the
    prior has changed, which `prior_shift_test` looks into.

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
    prior = read_prior(old, "old", rows)
    level = check_level(coverage, "coverage")
    labelled = _read_labelled(p_old, y_old, rows)
    ratios = class_ratios(rows, prior)
    fit = fit_shares(ratios, prior)
    shares, drop = fit.shares, float(chi2.ppf(level, 1))
    likelihood: Callable[[int, float], float]
    if labelled is None:
        ends = [profile_interval(ratios, fit, j, 0.5 * drop) for j in range(len(prior))]
        likelihood = partial(profile, ratios, fit)
    else:
        old_ratios = class_ratios(labelled[0], prior)
        matched = _match_scores(ratios, old_ratios, labelled[1], shares)
        shares = matched.nearest()[2]
        ends = [matched.interval(j, drop) for j in range(len(prior))]
        likelihood = matched.log_likelihood
    reach = _FAR / float(np.sqrt(drop))
    means, interval = _mean_shares(likelihood, shares, ends, reach), np.array(ends)
    if rows.ndim == 1:
        one, best = float(means[1]), float(shares[1])
        return PriorEstimate(one, interval[1], best, level, len(rows))
    return PriorEstimate(means, interval, shares, level, len(rows))


def _mean_shares(
    likelihood: Callable[[int, float], float],
    shares: Float64Array,
    ends: list[tuple[float, float]],
    reach: float,
) -> Float64Array:
    """Return the means of shares under a likelihood and a uniform law of priors, (k,).

    Of a uniform law of k shares one has a density of (1 - share)^(k - 2).
    """
    k, means = len(shares), shares.copy()
    for j, (low, high) in enumerate(ends):
        best = float(shares[j])
        # So many times the interval holds all that there is, between 0 and 1.
        first = max(best - reach * (best - low), 0.0)
        last = min(best + reach * (high - best), 1.0)
        at = first + (last - first) * _MIDDLES
        logs = np.array([likelihood(j, share) for share in at])
        logs += (k - 2) * np.log1p(-np.minimum(at, 1.0 - 1e-12))
        weights = np.exp(logs - logs.max())
        means[j] = at @ weights / weights.sum()
    return np.asarray(means / means.sum())


def _read_labelled(
    p_old: ArrayLike | None, y_old: ArrayLike | None, rows: Float64Array
) -> tuple[Float64Array, Int64Array] | None:
    """Return forecasts and columns of rows with labels, two of each class or more."""
    if (p_old is None) != (y_old is None):
        given, absent = ("p_old", "y_old") if y_old is None else ("y_old", "p_old")
        msg = f"`{absent}` must be given with `{given}`, got None."
        raise ValueError(msg)
    if p_old is None or y_old is None:
        return None
    return read_labelled_rows(p_old, y_old, rows)


def _match_scores(
    ratios: Float64Array,
    old_ratios: Float64Array,
    columns: Int64Array,
    shares: Float64Array,
) -> MatchedMeans:
    """Return means of the score functions of the likelihood, at shares that they have.

    Their means over the old rows are known whatever the ratios are; the nearer the
    shares at which they are taken to the truth, the more they tell.
    """
    k = len(shares)
    for _ in range(_ROUNDS):
        # None is 0: the functions are bounded by 1 / share.
        near = (1.0 - _EVEN) * shares + _EVEN / k
        new, old = (part / (part @ near)[:, None] for part in (ratios, old_ratios))
        matched = MatchedMeans.of(new, [old[columns == j] for j in range(k)])
        shares = matched.nearest()[2]
    return matched
