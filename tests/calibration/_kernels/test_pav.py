"""Isotonic regression alone, with one more row, and in bags, against slow truths."""

import numpy as np
import pytest

from calibration._kernels import pav
from calibration._kernels.cells import mix64


def max_min_formula(weight0, weight1):
    """Isotonic regression by its closed form, seeds' eq. 6, O(n^3)."""
    m = len(weight0)

    def rate(j, k):
        return weight1[j:k].sum() / (weight0[j:k] + weight1[j:k]).sum()

    def worst(i, j):
        return min(rate(j, k) for k in range(i + 1, m + 1))

    return [max(worst(i, j) for j in range(i + 1)) for i in range(m)]


def expand(starts, block0, block1, m):
    sizes = np.diff(starts, append=m)
    return np.repeat(block1 / (block0 + block1), sizes)


def random_cells(rng, m, kind):
    """Nasty cells: pure labels in runs, ties with both classes, real weights."""
    ones = rng.uniform(size=m) < rng.uniform(0.1, 0.9)
    if kind == "runs":
        ones = np.repeat(ones, 3)[:m]
    if kind == "one class":
        ones[:] = rng.uniform() < 0.5
    if kind == "mixed":
        return rng.integers(0, 3, m) + 0.0 + ~ones, rng.integers(0, 3, m) + 0.0 + ones
    weight = rng.uniform(0.1, 2.0, m) if kind == "real" else np.ones(m)
    if kind == "counts":
        weight = rng.integers(1, 5, m).astype(float)
    return np.where(ones, 0.0, weight), np.where(ones, weight, 0.0)


@pytest.mark.parametrize("kind", ["pure", "runs", "mixed", "real"])
@pytest.mark.parametrize("m", [1, 2, 3, 7, 12])
def test_equals_the_max_min_formula(rng, kind, m):
    for _ in range(20):
        weight0, weight1 = random_cells(rng, m, kind)
        blocks = pav.pool_adjacent_violators(weight0, weight1)
        expected = max_min_formula(weight0, weight1)
        np.testing.assert_allclose(expand(*blocks, m), expected, atol=1e-14)


@pytest.mark.parametrize("unit", [2.0**-540, 2.0**-1020, 2.0**40])
def test_knows_no_unit_of_weights(rng, unit):
    """Products of tiny weights underflow, and all would be one block."""
    weight0, weight1 = random_cells(rng, 50, "real")
    starts, block0, block1 = pav.pool_adjacent_violators(weight0, weight1)
    scaled = pav.pool_adjacent_violators(unit * weight0, unit * weight1)
    np.testing.assert_array_equal(scaled[0], starts)
    np.testing.assert_allclose(scaled[1:], unit * np.stack([block0, block1]), 1e-14)


def test_the_least_weights_are_told_apart():
    least = 5e-324
    weight0, weight1 = np.array([least, 0.0, 1.0]), np.array([0.0, least, 1.0])
    starts, _, _ = pav.pool_adjacent_violators(weight0, weight1)
    np.testing.assert_array_equal(starts, [0, 1])


@pytest.mark.parametrize("kind", ["pure", "runs", "mixed"])
def test_always_pooled_cells_share_a_block_under_any_reweighting(rng, kind):
    weight0, weight1 = random_cells(rng, 40, kind)
    groups = np.zeros(40, dtype=int)
    groups[pav.always_pooled(weight0, weight1)] = 1
    groups = np.cumsum(groups)
    for _ in range(200):
        new0 = rng.poisson(weight0).astype(float)
        new1 = rng.poisson(weight1).astype(float)
        kept = new0 + new1 > 0
        blocks = pav.pool_adjacent_violators(new0[kept], new1[kept])
        fitted = expand(*blocks, int(kept.sum()))
        for group in np.unique(groups[kept]):
            assert np.ptp(fitted[groups[kept] == group]) < 1e-12


def refit_for_every_cell(weight0, weight1):
    """PAV on the cells with one 1 added to cell i, for every i, O(m^2)."""
    m = len(weight0)
    pool0, pool1 = np.empty(m), np.empty(m)
    for i in range(m):
        more = weight1.copy()
        more[i] += 1.0
        starts, block0, block1 = pav.pool_adjacent_violators(weight0, more)
        block = np.searchsorted(starts, i, side="right") - 1
        pool0[i], pool1[i] = block0[block], block1[block]
    return pool0, pool1


@pytest.mark.parametrize("kind", ["pure", "runs", "mixed", "real", "one class"])
@pytest.mark.parametrize("m", [1, 2, 3, 8, 20])
def test_rates_are_those_of_a_refit(rng, kind, m):
    for _ in range(20):
        weight0, weight1 = random_cells(rng, m, kind)
        pool0, pool1 = pav.pools_with_one_more(weight0, weight1)
        expected0, expected1 = refit_for_every_cell(weight0, weight1)
        np.testing.assert_allclose(
            pool1 / (pool0 + pool1), expected1 / (expected0 + expected1), rtol=1e-14
        )


