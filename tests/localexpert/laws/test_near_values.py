"""Near values: what differs by rounding only is one value, and nothing else is."""

import numpy as np
import pytest

from localexpert import DiscreteLaw, MixedLaw, PredictiveDistribution
from localexpert.laws.join_laws import jump_values, pool_laws
from localexpert.laws.near_values import merge_near_values, near_runs
from tests.localexpert.laws.test_recalibrated import spline_law

THIRD = 0.1 + 0.2  # one float above .3


def test_cumulated_sums_are_the_numbers_they_stand_for():
    tenths = np.arange(1, 1001) / 10
    sums = np.cumsum(np.full(1000, 0.1))
    assert len(np.union1d(sums, tenths)) > 1900
    y = np.concatenate([tenths, tenths, sums])
    merged = merge_near_values(y, np.ones(3000))
    np.testing.assert_array_equal(np.unique(merged), tenths)
    np.testing.assert_array_equal(merged[2000:], tenths)


def test_the_heaviest_stays_and_rows_without_weight_move_nothing():
    y = np.array([0.3, THIRD, 0.7])
    np.testing.assert_array_equal(
        merge_near_values(y, np.array([1.0, 2.0, 1.0])), [THIRD, THIRD, 0.7]
    )
    assert merge_near_values(y, np.array([1.0, 0.0, 1.0])) is y


@pytest.mark.parametrize(
    ("values", "n_runs"),
    [
        ([0.3, THIRD], 1),
        ([0.0, 0.1 + 0.2 - 0.3, 0.1, 0.2], 3),
        ([-THIRD, -0.3, 0.1], 2),
        ([0.1, 0.2, 0.3, 1e12], 4),
        ([1.0, 2.0, 9.97e36], 3),
        ([1e-300, 2e-300, 3e-300], 3),
        (1e15 + np.arange(60) / 8, 60),
        (1e9 + np.arange(50) * 1e-3, 50),
        (1e9 + np.append(np.arange(50) * 5e-4, 1e36), 51),
        ([7.0], 1),
        ([], 0),
    ],
)
def test_only_rounding_is_near(values, n_runs):
    assert len(np.unique(near_runs(np.asarray(values)))) == n_runs


def test_a_discrete_law_knows_its_values_in_spite_of_rounding():
    law = DiscreteLaw([0.1, THIRD, 0.5], [[0.2, 0.5, 0.3]])
    dist = PredictiveDistribution(law)
    for y in (0.3, THIRD, np.nextafter(THIRD, 1.0)):
        assert dist.cdf(y)[0] == pytest.approx(0.7)
        assert dist.sf(y)[0] == pytest.approx(0.3)
        assert law.cdf_left(np.array([[y]]))[0, 0] == pytest.approx(0.2)
        assert dist.pdf(y)[0] == pytest.approx(0.5 / 0.2)
        assert dist.crps(y)[0] == pytest.approx(dist.crps(0.3)[0], abs=1e-12)
    assert dist.cdf(0.3 - 1e-9)[0] == pytest.approx(0.2)


def test_values_one_float_apart_have_cells_of_their_own():
    values = np.array([0.3, THIRD, 0.7])
    law = DiscreteLaw(values, [[0.2, 0.5, 0.3]])
    at = values[None, :]
    np.testing.assert_allclose(law.cdf(at), [[0.2, 0.7, 1.0]])
    np.testing.assert_allclose(law.cdf_left(at), [[0.0, 0.2, 0.7]], atol=1e-12)
    np.testing.assert_allclose(law.pdf(at) * law.widths, law.probabilities)


def test_a_mixed_law_knows_its_atoms_in_spite_of_rounding():
    law = MixedLaw([THIRD], np.full((4, 1), 0.4), spline_law("gaussian"), [0.01])
    near, on = np.full((4, 1), 0.3), np.full((4, 1), THIRD)
    for method in ("cdf", "cdf_left", "sf", "logpdf"):
        got, want = getattr(law, method)(near), getattr(law, method)(on)
        np.testing.assert_allclose(got, want, atol=1e-9)
    np.testing.assert_allclose(law.logpdf(near), np.log(0.4 / 0.01))
    off = law.logpdf(near - 1e-6)
    assert (off < 1.0).all()


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_near_values_of_two_laws_are_pooled_as_one(kind):
    rows = [[0.2, 0.5, 0.3]]
    laws = [DiscreteLaw([0.1, v, 0.5], rows) for v in (0.3, THIRD)]
    np.testing.assert_array_equal(jump_values(laws), [0.1, 0.3, 0.5])
    pool = pool_laws(laws, [0.5, 0.5], kind)
    np.testing.assert_array_equal(pool.values, [0.1, 0.3, 0.5])
    np.testing.assert_allclose(pool.probabilities, rows)


def test_near_atoms_of_two_laws_are_pooled_as_one():
    masses, smooth = np.full((4, 1), 0.4), spline_law("gaussian")
    laws = [MixedLaw([v], masses, smooth, [0.01]) for v in (0.3, THIRD)]
    pool = pool_laws(laws, [0.5, 0.5], "linear")
    np.testing.assert_array_equal(pool.atoms, [0.3])
    np.testing.assert_allclose(pool.masses, masses)
    np.testing.assert_array_equal(pool.widths, [0.01])
