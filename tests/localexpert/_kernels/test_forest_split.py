"""Random cuts come from their eighths, and the best of them is what brute force finds.

Brute force: for every cut and side of the missing values, the weighted squared errors
of the targets about the means of both sides, straight from the rows.
"""

import numpy as np
import pytest

from localexpert._kernels.forest_split import (
    MISSING,
    N_BUCKETS,
    N_CUTS,
    N_SUMS,
    best_cut,
    draw_below,
    draw_cuts,
    fill_buckets,
    read_codes,
)
from tests.open_kernels import open_kernels

(
    best_cut,
    draw_below,
    draw_cuts,
    fill_buckets,
    read_codes,
) = open_kernels(best_cut, draw_below, draw_cuts, fill_buckets, read_codes)


def moments_of(weights, targets):
    ones = np.ones(len(weights))
    return np.column_stack([weights, ones, weights[:, None] * targets])


def squared_error(weights, targets):
    if len(weights) == 0:
        return 0.0
    mean = np.average(targets, axis=0, weights=weights)
    return float(np.sum(weights[:, None] * (targets - mean) ** 2))


def brute_force(codes, weights, targets, cuts, min_leaf, missing_left):
    """Return the least error of both sides, and how many rows go left there."""
    best, best_left = np.inf, -1
    for cut in cuts:
        left = np.where(codes == MISSING, missing_left, codes <= cut)
        if min(left.sum(), (~left).sum()) >= min_leaf:
            error = squared_error(weights[left], targets[left])
            error += squared_error(weights[~left], targets[~left])
            if error < best - 1e-9:
                best, best_left = error, left.sum()
    return best, best_left


def test_draws_are_even_and_below_the_bound():
    drawn = [draw_below(7, np.uint64(seed)) for seed in range(3000)]
    counts = np.bincount(drawn)
    assert len(counts) == 7
    assert np.abs(counts - 3000 / 7).max() < 4.5 * np.sqrt(3000 / 7)


@pytest.mark.parametrize(("least", "greatest"), [(3, 12), (0, 254), (100, 130)])
def test_a_cut_from_each_eighth(least, greatest):
    span = greatest - least
    met = set()
    cuts = np.empty(N_CUTS, dtype=np.int64)
    for seed in range(400):
        draw_cuts(least, greatest, cuts, np.uint64(seed))
        for t, cut in enumerate(cuts):
            assert t * span // 8 <= cut - least < (t + 1) * span // 8
        met.update(cuts.tolist())
    # 400 draws among at most 32 cuts leave out none.
    assert met == set(range(least, greatest))


@pytest.mark.parametrize("span", [0, 1, 5, 8])
def test_all_cuts_where_there_are_few(span):
    cuts = np.empty(N_CUTS, dtype=np.int64)
    key = np.uint64(5)
    assert draw_cuts(40, 40 + span, cuts, key) == key
    np.testing.assert_array_equal(cuts[:span], 40 + np.arange(span))
    np.testing.assert_array_equal(cuts[span:], MISSING - 1)


def test_codes_and_their_ends():
    codes = np.array([7, 255, 3, 9, 250], dtype=np.uint8)
    found = np.zeros(5, dtype=np.uint8)
    rows = np.array([3, 0, 2], dtype=np.uint32)
    assert read_codes(codes, rows, found) == (3, 9, False)
    np.testing.assert_array_equal(found[:3], [9, 7, 3])
    assert read_codes(codes, np.array([1, 4], np.uint32), found) == (250, 250, True)
    assert read_codes(codes, np.array([1], np.uint32), found) == (MISSING, -1, True)


@pytest.mark.parametrize("min_leaf", [1, 4])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_codes", [2, 9, 200])
def test_equals_brute_force(rng, n_codes, missing, min_leaf):
    for seed in range(20):
        n = int(rng.integers(2 * min_leaf, 40))
        codes = rng.integers(0, n_codes, n).astype(np.uint8)
        if missing:
            codes[rng.random(n) < 0.3] = MISSING
        weights = rng.uniform(0.2, 3.0, n)
        targets = rng.normal(size=(n, 4)) + (codes > n_codes // 3)[:, None]
        moments = moments_of(weights, targets)
        cuts = np.empty(N_CUTS + 1, dtype=np.int64)
        cuts[N_CUTS] = MISSING - 1
        rows = np.arange(n, dtype=np.uint32)
        found = np.empty(n, dtype=np.uint8)
        least, greatest, _ = read_codes(codes, rows, found)
        draw_cuts(least, greatest, cuts, np.uint64(seed))
        buckets = np.full((N_BUCKETS, N_SUMS), np.nan)
        fill_buckets(found, moments, cuts, buckets)
        total = moments.sum(axis=0)
        np.testing.assert_allclose(buckets.sum(axis=0), total)
        for missing_left in (False, True):
            purity, cut, most_left = best_cut(
                buckets, total, min_leaf, float(missing_left)
            )
            error, n_left = brute_force(
                codes, weights, targets, cuts, min_leaf, missing_left
            )
            if np.isinf(error):
                assert purity == -np.inf
                continue
            whole = float(np.sum(weights[:, None] * targets**2))
            assert whole - purity == pytest.approx(error, rel=1e-9)
            left = np.where(codes == MISSING, missing_left, codes <= cuts[cut])
            assert left.sum() == n_left
            assert most_left == (2 * n_left > n)


def test_missing_values_alone_may_be_split_off():
    codes = np.array([5, 5, 5, MISSING, MISSING], dtype=np.uint8)
    targets = np.zeros((5, 4))
    targets[3:] = 1.0
    cuts = np.full(N_CUTS + 1, MISSING - 1)
    buckets = np.empty((N_BUCKETS, N_SUMS))
    moments = moments_of(np.ones(5), targets)
    fill_buckets(codes, moments, cuts, buckets)
    purity, cut, most_left = best_cut(buckets, moments.sum(axis=0), 2, 0.0)
    assert purity == pytest.approx(8.0)
    assert cuts[cut] == MISSING - 1
    assert most_left
    assert best_cut(buckets, moments.sum(axis=0), 3, 0.0)[0] == -np.inf
