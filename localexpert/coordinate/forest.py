"""`Forest`: randomised trees that predict rows out of bag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from calibration.typing import Float64Array
from localexpert.coordinate.families import Family, Trial, View
from localexpert.data.folds import Fold

# Trees times rows, within these bounds, and the most rows that a tree draws: with
# fewer trees each draws so few rows that every row is out of some bag.
_TREES_BY_ROWS = 2_000_000
_LEAST_TREES, _MOST_TREES = 20, 100
_MOST_ROWS = 40_000
# A trial needs only so many, of so many rows.
_TREES_OF_A_TRIAL = 30
_ROWS_OF_A_TRIAL = 20_000


class Forest(Family):
    """Trees on bootstrap samples, their number and size bounded.

    Parameters
    ----------
    kind : ExtraTreesRegressor (with bootstrap samples) or RandomForestRegressor
        Geurts et al. (2006) or Breiman (2001).
    random_state : int
    n_jobs : int, optional
    """

    # The trees of scikit-learn read single precision.
    view: View = "narrow"

    def __init__(self, kind: Any, *, random_state: int, n_jobs: int | None):
        self.kind = kind
        self.random_state = random_state
        self.n_jobs = n_jobs

    def attempt(self, X: Any, y: Float64Array, fold: Fold, w: Float64Array) -> Trial:
        """Grow a smaller forest on one fold's training part."""
        train, test = fold
        rows = train[w[train] > 0.0]
        model = self.make(len(rows)).set_params(
            n_estimators=_TREES_OF_A_TRIAL,
            max_samples=_ROWS_OF_A_TRIAL if len(rows) > _ROWS_OF_A_TRIAL else None,
        )
        model.fit(X[rows], y[rows], sample_weight=w[rows])
        return Trial(model, model.predict(X[test]))

    def fit(
        self,
        X: Any,
        y: Float64Array,
        folds: Sequence[Fold],
        w: Float64Array,
        first: Trial | None = None,
    ) -> Forest:
        """Grow one forest on all rows of positive weight; folds play no part."""
        del folds, first
        rows = np.flatnonzero(w > 0.0)
        self.model_ = self.make(len(rows)).set_params(
            oob_score=True, n_jobs=self.n_jobs
        )
        self.model_.fit(X[rows], y[rows], sample_weight=w[rows])
        for tree in self.model_.estimators_:
            _slim(tree.tree_)
        self.oof_ = np.empty(len(y))
        absent = np.flatnonzero(w <= 0.0)
        if len(absent):
            self.oof_[absent] = self.predict_each(X[absent])[0]
        # A row out of bag is predicted by trees that have not seen it: as honest as a
        # fold, and one forest does instead of five.
        self.oof_[rows] = self.model_.oob_prediction_
        return self

    def predict_each(self, X: Any) -> Float64Array:
        """Return the forest's prediction as the one row."""
        rows = np.ascontiguousarray(X, dtype=np.float32)
        total = np.zeros(len(rows))
        # Tree by tree and always in one order; scikit-learn's own way around them
        # takes ten times as long for a single row.
        for tree in self.model_.estimators_:
            total += tree.tree_.predict(rows)[:, 0]
        return total[None, :] / len(self.model_.estimators_)

    def make(self, n: int) -> Any:
        """Return an unfitted forest for `n` rows."""
        return clone(self.kind).set_params(
            n_estimators=int(np.clip(_TREES_BY_ROWS // n, _LEAST_TREES, _MOST_TREES)),
            # Trees of more rows take longer and gain little where there are many trees.
            max_samples=_MOST_ROWS if n > _MOST_ROWS else None,
            random_state=self.random_state,
        )


def _slim(tree: Any) -> None:
    """Zero what a tree of scikit-learn tells of its training, and round its numbers.

    A saved forest is half as large. Rows are compared in single precision, for which
    a cut is as good rounded down to it.
    """
    for told in (tree.impurity, tree.n_node_samples, tree.weighted_n_node_samples):
        told[:] = 0
    cuts = tree.threshold
    near = cuts.astype(np.float32)
    cuts[:] = np.where(near > cuts, np.nextafter(near, np.float32(-np.inf)), near)
    inner = tree.children_left >= 0
    tree.value[:] = np.where(inner[:, None, None], 0.0, tree.value.astype(np.float32))
