"""Weights that minimise the out-of-fold CRPS of a pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from scipy.optimize import LinearConstraint, minimize
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert._kernels.simplex import simplex_least_squares
from localexpert.data.folds import Rows
from localexpert.law.join import PoolKind, jump_values
from localexpert.law.law import Law
from localexpert.law.steps import clip_scores, scores_of

# Rows whose meshes are in memory at a time.
_ROWS = 512
# Normal scores of the quantiles between which a coarse mesh lies, and a fine one.
_COARSE, _FINE = np.linspace(-4.0, 4.0, 41), np.linspace(-7.0, 7.0, 57)
# Nodes and weights of a panel from 0 to 1, of the fine one.
_NODES, _SHARES = np.polynomial.legendre.leggauss(2)
_NODES, _SHARES = 0.5 * (1.0 + _NODES), 0.5 * _SHARES
# A touch of the identity, so that equal members have a solution: equal weights.
_TOUCH = 1e-10
_SQRT_TWO_PI = np.sqrt(2.0 * np.pi)
# Pulls towards equal weights to choose from; inf is equal weights.
RIDGES = (0.0, 0.003, 0.01, 0.03, 0.1, np.inf)
# Rows that the weights of a probit pool are fitted on at most.
_ROWS_TO_FIT = 1000


def crps_matrices(laws: Sequence[Law], y: Float64Array) -> Float64Array:
    r"""Return the quadratic forms of linear pools: CRPS = w' A w for w of sum 1.

    A_kl is the integral of (F_k - 1{y <= x}) (F_l - 1{y <= x}), which is

    .. math:: (CRPS_k + CRPS_l - \int (F_k - F_l)^2 dx) / 2:

    the tails, where all members agree, cancel from the integral, and the members'
    own scores are exact.

    Parameters
    ----------
    laws : sequence of M laws
        Of n rows each.
    y : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n, M, M)
    """
    scores = np.hstack([law.crps(y[:, None]) for law in laws])
    out = 0.5 * (scores[:, :, None] + scores[:, None, :])
    for rows, y_at, dy, part in _meshes(laws, None):
        cdf = np.stack([law.cdf(y_at) for law in part])
        for k in range(len(laws)):
            for j in range(k):
                apart = 0.5 * (dy * (cdf[k] - cdf[j]) ** 2).sum(axis=1)
                out[rows, k, j] -= apart
                out[rows, j, k] -= apart
    return out


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


class PoolScores:
    """What the members say along a mesh in y of each row: the CRPS of pools is a sum.

    Attributes
    ----------
    scores : ndarray of shape (M, n, m)
        Normal scores of the members' CDFs.
    dy : ndarray of shape (n, m)
        Weights of the mesh.
    above : ndarray of shape (n, m)
        Whether a point is at or above the row's y.
    """

    def __init__(self, scores: Float64Array, dy: Float64Array, above: Any):
        self.scores, self.dy, self.above = scores, dy, above

    @classmethod
    def fine(
        cls,
        laws: Sequence[Law],
        y: Float64Array,
        rows: Rows | slice = slice(None),
    ) -> Self:
        """Return those on a mesh that integrates to 1e-5 or better.

        Parameters
        ----------
        laws : sequence of M laws
            Of n rows each.
        y : ndarray of shape (n,)
        rows : ndarray of int or slice
            Those that are asked for.
        """
        laws, y = [law.take(rows) for law in laws], y[rows]
        parts = []
        for at, y_at, dy, part in _meshes(laws, y):
            parts.append((_scores_at(part, y_at), dy, y_at >= y[at, None]))
        return cls(
            np.concatenate([part[0] for part in parts], axis=1),
            np.concatenate([part[1] for part in parts]),
            np.concatenate([part[2] for part in parts]),
        )

    @classmethod
    def coarse(cls, laws: Sequence[Law], y: Float64Array) -> Self:
        """Return those between neighbouring quantiles of any member, and at y.

        Right to about 1e-3, which is enough to choose by, for laws of any kind.

        Parameters
        ----------
        laws : sequence of M laws
            Of n rows each.
        y : ndarray of shape (n,)
        """
        at = np.tile(_COARSE, (len(y), 1))
        quantiles = [law.ppf_scores(at) for law in laws]
        borders = np.sort(np.hstack([*quantiles, y[:, None]]), axis=1)
        middle = 0.5 * borders[:, 1:] + 0.5 * borders[:, :-1]
        z = _scores_at(laws, middle)
        return cls(z, np.diff(borders, axis=1), middle >= y[:, None])

    def matrices(self) -> Float64Array:
        """Return the quadratic forms of linear pools, see `crps_matrices`."""
        miss = ndtr(self.scores) - self.above
        forms = np.einsum("kng,lng,ng->nkl", miss, miss, self.dy, optimize=True)
        return np.asarray(forms)

    def take(self, rows: Any) -> Self:
        """Return those of some rows."""
        return type(self)(self.scores[:, rows], self.dy[rows], self.above[rows])

    def crps(
        self, weights: Float64Array, kind: PoolKind, sharpness: float = 1.0
    ) -> Float64Array:
        """Return the CRPS of the pool, (n,), with each row's weights (n, M)."""
        shares = weights.T[:, :, None]
        if kind == "linear":
            p = (shares * ndtr(self.scores)).sum(axis=0)
            if sharpness != 1.0:
                p = ndtr(sharpness * clip_scores(scores_of(p, 1.0 - p)))
        else:
            p = ndtr(sharpness * (shares * self.scores).sum(axis=0))
        return np.asarray((self.dy * (p - self.above) ** 2).sum(axis=1))

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


