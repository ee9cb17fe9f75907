"""Fits on tables, targets and weights of all kinds: sound, or refused by name."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from calibration import PlattCalibrator
from localexpert import JointForest, LocalExpertRegressor, SharedBoosting
from localexpert.metrics import crps_score, pit_test
from tests.fuzz.cases import pick
from tests.fuzz.refusals import answer_or_refusal, named_in
from tests.fuzz.tables import (
    as_floats,
    draw_table,
    draw_target,
    draw_weight,
    is_plain,
    take,
)

SHARE = 0.15
pytestmark = pytest.mark.slow

# What a refusal may be about: nothing that was not given.
GIVEN = ("X", "y", "sample_weight", "bounds")
# Scaled, for of columns of size 1e8 or 1e60 least squares make rounding.
SCALED_RIDGE = make_pipeline(StandardScaler(), Ridge(solver="svd"))
LEVELS = [0.01, 0.1, 0.5, 0.9, 0.99]


def draw_model(rng, X, bounds):
    """Return a regressor that is quick, whatever its strategy."""
    plain = is_plain(X)
    shared = SharedBoosting(max_rounds=4, min_rows_in_leaf=3, random_state=0)
    forest = JointForest(n_estimators=4, random_state=0)
    expert, strategy = pick(rng, (None, shared), (None, forest), (None, forest))
    if plain and rng.uniform() < 0.3:
        experts = (
            LogisticRegression(),
            BernoulliNB(),
            DecisionTreeClassifier(max_depth=2),
        )
        expert, strategy = pick(rng, *experts), "independent"
    return LocalExpertRegressor(
        expert,
        strategy=strategy,
        n_thresholds=int(rng.integers(1, 6)),
        thresholds=pick(rng, "quantile", "uniform"),
        frame=pick(rng, None, "center", "standardize"),
        center=SCALED_RIDGE if plain else DummyRegressor(),
        calibrator=pick(rng, "auto", "isotonic", None, PlattCalibrator()),
        cv=int(rng.integers(2, 4)),
        smoothing=pick(rng, 0.1, 10.0, "pchip", "smoothing_spline", "auto"),
        recalibrate=pick(rng, None, None, "pit"),
        stacker=pick(rng, None, None, None, SCALED_RIDGE),
        bounds=bounds,
        n_jobs=1,
        random_state=0,
    )


def fit(model, X, y, weight):
    """Return the model fitted, or the error with which it refuses its input."""
    return answer_or_refusal(lambda: copy.deepcopy(model).fit(X, y, weight))


def test_fit(seed):
    rng = np.random.default_rng(seed)
    # Conformal recalibration needs a hundred rows.
    n = 110 if seed % 20 == 0 else int(rng.integers(12, 61))
    X = draw_table(rng, n)
    y, bounds = draw_target(rng, rng.normal(size=n))
    weight = draw_weight(rng, n)
    model = draw_model(rng, X, bounds)
    if n > 100 and weight is None:
        model.set_params(recalibrate="conformal")
    fitted = fit(model, X, y, weight)
    if isinstance(fitted, Exception):
        assert named_in(fitted) in GIVEN
        return
    dist = fitted.predict_dist(X)
    seen = np.ones(n, dtype=bool) if weight is None else weight > 0.0
    check_forecasts(dist, y, bounds, seen)
    rows = fitted.fitted_rows_
    check_forecasts(fitted.oof_distribution_, y[rows], bounds, seen[rows])
    check_rows(fitted, X, rng.permutation(n))
    assert_same(pickle.loads(pickle.dumps(fitted)).predict_dist(X), dist)
    # Again, and numbers in columns of another type.
    for twin in [X] if is_plain(X) else [X, as_floats(X)]:
        again = fit(model, twin, y, weight)
        assert_same(again.predict_dist(twin), dist)


def check_forecasts(dist, y, bounds, seen):
    """What is said of every row is finite, in range and in order."""
    quantiles = dist.quantiles(LEVELS)
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles, axis=1) >= 0.0).all()
    low, high = bounds or (None, None)
    draws = dist.rvs(3, 0)
    for values in (quantiles, dist.mean()[:, None], draws.T, dist.mode()[:, None]):
        assert np.isfinite(values).all()
        assert low is None or (values >= low).all()
        assert high is None or (values <= high).all()
    assert (dist.std() >= 0.0).all()
    cdf, sf, crps = dist.cdf(y), dist.sf(y), dist.crps(y)
    assert ((cdf >= 0.0) & (cdf <= 1.0)).all()
    assert_allclose(cdf + sf, 1.0, atol=1e-9)
    assert np.isfinite(crps).all()
    assert (crps >= 0.0).all()
    assert np.isfinite(dist.log_score(y)[seen]).all()
    assert np.isfinite(dist.entropy()).all()
    pit = dist.pit(y, 0)
    assert ((pit >= 0.0) & (pit <= 1.0)).all()
    assert np.isfinite(crps_score(y, dist))
    assert np.isfinite(pit_test(y, dist)).all()


def assert_same(one, other):
    """Compare two forecasts bit for bit."""
    assert_array_equal(one.quantiles(LEVELS), other.quantiles(LEVELS))
    assert_array_equal(one.mean(), other.mean())


def check_rows(model, X, order):
    """A row is forecast the same in any order, and alone."""
    whole = model.predict_dist(X).quantiles(LEVELS)
    other = model.predict_dist(take(X, order)).quantiles(LEVELS)
    assert_allclose(other, whole[order], rtol=1e-9, atol=1e-9 * np.abs(whole).max())
    single = model.predict_dist(take(X, order[:1])).quantiles(LEVELS)
    assert_allclose(single, other[:1], rtol=1e-9, atol=1e-9 * np.abs(whole).max())
