"""Targets: what is far out, and fits that do not hear of it."""

from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeCV

from calibration import CalibrationWarning
from localexpert import LocalExpertRegressor
from localexpert.data.target_values import range_without_outliers, warn_of_outliers

SMALL = {"n_thresholds": 9, "cv": 2, "random_state": 0}
# The nets of the default's centre take most of its time: the others have another.
RIDGE = {"center": RidgeCV()}
KINDS = {
    "default": {},
    "no frame": {"frame": None},
    "shared": {"strategy": "shared", "frame": "center", "stacker": "auto", **RIDGE},
    "independent": {"expert": LogisticRegression(), "frame": "standardize", **RIDGE},
    "many": {"strategy": "shared", "n_thresholds": 99, "frame": None},
}
EVERYTHING = -np.inf, np.inf


def draw(n, seed):
    """Rows of a bent, noisy function."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    return X, 4.0 * X[:, 0] + np.sin(6.0 * X[:, 1]) + 0.4 * rng.normal(size=n)


@cache
def median_error(kind, fill=0.0, n_far=0, weighted=False):
    """The median absolute error of medians, learned with some rows far out."""
    X, y = draw(300, 0)
    y[np.arange(n_far) * 60 + 7] = fill
    weight = 1.0 + np.arange(300) % 3 if weighted else None
    model = LocalExpertRegressor(**{**SMALL, **KINDS[kind]}).fit(X, y, weight)
    X_test, y_test = draw(600, 1)
    dist = model.predict_dist(X_test)
    means = np.median(np.abs(model.predict(X_test) - y_test))
    return np.median(np.abs(dist.median() - y_test)), means


@pytest.mark.filterwarnings("ignore::calibration.CalibrationWarning")
@pytest.mark.parametrize(
    ("kind", "fill", "n_far", "weighted"),
    [
        ("default", 9.97e36, 1, False),
        ("no frame", -9.97e36, 3, True),
        ("shared", -99999.0, 3, False),
        ("independent", 9.97e36, 1, False),
        ("many", -9.97e36, 4, False),
    ],
)
def test_no_forecast_hears_of_rows_far_out(kind, fill, n_far, weighted):
    without = median_error(kind, weighted=weighted)
    found = median_error(kind, fill, n_far, weighted)
    for ours, expected in zip(found, without, strict=True):
        # Rows that are lost, and thresholds moved a little, cost so much at most.
        assert ours < 1.2 * expected


def test_rows_far_out_keep_their_share(rng):
    X, y = rng.uniform(size=(1000, 1)), rng.normal(size=1000)
    y[:15] = 1e12
    model = LocalExpertRegressor(frame=None, n_thresholds=99, cv=2, random_state=0)
    with pytest.warns(CalibrationWarning, match=r"15 of 1000 rows, .* 1e\+12 \(15\)"):
        model.fit(X, y)
    above = model.predict_dist(X).sf(np.full(1000, y[15:].max())).mean()
    assert 0.007 < above < 0.03


@pytest.mark.parametrize("n", [100, 3000])
@pytest.mark.parametrize(
    "sample",
    [
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: np.exp(2.0 * rng.normal(size=n)),
        lambda rng, n: np.exp(4.0 * rng.normal(size=n)),
        lambda rng, n: rng.standard_cauchy(n),
        lambda rng, n: rng.pareto(1.0, size=n),
        lambda rng, n: rng.pareto(0.3, size=n),
        lambda rng, n: rng.negative_binomial(0.2, 0.01, size=n).astype(float),
        lambda rng, n: np.where(rng.uniform(size=n) < 0.9, 0.0, rng.pareto(1, n)),
        lambda rng, n: rng.normal(size=n) * np.where(np.arange(n) % 99, 1.0, 30.0),
        lambda _rng, n: np.ones(n),
    ],
)
def test_heavy_tails_are_ordinary(rng, sample, n):
    for _ in range(100):
        assert range_without_outliers(sample(rng, n), np.ones(n)) == EVERYTHING


def test_what_is_far_depends_on_the_tail(rng):
    weight = np.ones(801)
    for y in (rng.normal(size=800), np.exp(2.0 * rng.normal(size=800))):
        expected = y.min(), y.max()
        for fill in (1e12, -9.97e36):
            assert range_without_outliers(np.append(y, fill), weight) == expected
    y = np.append(np.exp(2.0 * rng.normal(size=800)), -9999.0)
    assert range_without_outliers(y, weight) == EVERYTHING


def test_fill_values_are_pointed_out(rng):
    y, weight = rng.normal(size=400), np.ones(400)
    # Warnings are errors in tests.
    warn_of_outliers(y, weight)
    y[0] = -9999.0
    with pytest.warns(CalibrationWarning, match=r"1 of 400 rows, most often -9999 \(1"):
        warn_of_outliers(y, weight)
    y[:40] = -9999.0
    with pytest.warns(CalibrationWarning, match="40 of 400 .* like any other value"):
        warn_of_outliers(y, weight)
    # A zero beside large values is a value: nothing was claimed, or nothing sold.
    warn_of_outliers(np.where(y == -9999.0, 0.0, 1e4 + y), weight)
