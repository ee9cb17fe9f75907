"""`PooledExperts`: strategies on one set of thresholds, weighted out of fold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.base import clone

from calibration.typing import Float64Array
from localexpert.data.folds import Fold
from localexpert.experts.base import Experts
from localexpert.progress import current_progress


class PooledExperts:
    """Fit strategies and join their probabilities with non-negative weights.

    Parameters
    ----------
    members : mapping of str to Experts
        Strategies by name; cloned.

    Attributes
    ----------
    weights_ : dict of str to float
        They sum to 1; members below 5 % are left out.
    losses_ : dict of str to float
        Each member's out-of-fold integrated Brier score, which is its CRPS up to the
        pieces between thresholds.
    oof_probabilities_ : ndarray of shape (n, n_thresholds)
    """

    weights_: dict[str, float]
    losses_: dict[str, float]
    oof_probabilities_: Float64Array

    def __init__(self, members: Mapping[str, Experts]):
        self.members = members

    def fit(
        self,
        X: Any,
        r: Float64Array,
        thresholds: Float64Array,
        folds: list[Fold],
        sample_weight: Float64Array,
        importance: Float64Array,
    ) -> PooledExperts:
        """Fit every member and the weights.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        r : ndarray of shape (n,)
        thresholds : ndarray of shape (n_thresholds,)
        folds : list of (train, test)
        sample_weight : ndarray of shape (n,)
        importance : ndarray of shape (n,)
            What a unit of r is worth in units of the score: the scale of the row.

        Returns
        -------
        self
        """
        self.fitted_: dict[str, Experts] = {}
        for name, member in self.members.items():
            with current_progress().stage(name):
                expert = clone(member)
                self.fitted_[name] = expert.fit(X, r, thresholds, folds, sample_weight)
        below = r[:, None] <= thresholds
        cost = np.outer(sample_weight * importance, spacing(thresholds))
        answers = {n: m.oof_probabilities_ for n, m in self.fitted_.items()}
        self.losses_ = {
            name: float((cost * (p - below) ** 2).sum() / sample_weight.sum())
            for name, p in answers.items()
        }
        self.weights_ = pool_weights(answers, below, cost)
        self.fitted_ = {name: self.fitted_[name] for name in self.weights_}
        self.oof_probabilities_ = self._join(answers)
        for member in self.fitted_.values():
            # Joined; kept twice they would be half of a large model.
            del member.oof_probabilities_
        return self

    def predict(self, X: Any) -> Float64Array:
        """Return pooled probabilities of new rows.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        ndarray of shape (n, n_thresholds)
        """
        return self._join({n: m.predict(X) for n, m in self.fitted_.items()})

    def _join(self, answers: Mapping[str, Float64Array]) -> Float64Array:
        parts = [w * answers[name] for name, w in self.weights_.items()]
        joined: Float64Array = np.sum(parts, axis=0)
        return joined


def spacing(thresholds: Float64Array) -> Float64Array:
    """Return the width that each threshold stands for, shape (n_thresholds,).

    Half of the way to either neighbour; an end stands for as much outside as inside.
    """
    if len(thresholds) == 1:
        return np.ones(1)
    gaps = np.diff(thresholds)
    padded = np.concatenate([gaps[:1], gaps, gaps[-1:]])
    out: Float64Array = 0.5 * (padded[:-1] + padded[1:])
    return out


def pool_weights(
    answers: Mapping[str, Float64Array],
    below: NDArray[np.bool_],
    cost: Float64Array,
    least: float = 0.05,
) -> dict[str, float]:
    """Return weights on the simplex that minimise the cost-weighted Brier score.

    Least squares with non-negative coefficients; that they sum to 1 is one more row
    of overwhelming weight. Members below `least` are dropped and the rest solved
    again.
    """
    names = list(answers)
    while True:
        root = np.sqrt(cost).ravel()
        columns = np.stack([root * answers[name].ravel() for name in names])
        goal = root * below.ravel()
        # Normal equations: as many unknowns as members, however many rows.
        gram, moment = columns @ columns.T, columns @ goal
        heavy = 1e6 * np.trace(gram)
        weights = _solve(gram + heavy, moment + heavy)
        weights /= weights.sum()
        kept = [n for n, w in zip(names, weights, strict=True) if w >= least]
        if len(kept) == len(names):
            return dict(zip(names, map(float, weights), strict=True))
        names = kept


def _solve(gram: Float64Array, moment: Float64Array) -> Float64Array:
    """Minimise x' gram x / 2 - moment' x over x >= 0."""
    values, vectors = np.linalg.eigh(gram)
    root = np.sqrt(np.maximum(values, 1e-14 * values[-1]))
    square = vectors * root @ vectors.T
    solution: Float64Array = nnls(square, np.linalg.solve(square, moment))[0]
    return solution
