"""`predict_dist` on wrappers of scikit-learn, against the model inside by hand."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.ensemble import VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from localexpert import (
    LocalExpertRegressor,
    crps_scorer,
    predict_dist,
)
from localexpert.distribution.predictors import (
    check_predicts,
    find_forecaster,
)
from tests.forecasts import of_values

QUICK = {"strategy": "joint", "frame": None, "n_thresholds": 5, "cv": 3}


class Stairs(RegressorMixin, BaseEstimator):
    """Forecasts the row's first number and twice it, with equal probability."""

    def __init__(self, step=1.0):
        self.step = step

    def fit(self, X, y):
        self.n_ = len(y)
        del X
        return self

    def predict(self, X):
        return self.predict_dist(X).mean()

    def predict_dist(self, X):
        place = np.floor(np.asarray(X)[:, 0]).astype(int)
        rows = np.eye(9)[np.clip(place, 0, 8)]
        return of_values(self.step * np.arange(9.0), rows)


class Stateless(TransformerMixin, BaseEstimator):
    """Adds one, and has nothing that a fit would leave."""

    def fit(self, X, y=None):
        del X, y
        return self

    def transform(self, X):
        return np.asarray(X) + 1.0


@pytest.fixture
def rows(rng):
    """Numbers and a target that is one of few values."""
    X = rng.uniform(0.0, 8.0, (30, 2))
    return X, np.floor(X[:, 0])


def same(dist, other):
    """Say whether two discrete forecasts are the same."""
    parts = (dist.atoms, other.atoms), (dist.masses, other.masses)
    return all(np.array_equal(*pair) for pair in parts)


def test_a_pipeline_transforms_its_table(rows):
    X, y = rows
    model = make_pipeline(Stateless(), "passthrough", Stateless(), Stairs()).fit(X, y)
    assert same(predict_dist(model, X), Stairs().predict_dist(X + 2.0))
    assert same(
        predict_dist(make_pipeline(Stairs()).fit(X, y), X), Stairs().predict_dist(X)
    )


def test_steps_that_pick_rows_are_left_out(rows):
    X, y = rows

    class Sampler(BaseEstimator):
        def fit_resample(self, X, y):
            return X, y

    model = Pipeline([("pick", Sampler()), ("last", Stairs().fit(X, y))])
    assert same(predict_dist(model, X), Stairs().predict_dist(X))


@pytest.mark.parametrize("depth", [1, 2])
def test_wrappers_in_any_order(rows, depth):
    X, y = rows
    search = GridSearchCV(
        make_pipeline(Stateless(), StandardScaler(with_std=False), Stairs()),
        {"stairs__step": [1.0, 2.0]},
        scoring=crps_scorer,
        cv=2,
    )
    model = search.fit(X, y) if depth == 1 else Pipeline([("s", search)]).fit(X, y)
    best = search.best_estimator_ if depth == 1 else model[-1].best_estimator_
    moved = best[:-1].transform(X)
    assert same(predict_dist(model, X), best[-1].predict_dist(moved))
    assert same(predict_dist(FrozenEstimator(model), X), predict_dist(model, X))
    assert find_forecaster(FrozenEstimator(model)) is best[-1]


class Mute(BaseEstimator):
    """A method of the name that returns something else."""

    def predict_dist(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (LinearRegression(), TypeError, "predict_dist, got LinearRegression; it is"),
        (
            make_pipeline(StandardScaler(), LinearRegression()),
            TypeError,
            "got LinearRegression as step 'linearregression' of Pipeline; ",
        ),
        (
            Pipeline([("s", GridSearchCV(LinearRegression(), {}))]),
            TypeError,
            "LinearRegression as `estimator` of GridSearchCV, in step 's' of Pipeline",
        ),
        (VotingRegressor([("a", Stairs())]), TypeError, "got VotingRegressor; it is"),
        (make_pipeline(Stairs(), None), TypeError, "got NoneType as step"),
        (LocalExpertRegressor, TypeError, "the class LocalExpertRegressor where a fit"),
        (None, TypeError, "`model` must have a method predict_dist, got NoneType"),
        (
            Mute(),
            TypeError,
            "must forecast a PredictiveDistribution, got ndarray of Mu",
        ),
        (
            GridSearchCV(Stairs(), {}),
            NotFittedError,
            "GridSearchCV instance is not fit",
        ),
    ],
)
def test_what_forecasts_nothing_is_named(model, error, words):
    with pytest.raises(error, match=words):
        predict_dist(model, np.zeros((3, 2)))


def test_a_search_without_a_fit_on_all_rows(rows):
    search = GridSearchCV(Stairs(), {}, scoring=crps_scorer, refit=False, cv=2)
    search.fit(*rows)
    with pytest.raises(ValueError, match="`refit` of GridSearchCV must not be False"):
        predict_dist(search, rows[0])


def test_a_check_takes_what_is_not_fitted():
    check_predicts(GridSearchCV(make_pipeline(Stateless(), Stairs()), {}))
    with pytest.raises(TypeError, match="`member` must have a method predict_dist"):
        check_predicts(LinearRegression(), "member")
