"""Climatology: the training target as a forecast, against brute force."""

from types import SimpleNamespace

import numpy as np
import pytest

from localexpert.metrics import crps_score, log_score
from localexpert.reporting.climatology import Climatology
from tests.forecasts import beside, normal


def model_of(target, **forecaster):
    """What a fitted regressor says about its target."""
    return SimpleNamespace(
        report_=SimpleNamespace(target=target),
        forecaster_=SimpleNamespace(**forecaster),
        bounds_=forecaster.get("bounds"),
    )


def sample_crps(y, sample):
    spread = np.abs(sample[:, None] - sample).mean() / 2
    return np.abs(y[:, None] - sample).mean() - spread


@pytest.mark.parametrize("n", [500, 5000])
def test_continuous(rng, n):
    sample, y = rng.gamma(3.0, size=n), rng.gamma(3.0, size=200)
    climate = Climatology.of(model_of("continuous"), sample, None)
    assert len(climate.values) <= 4000
    assert climate.weights.sum() == pytest.approx(n)
    got = crps_score(y, climate.dist(200))
    assert got == pytest.approx(sample_crps(y, sample), rel=0.01)


def test_discrete_with_weights(rng):
    sample = rng.integers(4, size=600).astype(float)
    weight = rng.integers(3, size=600).astype(float)
    model = model_of("discrete", bounds=(-np.inf, np.inf))
    climate = Climatology.of(model, sample, weight)
    y = np.arange(4.0)
    want = sample_crps(y, np.repeat(sample, weight.astype(int)))
    assert crps_score(y, climate.dist(4)) == pytest.approx(want, abs=1e-12)


def test_a_discrete_target_may_take_new_values():
    sample = np.repeat([0.0, 1.0, 2.0, 4.0], [60, 30, 8, 1])
    model = model_of("discrete", bounds=(-np.inf, 6.0))
    dist = Climatology.of(model, sample, None).dist(3)
    np.testing.assert_array_equal(dist.atoms, np.arange(7.0))
    assert np.isfinite(dist.log_score([3.0, 5.0, 6.0])).all()


@pytest.mark.parametrize("n", [600, 9000])
def test_mixed(rng, n):
    sample = np.where(rng.uniform(size=n) < 0.4, 0.0, rng.gamma(3.0, size=n))
    law = beside(normal([2.5], 2.5), [0.0], [[0.4]], [0.1]).law
    model = model_of("mixed", oof_law_=law)
    climate = Climatology.of(model, sample, None)
    dist = climate.dist(100)
    share = (sample == 0).mean()
    assert dist.cdf(0.0)[0] == pytest.approx(share, abs=0.02)
    y = sample[:100]
    assert crps_score(y, dist) == pytest.approx(sample_crps(y, sample), rel=0.02)
    got = log_score(np.zeros(100), dist)
    assert got == pytest.approx(-np.log(share / 0.1), abs=1e-6)


def test_a_constant_target():
    climate = Climatology.of(SimpleNamespace(), np.full(5, 2.0), None)
    assert crps_score([2.0, 3.0], climate.dist(2)) == 0.5