def _scores_at(laws: Sequence[Law], y: Float64Array) -> Float64Array:
    """Return the scores of laws' CDFs at y (n, k), (M, n, k)."""
    return np.stack([clip_scores(law.scores(y)) for law in laws])


def _meshes(
    laws: Sequence[Law], y: Float64Array | None
) -> Iterator[tuple[slice, Float64Array, Float64Array, list[Law]]]:
    """Yield rows, nodes in y and weights on panels, and the rows' laws.

    Panels lie between quantiles of all members, jumps of the laws, and y.
    """
    jumps = jump_values(laws)
    for start in range(0, len(laws[0]), _ROWS):
        rows = slice(start, start + _ROWS)
        part = [law.take(rows) for law in laws]
        at = np.tile(_FINE, (len(part[0]), 1))
        cuts = [law.ppf_scores(at) for law in part]
        low, high = (
            np.min([cut[:, :1] for cut in cuts], axis=0),
            np.max([cut[:, -1:] for cut in cuts], axis=0),
        )
        cuts.append(np.clip(np.tile(jumps, (len(at), 1)), low, high))
        if y is not None:
            cuts.append(y[rows, None])
        borders = np.sort(np.hstack(cuts), axis=1)
        width = np.diff(borders, axis=1)[:, :, None]
        nodes = borders[:, :-1, None] + width * _NODES
        shape = len(at), -1
        yield rows, nodes.reshape(shape), (width * _SHARES).reshape(shape), part


def learn_weights(
    kind: PoolKind,
    forms: Float64Array,
    weight: Float64Array,
    fold: Rows,
    n_folds: int,
    scores: Callable[[Rows], PoolScores],
    seed: int,
) -> tuple[Float64Array, Float64Array]:
    """Return weights of least CRPS, of all rows and as the rows outside a fold ask.

    Parameters
    ----------
    kind : {"linear", "probit"}
    forms : ndarray of shape (n, M, M)
        Quadratic forms of linear pools, see `crps_matrices`, of n rows.
    weight : ndarray of shape (n,)
    fold : ndarray of int, shape (n,)
        The number of each row's fold; a fold may have no rows.
    n_folds : int
    scores : function of an ndarray of int
        Returns the scores of some of the rows; asked for probit pools.
    seed : int
        Draws these rows.

    Returns
    -------
    weights : ndarray of shape (M,)
    of_folds : ndarray of shape (n_folds, M)
    """
    weighted = weight[:, None, None] * forms
    sums = np.stack([weighted[fold == k].sum(axis=0) for k in range(n_folds)])
    ridge = _choose_ridge(sums)
    total = sums.sum(axis=0)
    # What is left of the sum without a fold is the sum of the other folds.
    found = [linear_weights(a, ridge) for a in (total, *(total - sums))]
    if kind == "probit":
        rows = draw_rows(weight, _ROWS_TO_FIT, seed)
        some, weight = scores(rows), weight[rows]
        found = [some.weights(weight, found[0], ridge)]
        for k in range(n_folds):
            rest = np.where(fold[rows] == k, 0.0, weight)
            # Without any row there is nothing to learn but what all rows say.
            known = rest.any()
            found.append(some.weights(rest, found[0], ridge) if known else found[0])
    return found[0], np.stack(found[1:])


def _choose_ridge(sums: Float64Array) -> float:
    """Return the pull with the least held-out CRPS, given sums by fold (F, M, M)."""
    total = sums.sum(axis=0)

    def held_out(ridge: float) -> float:
        w = [linear_weights(total - part, ridge) for part in sums]
        return sum(float(one @ part @ one) for one, part in zip(w, sums, strict=True))

    losses = [held_out(ridge) for ridge in RIDGES]
    return RIDGES[int(np.argmin(losses))]
