"""What forecasts once said wrongly, each as a test of what is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit

from calibration.exceptions import CalibrationWarning
from localexpert import (
    ConformalRecalibration,
    FrameRoad,
    LocalExpertRegressor,
    PredictiveDistribution,
    Transformed,
)

Floats = NDArray[np.float64]

# The fraction of a lognormal target that is exactly 0.
ZEROS = 0.005


def _forecast(
    X: Floats, y: Floats, new: Floats, **parameters: Any
) -> PredictiveDistribution:
    model = LocalExpertRegressor(random_state=0, n_jobs=1, **parameters)
    return model.fit(X, y).predict_dist(new)


# a. Log scores that are infinite by default.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "some"),
    [
        pytest.param(2, True, id="met in training"),
        pytest.param(
            1,
            False,
            id="not met in training",
        ),
    ],
)
def test_zeros_of_a_lognormal_target_have_a_log_score(seed: int, some: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 2))
    y = np.exp(0.8 * X[:, 0] + 1.5 * rng.normal(size=300))
    y[rng.uniform(size=300) < ZEROS] = 0.0
    # Whether a rare zero is among 300 rows is chance, but none is impossible.
    assert (y == 0.0).any() == some
    dist = _forecast(X, y, rng.normal(size=(200, 2)))
    assert np.isfinite(dist.logpdf(0.0)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("center", "seed", "some"),
    [
        pytest.param(0.0, 0, True, id="symmetric"),
        pytest.param(
            -2.5,
            0,
            False,
            id="skewed, no 0 met in training",
        ),
    ],
)
def test_ends_of_a_share_have_a_log_score(center: float, seed: int, some: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 2))
    y = expit(center + X[:, 0] + rng.normal(size=300))
    if some:
        y[:2], y[2:4] = 0.0, 1.0
    dist = _forecast(X, y, rng.normal(size=(200, 2)))
    assert np.isfinite(dist.logpdf(0.0)).all()
    assert np.isfinite(dist.logpdf(1.0)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "mean"),
    [
        pytest.param(
            1200,
            10.0,
            id="20 rows a value",
        ),
        pytest.param(400, 100.0, id="few rows a value"),
    ],
)
def test_counts_far_above_all_met_have_a_log_score(n: int, mean: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    mu = mean * np.exp(0.3 * X[:, 0])
    y = rng.negative_binomial(1.5, 1.5 / (1.5 + mu)).astype(np.float64)
    assert len(np.unique(y)) > 50
    dist = _forecast(X, y, rng.normal(size=(100, 2)))
    assert np.isfinite(dist.logpdf(2.0 * y.max())).all()


def test_temperatures_below_all_met_have_a_log_score() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = 15.0 + 2.4 * X[:, 0] + 3.2 * rng.normal(size=400)
    assert 0.0 < y.min() < 2.0
    dist = _forecast(X, y, rng.normal(size=(40, 2)))
    assert np.isfinite(dist.logpdf(-1.0)).all()


# b. A transform that folds what lies below its range.


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_a_square_root_near_zero_gives_distributions(scale: float) -> None:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(300, 2)), rng.normal(size=(50, 2))
    y = rng.gamma(0.6, scale * np.exp(0.5 * X[:, 0]))
    outcomes = rng.gamma(0.6, scale * np.exp(0.5 * new[:, 0]))
    road = Transformed(FrameRoad(), np.sqrt, np.square)
    dist = _forecast(X, y, new, roads=road, bounds=None)
    assert ((dist.mean() > y.min()) & (dist.mean() < y.max())).all()
    np.testing.assert_allclose(dist.cdf(1e12), 1.0, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(dist.sf(1e12), 0.0, rtol=0.0, atol=1e-9)
    quantiles = dist.quantiles([1e-12, 1e-6, 0.01, 0.5, 0.99, 1.0 - 1e-6])
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles) > -1e-9).all()
    assert (dist.ppf(0.0) <= quantiles[:, 0] + 1e-9).all()
    draws = np.sort(dist.rvs(4000, random_state=1), axis=0)
    ranks = 2.0 * np.arange(1, 4001)[:, None] - 4001.0
    spread = (draws * ranks).sum(axis=0) / 4000**2
    crps = np.abs(draws - outcomes).mean(axis=0) - spread
    assert dist.crps(outcomes).mean() == pytest.approx(crps.mean(), rel=0.05)


# c. A guarantee that does not hold where forecasts are far too narrow.


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_bound_holds_for_forecasts_that_are_far_too_narrow(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = 1000, 20_000
    narrow = PredictiveDistribution.from_scipy(stats.norm(0.0, 0.1), m)
    with pytest.warns(CalibrationWarning, match="too narrow by far"):
        learned = ConformalRecalibration(random_state=0).fit(narrow, rng.normal(size=m))
    levels = np.array([0.05, 0.5, 0.95])
    quantiles = learned.apply(narrow[:1]).quantiles(levels)[0]
    shares = (rng.normal(size=(n, 1)) <= quantiles).mean(axis=0)
    # Both the rows of the calibration and the new ones are a sample.
    errors = np.sqrt(levels * (1.0 - levels) * (1.0 / m + 1.0 / n))
    assert (np.abs(shares - levels) <= learned.bound_ + 3.0 * errors).all()


# d. Transforms of transforms.

SQRT = (np.sqrt, np.square)
LOG = (np.log1p, np.expm1)
ARCSINH = (np.arcsinh, np.sinh)
Pair = tuple[Callable[..., Any], Callable[..., Any]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        pytest.param(LOG, SQRT, id="root of log"),
        pytest.param(SQRT, LOG, id="log of root"),
        pytest.param(LOG, LOG, id="log of log"),
        pytest.param(LOG, ARCSINH, id="arcsinh of log"),
    ],
)
def test_nested_transforms_have_moments(outer: Pair, inner: Pair) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.exp(0.5 * X[:, 0] + 0.6 * rng.normal(size=300))
    road = Transformed(Transformed(FrameRoad(), *inner), *outer)
    dist = _forecast(X, y, X[:100], roads=road)
    assert np.isfinite(dist.mean()).all()
    assert ((dist.mean() > 0.0) & (dist.mean() < y.max())).all()
    assert np.isfinite(dist.std()).all()
    assert np.isfinite(dist.crps(y[:100])).all()


# e. Targets of which floats tell little.


def test_a_target_of_few_digits_is_fitted_or_refused_by_name() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = 2.0**60 + 1000.0 * (X[:, 0] + rng.normal(size=300))
    told = ""
    try:
        dist = _forecast(X, y, X[:5])
    except ValueError as error:
        told = str(error)
    if told:
        assert "`y`" in told
    else:
        assert ((dist.mean() >= y.min()) & (dist.mean() <= y.max())).all()
        assert ((dist.std() > 100.0) & (dist.std() < 1e4)).all()


# f. Moments that do not exist, and are told all the same.


def test_the_cauchy_law_has_no_kurtosis_and_no_shortfall() -> None:
    dist = PredictiveDistribution.from_scipy(stats.cauchy([0.0, 1.0]))
    assert not np.isfinite(dist.kurtosis()).any()
    assert not np.isfinite(dist.expected_shortfall(0.9)).any()
