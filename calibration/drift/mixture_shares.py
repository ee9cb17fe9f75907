"""Shares of the classes in a mixture of known densities, by maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import brentq, nnls

from calibration.typing import Float64Array

# How far the sum of log-likelihoods may be from its maximum.
_GAP = 1e-9
_MAX_STEPS = 500
_HALVINGS = 30
# Share of the curvature that is added where rows tell classes apart in no direction.
_RIDGE = 1e-10
# The logarithm of a likelihood of 0, for searches that cannot take infinities.
_IMPOSSIBLE = -1e12


class MixtureFit(NamedTuple):
    """Shares (k,) of most likelihood, and its logarithm summed over rows."""

    shares: Float64Array
    log_likelihood: float


def fit_shares(
    ratios: Float64Array, weight: Float64Array, start: Float64Array
) -> MixtureFit:
    r"""Return the shares that maximise the likelihood of a mixture.

    The log-likelihood sum_i weight_i log(sum_j shares_j ratios_ij) is concave. At its
    maximum the means g_j of ratios_ij / mixture_i are at most 1, and n (max g - 1), n
    being the sum of weights, bounds what is missing anywhere else. Expectation-
    maximisation multiplies shares by g, in many small steps where classes overlap:
    quadratic steps (Kim et al. 2020) have the same limit, and EM's own are taken where
    these fail.

    Parameters
    ----------
    ratios : ndarray of shape (n, k)
        Densities of the classes at each row, up to a factor of the row.
    weight : ndarray of shape (n,)
    start : ndarray of shape (k,)
        Positive shares.

    Returns
    -------
    MixtureFit
    """
    shares, n = start / start.sum(), float(weight.sum())
    value = _log_likelihood(ratios, weight, shares)
    for _ in range(_MAX_STEPS):
        scaled = ratios / (ratios @ shares)[:, None]
        gradient = weight @ scaled / n
        if n * (gradient.max() - 1.0) <= _GAP:
            break
        curvature = (weight[:, None] * scaled).T @ scaled / n
        step = _quadratic_step(curvature, gradient, shares) - shares
        for _ in range(_HALVINGS):
            trial = _log_likelihood(ratios, weight, shares + step)
            if trial > value:
                break
            step *= 0.5
        else:
            step = shares * gradient - shares
            trial = _log_likelihood(ratios, weight, shares + step)
            if trial <= value:
                break
        shares, value = shares + step, trial
    return MixtureFit(shares, value)


def profile_interval(
    ratios: Float64Array,
    weight: Float64Array,
    fit: MixtureFit,
    j: int,
    drop: float,
) -> tuple[float, float]:
    """Return the shares of class j whose profile likelihood is high enough.

    Parameters
    ----------
    ratios : ndarray of shape (n, k)
    weight : ndarray of shape (n,)
    fit : MixtureFit
        Of these.
    j : int
    drop : float
        How far the log-likelihood may be below its maximum.

    Returns
    -------
    low, high : float
        The profile is concave: it is an interval.
    """
    least = fit.log_likelihood - drop

    def excess(share: float) -> float:
        return max(profile(ratios, weight, fit, j, share) - least, _IMPOSSIBLE)

    best = float(fit.shares[j])
    # At the maximum itself rounding may say that it is no maximum.
    low = 0.0 if best == 0.0 or excess(0.0) >= 0.0 else _search(excess, 0.0, best)
    high = 1.0 if best == 1.0 or excess(1.0) >= 0.0 else _search(excess, 1.0, best)
    return low, high


def _search(excess: Callable[[float], float], end: float, best: float) -> float:
    """Return the root between an end, where the excess is negative, and the best."""
    return float(brentq(excess, end, best, xtol=1e-10, rtol=1e-9))


def profile(
    ratios: Float64Array,
    weight: Float64Array,
    fit: MixtureFit,
    j: int,
    share: float,
) -> float:
    """Return the greatest log-likelihood if class j has the share.

    It is that of a mixture of one class less: of the others, each with its part of j.

    Parameters
    ----------
    ratios : ndarray of shape (n, k)
    weight : ndarray of shape (n,)
    fit : MixtureFit
        Of these.
    j : int
    share : float

    Returns
    -------
    float
    """
    others = np.delete(ratios, j, axis=1)
    mixed = share * ratios[:, [j]] + (1.0 - share) * others
    if mixed.shape[1] == 1:
        return _log_likelihood(mixed, weight, np.ones(1))
    # Shares of 0 stay so in EM: start within.
    start = np.delete(fit.shares, j) + 1e-6
    if not np.isfinite(_log_likelihood(mixed, weight, start / start.sum())):
        return -np.inf
    return fit_shares(mixed, weight, start).log_likelihood


def _log_likelihood(
    ratios: Float64Array, weight: Float64Array, shares: Float64Array
) -> float:
    with np.errstate(divide="ignore"):
        return float(weight @ np.log(ratios @ shares))


def _quadratic_step(
    curvature: Float64Array, gradient: Float64Array, shares: Float64Array
) -> Float64Array:
    """Return the shares x >= 0 that maximise the quadratic model of mean log - sum x.

    Subtracting the sum of shares makes them add up to 1 at the maximum without being
    told. Of the model, c = 2 gradient - 1 is the linear term, for the curvature times
    the shares is the gradient: a problem of non-negative least squares.
    """
    k = len(shares)
    ridge = _RIDGE * float(np.trace(curvature))
    lower = cholesky(curvature + ridge * np.eye(k), lower=True)
    linear = 2.0 * gradient - 1.0 + ridge * shares
    found, _ = nnls(lower.T, solve_triangular(lower, linear, lower=True))
    return np.asarray(found / found.sum())
