"""Estimators of other libraries: as regressors of ours, and out of fold."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn import config_context, pipeline, preprocessing
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit

from calibration import CalibrationWarning
from localexpert import (
    DistributionAdapter,
    cross_val_predict_dist,
    crps_score,
    pit_test,
    predict_dist,
)
from tests.forecasts import beside, normal, of_values


def narrow(fitted, X):
    """Normal laws that are far too narrow."""
    return stats.norm(fitted.predict(X), 0.5)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, 2))
    y = 3.0 * X[:, 0] + rng.normal(size=600)
    return X[:300], y[:300], X[300:], y[300:]


@pytest.mark.filterwarnings("ignore::calibration.exceptions.CalibrationWarning")
def test_one_quantile_regressor_becomes_one_for_each_level(data):
    X, y, X_new, _ = data
    one = LGBMRegressor(objective="quantile", n_estimators=20, n_jobs=1, verbose=-1)
    asked = {"levels": [0.1, 0.5, 0.9], "level_name": "alpha", "bounds": (-10.0, None)}
    model = DistributionAdapter(one, **asked, cv=2, random_state=0)
    dist = model.fit(X, y).predict_dist(X_new)
    assert [one.alpha for one in model.estimator_] == [0.1, 0.5, 0.9]
    said = np.column_stack([one.predict(X_new) for one in model.estimator_])
    assert_allclose(dist.quantiles([0.1, 0.5, 0.9]), np.sort(said, axis=1), rtol=1e-6)
    assert dist.law.support == (-10.0, np.inf)


def test_a_level_that_changes_nothing_is_told(data):
    X, y, _, _ = data
    asked = {"levels": [0.1, 0.5, 0.9], "level_name": "alpha", "cv": 2}
    # A regression of means: its `alpha` is a parameter of other losses.
    means = LGBMRegressor(n_estimators=2, n_jobs=1, verbose=-1)
    with pytest.warns(CalibrationWarning, match="levels 0.1 and 0.9 are equal in ev"):
        DistributionAdapter(means, **asked).fit(X, y)
    # If nearly all targets are 0, so are their quantiles.
    quantiles = clone(means).set_params(objective="quantile")
    zeros = np.where(np.arange(300) < 3, 1.0, 0.0)
    model = DistributionAdapter(quantiles, **asked).fit(X, zeros)
    assert_allclose(model.predict(X), 0.0, atol=1e-9)


def test_quantiles_of_one_call(data):
    X, y, X_new, _ = data

    def forecast(fitted, X):
        return fitted.predict(X)[:, None] + [-1.0, 0.0, 1.0]

    model = DistributionAdapter(LinearRegression(), forecast, levels=[0.1, 0.5, 0.9])
    dist = model.fit(X, y).predict_dist(X_new)
    assert_allclose(dist.median(), LinearRegression().fit(X, y).predict(X_new))


def test_a_law_of_numbers_is_that_of_every_row(data):
    X, y, X_new, _ = data
    model = DistributionAdapter(LinearRegression(), lambda *_: stats.norm(1.0, scale=2))
    assert_allclose(model.fit(X, y).predict_dist(X_new).std(), np.full(300, 2.0))


# Some rows are more than five of such deviations out.
@pytest.mark.filterwarnings("ignore::calibration.exceptions.CalibrationWarning")
def test_recalibration_out_of_fold_widens_what_is_too_narrow(data):
    X, y, X_new, y_new = data
    raw = DistributionAdapter(LinearRegression(), narrow, random_state=0).fit(X, y)
    off, p_value = pit_test(y_new, raw.predict_dist(X_new))
    assert p_value < 1e-6
    for kind in ("pit", "conformal"):
        model = clone(raw).set_params(recalibrate=kind)
        dist = model.fit(X, y).predict_dist(X_new)
        assert 0.7 < dist.std().mean() < 1.3
        assert pit_test(y_new, dist)[0] < 0.8 * off
        before = crps_score(y_new, raw.predict_dist(X_new))
        assert crps_score(y_new, dist) < 0.98 * before
    # Rows kept for the guarantee are none that it speaks of.
    assert len(model.fitted_rows_) == len(model.oof_distribution_) == 240


def test_rows_of_weight_0_train_nothing(data):
    X, y, X_new, _ = data
    weight, far = np.ones(300), np.zeros((300, 1))
    weight[:20], far[:20] = 0.0, 1e6
    pipe = pipeline.make_pipeline(preprocessing.StandardScaler(), Ridge())
    model = DistributionAdapter(pipe, narrow, random_state=0)
    alone = clone(model).fit(X[20:], y[20:])
    model.fit(X + far, y + far[:, 0], weight)
    assert_allclose(model.predict(X_new), alone.predict(X_new))
    assert_allclose(model.oof_prediction_[20:], alone.oof_prediction_)
    own = model.set_params(cv=[(np.arange(20), np.arange(20, 300))])
    with pytest.raises(ValueError, match="train on rows with a weight in every fold"):
        own.fit(X, y, weight)


BY_LEVEL = {"forecast": None, "level_name": "alpha"}
ONE_ROW = {"forecast": lambda fitted, X: narrow(fitted, X[:1])}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"estimator": LinearRegression}, "`estimator` must be an object .* <class"),
        ({"forecast": None}, "`forecast` must be a function .* a LinearReg"),
        ({"level_name": "alpha"}, "`forecast` must be None where `level_name`"),
        (BY_LEVEL, "`levels` must be given with `level_name`"),
        ({**BY_LEVEL, "levels": [0.1, 0.9]}, "`level_name` must be a parameter of Lin"),
        ({"levels": [0.5]}, "`levels` must be two or more"),
        ({"levels": [0.1, 1.5]}, r"`levels` must lie in \(0, 1\)"),
        ({"levels": [0.1, 0.9], "bounds": (1.0, 0.0)}, "`bounds` must be"),
        ({"bounds": (0.0, 1.0)}, "`bounds` must be None where there are no"),
        ({"forecast": lambda _, X: X[:, 0]}, "`forecast` must return a Predictive"),
        (ONE_ROW, "`forecast` must be as long as X, got 1 and 60"),
    ],
)
def test_what_is_refused(data, parameters, message):
    given = {"estimator": LinearRegression(), "forecast": narrow} | parameters
    with pytest.raises((TypeError, ValueError), match=message):
        DistributionAdapter(**given).fit(*data[:2])


class Kinds(RegressorMixin, BaseEstimator):
    """Laws whose kind and scale depend on the rows of the fit, and on weights."""

    def __init__(self, kinds="smd"):
        self.kinds = kinds

    def fit(self, X, y, sample_weight=None, groups=None):
        del X
        self.mean_ = float(np.average(y, weights=sample_weight))
        self.kind_ = self.kinds[len(y) % len(self.kinds)]
        self.groups_ = groups
        return self

    def predict(self, X):
        return self.predict_dist(X).mean()

    def predict_dist(self, X):
        n, center = len(X), self.mean_ + np.asarray(X, dtype=float)[:, 0]
        if self.kind_ == "d":
            values = np.sort(self.mean_ + np.arange(3.0))
            return of_values(values, np.tile([0.2, 0.3, 0.5], (n, 1)))
        dist = normal(center, 1.5)
        if self.kind_ == "m":
            atoms = np.sort([9.0, self.mean_])
            return beside(dist, atoms, np.full((n, 2), 0.2), [1.0, 1.0])
        return dist


@pytest.fixture
def table(rng):
    X = rng.normal(size=(24, 2))
    return X, X[:, 0] + rng.normal(size=24)


def check_rows(dist, model, X, y, folds, **given):
    """Compare with one fit after another; return the kinds of their laws."""
    kinds, at = set(), np.linspace(-3.0, 4.0, 7)
    assert len(dist) == len(y)
    for train, test in folds:
        part = {name: values[train] for name, values in given.items()}
        own = predict_dist(clone(model).fit(X[train], y[train], **part), X[test])
        kinds.add((own.law.is_smooth, own.law.is_discrete))
        got = dist[test]
        np.testing.assert_allclose(got.cdf_at(at), own.cdf_at(at), atol=1e-12)
        np.testing.assert_allclose(got.crps(y[test]), own.crps(y[test]), rtol=1e-6)
        np.testing.assert_allclose(got.mean(), own.mean(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            got.quantiles([0.05, 0.93]), own.quantiles([0.05, 0.93]), rtol=1e-6
        )
    return kinds


@pytest.mark.parametrize("kinds", ["s", "d", "m", "smd"])
def test_rows_are_those_of_the_folds(table, kinds):
    X, y = table
    # Training parts of 21, 22 and 23 rows: each has its kind.
    order = np.random.default_rng(1).permutation(24)
    tests = np.split(order, np.cumsum([1, 2, 3, 3, 2, 1, 3, 3, 3, 1, 1]))
    folds = [(np.setdiff1d(order, test), test) for test in tests]
    model = DistributionAdapter(Kinds(kinds), cv=folds).fit(X, y)
    dist = cross_val_predict_dist(Kinds(kinds), X, y, cv=folds)
    for out_of_fold in (dist, model.oof_distribution_):
        seen = check_rows(out_of_fold, Kinds(kinds), X, y, folds)
        assert len(seen) == (1 if len(kinds) == 1 else 3)
    every = np.arange(24)
    check_rows(model.predict_dist(X), Kinds(kinds), X, y, [(every, every)])
    assert_array_equal(model.oof_prediction_, model.oof_distribution_.mean())
    assert_array_equal(model.fitted_rows_, every)


def test_the_default_is_five_folds_in_order(table):
    X, y = table
    dist = cross_val_predict_dist(Kinds(), X, y, n_jobs=2)
    check_rows(dist, Kinds(), X, y, KFold(5).split(X))
    lists = cross_val_predict_dist(Kinds(), X.tolist(), y.tolist())
    np.testing.assert_array_equal(lists.mean(), dist.mean())


def test_targets_in_another_order_are_told(table):
    X, y = pd.DataFrame(table[0]), pd.Series(table[1])
    with pytest.warns(CalibrationWarning, match="`y` has the labels of `X` in another"):
        cross_val_predict_dist(Kinds("s"), X, y[::-1])


def test_weights_and_groups_reach_the_fit(table, rng):
    X, y = table
    weight, groups = rng.integers(1, 4, 24).astype(float), np.arange(24) // 4
    given = {"groups": groups, "sample_weight": weight}
    dist = cross_val_predict_dist(Kinds("s"), X, y, cv=3, **given)
    folds = list(GroupKFold(3).split(X, groups=groups))
    check_rows(dist, Kinds("s"), X, y, folds, sample_weight=weight)
    own = DistributionAdapter(Kinds("s"), cv=folds).fit(X, y, weight, groups)
    check_rows(own.oof_distribution_, Kinds("s"), X, y, folds, sample_weight=weight)
    piped = pipeline.make_pipeline(preprocessing.StandardScaler(), Kinds("s"))
    dist = cross_val_predict_dist(piped, X, y, cv=folds, sample_weight=weight)
    check_rows(dist, piped, X, y, folds, kinds__sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        own = Kinds("s").set_fit_request(sample_weight=True, groups=True)
        scaler = preprocessing.StandardScaler().set_fit_request(sample_weight=False)
        piped = pipeline.make_pipeline(scaler, own)
        dist = cross_val_predict_dist(piped, X, y, cv=folds, **given)
        check_rows(dist, piped, X, y, folds, sample_weight=weight, groups=groups)
        own.set_fit_request(sample_weight=False, groups=False)
        dist = cross_val_predict_dist(piped, X, y, cv=folds, groups=groups)
        check_rows(dist, piped, X, y, folds)
        with pytest.raises(TypeError, match="whose `fit` takes no weights"):
            cross_val_predict_dist(piped, X, y, sample_weight=weight)


@pytest.mark.parametrize("name", ["groups", "sample_weight"])
def test_metadata_routing_must_be_told(table, name):
    X, y = table
    piped = pipeline.make_pipeline(preprocessing.StandardScaler(), Kinds("s"))
    given = {name: np.arange(1.0, 25.0)}
    asked = f"`{name}` must be asked for by Kinds"
    with config_context(enable_metadata_routing=True):
        with pytest.raises(ValueError, match=asked):
            DistributionAdapter(piped).fit(X, y, **given)
        with pytest.raises(ValueError, match=asked):
            cross_val_predict_dist(piped, X, y, **given)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cv": TimeSeriesSplit(3)}, "test part here, got 6 of 24 rows in"),
        ({"cv": ShuffleSplit(9, random_state=0)}, "more than one test part"),
        ({"cv": [(range(24), range(24))]}, "test rows out of the training"),
    ],
)
def test_bad_input_is_named(table, change, words):
    given = {"model": Kinds(), "X": table[0], "y": table[1], **change}
    with pytest.raises((TypeError, ValueError), match=words):
        cross_val_predict_dist(**given)
