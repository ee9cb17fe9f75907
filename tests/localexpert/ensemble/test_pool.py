"""Pools of distributions at hand, against formulas and the ensemble's own weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from localexpert import PredictiveDistribution, crps_score
from localexpert.ensemble import pool, pool_weights
from tests.forecasts import of_values

from_scipy = PredictiveDistribution.from_scipy


@pytest.fixture
def dists(rng):
    center = rng.normal(size=300)
    normal = from_scipy(stats.norm(center, 1.0))
    levels = np.arange(1, 10) / 10
    rows = stats.norm(center + 0.5, 2.0).ppf(levels[:, None]).T
    return [normal, PredictiveDistribution.from_quantiles(rows, levels)], center


def test_linear_pools_are_mixtures(dists, rng):
    (a, b), _ = dists
    y = rng.normal(size=300)
    assert_allclose(pool([a, b]).cdf(y), 0.5 * a.cdf(y) + 0.5 * b.cdf(y), atol=1e-5)
    w = rng.uniform(size=300)
    own = pool([a, b], np.column_stack([w, 1.0 - w]))
    assert_allclose(own.pdf(y), w * a.pdf(y) + (1.0 - w) * b.pdf(y), rtol=5e-3)
    zero = of_values([0.0, 1.0], np.tile([0.7, 0.3], (300, 1)))
    both = pool([a, zero], [0.5, 0.5])
    assert_allclose(both.pmf(0.0), 0.35, atol=1e-9)
    assert_allclose(both.mean(), 0.5 * a.mean() + 0.15, atol=1e-9)


def test_probit_pools_of_normal_laws_are_normal(dists, rng):
    (a, b), center = dists
    y = rng.normal(size=300)
    # z = (y - c) / 2 + (y - c - .5) / 4, so its spread is 4 / 3.
    want = stats.norm(center + 1.0 / 6.0, 4.0 / 3.0)
    got = pool([a, b], kind="probit")
    assert_allclose(got.cdf(y), want.cdf(y), rtol=1e-6)
    assert_allclose(got.crps(y), from_scipy(want).crps(y), rtol=1e-4)


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_weights_are_those_of_least_crps(dists, kind, rng):
    pair, center = dists
    y = rng.normal(center, 1.5)
    weights = pool_weights(pair, y, kind=kind)
    assert weights.sum() == pytest.approx(1.0)
    grid = np.linspace(0.0, 1.0, 21)
    losses = [crps_score(y, pool(pair, [w, 1.0 - w], kind=kind)) for w in grid]
    assert crps_score(y, pool(pair, weights, kind=kind)) < min(losses) * 1.002
    groups, weight = np.repeat(np.arange(30), 10), np.repeat([1.0, 0.0], 150)
    held = pool_weights([d[:150] for d in pair], y[:150], kind=kind)
    some = pool_weights(pair, y, kind=kind, sample_weight=weight, groups=groups)
    assert_allclose(some, held, atol=0.1)


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_some_of_many_rows_say_as_much(kind, rng):
    y = rng.normal(size=6000)
    pair = [from_scipy(stats.norm(0.0, s), 6000) for s in (0.4, 2.0)]
    groups = np.arange(6000) // 3
    found = pool_weights(pair, y, kind=kind, groups=groups)
    few = pool_weights([d[:2000] for d in pair], y[:2000], kind=kind)
    assert_allclose(found, few, atol=0.1)


def test_what_is_refused(dists):
    (a, b), _ = dists
    zero = of_values([0.0, 1.0], np.tile([0.7, 0.3], (300, 1)))
    for given, weights, kind, message in (
        (a, None, "linear", "`dists` must be a list of distributions"),
        ([a, "b"], None, "linear", "`dists` must be a PredictiveDistribution, got"),
        ([], None, "linear", "`dists` must hold at least one"),
        ([a, b[:10]], None, "linear", "`dists` must be as long as the first of"),
        ([a, b], [0.2, 0.8, 0.0], "linear", "for each distribution, got shape"),
        ([a, b], [0.6, 0.6], "linear", r"must sum to 1 in every row, got 1.2"),
        ([a, b], [-0.5, 1.5], "linear", "`weights` must lie in"),
        ([a, b], None, "harmonic", "`kind` must be one of 'linear', 'probit'"),
        ([a, zero], None, "probit", '`kind` must be "linear" for laws with values'),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            pool(given, weights, kind=kind)
    with pytest.raises(ValueError, match="`y` must be as long as"):
        pool_weights([a, b], np.zeros(5))
