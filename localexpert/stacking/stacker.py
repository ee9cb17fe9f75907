"""`Stacker`: a regressor trained on honest out-of-fold distributions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.optimize import lsq_linear
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibration.typing import Float64Array
from localexpert._validation import check_flag
from localexpert.coordinate.boosting import FoldBoosters
from localexpert.coordinate.families import Fitted, ask, predicts_numbers
from localexpert.data.dense_inputs import DenseInputs
from localexpert.data.folds import Fold
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.data.user_learners import fit_weighted

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


class Stacker(BaseEstimator):
    """Meta-regression: a point forecast learned from out-of-fold distributions.

    Parameters
    ----------
    estimator : "auto" or regressor
        What learns y from the meta-features. "auto": ridge regression and small
        boosted trees correct the mean, as far as that lowers the out-of-fold squared
        error by more than its standard error; else the mean stays.
    passthrough : bool
        Whether a regressor sees the rows' own features too: numbers on one scale,
        indicators of categories and of gaps. "auto" always does.

    Attributes
    ----------
    oof_ : ndarray of shape (n,)
        Forecast of each training row by a regressor trained on the other folds' rows.
    estimator_ : regressor
        Trained on all rows; with "auto" a sum of corrections.
    report_ : dict
        Root mean squared error out of fold, of the mean and of the stacked forecast;
        with "auto" also the weights of the corrections.

    References
    ----------
    Wolpert (1992), Stacked generalization.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression, RidgeCV
    >>> from localexpert import LocalExpertRegressor, Stacker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 2))
    >>> y = 3 * X[:, 0] + rng.normal(size=200)
    >>> model = LocalExpertRegressor(
    ...     center=LinearRegression(),
    ...     strategy="shared",
    ...     stacker=Stacker(RidgeCV(), passthrough=True),
    ...     random_state=0,
    ... ).fit(X, y)
    >>> sorted(model.stacker_.report_)
    ['rmse', 'rmse_of_mean']
    """

    oof_: Float64Array
    estimator_: Any
    dense_inputs_: DenseInputs | None
    report_: dict[str, Any]

    def __init__(self, estimator: Any = "auto", *, passthrough: bool = False):
        self.estimator = estimator
        self.passthrough = passthrough

    def fit(
        self,
        features: Float64Array,
        sample: Sample,
        *,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> Self:
        """Learn from meta-features that have not seen their rows' y.

        Parameters
        ----------
        features : ndarray of shape (n, q)
            Of `MetaFeatures`: the first column is the mean.
        sample : Sample
            Of n rows.
        n_jobs : int, optional
        random_state : int

        Returns
        -------
        self
        """
        table, y, weight = sample.table, sample.y, sample.weight
        # Where a fold trains on rows that nobody has forecast, the mean stays.
        folds = [fold for fold in sample.folds if weight[fold[0]].any()]
        if not folds:
            msg = (
                "`stacker` must be None where no fold of `cv` trains on rows that "
                f"another one tests, got {self.estimator!r}."
            )
            raise ValueError(msg)
        automatic = isinstance(self.estimator, str)
        dense = automatic or self.passthrough
        self.dense_inputs_ = table.dense_inputs if dense else None
        inputs = self._inputs(features, table)
        if automatic:
            self.estimator_ = Corrections(n_jobs=n_jobs, random_state=random_state)
            self.estimator_.fit(features, inputs, y, weight, folds)
            self.oof_ = self.estimator_.oof_
        else:
            family = Fitted(
                self.estimator, view="given", n_jobs=n_jobs, parameter="stacker"
            )
            stacked = family.fit(inputs, replace(sample, folds=folds)).oof_
            self.oof_ = np.where(np.isnan(stacked), features[:, 0], stacked)
            self.estimator_ = fit_weighted(clone(self.estimator), inputs, y, weight)
        self.report_ = {
            "rmse": _rmse(self.oof_ - y, weight),
            "rmse_of_mean": _rmse(features[:, 0] - y, weight),
        }
        if isinstance(self.estimator_, Corrections):
            self.report_["weights"] = self.estimator_.weights_
        return self

    @property
    def keeps_mean(self) -> bool:
        """Whether "auto" found nothing that is better than the mean."""
        inner = self.estimator_
        return isinstance(inner, Corrections) and not any(inner.weights_.values())

    def predict(self, features: Float64Array, table: Table) -> Float64Array:
        """Return the forecasts of new rows.

        Parameters
        ----------
        features : ndarray of shape (n, q)
        table : Table of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        inputs = self._inputs(features, table)
        if isinstance(self.estimator_, Corrections):
            return self.estimator_.predict(features, inputs)
        return ask(self.estimator_, inputs)

    def _inputs(self, features: Float64Array, table: Table) -> Float64Array:
        """Return what the meta-regressor reads: the features, and rows if asked for."""
        if self.dense_inputs_ is None:
            return features
        return np.column_stack([features, table.dense(self.dense_inputs_)])


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


def make_stacker(given: Any) -> Stacker | None:
    """Return the stacker that a regressor's parameter asks for, unfitted.

    Parameters
    ----------
    given : "auto", regressor, Stacker or None

    Returns
    -------
    Stacker or None
    """
    if given is None:
        return None
    stacker = clone(given) if isinstance(given, Stacker) else Stacker(given)
    inner = stacker.estimator
    check_flag(stacker.passthrough, "passthrough")
    if isinstance(inner, str) and inner == "auto":
        return stacker
    rule = '`stacker` must be "auto", a regressor, a Stacker or None'
    if isinstance(inner, str):
        msg = f"{rule}, got {inner!r}."
        raise ValueError(msg)
    if not predicts_numbers(inner):
        msg = f"{rule}, got {inner!r}."
        raise TypeError(msg)
    return stacker


def _rmse(error: Float64Array, weight: Float64Array) -> float:
    return float(np.sqrt(weight @ error**2 / weight.sum()))
