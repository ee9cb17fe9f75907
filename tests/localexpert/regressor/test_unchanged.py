"""A fit that fails, late and in the middle, leaves every regressor as it was."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

from localexpert import (
    DistributionAdapter,
    DistributionEnsemble,
    FrameRoad,
    LocalExpertRegressor,
    PredictiveDistribution,
)


class LateError(RuntimeError):
    """What a test lets happen in the middle of a fit."""


class Fails(RegressorMixin, BaseEstimator):
    """A line whose last fits fail where the target is above 50."""

    def __init__(self, error=LateError):
        self.error = error

    def fit(self, X, y):
        if np.mean(y) > 50.0:
            raise self.error
        self.line_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.line_.predict(X)

    def predict_dist(self, X):
        mean = self.predict(X)
        quantiles = mean[:, None] + np.array([-1.0, 0.0, 1.0])
        return PredictiveDistribution.from_quantiles(quantiles, [0.1, 0.5, 0.9])


def regressor(error):
    road = FrameRoad("center", strategy="joint", n_thresholds=7)
    return LocalExpertRegressor(center=Fails(error), roads=road, random_state=0)


MADE = {
    "regressor": regressor,
    "adapter": lambda error: DistributionAdapter(Fails(error)),
    "ensemble": lambda error: DistributionEnsemble(
        [("line", DistributionAdapter(Fails(error)))]
    ),
}


def draw(names):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(150, 2)), columns=names)
    return X, X.to_numpy()[:, 0] + rng.normal(size=150)


@pytest.mark.parametrize("error", [LateError, KeyboardInterrupt])
@pytest.mark.parametrize("name", MADE)
def test_a_failed_fit_changes_nothing(name, error):
    X, y = draw(["a", "b"])
    model = MADE[name](error).fit(X, y)
    before, told = dict(vars(model)), model.predict_quantiles(X, [0.1, 0.5])
    other, far = draw(["c", "d"])
    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        model.fit(other, 100.0 + far)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is value for key, value in before.items())
    np.testing.assert_array_equal(model.predict_quantiles(X, [0.1, 0.5]), told)


def test_a_first_fit_that_fails_leaves_nothing():
    X, y = draw(["a", "b"])
    model = regressor(LateError)
    before = dict(vars(model))
    with pytest.raises(RuntimeError):
        model.fit(X, 100.0 + y)
    assert vars(model) == before
