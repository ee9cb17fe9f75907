"""Estimators of other libraries as regressors of distributions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, QuantileRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibration import CalibrationWarning, StorageError
from localexpert import (
    DistributionAdapter,
    DistributionEnsemble,
    LocalExpertRegressor,
    PredictiveDistribution,
    crps_score,
    crps_scorer,
    load,
    pit_test,
    plot_pit,
    report,
)

LEVELS = np.arange(1, 10) / 10
QUICK = {"strategy": "joint", "frame": None, "n_thresholds": 9, "cv": 3}


def normal(fitted, X):
    """A Bayesian regression's own normal law."""
    return stats.norm(*fitted.predict(X, return_std=True))


def of_trees(fitted, X):
    """What the trees of a forest say, as draws."""
    draws = np.column_stack([tree.predict(X) for tree in fitted.estimators_])
    return PredictiveDistribution.from_samples(draws)


def narrow(fitted, X):
    """Normal laws that are far too narrow."""
    return stats.norm(fitted.predict(X), 0.5)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, 2))
    y = 3.0 * X[:, 0] + rng.normal(size=600)
    return X[:300], y[:300], X[300:], y[300:]


class Normal:
    """`normal`, in the names of tests without its address, which differs by process."""

    def __call__(self, fitted, X):
        return normal(fitted, X)

    def __repr__(self):
        return "normal"


@parametrize_with_checks([DistributionAdapter(BayesianRidge(), Normal(), cv=2)])
def test_sklearn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        check(estimator)


def test_out_of_fold_forecasts_are_those_of_the_folds(data):
    X, y, X_new, _ = data
    rows = np.arange(300)
    folds = [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in (2, 0, 1)]
    model = DistributionAdapter(BayesianRidge(), normal, cv=folds).fit(X, y)
    for train, test in folds:
        want = normal(BayesianRidge().fit(X[train], y[train]), X[test])
        assert_allclose(model.oof_distribution_[test].mean(), want.mean())
        assert_allclose(model.oof_distribution_[test].ppf(0.9), want.ppf(0.9))
    whole = normal(BayesianRidge().fit(X, y), X_new)
    assert_allclose(model.predict_dist(X_new).std(), whole.std())
    assert_allclose(model.predict(X_new), whole.mean())
    assert_allclose(model.oof_prediction_, model.oof_distribution_.mean())
    assert_array_equal(model.fitted_rows_, rows)
    assert model.recalibration_ is None


def test_scores_are_near_the_truth(data):
    X, y, X_new, y_new = data
    true = PredictiveDistribution.from_scipy(stats.norm(3.0 * X_new[:, 0], 1.0))
    best = crps_score(y_new, true)
    adapters = {
        "normal": DistributionAdapter(BayesianRidge(), normal),
        "quantiles": DistributionAdapter(
            QuantileRegressor(alpha=0.0), levels=LEVELS, level_name="quantile"
        ),
    }
    for model in adapters.values():
        model.set_params(random_state=0).fit(X, y)
        assert crps_score(y_new, model.predict_dist(X_new)) < 1.02 * best
        assert crps_score(y, model.oof_distribution_) < 1.1 * best


