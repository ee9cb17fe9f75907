"""Weights that minimise the out-of-fold CRPS of a pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert._kernels.simplex import simplex_least_squares
from localexpert.data.folds import Rows
from localexpert.law.join import PoolKind
from localexpert.law.law import Law
from localexpert.law.steps import clip_scores, scores_of

# Rows by which members are weighed: two or three weights ask for no more.
ROWS_TO_WEIGH = 2000
# Normal scores of the quantiles between which a mesh lies.
_MESH = np.linspace(-4.0, 4.0, 41)
# A touch of the identity, so that equal members have a solution: equal weights.
_TOUCH = 1e-10
_SQRT_TWO_PI = np.sqrt(2.0 * np.pi)
# Pulls towards equal weights to choose from; inf is equal weights.
RIDGES = (0.0, 0.003, 0.01, 0.03, 0.1, np.inf)
# Rows that the weights of a probit pool are fitted on at most.
_ROWS_TO_FIT = 1000


def mean_crps(law: Law, y: Float64Array, weight: Float64Array) -> float:
    """Return the weighted mean CRPS of the laws of n rows.

    Parameters
    ----------
    law : Law
    y, weight : ndarrays of shape (n,)

    Returns
    -------
    float
    """
    return float(np.average(law.crps(y[:, None])[:, 0], weights=weight))


def draw_rows(weight: Float64Array, most: int, seed: int) -> Rows:
    """Return some of the rows that have weight, in order.

    Parameters
    ----------
    weight : ndarray of shape (n,)
    most : int
    seed : int

    Returns
    -------
    ndarray of int
    """
    rng = np.random.default_rng(seed)
    return np.sort(rng.permutation(np.flatnonzero(weight))[:most])


def linear_weights(matrix: Float64Array, ridge: float = 0.0) -> Float64Array:
    """Return the w >= 0 of sum 1 with the least w' A w, pulled to equal weights.

    Parameters
    ----------
    matrix : ndarray of shape (M, M)
        Symmetric, positive semidefinite.
    ridge : float
        Weight of M sum_k (w_k - 1 / M)^2, relative to the mean of the diagonal; inf
        gives equal weights.

    Returns
    -------
    ndarray of shape (M,)
    """
    m = len(matrix)
    size = np.trace(matrix) / m
    if np.isinf(ridge) or size <= 0.0:
        return np.full(m, 1.0 / m)
    # Of sum 1, w' w is the squared distance from equal weights up to a constant.
    return simplex_least_squares(matrix / size + (ridge * m + _TOUCH) * np.eye(m))


@dataclass(frozen=True, eq=False)
class PoolScores:
    """What members say along a mesh in y of each row: the CRPS of pools is a sum.

    Parameters
    ----------
    scores : ndarray of shape (M, n, m)
        Normal scores of the members' CDFs.
    dy : ndarray of shape (n, m)
        Weights of the mesh.
    above : ndarray of shape (n, m)
        Whether a point is at or above the row's y.
    weight : ndarray of shape (n,)
    fold : ndarray of int, shape (n,)
        The number of each row's fold; a fold may have no rows.
    n_folds : int
    """

    scores: Float64Array
    dy: Float64Array
    above: NDArray[np.bool_]
    weight: Float64Array
    fold: Rows
    n_folds: int

    @classmethod
    def of(
        cls,
        laws: Sequence[Law],
        y: Float64Array,
        weight: Float64Array,
        fold: Rows,
        n_folds: int,
    ) -> Self:
        """Return those between neighbouring quantiles of any member, and at y.

        Right to about 1e-3, which is enough to choose by, for laws of any kind.

        Parameters
        ----------
        laws : sequence of M laws
            Of n rows each.
        y : ndarray of shape (n,)
        weight, fold, n_folds
            As above.
        """
        at = np.tile(_MESH, (len(y), 1))
        quantiles = [law.ppf_scores(at) for law in laws]
        borders = np.sort(np.hstack([*quantiles, y[:, None]]), axis=1)
        middle = 0.5 * borders[:, 1:] + 0.5 * borders[:, :-1]
        z = np.stack([clip_scores(law.scores(middle)) for law in laws])
        dy, above = np.diff(borders, axis=1), middle >= y[:, None]
        return cls(z, dy, above, weight, fold, n_folds)

    def matrices(self) -> Float64Array:
        """Return the forms A (n, M, M) of linear pools: CRPS = w' A w for w of sum 1.

        A_kl is the integral of (F_k - 1{y <= x}) (F_l - 1{y <= x}).
        """
        miss = ndtr(self.scores) - self.above
        forms = np.einsum("kng,lng,ng->nkl", miss, miss, self.dy, optimize=True)
        return np.asarray(forms)

    def take(self, rows: Rows) -> Self:
        """Return those of some rows."""
        return replace(
            self,
            scores=self.scores[:, rows],
            dy=self.dy[rows],
            above=self.above[rows],
            weight=self.weight[rows],
            fold=self.fold[rows],
        )

    def crps(
        self, weights: Float64Array, kind: PoolKind, sharpness: float = 1.0
    ) -> float:
        """Return the mean CRPS of the pool, with each row's weights (n, M)."""
        shares = weights.T[:, :, None]
        if kind == "linear":
            p = (shares * ndtr(self.scores)).sum(axis=0)
            if sharpness != 1.0:
                p = ndtr(sharpness * clip_scores(scores_of(p, 1.0 - p)))
        else:
            p = ndtr(sharpness * (shares * self.scores).sum(axis=0))
        each = (self.dy * (p - self.above) ** 2).sum(axis=1)
        return float(np.average(each, weights=self.weight))

    def learn(self, kind: PoolKind, seed: int) -> tuple[Float64Array, Float64Array]:
        """Return weights of least CRPS, of all rows and as those outside a fold ask.

        Parameters
        ----------
        kind : {"linear", "probit"}
        seed : int
            Draws the rows that a probit pool is fitted to.

        Returns
        -------
        weights : ndarray of shape (M,)
        of_folds : ndarray of shape (n_folds, M)
        """
        folds = range(self.n_folds)
        weighted = self.weight[:, None, None] * self.matrices()
        sums = np.stack([weighted[self.fold == k].sum(axis=0) for k in folds])
        ridge = _choose_ridge(sums)
        total = sums.sum(axis=0)
        # What is left of the sum without a fold is the sum of the other folds.
        found = [linear_weights(a, ridge) for a in (total, *(total - sums))]
        if kind == "probit":
            some = self.take(draw_rows(self.weight, _ROWS_TO_FIT, seed))
            found = [some.weights(some.weight, found[0], ridge)]
            for k in folds:
                rest = np.where(some.fold == k, 0.0, some.weight)
                # Without any row there is nothing to learn but what all rows say.
                known = rest.any()
                found.append(some.weights(rest, found[0], ridge) if known else found[0])
        return found[0], np.stack(found[1:])

    def loss(
        self, w: Float64Array, weight: Float64Array, ridge: float
    ) -> tuple[float, Float64Array]:
        """Return the weighted mean CRPS with its pull to equal weights, and gradient.

        Parameters
        ----------
        w : ndarray of shape (M,)
        weight : ndarray of shape (n,)
            Of the rows.
        ridge : float
            Weight of sum_k (w_k - 1 / M)^2.

        Returns
        -------
        loss : float
        gradient : ndarray of shape (M,)
        """
        pooled = np.tensordot(w, self.scores, axes=1)
        miss = ndtr(pooled) - self.above
        share = (weight / weight.sum())[:, None] * self.dy
        slope = 2.0 * share * miss * np.exp(-0.5 * pooled**2) / _SQRT_TWO_PI
        away = w - 1.0 / len(w)
        loss = float((share * miss**2).sum() + ridge * away @ away)
        gradient = np.tensordot(self.scores, slope, axes=2) + 2.0 * ridge * away
        return loss, gradient

    def weights(
        self, weight: Float64Array, start: Float64Array, ridge: float = 0.0
    ) -> Float64Array:
        """Return the w >= 0 of sum 1 with the least loss, found from a start.

        Parameters
        ----------
        weight : ndarray of shape (n,)
        start : ndarray of shape (M,)
        ridge : float
            As that of `linear_weights`, relative to the loss at the start.

        Returns
        -------
        ndarray of shape (M,)
        """
        m = len(start)
        size = self.loss(start, weight, 0.0)[0]
        if np.isinf(ridge) or size <= 0.0 or m == 1:
            return np.full(m, 1.0 / m)

        def relative(w: Float64Array) -> tuple[float, Float64Array]:
            loss, gradient = self.loss(w, weight, ridge * m * size)
            return loss / size, gradient / size

        found = minimize(
            relative,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * m,
            constraints=LinearConstraint(np.ones((1, m)), 1.0, 1.0),
            options={"ftol": 1e-9, "maxiter": 100},
        )
        w = np.clip(found.x, 0.0, 1.0)
        # What the solver leaves of a weight that is zero.
        w[w < 1e-6] = 0.0
        return np.asarray(w / w.sum())


def _choose_ridge(sums: Float64Array) -> float:
    """Return the pull with the least held-out CRPS, given sums by fold (F, M, M)."""
    total = sums.sum(axis=0)

    def held_out(ridge: float) -> float:
        w = [linear_weights(total - part, ridge) for part in sums]
        return sum(float(one @ part @ one) for one, part in zip(w, sums, strict=True))

    losses = [held_out(ridge) for ridge in RIDGES]
    return RIDGES[int(np.argmin(losses))]
