"""Families of regressors that predict the centre, each out of fold."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from calibration._kernels.types import Float64Array
from localexpert.coordinate.boosting import FoldBoosters
from localexpert.folds import Fold, Rows

# Rows beyond which a tree of the forest sees a sample, and a net fewer passes.
_MOST_TREE_ROWS = 20_000
_MOST_ROUNDS = 1500
_MOST_NET_STEPS = 4_000_000


class Family(metaclass=ABCMeta):
    """One kind of regressor, fitted fold by fold.

    After `fit` the out-of-fold predictions are `oof_` (n,), and `predict_each` gives
    those of the models of the folds, whose mean is the forecast for new rows.
    """

    oof_: Float64Array

    @abstractmethod
    def fit(
        self, X: Float64Array, y: Float64Array, folds: Sequence[Fold], w: Float64Array
    ) -> Family:
        """Fit one model per fold."""

    @abstractmethod
    def predict_each(self, X: Float64Array) -> Float64Array:
        """Return every model's predictions, shape (n_models, n)."""


class BoostedTrees(Family):
    """LightGBM with a common number of rounds."""

    def __init__(self, *, random_state: int, n_jobs: int | None):
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self, X: Float64Array, y: Float64Array, folds: Sequence[Fold], w: Float64Array
    ) -> BoostedTrees:
        """Boost every fold."""
        parameters = {
            "learning_rate": 0.05,
            "num_leaves": 31,
            "min_data_in_leaf": int(np.clip(len(y) // 50, 3, 20)),
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "feature_fraction_bynode": 0.7,
            "num_threads": self.n_jobs or 1,
            "seed": self.random_state,
        }
        self.boosters_ = FoldBoosters(parameters, _MOST_ROUNDS)
        self.oof_ = self.boosters_.fit(X, y, folds, w)
        return self

    def predict_each(self, X: Float64Array) -> Float64Array:
        """Return the predictions of the folds' models."""
        return self.boosters_.predict_each(X)


class Forest(Family):
    """A random forest; out of bag instead of out of fold."""

    def __init__(self, *, random_state: int, n_jobs: int | None):
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self, X: Float64Array, y: Float64Array, folds: Sequence[Fold], w: Float64Array
    ) -> Forest:
        """Fit one forest on all rows of positive weight; folds play no part."""
        del folds
        rows = np.flatnonzero(w > 0.0)
        self.model_ = make_forest(self.random_state).set_params(
            oob_score=True,
            n_jobs=self.n_jobs,
            max_samples=_MOST_TREE_ROWS if len(rows) > _MOST_TREE_ROWS else None,
        )
        self.model_.fit(X[rows], y[rows], sample_weight=w[rows])
        self.oof_ = self.model_.predict(X)
        self.oof_[rows] = self.model_.oob_prediction_
        return self

    def predict_each(self, X: Float64Array) -> Float64Array:
        """Return the forest's prediction as the one row."""
        out: Float64Array = self.model_.predict(X)[None, :]
        return out


class Fitted(Family):
    """Any scikit-learn regressor, cloned for every fold."""

    def __init__(self, regressor: Any, *, n_jobs: int | None):
        self.regressor = regressor
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Float64Array, folds: Sequence[Fold], w: Float64Array
    ) -> Fitted:
        """Fit a clone on the training part of every fold."""

        def fit_fold(train: Rows) -> Any:
            model = clone(self.regressor)
            if has_fit_parameter(model, "sample_weight"):
                return model.fit(X[train], y[train], sample_weight=w[train])
            return model.fit(X[train], y[train])

        # One thread for linear algebra each: the folds share the cores.
        with threadpool_limits(1):
            pool = Parallel(n_jobs=self.n_jobs, prefer="threads")
            self.models_ = pool(delayed(fit_fold)(train) for train, _ in folds)
        # Rows in no test part (of a screening on one fold) stay at zero.
        self.oof_ = np.zeros(len(y))
        for model, (_, test) in zip(self.models_, folds, strict=True):
            self.oof_[test] = model.predict(X[test])
        return self

    def predict_each(self, X: Any) -> Float64Array:
        """Return the predictions of the folds' models."""
        return np.array([m.predict(X) for m in self.models_])


class Net(BaseEstimator):
    """The mean of a few small neural networks on standardised columns and target."""

    def __init__(self, n_nets: int = 2, random_state: int = 0):
        self.n_nets = n_nets
        self.random_state = random_state

    def fit(self, X: Float64Array, y: Float64Array) -> Net:
        """Fit every network from its own seed."""
        self.mean_, self.spread_ = float(y.mean()), float(y.std()) or 1.0
        epochs = int(np.clip(_MOST_NET_STEPS // len(y), 10, 400))
        self.prepare_ = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            StandardScaler(),
        )
        table = np.clip(self.prepare_.fit_transform(X), -5.0, 5.0)
        self.nets_ = [
            MLPRegressor(
                hidden_layer_sizes=(128, 64),
                learning_rate_init=0.003,
                max_iter=epochs,
                early_stopping=len(y) >= 100,
                n_iter_no_change=15,
                random_state=self.random_state + j,
            )
            for j in range(self.n_nets)
        ]
        for net in self.nets_:
            net.fit(table, (y - self.mean_) / self.spread_)
        return self

    def predict(self, X: Float64Array) -> Float64Array:
        """Return the mean of the networks."""
        table = np.clip(self.prepare_.transform(X), -5.0, 5.0)
        parts = [net.predict(table) for net in self.nets_]
        out: Float64Array = self.mean_ + self.spread_ * np.mean(parts, axis=0)
        return out


def make_forest(random_state: int) -> RandomForestRegressor:
    """Return the forest of the stack."""
    return RandomForestRegressor(
        150, max_features=0.5, min_samples_leaf=2, random_state=random_state
    )