def test_one_quantile_regressor_becomes_one_for_each_level(data):
    X, y, X_new, _ = data
    model = DistributionAdapter(
        LGBMRegressor(objective="quantile", n_estimators=20, n_jobs=1, verbose=-1),
        levels=[0.1, 0.5, 0.9],
        level_name="alpha",
        bounds=(-10.0, None),
        cv=2,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        dist = model.fit(X, y).predict_dist(X_new)
    assert [one.alpha for one in model.estimator_] == [0.1, 0.5, 0.9]
    said = np.column_stack([one.predict(X_new) for one in model.estimator_])
    assert_allclose(dist.quantiles([0.1, 0.5, 0.9]), np.sort(said, axis=1), rtol=1e-6)
    assert dist.law.support == (-10.0, np.inf)


def test_quantiles_of_one_call(data):
    X, y, X_new, _ = data

    def forecast(fitted, X):
        return fitted.predict(X)[:, None] + [-1.0, 0.0, 1.0]

    model = DistributionAdapter(LinearRegression(), forecast, levels=[0.1, 0.5, 0.9])
    dist = model.fit(X, y).predict_dist(X_new)
    assert_allclose(dist.median(), LinearRegression().fit(X, y).predict(X_new))


def test_recalibration_out_of_fold_widens_what_is_too_narrow(data):
    X, y, X_new, y_new = data
    raw = DistributionAdapter(LinearRegression(), narrow, random_state=0).fit(X, y)
    off, p_value = pit_test(y_new, raw.predict_dist(X_new))
    assert p_value < 1e-6
    for kind in ("pit", "conformal"):
        model = clone(raw).set_params(recalibrate=kind)
        with warnings.catch_warnings():
            # Some rows are more than five of such deviations out.
            warnings.simplefilter("ignore", CalibrationWarning)
            dist = model.fit(X, y).predict_dist(X_new)
        assert 0.7 < dist.std().mean() < 1.3
        assert pit_test(y_new, dist)[0] < 0.8 * off
        before = crps_score(y_new, raw.predict_dist(X_new))
        assert crps_score(y_new, dist) < 0.98 * before
    # Rows kept for the guarantee are none that it speaks of.
    assert len(model.fitted_rows_) == len(model.oof_distribution_) == 240


def test_it_is_pooled_with_ours(data):
    X, y, X_new, y_new = data
    members = [
        ("bayes", DistributionAdapter(BayesianRidge(), normal)),
        (
            "forest",
            DistributionAdapter(RandomForestRegressor(30, random_state=0), of_trees),
        ),
        ("ours", LocalExpertRegressor(**QUICK)),
    ]
    model = DistributionEnsemble(members, random_state=0).fit(X, y)
    assert model.weights_["bayes"] > 0.5
    dist = model.predict_dist(X_new)
    single = model.members_["bayes"].predict_dist(X_new)
    assert crps_score(y_new, dist) < 1.02 * crps_score(y_new, single)


def test_an_estimator_of_ours_is_taken_by_its_own_method(data, tmp_path):
    X, y, X_new, _ = data
    inner = LocalExpertRegressor(**QUICK, random_state=0)
    model = DistributionAdapter(inner, cv=2, random_state=0).fit(X[:120], y[:120])
    want = clone(inner).fit(X[:120], y[:120]).predict_dist(X_new)
    assert_array_equal(model.predict_dist(X_new).ppf(0.3), want.ppf(0.3))
    model.save(tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    assert_array_equal(again.predict(X_new), model.predict(X_new))
    y_own = y[:120]
    assert_array_equal(
        again.oof_distribution_.crps(y_own), model.oof_distribution_.crps(y_own)
    )


def test_what_can_be_stored_is_saved(data, tmp_path):
    X, y, X_new, _ = data
    path = tmp_path / "model.zip"
    quantiles = DistributionAdapter(
        QuantileRegressor(alpha=0.0), levels=[0.2, 0.8], level_name="quantile", cv=2
    )
    quantiles.fit(X, y).save(path)
    assert_array_equal(load(path).predict(X_new), quantiles.predict(X_new))
    own = DistributionAdapter(BayesianRidge(), normal, cv=2).fit(X, y)
    assert_array_equal(
        pickle.loads(pickle.dumps(own)).predict(X_new), own.predict(X_new)
    )
    own.save(path)
    with pytest.raises(StorageError, match=r"test_adapter\.normal, which are not tr"):
        load(path)
    again = load(path, trusted=[normal.__module__ + ".normal"])
    assert_array_equal(again.predict(X_new), own.predict(X_new))


def test_frames_go_to_the_estimator_as_they_are(rng):
    X = pd.DataFrame({"place": np.repeat(["a", "b"], 60), "size": rng.normal(size=120)})
    y = np.where(X["place"] == "a", 0.0, 5.0) + rng.normal(size=120)
    pipe = make_pipeline(OneHotEncoder(), LinearRegression())

    def forecast(fitted, X):
        assert list(X.columns) == ["place"]
        return stats.norm(fitted.predict(X), 1.0)

    model = DistributionAdapter(pipe, forecast, random_state=0).fit(X[["place"]], y)
    assert_allclose(model.predict(X[["place"]][::60]), [0.0, 5.0], atol=0.5)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["size"]])


