"""Pools as one curve a row, beside the exact pool."""

import numpy as np
import pytest

from localexpert.laws.pooled_curve import SCORES, curve_of, pool_curves
from localexpert.laws.pooled_law import PooledLaw
from localexpert.laws.quantile_law import QuantileLaw
from localexpert.laws.transformed import TransformedLaw
from localexpert.laws.value_map import ValueMap


def normal(mean, sd):
    return QuantileLaw.through([-1.0, 1.0], np.column_stack([mean - sd, mean + sd]))


@pytest.fixture
def laws(rng):
    return [normal(rng.normal(size=20), rng.uniform(0.3, 2.0, size=20)) for _ in "abc"]


WEIGHTS = np.array([0.2, 0.5, 0.3])


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_agrees_with_the_exact_pool(kind, laws, rng):
    curve, exact = pool_curves(laws, WEIGHTS, kind), PooledLaw(laws, WEIGHTS, kind)
    y = rng.normal(0.0, 2.0, size=(20, 5))
    np.testing.assert_allclose(curve.cdf(y), exact.cdf(y), atol=3e-3)
    np.testing.assert_allclose(curve.crps(y), exact.crps(y), rtol=3e-3)
    np.testing.assert_allclose(curve.moments()[:, 1], exact.moments()[:, 1], rtol=2e-2)


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_rows_have_weights_of_their_own(kind, laws):
    rows = np.eye(3)[np.arange(20) % 3]
    pooled = pool_curves(laws, rows, kind)
    for i in range(20):
        one = curve_of(laws[i % 3])
        np.testing.assert_allclose(pooled.values[i], one.values[i], atol=1e-6)


def test_equal_laws_are_their_pool(laws):
    for kind in ("linear", "probit"):
        same = pool_curves([laws[0], laws[0]], [0.4, 0.6], kind)
        np.testing.assert_allclose(same.values, curve_of(laws[0]).values, atol=1e-9)


def test_curves_keep_quantiles_and_densities(laws):
    curve = curve_of(laws[0])
    at = np.tile(SCORES, (20, 1))
    np.testing.assert_allclose(curve.values, laws[0].ppf_scores(at))
    y = curve.values[:, 10:30]
    np.testing.assert_allclose(curve.logpdf(y), laws[0].logpdf(y), atol=1e-6)


def test_far_apart_laws_leave_a_gap_without_density():
    low, high = (
        normal(np.zeros(1), np.full(1, 0.1)),
        normal(np.full(1, 50.0), np.ones(1)),
    )
    pooled = pool_curves([low, high], [0.5, 0.5], "linear")
    assert pooled.cdf(np.array([[20.0]]))[0, 0] == pytest.approx(0.5, abs=0.02)
    assert pooled.moments()[0, 0] == pytest.approx(25.0, rel=0.03)


def test_bounds_are_those_of_all():
    low = QuantileLaw.through([-1.0, 1.0], [[1.0, 2.0]], (0.0, np.inf))
    high = QuantileLaw.through([-1.0, 1.0], [[2.0, 5.0]], (1.0, 9.0))
    for kind in ("linear", "probit"):
        pooled = pool_curves([low, high], [0.5, 0.5], kind)
        assert pooled.support == (0.0, np.inf)
        assert pooled.cdf(np.zeros((1, 1)))[0, 0] == 0.0


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_a_member_with_a_wild_tail_leaves_the_middle_alone(kind):
    """Of steps that tell quantiles apart none is as wide as the tail asks for."""
    log = normal(np.array([8.0]), np.array([5.0]))
    wild = TransformedLaw(log, ValueMap(np.exp, np.log, np.exp))
    laws = [wild, normal(np.array([3000.0]), np.array([500.0]))]
    curve, exact = (
        pool_curves(laws, [0.3, 0.7], kind),
        PooledLaw(laws, [0.3, 0.7], kind),
    )
    y = np.array([[10.0, 1000.0, 3000.0, 4000.0, 1e5]])
    np.testing.assert_allclose(curve.cdf(y), exact.cdf(y), atol=3e-3)
