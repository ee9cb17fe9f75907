"""`LearnedPool`: weights of a pool and its recalibration, learned out of fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.folds import Fold, Rows
from localexpert.forecasters.pool_weights import (
    PoolScores,
    crps_matrices,
    draw_rows,
    linear_weights,
)
from localexpert.law.join import PoolKind, pool_laws
from localexpert.law.law import Law
from localexpert.recalibration.base import Recalibration

# Pulls towards equal weights to choose from; inf is equal weights.
RIDGES = (0.0, 0.003, 0.01, 0.03, 0.1, np.inf)
# Rows that the weights of a probit pool are fitted on at most.
_ROWS_TO_FIT = 1000


class LearnedPool:
    """The pool of some laws with weights that minimise out-of-fold CRPS.

    Parameters
    ----------
    kind : {"linear", "probit"}
    recalibration : Recalibration, optional
        Unfitted; it becomes the pool's own.
    random_state : int
        Draws the rows that the weights of a probit pool are fitted on.

    Attributes
    ----------
    weights_ : ndarray of shape (M,)
    fold_weights_ : ndarray of shape (n_folds, M)
        Those that the other folds ask for.
    ridge_ : float
        The pull towards equal weights with the least held-out CRPS.
    oof_law_ : Law
        Of the training rows, each pooled and recalibrated without its fold.
    loss_ : float
        Mean CRPS of `oof_law_`.
    """

    def __init__(
        self,
        kind: PoolKind,
        recalibration: Recalibration | None = None,
        *,
        random_state: int = 0,
    ):
        self.kind = kind
        self.recalibration = recalibration
        self.random_state = random_state

    def fit(
        self,
        laws: Sequence[Law],
        y: Float64Array,
        weight: Float64Array,
        folds: list[Fold],
        matrices: Float64Array | None = None,
    ) -> Self:
        """Learn weights and recalibration from laws that never saw their rows' y.

        Parameters
        ----------
        laws : sequence of M laws
            Of n rows each.
        y, weight : ndarray of shape (n,)
        folds : list of (train, test)
            By which rows are weighted without themselves.
        matrices : ndarray of shape (n, M, M), optional
            What `crps_matrices` returns, if at hand.

        Returns
        -------
        self
        """
        if matrices is None:
            matrices = crps_matrices(laws, y)
        rows = draw_rows(weight, _ROWS_TO_FIT, self.random_state)
        scores = None
        if self.kind == "probit":
            scores = PoolScores.fine([law.take(rows) for law in laws], y[rows])
        self._learn(matrices, weight, folds, scores, rows)
        law = self.pool_oof(laws, folds)
        if self.recalibration is not None:
            self.recalibration.fit(law, y, weight, folds)
            law = self.recalibration.apply_oof(law)
        self.oof_law_ = law
        self.loss_ = float(np.average(law.crps(y[:, None])[:, 0], weights=weight))
        return self

    def learn(
        self, scores: PoolScores, weight: Float64Array, folds: list[Fold]
    ) -> Self:
        """Learn the weights alone, from what the laws say along meshes of n rows.

        Parameters
        ----------
        scores : PoolScores
        weight : ndarray of shape (n,)
        folds : list of (train, test)

        Returns
        -------
        self
        """
        rows = draw_rows(weight, _ROWS_TO_FIT, self.random_state)
        return self._learn(scores.matrices(), weight, folds, scores.take(rows), rows)

    def _learn(
        self,
        matrices: Float64Array,
        weight: Float64Array,
        folds: list[Fold],
        scores: PoolScores | None,
        rows: Rows,
    ) -> Self:
        """Learn weights by all rows' matrices, those of a probit pool by some rows."""
        weighted = weight[:, None, None] * matrices
        sums = np.stack([weighted[test].sum(axis=0) for _, test in folds])
        self.ridge_ = _choose_ridge(sums)
        total = sums.sum(axis=0)
        # What is left of the sum without a fold is the sum of the other folds.
        w = [linear_weights(a, self.ridge_) for a in (total, *(total - sums))]
        if self.kind == "probit" and scores is not None:
            w = self._refine(w, scores, rows, weight, folds)
        self.weights_, self.fold_weights_ = w[0], np.stack(w[1:])
        return self

    def oof_weights(self, folds: list[Fold], n: int) -> Float64Array:
        """Return the weights of each row that the other folds ask for, (n, M)."""
        own = np.tile(self.weights_, (n, 1))
        for (_, test), weights in zip(folds, self.fold_weights_, strict=True):
            own[test] = weights
        return own

    def pool_oof(self, laws: Sequence[Law], folds: list[Fold]) -> Law:
        """Return the pool in which each row has the weights of the other folds.

        Parameters
        ----------
        laws : sequence of M laws
            Of n rows each.
        folds : list of (train, test)
            In the order of those that weights were learned by.

        Returns
        -------
        Law
        """
        return pool_laws(laws, self.oof_weights(folds, len(laws[0])), self.kind)

    def pool(self, laws: Sequence[Law]) -> Law:
        """Return the pool of the members' laws of new rows.

        Parameters
        ----------
        laws : sequence of laws
            Of the members with weight, in order.

        Returns
        -------
        Law
        """
        law = pool_laws(laws, self.weights_[self.weights_ > 0.0], self.kind)
        return law if self.recalibration is None else self.recalibration.apply(law)

    def _refine(
        self,
        w: list[Float64Array],
        scores: PoolScores,
        rows: Rows,
        weight: Float64Array,
        folds: list[Fold],
    ) -> list[Float64Array]:
        """Return weights of the probit pool: of all rows, and without each fold."""
        out = [scores.weights(weight[rows], w[0], self.ridge_)]
        for _, test in folds:
            rest = np.where(np.isin(rows, test), 0.0, weight[rows])
            # Without any row there is nothing to learn but what all rows say.
            known = rest.any()
            out.append(scores.weights(rest, out[0], self.ridge_) if known else out[0])
        return out


def _choose_ridge(sums: Float64Array) -> float:
    """Return the pull with the least held-out CRPS, given sums by fold (F, M, M)."""
    total = sums.sum(axis=0)

    def held_out(ridge: float) -> float:
        w = [linear_weights(total - part, ridge) for part in sums]
        return sum(float(one @ part @ one) for one, part in zip(w, sums, strict=True))

    losses = [held_out(ridge) for ridge in RIDGES]
    return RIDGES[int(np.argmin(losses))]
