"""Shares of the classes in new rows, by greatest likelihood and by matching means."""

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
# If no direction of the rows separates classes, this share of the curvature is added.
_RIDGE = 1e-10
# It stands for the logarithm of a likelihood of 0, because searches need finite
# numbers.
_IMPOSSIBLE = -1e12


class MixtureFit(NamedTuple):
    """Shares (k,) of greatest likelihood, and its logarithm summed over rows."""

    shares: Float64Array
    log_likelihood: float


def fit_shares(
    ratios: Float64Array, weight: Float64Array, start: Float64Array
) -> MixtureFit:
    r"""Return the shares that maximise the likelihood of a mixture.

    The log-likelihood sum_i weight_i log(sum_j shares_j ratios_ij) is concave. Let g_j
    be the means of ratios_ij / mixture_i, and n the sum of weights. At the maximum all
    g_j are at most 1. Elsewhere n (max g - 1) bounds how far the value is from the
    maximum. Expectation-maximisation (EM) multiplies shares by g. It takes many small
    steps where classes overlap. Quadratic steps (Kim et al. 2020) have the same limit.
    If they fail, EM's own steps are taken.

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
        if max(n, 1.0) * (gradient.max() - 1.0) <= _GAP:
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


def share_interval(
    log_likelihood: Callable[[float], float], best: float, least: float
) -> tuple[float, float]:
    """Return the interval of the shares of a class that are likely enough.

    Parameters
    ----------
    log_likelihood : callable
        The log-likelihood of a share in [0, 1]. It rises up to the best share, then it
        falls.
    best : float
        The most likely share.
    least : float
        The log-likelihood that is enough.

    Returns
    -------
    low, high : float
    """

    def excess(share: float) -> float:
        return max(log_likelihood(share) - least, _IMPOSSIBLE)

    ends = []
    for end in (0.0, 1.0):
        # Rounding, and searches that end elsewhere, may make the best look like no
        # maximum.
        inside = best == end or excess(end) >= 0.0 or excess(best) <= 0.0
        root = end if inside else brentq(excess, end, best, xtol=1e-10, rtol=1e-9)
        ends.append(float(root))
    return ends[0], ends[1]


def profile(
    ratios: Float64Array, weight: Float64Array, fit: MixtureFit, j: int, share: float
) -> float:
    """Return the greatest log-likelihood if class j has the share.

    This is a mixture of one class less. Each other class takes its part of j too.

    Parameters
    ----------
    ratios : ndarray of shape (n, k)
    weight : ndarray of shape (n,)
    fit : MixtureFit
        The fit of these ratios.
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
    # EM keeps shares of 0 at 0, so it starts inside.
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

    The sum of shares is subtracted. So they add up to 1 at the maximum without a
    constraint. The curvature times the shares is the gradient. So the linear term of
    the model is c = 2 gradient - 1. The problem is one of non-negative least squares.
    """
    k = len(shares)
    ridge = _RIDGE * float(np.trace(curvature))
    lower = cholesky(curvature + ridge * np.eye(k), lower=True)
    linear = 2.0 * gradient - 1.0 + ridge * shares
    found, _ = nnls(lower.T, solve_triangular(lower, linear, lower=True))
    return np.asarray(found / found.sum())


_STEPS = 50
_TOLERANCE = 1e-10
# This share of all variance is always added.
_FLOOR = 1e-6
# A direction with less than this share of the greatest variance counts as none.
_RANK = 1e-9
# In least squares, the sum of shares weighs this many times more than all means.
_HEAVY = 1e4


class MatchedMeans(NamedTuple):
    """Means of q functions over new rows and over the old rows of k classes.

    If only the prior has changed, the means over new rows are a mixture of the means of
    the classes, for any functions. The shares are those of the nearest mixture.
    Distance is measured in units of the covariance of the difference, Sigma =
    spread_new + sum_k shares_k^2 spread_k.

    Parameters
    ----------
    target : ndarray of shape (q,)
    means : ndarray of shape (q, k)
    spreads : list of 1 + k ndarrays of shape (q, q)
        Covariances of the means, with the new rows first.
    sizes : list of 1 + k floats
        Numbers of rows. The spread of the new rows is that of a mixture of the classes,
        because few rows do not show their own.
    """

    target: Float64Array
    means: Float64Array
    spreads: list[Float64Array]
    sizes: list[float]

    @classmethod
    def of(
        cls, parts: list[Float64Array], weights: list[Float64Array] | None = None
    ) -> MatchedMeans:
        """Return the means of functions (n, q) at new rows, and at those of classes.

        Parameters
        ----------
        parts : list of 1 + k ndarrays of shape (n, q)
            The new rows come first.
        weights : list of 1 + k ndarrays of shape (n,), optional
            Repetitions of these rows.
        """
        if weights is None:
            weights = [np.ones(len(part)) for part in parts]
        pairs = list(zip(parts, weights, strict=True))
        spreads = [
            np.atleast_2d(np.cov(part.T, ddof=0, aweights=w)) / w.sum()
            for part, w in pairs
        ]
        target, *means = (w @ part / w.sum() for part, w in pairs)
        sizes = [float(weight.sum()) for weight in weights]
        return cls(target, np.column_stack(means), spreads, sizes)

    @property
    def rank(self) -> int:
        """Number of functions that vary freely."""
        return _inverse_root(np.sum(self.spreads, axis=0))[1]

    def nearest(
        self, j: int | None = None, share: float = 0.0
    ) -> tuple[float, int, Float64Array]:
        """Return the least squared distance, its rank, and its shares (k,).

        Shares change the covariance, and so the distance. Both are updated in turn.

        Parameters
        ----------
        j : int, optional
            A class whose share is held fixed.
        share : float
        """
        k = self.means.shape[1]
        free = np.arange(k) != j
        shares = np.full(k, share)
        shares[free] = (1.0 - (0.0 if j is None else share)) / free.sum()
        rest = float(shares[free].sum())
        for _ in range(_STEPS):
            root, rank = _inverse_root(self._covariance(shares))
            rows, goal = root @ self.means, root @ self.target
            heavy = _HEAVY * max(float(np.abs(rows).max(initial=0.0)), 1.0)
            fixed = rows[:, ~free] @ shares[~free]
            system = np.vstack([rows[:, free], np.full((1, free.sum()), heavy)])
            found, _ = nnls(system, np.append(goal - fixed, heavy * rest))
            moved = shares.copy()
            moved[free] = found * (rest / found.sum() if found.sum() > 0.0 else 1.0)
            change = float(np.abs(moved - shares).max())
            shares = moved
            if change < _TOLERANCE:
                break
        away = goal - rows @ shares
        return float(away @ away), rank, shares

    def freedom(self, shares: Float64Array) -> float:
        """Return how many rows less one tell as much of one covariance as of Sigma.

        Its parts are known from samples of their own (Nel & van der Merwe 1986).

        Parameters
        ----------
        shares : ndarray of shape (k,)
        """
        root, rank = _inverse_root(self._covariance(shares))
        n_new, *sizes = self.sizes
        factors, unsure = shares * (shares + np.array(sizes) / n_new), 0.0
        for factor, spread, n in zip(factors, self.spreads[1:], sizes, strict=True):
            part = factor * root @ spread @ root.T
            unsure += float(np.sum(part**2) + np.trace(part) ** 2) / max(n - 1.0, 1.0)
        # If samples have no variance, nothing is unsure.
        return (rank + rank**2) / max(unsure, _RANK)

    def log_likelihood(self, j: int, share: float) -> float:
        """Return minus half the least squared distance at a share of class j."""
        return -0.5 * self.nearest(j, share)[0]

    def _covariance(self, shares: Float64Array) -> Float64Array:
        old = self.spreads[1:]
        apart = self.means - (self.means @ shares)[:, None]
        within = zip(shares, self.sizes[1:], old, strict=True)
        new = (shares * apart) @ apart.T + sum(s * n * one for s, n, one in within)
        new /= self.sizes[0]
        parts = zip(shares, old, strict=True)
        # Whatever tells samples apart must count, even if it varies within none of
        # them.
        samples = np.column_stack([self.target, self.means])
        floor = np.sum(self.spreads, axis=0) + np.atleast_2d(np.cov(samples))
        return np.asarray(new + sum(s**2 * one for s, one in parts) + _FLOOR * floor)


def _inverse_root(covariance: Float64Array) -> tuple[Float64Array, int]:
    """Return an inverse square root where there is variance, and its rank."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _RANK * max(float(values[-1]), 0.0)
    return (vectors[:, kept] / np.sqrt(values[kept])).T, int(kept.sum())
