"""`CentreStack`: regressors of different families, joined out of fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from calibration._kernels.types import Float64Array
from localexpert.coordinate.families import (
    BoostedTrees,
    Family,
    Fitted,
    Forest,
    Net,
    make_forest,
)
from localexpert.experts.tables import TableEncoder
from localexpert.folds import Fold

# A family whose weight on one fold is below this is not fitted further.
_LEAST_WEIGHT = 0.05


class CentreStack:
    """Cross-fitted regressors with non-negative weights.

    Parameters
    ----------
    regressors : "stack", regressor or list of regressors
        "stack": boosted trees, a forest and small networks, screened on one fold.
    out_of_bag : bool
        Whether the forest predicts rows out of bag; if not, out of fold.
    n_jobs, random_state : int

    Attributes
    ----------
    oof_ : ndarray of shape (n,)
        Out-of-fold centre of every training row.
    weights_ : dict of str to float
        Non-negative; they sum to 1.
    ambiguity_ : float
        Variance of the folds' models around their mean: how much less the squared
        error of the mean is than that of the out-of-fold centre.
    report_ : dict of str to dict
        Root mean squared error out of fold (on one fold if screened out), and seconds.
    """

    def __init__(
        self,
        regressors: Any = "stack",
        *,
        out_of_bag: bool = True,
        n_jobs: int | None,
        random_state: int,
    ):
        self.regressors = regressors
        self.out_of_bag = out_of_bag
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Float64Array, folds: Sequence[Fold], w: Float64Array
    ) -> CentreStack:
        """Screen, fit and weight the families."""
        self.report_: dict[str, dict[str, float]] = {}
        families = self._families()
        table = self._encode(X)
        kept = list(families)
        if len(families) > 1:
            kept = self._screen(families, table, y, folds[:1], w)
            families = self._families()
        self.fitted_: dict[str, Family] = {}
        for name in kept:
            self.fitted_[name] = self._fit_one(name, families[name], table, y, folds, w)
            error = self.fitted_[name].oof_ - y
            self.report_[name]["rmse"] = float(np.sqrt(w @ error**2 / w.sum()))
        self.weights_ = _weights({n: f.oof_ for n, f in self.fitted_.items()}, y, w)
        self.oof_ = self._join({n: f.oof_ for n, f in self.fitted_.items()})
        # By how much the mean of the folds' models beats one of them: exactly their
        # variance (Krogh & Vedelsby 1995). It is nearly the same on rows that some of
        # them have seen, the only ones at hand.
        self.ambiguity_ = float(w @ self._each(table).var(axis=0) / w.sum())
        return self

    def predict(self, X: Any) -> Float64Array:
        """Return the centre of new rows, shape (n,)."""
        centre: Float64Array = self._each(self._encode(X)).mean(axis=0)
        return centre

    def _each(self, table: Any) -> Float64Array:
        """Return the blend of each fold's models, shape (n_folds, n)."""
        return self._join(
            {n: self.fitted_[n].predict_each(table) for n in self.weights_}
        )

    def _families(self) -> dict[str, Family]:
        if isinstance(self.regressors, str):
            seed, jobs = self.random_state, self.n_jobs
            return {
                "boosting": BoostedTrees(random_state=seed, n_jobs=jobs),
                "forest": Forest(random_state=seed, n_jobs=jobs)
                if self.out_of_bag
                else Fitted(make_forest(seed), n_jobs=jobs),
                "net": Fitted(Net(random_state=seed), n_jobs=jobs),
            }
        given = self.regressors
        given = list(given) if isinstance(given, list | tuple) else [given]
        return {
            f"{type(r).__name__}_{j}": Fitted(r, n_jobs=self.n_jobs)
            for j, r in enumerate(given)
        }

    def _encode(self, X: Any) -> Any:
        """Return numbers for the built-in families; a given regressor gets X itself."""
        if not isinstance(self.regressors, str) and not hasattr(X, "columns"):
            return X
        if not hasattr(self, "encoder_"):
            self.encoder_ = TableEncoder.learn(X)
        return self.encoder_.encode(X)

    def _screen(
        self,
        families: dict[str, Family],
        table: Float64Array,
        y: Float64Array,
        fold: Sequence[Fold],
        w: Float64Array,
    ) -> list[str]:
        """Return the families that a blend on one fold's test part uses."""
        test = fold[0][1]
        answers = {}
        for name, family in families.items():
            fitted = self._fit_one(name, family, table, y, fold, w)
            answers[name] = fitted.oof_[test]
            error = answers[name] - y[test]
            self.report_[name]["rmse"] = float(np.sqrt(np.mean(error**2)))
        weights = _weights(answers, y[test], w[test])
        return [name for name in families if name in weights]

    def _fit_one(
        self,
        name: str,
        family: Family,
        table: Any,
        y: Float64Array,
        folds: Sequence[Fold],
        w: Float64Array,
    ) -> Family:
        """Fit a family and note the seconds."""
        start = time.perf_counter()
        with warnings.catch_warnings():
            # A net that stops at its budget of steps is as meant.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = family.fit(table, y, folds, w)
        seconds = self.report_.setdefault(name, {"seconds": 0.0})
        seconds["seconds"] += time.perf_counter() - start
        return fitted

    def _join(self, answers: dict[str, Float64Array]) -> Float64Array:
        # Not np.sum of a list: a forest has one row, the others one per fold.
        joined = np.zeros(1)
        for name, weight in self.weights_.items():
            joined = joined + weight * answers[name]
        return joined


def _weights(
    answers: dict[str, Float64Array], y: Float64Array, w: Float64Array
) -> dict[str, float]:
    """Return weights on the simplex with the least squared error."""
    names = list(answers)
    while True:
        root = np.sqrt(w)
        columns = np.column_stack([root * (answers[name] - y) for name in names])
        # With weights that sum to 1 the blend's error is the blend of the errors:
        # minimise |columns x| under sum x = 1 by one row of overwhelming weight.
        heavy = 1e4 * (np.linalg.norm(columns) or 1.0)
        system = np.vstack([np.linalg.qr(columns, "r"), np.full(len(names), heavy)])
        goal = np.append(np.zeros(len(system) - 1), heavy)
        weights = nnls(system, goal)[0]
        weights /= weights.sum()
        kept = [n for n, x in zip(names, weights, strict=True) if x >= _LEAST_WEIGHT]
        if len(kept) == len(names):
            return dict(zip(names, map(float, weights), strict=True))
        names = kept
