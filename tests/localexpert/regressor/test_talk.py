"""The talk's method end to end: thresholds on y, boosted experts, isotonic maps."""

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.model_selection import KFold

from calibration import BaggedIsotonicCalibrator, IsotonicCalibrator
from localexpert import LocalExpertRegressor

FOLDS = KFold(4, shuffle=True, random_state=0)
# Rounds enough for experts that are far too sure of themselves.
EXPERT = LGBMClassifier(
    n_estimators=40,
    learning_rate=0.3,
    num_leaves=7,
    min_child_samples=5,
    num_threads=1,
    verbose=-1,
)
CALIBRATORS = {"raw": None, "isotonic": "isotonic", "bagged": "bagged_isotonic"}
N, N_NEW = 300, 60


@pytest.fixture(scope="module")
def data():
    """Prices: positive, skewed, their spread growing with their level."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N + N_NEW, 3))
    noise = (0.1 + 0.3 * X[:, 1]) * rng.normal(size=N + N_NEW)
    return X, 100.0 * np.exp(1.5 * X[:, 0] + noise)


# A fitted model keeps odds to one part in 3000.
ROUNDED = {"rtol": 1e-3 / 3.0, "atol": 0.0}


@pytest.fixture(scope="module")
def models(data):
    X, y = data
    return {
        name: LocalExpertRegressor(
            expert=EXPERT,
            frame=None,
            n_thresholds=11,
            thresholds="quantile",
            strategy="independent",
            calibrator=calibrator,
            smoothing="smoothing_spline",
            bounds=(0.0, np.inf),
            cv=FOLDS,
            random_state=0,
        ).fit(X[:N], y[:N])
        for name, calibrator in CALIBRATORS.items()
    }


@pytest.fixture(scope="module")
def by_hand(models, data):
    """The experts' probabilities, each row by a classifier of the other folds."""
    X, y = data[0][:N], data[1][:N]
    below = y[:, None] <= models["raw"].thresholds_
    expected = np.empty(below.shape)
    for train, test in FOLDS.split(X):
        for k in range(below.shape[1]):
            EXPERT.fit(X[train], below[train, k])
            expected[test, k] = EXPERT.predict_proba(X[test])[:, 1]
    return expected


@pytest.fixture(scope="module")
def forecasts(models, data):
    return {name: model.predict_dist(data[0][N:]) for name, model in models.items()}


def each(test):
    """Run a test for every calibrator."""
    return pytest.mark.parametrize("name", CALIBRATORS)(test)


def calibrate_by_hand(raw, below, calibrator):
    """Calibrate every fold by a map fitted on the other folds, task by task."""
    out = np.empty_like(raw)
    for k in range(raw.shape[1]):
        for train, test in FOLDS.split(raw):
            calibrator.fit(raw[train, k], below[train, k])
            out[test, k] = calibrator.predict(raw[test, k])
    return out


class TestSteps:
    def test_thresholds_are_equally_probable_values_of_y(self, models, data):
        y = data[1][:N]
        shares = (y[:, None] <= models["raw"].thresholds_).mean(axis=0)
        np.testing.assert_allclose(shares, np.arange(1, 12) / 12, atol=1.0 / N)

    def test_experts_are_classifiers_fitted_out_of_fold(self, models, by_hand):
        np.testing.assert_allclose(models["raw"].oof_probabilities_, by_hand, **ROUNDED)

    def test_isotonic_maps_are_fitted_on_other_folds(self, models, data, by_hand):
        below = data[1][:N, None] <= models["raw"].thresholds_
        expected = calibrate_by_hand(by_hand, below, IsotonicCalibrator())
        got = models["isotonic"].oof_probabilities_
        np.testing.assert_allclose(got, expected, **ROUNDED)

    def test_bagged_maps_average_500_bootstrap_fits(self, models, data, by_hand):
        below = data[1][:N, None] <= models["raw"].thresholds_
        bagged = BaggedIsotonicCalibrator(500, random_state=0)
        expected = calibrate_by_hand(by_hand, below, bagged)
        got = models["bagged"].oof_probabilities_
        np.testing.assert_allclose(got, expected, **ROUNDED)


class TestDistributions:
    @each
    def test_curves_increase_and_follow_the_probabilities(
        self, models, forecasts, name
    ):
        model = models[name]
        at_cuts = model.oof_distribution_.cdf_at(model.thresholds_)
        assert (np.diff(at_cuts) >= 0.0).all()
        assert np.abs(at_cuts - model.oof_probabilities_).mean() < 0.06
        assert (np.diff(forecasts[name].cdf_at(np.linspace(1, 900, 300))) >= 0.0).all()
        assert (forecasts[name].cdf(0.0) == 0.0).all()
