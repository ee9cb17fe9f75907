"""Another prior: forecasts moved to it, and the prior found without labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, softmax
from scipy.stats import chi2

from calibration._validation import check_level
from calibration.drift.mixture_shares import MixtureFit, fit_shares, profile_interval
from calibration.drift.prior_rows import (
    class_ratios,
    read_forecasts,
    read_labelled_rows,
    read_prior,
)
from calibration.typing import Float64Array, Int64Array

# Shares that rows of a likelihood of 0 are kept off by, in variances.
_LEAST_MIXTURE = 1e-8


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
        Of class 1, or of k classes: `new` of `shift_prior`.
    interval : ndarray of shape (2,) or (k, 2)
        Ends of the interval of each.
    coverage : float
        Of the interval.
    n_rows : int
        How many rows without labels.

    Examples
    --------
    >>> from calibration import estimate_prior
    >>> estimate = estimate_prior([0.1, 0.2, 0.3, 0.9], old=0.5)
    >>> round(estimate.prior, 2), estimate.interval.round(2)
    (0.24, array([0.  , 0.91]))
    """

    prior: float | Float64Array
    interval: Float64Array
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
    within half of :math:`\phi \chi^2_1` of the maximum.

    Without the rows of the old prior :math:`\phi = 1`: the interval is for ratios that
    are known, and is too short where calibrators were fitted on few rows. With them
    :math:`\phi` is the variance of the estimate over what it would be for known
    ratios, the ratios themselves being as uncertain as the class means over these
    rows of the score function :math:`g_k = r_k / \sum_j \pi'_j r_j`: for two classes

    .. math:: \phi = 1 + \frac{n}{I} \Bigl(\frac{\pi'^2}{m_1} var_1(g) +
        \frac{(1 - \pi')^2}{m_0} var_0(g)\Bigr), \qquad g = g_1 - g_0,

    :math:`I` being the information of a row. All of it holds if only the prior has
    changed, which `prior_shift_test` looks into.

    References
    ----------
    Saerens, Latinne & Decaestecker (2002), Adjusting the outputs of a classifier to
    new a priori probabilities. Kim, Carbonetto, Stephens & Anitescu (2020), A fast
    algorithm for maximum likelihood estimation of mixture proportions.

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
    (0.019, array([0.01 , 0.029]))
    """
    rows = read_forecasts(p, "p")
    prior = read_prior(old, "old", rows)
    level = check_level(coverage, "coverage")
    labelled = _read_labelled(p_old, y_old, rows)
    ratios = class_ratios(rows, prior)
    fit = fit_shares(ratios, prior)
    spread = np.ones(len(prior))
    if labelled is not None:
        old_ratios = class_ratios(labelled[0], prior)
        spread = _inflate(ratios, fit, old_ratios, labelled[1])
    drops = 0.5 * spread * chi2.ppf(level, 1)
    if rows.ndim == 1:
        ends = np.array(profile_interval(ratios, fit, 1, drops[1]))
        return PriorEstimate(float(fit.shares[1]), ends, level, len(rows))
    ends = np.array([profile_interval(ratios, fit, j, d) for j, d in enumerate(drops)])
    return PriorEstimate(fit.shares, ends, level, len(rows))


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


def _inflate(
    ratios: Float64Array,
    fit: MixtureFit,
    old_ratios: Float64Array,
    columns: Int64Array,
) -> Float64Array:
    """Return variances of shares over those for known ratios, shape (k,).

    With score functions g and their mean square I per row, the estimate moves by
    I^-1 times an error of mean g, which is I / n in variance for known ratios; those
    that are learned add shares_k^2 cov_k(g) / m_k of each class. Shares move within
    their sum, on directions at right angles to (1, ..., 1).
    """
    k = len(fit.shares)
    scaled, old_scaled = (
        part / np.maximum(part @ fit.shares, _LEAST_MIXTURE)[:, None]
        for part in (ratios, old_ratios)
    )
    basis = np.linalg.svd(np.ones((1, k)))[2][1:].T
    known = basis.T @ (scaled.T @ scaled) @ basis / len(ratios)
    learned = np.zeros((k, k))
    for j in range(k):
        part = old_scaled[columns == j]
        learned += fit.shares[j] ** 2 * np.cov(part.T, ddof=1) / len(part)
    inverse = np.linalg.pinv(known, hermitian=True)
    extra = inverse @ (basis.T @ learned @ basis) @ inverse
    alone = np.einsum("ij,jk,ik->i", basis, inverse, basis)
    added = np.einsum("ij,jk,ik->i", basis, extra, basis)
    safe = np.where(alone > 0.0, alone, 1.0)
    return 1.0 + np.where(alone > 0.0, len(ratios) * added / safe, 0.0)
