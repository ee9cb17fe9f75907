"""Laws of transformed targets, against laws that are known."""

import pickle

import numpy as np
import pytest
from scipy.stats import lognorm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import (
    FunctionTransformer,
    PowerTransformer,
    StandardScaler,
)

from localexpert import predict_dist
from tests.forecasts import normal


class Normal(RegressorMixin, BaseEstimator):
    """Forecasts a normal law around the row's first number."""

    def __init__(self, scale=0.5):
        self.scale = scale

    def fit(self, X, y):
        self.y_ = np.asarray(y)
        del X
        return self

    def predict(self, X):
        return self.predict_dist(X).mean()

    def predict_dist(self, X):
        return normal(np.asarray(X, dtype=float)[:, 0], self.scale)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(20, 1))
    return X, np.exp(X[:, 0] + 0.5 * rng.normal(size=20))


def test_logs_become_lognormal(rows):
    X, y = rows
    model = TransformedTargetRegressor(Normal(), func=np.log, inverse_func=np.exp)
    dist = predict_dist(model.fit(X, y), X)
    truth = lognorm(0.5, scale=np.exp(X[:, 0]))
    np.testing.assert_allclose(dist.cdf(y), truth.cdf(y), atol=2e-3)
    np.testing.assert_allclose(dist.median(), truth.median(), rtol=5e-3)
    np.testing.assert_allclose(dist.mean(), truth.mean(), rtol=1e-2)
    assert dist.law.support[0] == 0.0
    again = pickle.loads(pickle.dumps(dist))
    np.testing.assert_array_equal(again.quantiles([0.1]), dist.quantiles([0.1]))


def test_a_transformer_is_undone(rows):
    X, y = rows
    model = TransformedTargetRegressor(Normal(), transformer=StandardScaler())
    model.fit(X, y)
    dist, inner = predict_dist(model, X), model.regressor_.predict_dist(X)
    np.testing.assert_allclose(dist.mean(), y.mean() + y.std() * inner.mean())
    np.testing.assert_allclose(dist.std(), y.std() * inner.std())
    np.testing.assert_allclose(dist.mean(), model.predict(X))


def negative(y):
    """Turn a target around."""
    return -y


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"func": negative, "inverse_func": negative},
            "increasing `inverse_func`, got negative: `inverse_func` must increase str",
        ),
        (
            {"transformer": FunctionTransformer(negative, negative)},
            "`transformer`, got FunctionTransformer: `inverse_transform` must",
        ),
        (
            {"func": np.log, "inverse_func": np.expm1, "check_inverse": False},
            "got expm1: `func` must undo `inverse_func`, got inverse_func",
        ),
    ],
)
def test_what_does_not_increase_is_named(rows, change, words):
    model = TransformedTargetRegressor(Normal(), **change).fit(*rows)
    with pytest.raises(ValueError, match=words):
        predict_dist(model, rows[0])


def test_where_a_transformer_is_not_defined(rows):
    X, y = rows
    powers = PowerTransformer("box-cox", standardize=False)
    model = TransformedTargetRegressor(Normal(), transformer=powers).fit(X, y)
    model.transformer_.lambdas_ = np.array([0.5])  # defined above -2
    with pytest.raises(ValueError, match="`bounds` of the regressor keep forecasts"):
        predict_dist(model, X)
