"""Cells: ties, merging, rounding, folds and groups, against loops."""

from collections import defaultdict

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibration._kernels.cells import (
    count_classes,
    count_rounded,
    finest_level,
    fold_share,
    group_starts,
    join_close_cells,
    merge_cells,
)


def tally(scores, weight0, weight1):
    table = defaultdict(lambda: [0.0, 0.0])
    for s, a, b in zip(scores, weight0, weight1, strict=True):
        table[float(s)][0] += a
        table[float(s)][1] += b
    return {s: pair for s, pair in sorted(table.items()) if pair != [0.0, 0.0]}


@pytest.mark.parametrize(("n0", "n1"), [(1, 0), (0, 1), (5, 3), (40, 60)])
def test_count_classes_counts_every_score(rng, n0, n1):
    scores0 = np.sort(rng.integers(0, 10, n0) / 10.0)
    scores1 = np.sort(rng.integers(0, 10, n1) / 10.0)
    got = tally(*count_classes(scores0, scores1))
    labels = np.repeat([0.0, 1.0], [n0, n1])
    both = np.concatenate([scores0, scores1])
    assert got == tally(both, 1.0 - labels, labels)


def test_merge_cells_adds_weights(rng):
    a = np.unique(rng.integers(0, 20, 12)).astype(float)
    b = np.unique(rng.integers(0, 20, 12)).astype(float)
    wa, wb = rng.uniform(1, 2, (2, len(a))), rng.uniform(1, 2, (2, len(b)))
    got = merge_cells(a, wa[0], wa[1], b, wb[0], wb[1])
    expected = tally(np.concatenate([a, b]), *np.concatenate([wa, wb], axis=1))
    table = tally(*got)
    assert table.keys() == expected.keys()
    assert_allclose([*table.values()], [*expected.values()], atol=1e-14)
    assert (np.diff(got[0]) > 0).all()


def n_dyadic(scores, level):
    return len(np.unique(np.floor(scores * 2.0**level)))


@pytest.mark.parametrize("origin", [0.0, 0.3, -1e6])
def test_the_finest_level_is_the_last_that_fits(rng, origin):
    scores = np.sort(rng.normal(size=300)) + origin
    ends = scores[0], scores[-1]
    for most in (2, 5, 40, 299):
        level = finest_level(scores, most, -1000, 999, *ends)
        assert n_dyadic(scores, level) <= most < n_dyadic(scores, level + 1)
    # Where all cells fit, no number of a cell may exceed the exact integers.
    level = finest_level(scores, 300, -1000, 999, *ends)
    assert 2**51 <= abs(scores * 2.0**level).max() <= 2**52
    assert finest_level(scores, 300, -1000, 7, *ends) == 7
    assert finest_level(scores, 1, -3, 999, *ends) == -3


@pytest.mark.parametrize("level", [-1, 0, 4])
def test_rounded_rows_are_those_counted_one_by_one(rng, level):
    values, ones = rng.normal(3.0, 2.0, 200), rng.uniform(size=200) < 0.4
    table = {}
    for value, one in zip(values, ones, strict=True):
        cell = table.setdefault(np.floor(value * 2.0**level), [0.0, 0.0])
        cell[int(one)] += 1.0
    scores, *weights = count_rounded(values, ones, level, 10_000)
    middles = [(cell + 0.5) / 2.0**level for cell in sorted(table)]
    assert_array_equal(scores, np.clip(middles, values.min(), values.max()))
    assert_array_equal(weights, np.transpose([table[c] for c in sorted(table)]))


def test_rows_that_lie_too_wide_apart_are_not_counted():
    values, ones = np.array([0.0, 1e300]), np.array([True, False])
    assert len(count_rounded(values, ones, 50, 1000)[0]) == 0
    zero = count_rounded(np.array([-0.0]), ones[:1], 0, 1000)[0]
    assert str(zero[0]) == "0.0"


def deal(scores, weight, k, seed):
    bits = scores.view(np.uint64)
    return np.array([fold_share(bits, weight, k, f, np.uint64(seed)) for f in range(k)])


@pytest.mark.parametrize("weights", ["ones", "integers", "real", "many"])
def test_every_unit_is_dealt_once(rng, weights):
    m, k = 400, 5
    weight = {
        "ones": np.ones(m),
        "integers": rng.integers(0, 13, m).astype(float),
        "real": rng.uniform(0, 3, m),
        "many": rng.integers(1001, 10**6, m) + 0.0,
    }[weights]
    shares = deal(rng.uniform(size=m), weight, k, 3)
    assert_allclose(shares.sum(axis=0), weight, rtol=1e-14)
    assert (shares >= 0).all()
    # folds are about equal: five standard errors of a binomial count
    assert np.ptp(shares.sum(axis=1)) < 10 * np.sqrt(weight.sum() / k)


@pytest.mark.parametrize("weight", [200.0, 5000.0])
def test_counts_of_a_tie_are_multinomial(rng, weight):
    shares = deal(rng.uniform(size=4000), np.full(4000, weight), 4, 0)
    assert shares.mean(axis=1) == pytest.approx(weight / 4, rel=0.01)
    expected = weight / 4 * 3 / 4
    assert shares.var(axis=1) == pytest.approx(expected, rel=0.15)
    correlation = np.corrcoef(shares)[np.triu_indices(4, 1)]
    assert correlation == pytest.approx(-1 / 3, abs=0.06)


def test_the_share_of_a_cell_ignores_the_other_cells(rng):
    scores = rng.uniform(size=50)
    alone = [deal(s, np.array([1.0]), 4, 1) for s in scores[:, None]]
    assert_array_equal(np.hstack(alone), deal(scores, np.ones(50), 4, 1))


def test_groups_have_equal_weight_and_never_split_a_cell():
    assert group_starts(np.ones(10), 5).tolist() == [0, 2, 4, 6, 8]
    assert group_starts(np.array([1.0, 8.0, 1.0]), 5).tolist() == [0, 1, 2]
    assert group_starts(np.ones(3), 10).tolist() == [0, 1, 2]
    assert group_starts(np.array([4.0]), 3).tolist() == [0]


@pytest.mark.parametrize("least_gap", [1e-4, 1e-3, 0.02])
@pytest.mark.parametrize("law", ["uniform", "bunched"])
def test_gaps_are_kept_and_weight_moves_little(rng, law, least_gap):
    scores = rng.uniform(size=2000) if law == "uniform" else rng.beta(0.1, 0.2, 2000)
    scores = np.unique(np.append(scores, [0.0, 1.0]))
    weight0, weight1 = rng.integers(1, 4, (2, len(scores))).astype(float)
    cells, sum0, sum1 = join_close_cells(scores, weight0, weight1, least_gap)
    assert np.diff(cells).min() >= least_gap * (1 - 1e-9)
    assert (sum0.sum(), sum1.sum()) == (weight0.sum(), weight1.sum())
    # Groups are runs of cells: their totals say which, and how far each was moved.
    ends = np.searchsorted(np.cumsum(weight0), np.cumsum(sum0))
    group = np.searchsorted(ends, np.arange(len(scores)))
    assert_array_equal(sum1, np.bincount(group, weight1))
    assert np.abs(cells[group] - scores).max() < least_gap


def test_weight_cannot_drag_a_group_along():
    """Groups stay narrower than two gaps however the weights grow to the right."""
    scores = np.arange(12) * 0.9
    weight = 1000.0 ** np.arange(12)
    cells, _, _ = join_close_cells(scores, weight, 0.0 * weight, 1.0)
    assert_allclose(cells, 0.45 + 1.8 * np.arange(6))
