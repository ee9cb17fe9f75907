"""`predict_dist` on wrappers of scikit-learn, against the model inside by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import lognorm
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler

from localexpert import LocalExpertRegressor, crps_scorer, predict_dist
from localexpert.distribution import predictors
from tests.forecasts import Normal


class Stateless(TransformerMixin, BaseEstimator):
    """Adds one, and has nothing that a fit would leave."""

    def fit(self, X, y=None):
        del X, y
        return self

    def transform(self, X):
        return np.asarray(X) + 1.0


class Sampler(BaseEstimator):
    """A step that picks rows of a fit."""

    def fit_resample(self, X, y):
        return X, y


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(30, 2))
    return X, np.exp(X[:, 0] + 0.5 * rng.normal(size=30))


def assert_same(dist, other):
    assert_allclose(dist.quantiles([0.1]), other.quantiles([0.1]), rtol=1e-12)


def test_a_pipeline_transforms_its_table_and_leaves_steps_that_pick_rows_out(rows):
    X, y = rows
    model = make_pipeline(Stateless(), "passthrough", Stateless(), Normal()).fit(X, y)
    assert_same(predict_dist(model, X), Normal().predict_dist(X + 2.0))
    picked = Pipeline([("pick", Sampler()), ("last", Normal().fit(X, y))])
    assert_same(predict_dist(picked, X), Normal().predict_dist(X))


@pytest.mark.parametrize("depth", [1, 2])
def test_wrappers_in_any_order(rows, depth):
    X, y = rows
    inner = make_pipeline(Stateless(), StandardScaler(with_std=False), Normal())
    grid = {"normal__scale": [1.0, 2.0]}
    search = GridSearchCV(inner, grid, scoring=crps_scorer, cv=2)
    model = search.fit(X, y) if depth == 1 else Pipeline([("s", search)]).fit(X, y)
    best = search.best_estimator_ if depth == 1 else model[-1].best_estimator_
    moved = best[:-1].transform(X)
    assert_same(predict_dist(model, X), best[-1].predict_dist(moved))
    assert_same(predict_dist(FrozenEstimator(model), X), predict_dist(model, X))
    assert predictors.find_forecaster(FrozenEstimator(model)) is best[-1]
    # What forecasts the same: a step of a pipeline gets another table.
    assert predictors.open_same(FrozenEstimator(search)) is best
    assert predictors.open_same(model, pipelines=True) is best[-1]
    predictors.check_predicts(GridSearchCV(inner, {}))  # what is not fitted, too


def test_targets_that_were_transformed_are_turned_back(rows):
    X, y = rows
    model = TransformedTargetRegressor(Normal(), func=np.log, inverse_func=np.exp)
    dist, truth = predict_dist(model.fit(X, y), X), lognorm(0.5, scale=np.exp(X[:, 0]))
    assert_allclose(dist.cdf(y), truth.cdf(y), atol=2e-3)
    assert_allclose(dist.mean(), truth.mean(), rtol=1e-2)
    assert dist.law.support[0] == 0.0
    model = TransformedTargetRegressor(Normal(), transformer=StandardScaler())
    dist = predict_dist(model.fit(X, y), X)
    inner = model.regressor_.predict_dist(X)
    assert_allclose(dist.mean(), y.mean() + y.std() * inner.mean())
    assert_allclose(dist.std(), y.std() * inner.std())
    assert_allclose(dist.mean(), model.predict(X))


def transformed(**change):
    return TransformedTargetRegressor(Normal(), **change)


TURN = {"func": np.negative, "inverse_func": np.negative}
# A method of the name that returns something else.
MUTE = SimpleNamespace(predict_dist=lambda X: np.zeros(len(X)))
LINE, GRID = LinearRegression(), GridSearchCV(LinearRegression(), {})
UNEVEN = {"func": np.log, "inverse_func": np.expm1, "check_inverse": False}


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LINE, "predict_dist, got LinearRegression; it is"),
        (make_pipeline(StandardScaler(), LINE), "as step 'linearregression' of Pipe"),
        (Pipeline([("s", GRID)]), "as `estimator` of GridSearchCV, in step 's' of Pi"),
        (VotingRegressor([("a", Normal())]), "got VotingRegressor; it is"),
        (make_pipeline(Normal(), None), "got NoneType as step"),
        (LocalExpertRegressor, "the class LocalExpertRegressor where a fit"),
        (None, "`model` must have a method predict_dist, got NoneType"),
        (MUTE, "must forecast a PredictiveDistribution, got ndarray of Simple"),
        (GridSearchCV(Normal(), {}), "GridSearchCV instance is not fit"),
    ],
)
def test_what_forecasts_nothing_is_named(model, words):
    with pytest.raises((TypeError, NotFittedError), match=words):
        predict_dist(model, np.zeros((3, 2)))
    if model is LINE:
        with pytest.raises(TypeError, match="`member` must have a method predict_dist"):
            predictors.check_predicts(model, "member")


CHOSEN_ONLY = GridSearchCV(Normal(), {}, scoring=crps_scorer, refit=False, cv=2)
FLIP = FunctionTransformer(np.negative, np.negative)
POWER = PowerTransformer("box-cox", standardize=False)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (CHOSEN_ONLY, "`refit` must not be False for a forecast of Grid"),
        (transformed(**TURN), "got negative: `inverse_func` must increase str"),
        (transformed(transformer=FLIP), "got FunctionTransformer: `inverse_transform`"),
        (transformed(**UNEVEN), "got expm1: `func` must undo `inverse_func`, got inv"),
        (transformed(transformer=POWER), "`bounds` of the regressor keep forecasts"),
    ],
)
def test_fits_that_cannot_be_turned_back_are_named(rows, model, words):
    X, y = rows
    model.fit(X, y)
    if hasattr(getattr(model, "transformer_", None), "lambdas_"):
        model.transformer_.lambdas_ = np.array([0.5])  # defined above -2
    with pytest.raises(ValueError, match=words):
        predict_dist(model, X - 3.0)
