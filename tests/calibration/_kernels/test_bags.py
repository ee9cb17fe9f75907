"""Bagged isotonic regression against bags fitted one by one."""

import numpy as np
import pytest

from calibration._kernels.cells import mix64
from calibration._kernels.pav import (
    _draw_counts,
    _draw_poisson,
    _draw_rows,
    pool_adjacent_violators,
    sum_of_bags,
)


def fit_one_bag(counts0, counts1, low, high):
    """Isotonic regression of a bag; a missed group takes the nearest one's value."""
    held = np.flatnonzero(counts0 + counts1 > 0)
    starts, b0, b1 = pool_adjacent_violators(counts0[held], counts1[held])
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
    _draw_rows(cumulative, guide, n_draws, np.array([seed], dtype=np.uint64), counts)
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
    got = sum_of_bags(weight0, weight1, low, low, 40, seeds)
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
    draws = np.array([_draw_poisson(mean, key) for key in keys])
    assert (draws == np.floor(draws)).all()
    assert abs(draws.mean() - mean) <= 5 * np.sqrt(mean / 4000) + 1e-12
    assert abs(draws.var() - mean) <= 0.12 * mean


def test_many_rows_per_cell_use_counts():
    weights = np.array([500.0, 300.0, 100.0, 900.0])
    counts = np.zeros((1, 4))
    _draw_counts(weights, 1.0, np.array([99], dtype=np.uint64), counts)
    assert (np.abs(counts[0] - weights) < 6 * np.sqrt(weights)).all()
    low = np.array([0.1, 0.9])
    total = sum_of_bags(
        weights[0::2], weights[1::2], low, low, 1800, np.arange(5, dtype=np.uint64)
    )
    np.testing.assert_allclose(total / 5, [3 / 8, 0.9], atol=0.05)


def test_the_same_seeds_give_the_same_bags_in_any_split(rng):
    low = np.sort(rng.uniform(size=50))
    weight0 = (rng.uniform(size=50) > low).astype(float)
    seeds = np.arange(6, dtype=np.uint64)
    groups = (weight0, 1.0 - weight0, low, low, 50)
    whole = sum_of_bags(*groups, seeds)
    parts = sum_of_bags(*groups, seeds[:2]) + sum_of_bags(*groups, seeds[2:])
    np.testing.assert_allclose(whole, parts, atol=1e-12)