def test_sums_are_whole_numbers_where_weights_are(rng):
    weight0, weight1 = random_cells(rng, 300, "mixed")
    pool0, pool1 = pav.pools_with_one_more(weight0, weight1)
    np.testing.assert_array_equal(pool0, np.round(pool0))
    np.testing.assert_array_equal(pool1, np.round(pool1))
    assert (pool1 >= 1.0).all()


def test_real_weights_lose_no_digits_after_many_cells(rng):
    """The last block is as exact behind 300 heavy cells as on its own."""
    weight0, weight1 = random_cells(rng, 30, "real")
    weight1 += 0.5
    heavy = np.full(300, 1e9)
    alone = pav.pools_with_one_more(weight0, weight1)
    behind = pav.pools_with_one_more(
        np.concatenate([heavy, weight0]), np.concatenate([0.0 * heavy, weight1])
    )
    np.testing.assert_array_equal(alone[0], behind[0][300:])
    np.testing.assert_array_equal(alone[1], behind[1][300:])


def fit_one_bag(counts0, counts1, low, high):
    """Isotonic regression of a bag; a missed group takes the nearest one's value."""
    held = np.flatnonzero(counts0 + counts1 > 0)
    starts, b0, b1 = pav.pool_adjacent_violators(counts0[held], counts1[held])
    fitted = np.repeat(b1 / (b0 + b1), np.diff(starts, append=len(held)))
    block = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(held)))
    out = np.empty(len(low))
    for g in range(len(low)):
        after = np.searchsorted(held, g)
        if after < len(held) and held[after] == g:
            out[g] = fitted[after]
        elif after == 0:
            out[g] = fitted[0]
        elif after == len(held) or block[after - 1] == block[after]:
            out[g] = fitted[after - 1]
        else:
            middle = 0.5 * (high[held[after - 1]] + low[held[after]])
            centre = 0.5 * (low[g] + high[g])
            out[g] = fitted[after] if centre >= middle else fitted[after - 1]
    return out


def draw_rows(cumulative, n_draws, seed):
    """Count the rows of one bag, searched from the first slot on."""
    counts, guide = np.zeros((1, len(cumulative))), np.zeros(len(cumulative), dtype=int)
    pav._draw_rows(cumulative, guide, n_draws, np.array([seed], np.uint64), counts)
    return counts[0]


@pytest.mark.parametrize("weights", ["rows", "ties", "real"])
def test_sum_of_bags_is_the_sum_of_single_fits(rng, weights):
    m = 30
    low = np.sort(rng.uniform(size=m))
    weight0 = (rng.uniform(size=m) > low).astype(float)
    weight1 = 1.0 - weight0
    if weights == "ties":
        weight0, weight1 = rng.integers(0, 4, (2, m)) + np.eye(2)[[0]].T
    if weights == "real":
        weight0, weight1 = rng.uniform(0.1, 2.0, (2, m))
    seeds = np.arange(7, dtype=np.uint64)
    got = pav.sum_of_bags(weight0, weight1, low, low, 40, seeds)
    slots = np.column_stack([weight0, weight1]).ravel()
    cumulative = np.cumsum(slots)
    expected = np.zeros(m)
    for seed in seeds:
        counts = draw_rows(cumulative, 40, seed)
        assert counts.sum() == 40
        assert not counts[slots == 0].any()
        expected += fit_one_bag(counts[0::2], counts[1::2], low, low)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_rows_are_drawn_in_proportion_to_weight(rng):
    weights = rng.uniform(0, 1, 20)
    weights[3] = 0.0
    cumulative = np.cumsum(weights)
    counts = draw_rows(cumulative, 20_000, 5)
    expected = 20_000 * weights / weights.sum()
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected + 1)).all()


@pytest.mark.parametrize("mean", [0.0, 0.3, 4.0, 29.0, 31.0, 900.0])
def test_poisson_draws_have_their_mean_and_variance(mean):
    keys = [np.uint64(mix64(np.uint64(i))) for i in range(4000)]
    draws = np.array([pav._draw_poisson(mean, key) for key in keys])
    assert (draws == np.floor(draws)).all()
    assert abs(draws.mean() - mean) <= 5 * np.sqrt(mean / 4000) + 1e-12
    assert abs(draws.var() - mean) <= 0.12 * mean


def test_many_rows_per_cell_use_counts():
    weights = np.array([500.0, 300.0, 100.0, 900.0])
    low = np.array([0.1, 0.9])
    total = pav.sum_of_bags(
        weights[0::2], weights[1::2], low, low, 1800, np.arange(5, dtype=np.uint64)
    )
    np.testing.assert_allclose(total / 5, [3 / 8, 0.9], atol=0.05)
