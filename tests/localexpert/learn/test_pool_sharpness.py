"""Pools of calibrated forecasts that differ are too wide, and by how much."""

import numpy as np
import pytest
from scipy.stats import norm, poisson

from localexpert.law.join import pool_laws
from localexpert.law.level_map import LevelMap, map_levels
from localexpert.learn.pool import learn_sharpness
from tests import forecasts
from tests.forecasts import beside, of_values

N = 4000


def normal(mean, sd):
    return forecasts.normal(mean, sd).law


def even(_sharpness):
    """Return a CRPS that does not matter."""
    return 1.0


@pytest.fixture
def halves(rng):
    """The sum of two and noise, by those who know one: both are calibrated."""
    a, b = rng.normal(size=(2, N))
    y = a + b + rng.normal(size=N)
    sd = np.full(N, np.sqrt(2.0))
    return [normal(a, sd), normal(b, sd)], y


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_halves_of_the_truth(kind, halves):
    laws, y = halves

    def crps(k):
        return float(pool_laws(laws, [0.5, 0.5], kind, k).crps(y[:, None]).mean())

    pool = pool_laws(laws, [0.5, 0.5], kind)
    k = learn_sharpness(pool, y, np.ones(N), crps)
    assert k > 1.1
    assert crps(k) < crps(1.0)
    u = pool.cdf(y[:, None])
    sharp = pool_laws(laws, [0.5, 0.5], kind, k)
    v = sharp.cdf(y[:, None])
    assert abs(np.mean((v > 0.05) & (v < 0.95)) - 0.9) < 0.02
    assert np.mean((u > 0.05) & (u < 0.95)) > 0.92
    np.testing.assert_allclose(v, norm.cdf(k * norm.ppf(u)), atol=2e-3)


def test_a_calibrated_pool_is_left_as_it_is(rng):
    mean = rng.normal(size=N)
    law = normal(mean, np.ones(N))
    y = mean + rng.normal(size=N)
    k = learn_sharpness(law, y, np.ones(N), even)
    assert 1.0 <= k < 1.03
    wide = normal(mean, np.full(N, 2.0))
    assert learn_sharpness(wide, y, np.ones(N), even) == pytest.approx(1.5, abs=1e-3)
    # Few rows say little.
    few = learn_sharpness(wide.take(slice(0, 10)), y[:10], np.ones(10), even)
    assert few < 1.1


def test_rows_without_weight_say_nothing(rng):
    law = normal(np.zeros(200), np.full(200, 1.2))
    y = rng.normal(size=200)
    weight = np.repeat([1.0, 0.0], 100)
    other = np.where(weight > 0.0, y, 50.0)
    found = [learn_sharpness(law, t, weight, even) for t in (y, other)]
    assert found[0] == found[1]


def test_counts(rng):
    mean = rng.uniform(1.0, 6.0, size=N)
    y = rng.poisson(mean).astype(float)
    values = np.arange(25.0)
    masses = poisson.pmf(values, mean[:, None])
    true = of_values(values, masses / masses.sum(axis=1, keepdims=True)).law
    assert learn_sharpness(true, y, np.ones(N), even) < 1.03
    wide = map_levels(true, LevelMap.line(0.0, 1.0 / 1.15))
    k = learn_sharpness(wide, y, np.ones(N), even)
    assert k == pytest.approx(1.15, abs=0.04)
    back = map_levels(wide, LevelMap.line(0.0, 1.15))
    np.testing.assert_allclose(back.masses, true.masses, atol=1e-9)
    # The greatest value has all that is left, however sharp.
    np.testing.assert_allclose(back.masses.sum(axis=1), 1.0)


def test_atoms_beside_a_smooth_rest(rng):
    mean = rng.normal(size=N)
    share = rng.uniform(0.2, 0.5, N)
    y = np.where(rng.uniform(size=N) < share, 0.0, mean + rng.normal(size=N))
    true = beside(forecasts.normal(mean), [0.0], share[:, None], [0.1]).law
    assert learn_sharpness(true, y, np.ones(N), even) < 1.03
    wide = map_levels(true, LevelMap.line(0.0, 1.0 / 1.2))
    k = learn_sharpness(wide, y, np.ones(N), even)
    assert k == pytest.approx(1.2, abs=0.04)
    back = map_levels(wide, LevelMap.line(0.0, 1.2))
    np.testing.assert_allclose(back.masses, true.masses, atol=1e-3)
    at = np.tile([0.5, 1.5], (N, 1))
    np.testing.assert_allclose(back.cdf(at), true.cdf(at), atol=2e-3)
