"""`Corrections`: what "auto" adds to the means of distributions, if anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import lsq_linear
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibration.typing import Float64Array
from localexpert.coordinate.boosting import FoldBoosters
from localexpert.data.folds import Fold

# Strengths of the pull towards the mean, in rows.
_ALPHAS = np.logspace(0.0, 5.0, 11)
# The trees start from a good forecast: small steps of small trees, and few of them.
_TREES: dict[str, Any] = {
    "learning_rate": 0.03,
    "num_leaves": 7,
    "min_data_in_leaf": 20,
    "lambda_l2": 10.0,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "feature_fraction_bynode": 0.5,
}
_MOST_ROUNDS, _PATIENCE = 200, 30
# A correction is taken if it gains more than this many standard errors.
_ERRORS = 1.0
_LEAST_WEIGHT = 0.01


class Corrections:
    """Corrections of the mean by ridge regression and by boosted trees, weighted.

    Every fold's models are kept; their mean is the correction of new rows. Weights
    are in [0, 1] and minimise the out-of-fold squared error. Unless that lowers it
    by more than one standard error of the paired differences, all weights are 0.

    Parameters
    ----------
    n_jobs : int, optional
    random_state : int

    Attributes
    ----------
    oof_ : ndarray of shape (n,)
        The corrected means.
    weights_ : dict of str to float
    """

    def __init__(self, *, n_jobs: int | None, random_state: int):
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        features: Float64Array,
        inputs: Float64Array,
        y: Float64Array,
        weight: Float64Array,
        folds: list[Fold],
    ) -> Corrections:
        """Learn what is left of y when the mean, the first feature, is taken off."""
        mean = features[:, 0]
        rest = y - mean
        self.ridges_ = [
            _fit_ridge(features[train], rest[train], weight[train])
            for train, _ in folds
        ]
        # Of rows that no fold tests nothing is known: their mean stays.
        ridge = np.zeros(len(y))
        for model, (_, test) in zip(self.ridges_, folds, strict=True):
            ridge[test] = model.predict(features[test])
        self.trees_ = FoldBoosters(
            {**_TREES, "seed": self.random_state},
            _MOST_ROUNDS,
            _PATIENCE,
            n_jobs=self.n_jobs,
        )
        trees = self.trees_.fit(inputs, rest, folds, weight)
        columns = np.column_stack([ridge, np.nan_to_num(trees)])
        self._weigh(columns, rest, weight)
        self.oof_ = mean + columns @ np.array([*self.weights_.values()])
        return self

    def predict(self, features: Float64Array, inputs: Float64Array) -> Float64Array:
        """Return the corrected means of new rows, shape (n,)."""
        answer = features[:, 0].copy()
        if self.weights_["ridge"] > 0.0:
            each = [model.predict(features) for model in self.ridges_]
            answer += self.weights_["ridge"] * np.mean(each, axis=0)
        if self.weights_["trees"] > 0.0:
            trees = self.trees_.predict_each(inputs).mean(axis=0)
            answer += self.weights_["trees"] * trees
        return answer

    def _weigh(
        self, columns: Float64Array, rest: Float64Array, weight: Float64Array
    ) -> None:
        root = np.sqrt(weight / weight.sum())
        solved = lsq_linear(root[:, None] * columns, root * rest, (0.0, 1.0)).x
        gain = rest**2 - (rest - columns @ solved) ** 2
        mean = weight @ gain / weight.sum()
        # Kish's number of rows: equal to n where all weights are.
        rows = weight.sum() ** 2 / (weight**2).sum()
        error = np.sqrt(
            weight @ (gain - mean) ** 2 / weight.sum() / max(rows - 1.0, 1.0)
        )
        taken = solved if mean > _ERRORS * error else np.zeros(2)
        taken = np.where(taken < _LEAST_WEIGHT, 0.0, taken)
        self.weights_ = {"ridge": float(taken[0]), "trees": float(taken[1])}


def _fit_ridge(features: Float64Array, rest: Float64Array, weight: Float64Array) -> Any:
    """Fit ridge regression on standardised features, strength by leave-one-out."""
    model = make_pipeline(StandardScaler(), RidgeCV(_ALPHAS))
    return model.fit(
        features,
        rest,
        standardscaler__sample_weight=weight,
        ridgecv__sample_weight=weight,
    )
