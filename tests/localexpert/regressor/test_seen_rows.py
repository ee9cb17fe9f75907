"""Fitted models know their training rows, through wrappers and files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import localexpert
from calibration import CalibrationWarning
from localexpert import (
    DistributionEnsemble,
    LocalExpertRegressor,
    PredictiveDistribution,
    adapt,
    recalibrate,
    seen_rows,
)


def quick(**options):
    return LocalExpertRegressor(effort="quick", cv=2, random_state=0, **options)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(460, 2)), columns=["a", "b"])
    X["town"] = rng.choice(["x", "y"], 460)
    return X, (X["a"] + rng.normal(size=460)).to_numpy()


@pytest.fixture(scope="module")
def model(rows):
    X, y = rows
    return quick(recalibrate="conformal").fit(X[:200], y[:200])


def test_rows_of_the_fit_are_known_also_those_set_aside(model, rows, tmp_path):
    X, y = rows
    seen = seen_rows(model, X, y)
    np.testing.assert_array_equal(seen.learned, np.arange(460) < 200)
    path = tmp_path / "model.zip"
    model.save(path)
    assert str(seen_rows(localexpert.load(path), X, y)) == str(seen)


def test_wrappers_are_opened(model, rows):
    X, y = rows
    numbers = X[["a", "b"]].to_numpy()
    piped = make_pipeline(StandardScaler(), quick()).fit(numbers[:200], y[:200])
    both = DistributionEnsemble([("one", quick()), ("two", quick(bounds=None))])
    for one, table in (
        (FrozenEstimator(model), X),
        (recalibrate(model, X[200:300], y[200:300]), X),
        (piped, numbers),
        (both.fit(X[:200], y[:200]), X),
    ):
        assert seen_rows(one, table, y).learned.sum() == 200


def test_nothing_is_said_of_models_that_cannot_tell(rows):
    class Coin:
        def predict_dist(self, X):
            masses = np.full((len(X), 2), 0.5)
            return PredictiveDistribution.from_arrays(atoms=[0, 1], masses=masses)

    X, y = rows
    assert seen_rows(Coin(), X, y).share is None
    model = quick().fit(X[:100], y[:100])
    model.training_sketch_ = None
    assert seen_rows(model, X, y).share is None


def test_rows_without_weight_are_not_learned_from(rows):
    X, y = rows
    weight = np.where(np.arange(200) < 150, 1.0, 0.0)
    model = quick().fit(X[:200], y[:200], weight)
    assert seen_rows(model, X[:200], y[:200]).learned.sum() == 150


@pytest.mark.parametrize("how", ["recalibrate", "adapt"])
def test_corrections_by_training_rows_are_warned_of(how, model, rows):
    X, y = rows

    def correct(part):
        if how == "recalibrate":
            return recalibrate(model, X[part], y[part])
        return adapt(model, X[part], y[part], X[300:])

    with pytest.warns(CalibrationWarning, match="learned from 100 of the 150 rows"):
        correct(slice(100, 250))
    correct(slice(200, 350))
