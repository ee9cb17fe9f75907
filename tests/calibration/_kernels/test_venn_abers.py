"""The blocks of one more row against a new isotonic regression for every cell."""

import numpy as np
import pytest

from calibration._kernels.pav import pool_adjacent_violators, pools_with_one_more


def refit_for_every_cell(weight0, weight1):
    """PAV on the cells with one 1 added to cell i, for every i, O(m^2)."""
    m = len(weight0)
    pool0, pool1 = np.empty(m), np.empty(m)
    for i in range(m):
        more = weight1.copy()
        more[i] += 1.0
        starts, block0, block1 = pool_adjacent_violators(weight0, more)
        block = np.searchsorted(starts, i, side="right") - 1
        pool0[i], pool1[i] = block0[block], block1[block]
    return pool0, pool1


def random_cells(rng, m, kind):
    """Cells of one class, of both, of real weights, all zeros, all ones."""
    ones = rng.uniform(size=m) < rng.uniform(0.1, 0.9)
    if kind == "runs":
        ones = np.repeat(ones, 3)[:m]
    if kind == "mixed":
        return rng.integers(0, 3, m) + 0.0 + ~ones, rng.integers(0, 3, m) + 0.0 + ones
    if kind == "one class":
        ones[:] = rng.uniform() < 0.5
    weight = rng.uniform(0.01, 2.0, m) if kind == "real" else np.ones(m)
    return np.where(ones, 0.0, weight), np.where(ones, weight, 0.0)


@pytest.mark.parametrize("kind", ["pure", "runs", "mixed", "real", "one class"])
@pytest.mark.parametrize("m", [1, 2, 3, 8, 20])
def test_rates_are_those_of_a_refit(rng, kind, m):
    for _ in range(20):
        weight0, weight1 = random_cells(rng, m, kind)
        pool0, pool1 = pools_with_one_more(weight0, weight1)
        expected0, expected1 = refit_for_every_cell(weight0, weight1)
        np.testing.assert_allclose(
            pool1 / (pool0 + pool1), expected1 / (expected0 + expected1), rtol=1e-14
        )


def test_sums_are_whole_numbers_where_weights_are(rng):
    weight0, weight1 = random_cells(rng, 300, "mixed")
    pool0, pool1 = pools_with_one_more(weight0, weight1)
    np.testing.assert_array_equal(pool0, np.round(pool0))
    np.testing.assert_array_equal(pool1, np.round(pool1))
    assert (pool1 >= 1.0).all()


def test_real_weights_lose_no_digits_after_many_cells(rng):
    """The last block is as exact behind 300 heavy cells as on its own."""
    weight0, weight1 = random_cells(rng, 30, "real")
    weight1 += 0.5
    heavy = np.full(300, 1e9)
    alone = pools_with_one_more(weight0, weight1)
    behind = pools_with_one_more(
        np.concatenate([heavy, weight0]), np.concatenate([0.0 * heavy, weight1])
    )
    np.testing.assert_array_equal(alone[0], behind[0][300:])
    np.testing.assert_array_equal(alone[1], behind[1][300:])


def test_inputs_are_not_modified(frozen):
    pools_with_one_more(frozen([1.0, 0.0, 2.0]), frozen([0.0, 1.0, 1.0]))