def test_weights_and_groups(data, rng):
    X, y, _, _ = data
    weight = rng.integers(0, 3, 300).astype(float)
    model = DistributionAdapter(LinearRegression(), narrow, random_state=0)
    weighted = clone(model).fit(X, y, weight)
    copies = np.repeat(np.arange(300), weight.astype(int))
    repeated = LinearRegression().fit(X[copies], y[copies])
    assert_allclose(weighted.estimator_.coef_, repeated.coef_)
    groups = np.repeat(np.arange(60), 5)
    grouped = clone(model).set_params(cv=3).fit(X, y, groups=groups)
    assert len(grouped.oof_distribution_) == 300
    with pytest.raises(ValueError, match="`sample_weight` must be None for a KNeigh"):
        DistributionAdapter(KNeighborsRegressor(), narrow).fit(X, y, weight)


def test_searches_scores_pictures_and_pages(data, tmp_path):
    X, y, X_new, y_new = data
    model = DistributionAdapter(LinearRegression(), narrow, random_state=0)
    losses = cross_val_score(model, X, y, scoring=crps_scorer, cv=3)
    assert np.isfinite(losses).all()
    search = GridSearchCV(
        model, {"recalibrate": [None, "pit"]}, scoring=crps_scorer, cv=2
    )
    assert search.fit(X, y).best_params_ == {"recalibrate": "pit"}
    fitted = model.fit(X, y)
    assert plot_pit(y_new, fitted.predict_dist(X_new)) is not None
    page = report(
        fitted,
        X_new,
        y_new,
        tmp_path / "r.html",
        X_train=X,
        y_train=y,
        importance_rows=0,
    )
    assert "DistributionAdapter" in page.read_text(encoding="utf-8")


def returns_array(fitted, X):
    """Numbers that nobody knows how to read."""
    return fitted.predict(X)


def returns_few(fitted, X):
    """Forecasts of other rows than those asked for."""
    return stats.norm(fitted.predict(X)[:2], 1.0)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"estimator": "ridge"}, TypeError, "`estimator` must have a method `fit`"),
        ({"forecast": None}, TypeError, "`forecast` must be a function .* a LinearReg"),
        (
            {"forecast": "normal"},
            TypeError,
            "`forecast` must be callable, got 'normal'",
        ),
        (
            {"level_name": "alpha"},
            TypeError,
            "`forecast` must be None where `level_name`",
        ),
        (
            {"forecast": None, "level_name": "alpha"},
            ValueError,
            "`levels` must be given with `level_name`",
        ),
        (
            {"forecast": None, "level_name": "alpha", "levels": [0.1, 0.9]},
            ValueError,
            "`level_name` must be a parameter of LinearRegression, got 'alpha'",
        ),
        ({"levels": [0.5]}, ValueError, "`levels` must be two or more"),
        ({"levels": [0.1, 1.5]}, ValueError, r"`levels` must lie in \(0, 1\)"),
        ({"levels": [0.1, 0.9], "bounds": (1.0, 0.0)}, ValueError, "`bounds` must be"),
        (
            {"bounds": (0.0, 1.0)},
            ValueError,
            "`bounds` must be None where there are no",
        ),
        ({"recalibrate": "isotonic"}, ValueError, "`recalibrate` must be None"),
        ({"random_state": -1}, ValueError, "`random_state` must be at least 0"),
        ({"cv": "ten"}, ValueError, "`cv` must be"),
        ({"forecast": returns_array}, TypeError, "`forecast` must return a Predictive"),
        ({"forecast": returns_few}, ValueError, "length of the parameters, 2, got"),
    ],
)
def test_what_is_refused(data, parameters, error, message):
    X, y, _, _ = data
    given = {"estimator": LinearRegression(), "forecast": narrow} | parameters
    with pytest.raises(error, match=message):
        DistributionAdapter(**given).fit(X, y)
