"""Experts of your own: copy this file, and change who answers for a row.

A strategy says the probability that the target lies below each threshold, for training
rows by models that have not seen them. Here the neighbours of a row answer: the share
of them that lies below. If any classifier will do, `expert=` needs no class of your
own; a strategy is for methods that learn all thresholds at once. What the base and the
regressor take care of: checks of the input, where thresholds and folds lie,
calibration, and whether the answers increase along the thresholds.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

from calibration._validation import check_integer
from calibration.typing import Float64Array
from localexpert import LocalExpertRegressor, crps_score
from localexpert.data.folds import Rows
from localexpert.data.table import DenseInputs, Table
from localexpert.experts import Experts
from localexpert.experts.base import Tasks


class NearestExperts(Experts):
    """The share of the nearest training rows that lies below each threshold.

    Parameters
    ----------
    n_neighbors : int
        Rows that answer, fewer where a fold has fewer.

    Attributes
    ----------
    thresholds_ : ndarray of shape (N,)
    oof_probabilities_ : ndarray of shape (n, N)

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import make_folds
    >>> x = np.linspace(0.0, 1.0, 100)[:, None]
    >>> folds = make_folds(100, 2, random_state=0)
    >>> experts = NearestExperts(9).fit(x, x[:, 0], [0.25, 0.75], folds)
    >>> experts.predict([[0.1], [0.5], [0.9]]).round()
    array([[1., 1.],
           [0., 1.],
           [0., 0.]])
    """

    # The constructor stores its arguments as they are: `clone` and searches rely on it.
    def __init__(self, n_neighbors: int = 30):
        self.n_neighbors = n_neighbors

    # Bad arguments are refused when `fit` is called.
    def _check_parameters(self) -> None:
        check_integer(self.n_neighbors, "n_neighbors", 1)

    # Task k is to foretell `y <= thresholds[k]`. Every row stands in one test part, and
    # rows of weight zero in no training part. Fitted state ends in `_`.
    def _fit(self, tasks: Tasks) -> Float64Array:
        codes = tasks.table.codes  # numbers, and codes of texts and categories
        categories = self.reader_.categories
        self.models_ = [
            _Neighbours(tasks, train, codes[train], categories, self.n_neighbors)
            for train, _ in tasks.folds
        ]
        oof = np.empty((len(tasks), tasks.n_thresholds))
        for model, (_, test) in zip(self.models_, tasks.folds, strict=True):
            oof[test] = model.ask(codes[test])
        return oof

    # The table has the columns of `fit`. The models of all folds answer together.
    def _predict(self, table: Table) -> Float64Array:
        answers = [model.ask(table.codes) for model in self.models_]
        mean: Float64Array = np.mean(answers, axis=0)
        return mean


class _Neighbours:
    """The training rows of one fold, and what became of them."""

    def __init__(
        self,
        tasks: Tasks,
        rows: Rows,
        codes: Float64Array,
        categories: list[int],
        n_neighbors: int,
    ):
        # On one scale and without gaps, as distances need it.
        self.inputs = DenseInputs.learn(codes, categories)
        self.search = NearestNeighbors(n_neighbors=min(n_neighbors, len(rows)))
        self.search.fit(self.inputs.transform(codes))
        self.below = tasks.y[rows][:, None] <= tasks.thresholds
        self.weights = tasks.weight[rows]

    def ask(self, codes: Float64Array) -> Float64Array:
        """Return the neighbours' weighted shares, shape (n, N)."""
        inputs = self.inputs.transform(codes)
        near = self.search.kneighbors(inputs, return_distance=False)
        weights = self.weights[near]
        weights = weights / weights.sum(axis=1, keepdims=True)
        shares: Float64Array = np.einsum("nk,nkt->nt", weights, self.below[near])
        return shares


def main() -> None:
    """Fit a regressor with these experts, and say what its forecasts are worth."""
    X, y = load_diabetes(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    for name, strategy in (("neighbours", NearestExperts()), ("built in", "joint")):
        # Without a frame the experts have to say all that is known of y.
        model = LocalExpertRegressor(strategy=strategy, frame=None, random_state=0)
        dist = model.fit(X, y).predict_dist(X_new)
        print(f"CRPS, {name:10s} {crps_score(y_new, dist):.1f}")


if __name__ == "__main__":
    main()
