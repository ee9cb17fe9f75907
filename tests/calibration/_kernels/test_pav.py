"""PAV on cells of 0/1 labels against independent solutions."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from calibration._kernels.pav import always_pooled, pool_adjacent_violators


def max_min_formula(weight0, weight1):
    """Isotonic regression by its closed form, seeds' eq. 6, O(n^3)."""
    m = len(weight0)
    out = np.empty(m)
    for i in range(m):
        best = -np.inf
        for j in range(i + 1):
            worst = np.inf
            for k in range(i, m):
                ones, zeros = weight1[j : k + 1].sum(), weight0[j : k + 1].sum()
                worst = min(worst, ones / (ones + zeros))
            best = max(best, worst)
        out[i] = best
    return out


def expand(starts, block0, block1, m):
    sizes = np.diff(starts, append=m)
    return np.repeat(block1 / (block0 + block1), sizes)


def random_cells(rng, m, kind):
    """Nasty cells: pure labels in runs, ties with both classes, real weights."""
    ones = rng.uniform(size=m) < rng.uniform(0.1, 0.9)
    if kind == "runs":
        ones = np.repeat(ones, 3)[:m]
    if kind == "mixed":
        return rng.integers(0, 3, m) + 0.0 + ~ones, rng.integers(0, 3, m) + 0.0 + ones
    weight = rng.uniform(0.1, 2.0, m) if kind == "real" else np.ones(m)
    return np.where(ones, 0.0, weight), np.where(ones, weight, 0.0)


@pytest.mark.parametrize("kind", ["pure", "runs", "mixed", "real"])
@pytest.mark.parametrize("m", [1, 2, 3, 7, 12])
def test_equals_the_max_min_formula(rng, kind, m):
    for _ in range(20):
        weight0, weight1 = random_cells(rng, m, kind)
        blocks = pool_adjacent_violators(weight0, weight1)
        expected = max_min_formula(weight0, weight1)
        np.testing.assert_allclose(expand(*blocks, m), expected, atol=1e-14)


def test_equals_scipy_on_many_cells(rng):
    weight0, weight1 = random_cells(rng, 2000, "mixed")
    weight = weight0 + weight1
    expected = isotonic_regression(weight1 / weight, weights=weight).x
    blocks = pool_adjacent_violators(weight0, weight1)
    np.testing.assert_allclose(expand(*blocks, 2000), expected, atol=1e-12)


@pytest.mark.parametrize("unit", [2.0**-540, 2.0**-1020, 2.0**40])
def test_knows_no_unit_of_weights(rng, unit):
    """Products of tiny weights underflow, and all would be one block."""
    weight0, weight1 = random_cells(rng, 50, "real")
    starts, block0, block1 = pool_adjacent_violators(weight0, weight1)
    scaled = pool_adjacent_violators(unit * weight0, unit * weight1)
    np.testing.assert_array_equal(scaled[0], starts)
    np.testing.assert_allclose(scaled[1:], unit * np.stack([block0, block1]), 1e-14)


def test_the_least_weights_are_told_apart():
    least = 5e-324
    weight0, weight1 = np.array([least, 0.0, 1.0]), np.array([0.0, least, 1.0])
    starts, _, _ = pool_adjacent_violators(weight0, weight1)
    np.testing.assert_array_equal(starts, [0, 1])


def test_block_means_increase_strictly_and_weights_add_up(rng):
    weight0, weight1 = random_cells(rng, 500, "pure")
    starts, block0, block1 = pool_adjacent_violators(weight0, weight1)
    assert starts[0] == 0
    assert (np.diff(block1 / (block0 + block1)) > 0).all()
    assert block0.sum() == weight0.sum()
    assert block1.sum() == weight1.sum()


def test_equal_neighbours_form_one_block():
    starts, _, _ = pool_adjacent_violators(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    assert starts.tolist() == [0]


@pytest.mark.parametrize("kind", ["pure", "runs", "mixed"])
def test_always_pooled_cells_share_a_block_under_any_reweighting(rng, kind):
    weight0, weight1 = random_cells(rng, 40, kind)
    groups = np.zeros(40, dtype=int)
    groups[always_pooled(weight0, weight1)] = 1
    groups = np.cumsum(groups)
    for _ in range(200):
        new0 = rng.poisson(weight0).astype(float)
        new1 = rng.poisson(weight1).astype(float)
        kept = new0 + new1 > 0
        blocks = pool_adjacent_violators(new0[kept], new1[kept])
        fitted = expand(*blocks, int(kept.sum()))
        for group in np.unique(groups[kept]):
            assert np.ptp(fitted[groups[kept] == group]) < 1e-12


def test_inputs_are_not_modified(frozen):
    weight0, weight1 = frozen([1.0, 0.0, 1.0]), frozen([0.0, 1.0, 0.0])
    pool_adjacent_violators(weight0, weight1)
    assert weight0.tolist() == [1.0, 0.0, 1.0]
