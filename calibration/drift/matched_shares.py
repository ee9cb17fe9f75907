"""Shares of the classes in new rows, by means that a mixture of old rows has too."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, nnls

from calibration.typing import Float64Array

_STEPS = 50
_TOLERANCE = 1e-10
# Directions with less than this share of the greatest variance are none.
_RANK = 1e-9
# How much heavier than all means the sum of shares weighs in least squares.
_HEAVY = 1e4


class MatchedMeans(NamedTuple):
    """Means of q functions over new rows and over the old rows of k classes.

    If only the prior has changed, the former are a mixture of the latter, whatever the
    functions: shares are those of the nearest mixture, in units of the covariance of
    the difference, Sigma = spread_new + sum_k shares_k^2 spread_k.

    Parameters
    ----------
    target : ndarray of shape (q,)
    means : ndarray of shape (q, k)
    spreads : list of 1 + k ndarrays of shape (q, q)
        Covariances of the means, of the new rows first.
    """

    target: Float64Array
    means: Float64Array
    spreads: list[Float64Array]

    @classmethod
    def of(
        cls, parts: list[Float64Array], weights: list[Float64Array] | None = None
    ) -> MatchedMeans:
        """Return the means of functions (n, q) at new rows, and at those of classes.

        Parameters
        ----------
        parts : list of 1 + k ndarrays of shape (n, q)
            The new rows first.
        weights : list of 1 + k ndarrays of shape (n,), optional
            Repetitions of these.
        """
        if weights is None:
            weights = [np.ones(len(part)) for part in parts]
        spreads = [
            np.atleast_2d(np.cov(part.T, ddof=0, aweights=weight)) / weight.sum()
            for part, weight in zip(parts, weights, strict=True)
        ]
        target, *means = (
            weight @ part / weight.sum()
            for part, weight in zip(parts, weights, strict=True)
        )
        return cls(target, np.column_stack(means), spreads)

    @property
    def rank(self) -> int:
        """How many of the functions vary freely."""
        return _inverse_root(np.sum(self.spreads, axis=0))[1]

    def nearest(
        self, j: int | None = None, share: float = 0.0
    ) -> tuple[float, int, Float64Array]:
        """Return the least squared distance, its rank, and the shares (k,) of it.

        The distance depends on shares through the covariance: both in turn.

        Parameters
        ----------
        j : int, optional
            A class whose share is not free.
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

    def log_likelihood(self, j: int, share: float) -> float:
        """Return minus half the least squared distance at a share of class j."""
        return -0.5 * self.nearest(j, share)[0]

    def interval(self, j: int, drop: float) -> tuple[float, float]:
        """Return the shares of class j whose distance is near enough to the least.

        Parameters
        ----------
        j : int
        drop : float
            How much greater the squared distance may be.
        """
        least, _, shares = self.nearest()

        def excess(share: float) -> float:
            return self.nearest(j, share)[0] - least - drop

        best = float(shares[j])
        ends = []
        for end in (0.0, 1.0):
            inside = best == end or excess(end) <= 0.0
            ends.append(end if inside else float(brentq(excess, end, best, xtol=1e-9)))
        return ends[0], ends[1]

    def _covariance(self, shares: Float64Array) -> Float64Array:
        parts = zip(shares, self.spreads[1:], strict=True)
        return np.asarray(self.spreads[0] + sum(s**2 * one for s, one in parts))


def _inverse_root(covariance: Float64Array) -> tuple[Float64Array, int]:
    """Return a matrix whose square is the inverse where there is variance; its rank."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _RANK * max(float(values[-1]), 0.0)
    return (vectors[:, kept] / np.sqrt(values[kept])).T, int(kept.sum())
