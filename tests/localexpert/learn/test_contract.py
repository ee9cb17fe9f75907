"""What all learners promise, whatever the target and the roads to it."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import TimeSeriesSplit

from localexpert import (
    CellRoad,
    DiscreteRoad,
    FrameRoad,
    GridRoad,
    JointForest,
    LocalExpertRegressor,
    Transformed,
)
from localexpert.law.transform import ExpLess, LogOf

N = 140
FOREST = JointForest(20, random_state=0)
QUICK = FrameRoad("center", strategy=FOREST, n_thresholds=7)
GRID = GridRoad(15, strategy=FOREST)
LOG = LogOf(0.0, 50.0), ExpLess(0.0, 50.0)


def draw():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(N, 3))
    return X, 2.0 * X[:, 0] + 0.3 * rng.normal(size=N), rng.uniform(size=N) < 0.35


X, MEAN, OFTEN = draw()
CASES = {
    "smooth": (MEAN, [QUICK, GRID]),
    "on y": (MEAN, FrameRoad(None, strategy=FOREST, n_thresholds=7)),
    "transformed": (np.exp(MEAN), Transformed(QUICK, np.sqrt, np.square)),
    "log and plain": (np.exp(MEAN), [QUICK, Transformed(QUICK, *LOG)]),
    "two steps": (np.exp(MEAN), Transformed(Transformed(QUICK), np.sqrt, np.square)),
    "atoms": (np.where(OFTEN, 0.0, np.exp(MEAN)), [QUICK, GRID]),
    "rounded": (np.where(OFTEN, np.round(MEAN), MEAN), "auto"),
    "values": (np.round(MEAN), DiscreteRoad(FOREST)),
    "cells": (np.round(4.0 * np.exp(MEAN)), CellRoad(Transformed(QUICK))),
    "values and cells": (np.round(3.0 * MEAN), [DiscreteRoad(FOREST), CellRoad(QUICK)]),
}


def fit(name, **parameters):
    y, roads = CASES[name]
    parameters = {"center": LinearRegression(), "cv": 3, **parameters}
    return LocalExpertRegressor(roads=roads, random_state=0, **parameters).fit(X, y)


@pytest.fixture(scope="module", params=CASES)
def fitted(request):
    return fit(request.param), CASES[request.param][0]


def said_by(model, rows):
    dist = model.predict_dist(rows)
    return np.column_stack([dist.quantiles([0.05, 0.5, 0.9]), dist.mean()])


def test_forecasts_are_better_than_none(fitted):
    model, y = fitted
    climatology = np.abs(y[:, None] - y).mean() / 2.0
    assert model.oof_distribution_.crps(y).mean() < 0.9 * climatology
    said = said_by(model, X)
    assert np.isfinite(said).all()
    assert (np.diff(said[:, :3], axis=1) >= 0.0).all()


def test_a_row_is_forecast_as_if_it_were_alone(fitted):
    model, _ = fitted
    alone = np.vstack([said_by(model, X[i : i + 1]) for i in range(3)])
    assert_allclose(alone, said_by(model, X)[:3], rtol=1e-9, atol=1e-9)


def test_files_and_pickles_say_the_same(fitted, reload):
    model, _ = fitted
    for again in (reload(model), pickle.loads(pickle.dumps(model))):
        assert_array_equal(said_by(again, X), said_by(model, X))
        ours, theirs = (one.oof_distribution_.median() for one in (model, again))
        assert_array_equal(theirs, ours)
        assert_array_equal(again.expert_points(X), model.expert_points(X), strict=True)
    assert repr(clone(model).roads) == repr(model.roads)


def test_points_are_those_of_the_experts(fitted):
    model, y = fitted
    values, p = model.expert_points(X)
    assert values.shape == p.shape == (N, len(model.thresholds_))
    assert (np.diff(values, axis=1) > 0.0).all()
    assert y.min() - np.ptp(y) < np.median(values) < y.max() + np.ptp(y)
    cdf = model.predict_dist(X).cdf(values.T).T
    assert np.abs(cdf - p).mean() < 0.15


def test_targets_are_kept_for_reports(fitted):
    model, y = fitted
    assert_array_equal(model.oof_targets_, y[model.fitted_rows_])
    assert_array_equal(model.oof_weights_, np.ones(len(model.fitted_rows_)))


@pytest.mark.parametrize("name", ["smooth", "atoms", "values and cells"])
def test_rows_that_no_fold_tests_only_train(name):
    model = fit(name, cv=TimeSeriesSplit(4))
    assert 0 < len(model.fitted_rows_) < N
    assert len(model.oof_distribution_) == len(model.fitted_rows_)
    assert np.isfinite(said_by(model, X)).all()


@pytest.mark.parametrize("rest", ["amounts", "counts"])
@pytest.mark.parametrize(
    ("parameters", "groups"),
    [
        ({"effort": "quick"}, np.arange(N) // 14),
        ({"frame": "center", "cv": TimeSeriesSplit(4)}, None),
    ],
)
def test_the_rest_beside_a_frequent_value_may_lie_in_one_fold(rest, parameters, groups):
    seen = np.exp(MEAN) if rest == "amounts" else np.ceil(10.0 * np.exp(MEAN))
    y = np.where(np.arange(N) // 14 == 9, seen, 0.0)
    model = LocalExpertRegressor(random_state=0, **parameters).fit(X, y, groups=groups)
    assert model.report_.target == {"amounts": "mixed", "counts": "discrete"}[rest]
    assert 0.75 < model.predict_dist(X).masses[:, 0].mean() < 1.0
