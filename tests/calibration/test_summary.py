"""ScoreSummary: repetition, merging, folds, bounded cells."""

import functools
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import calibration.summary as summary_module
from calibration import ScoreSummary
from calibration.multiclass.class_scores import read_class_scores

MASKED = np.ma.masked_array([0.1, 0.2], mask=[False, True])


def assert_same(a, b, rtol=0.0):
    assert_array_equal(a.scores, b.scores)
    assert_allclose(a.weight0, b.weight0, rtol=rtol, atol=rtol)
    assert_allclose(a.weight1, b.weight1, rtol=rtol, atol=rtol)
    assert (a.level, a.lowest, a.highest) == (b.level, b.lowest, b.highest)


RNG = np.random.default_rng(1)
# With ties, and weights of zero.
SCORES, Y = np.round(RNG.uniform(size=300), 2), RNG.integers(0, 2, 300)
WEIGHT = RNG.integers(0, 4, 300)


class TestFromScores:
    def test_cells_are_the_distinct_scores(self):
        summary = ScoreSummary.from_scores(SCORES, Y)
        distinct = np.unique(SCORES)
        assert_array_equal(summary.scores, distinct)
        assert_array_equal(summary.weight1, [Y[s == SCORES].sum() for s in distinct])
        assert summary.n == 300
        assert summary.base_rate == pytest.approx(Y.mean())

    def test_negative_zero_is_zero(self):
        summary = ScoreSummary.from_scores([-0.0, 0.0, 1.0], [0, 1, 1])
        assert summary.n_cells == 2
        assert str(summary.scores[0]) == "0.0"

    def test_accepts_what_users_have(self):
        column, strided = np.array([[0.0], [1.0]]), np.array([0.0, 9.0, 1.0])[::2]
        for scores in ([0, 1], column, strided, np.array([0, 1], np.float32)):
            assert ScoreSummary.from_scores(scores, [False, True]).n_cells == 2

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            (([], []), ValueError, "`scores` must hold at least one value"),
            (([0.1, 0.2], [0]), ValueError, "`y` must be as long as scores, got 1"),
            (([[0.1, 0.2]], [0, 1]), ValueError, r"shape \(n,\) or \(n, 1\)"),
            ((np.array([0, "b"], object), [0, 1]), TypeError, "got 'b' at position 1"),
            (([0.1, None], [0, 1]), ValueError, "`scores` must be finite, got nan"),
            (([0.1, pd.NA], [0, 1]), ValueError, "`scores` must be finite, got nan"),
            ((MASKED, [0, 1]), ValueError, "`scores` must be finite, got nan"),
            ((np.array(["0", "1"], object), [0, 1]), TypeError, "got '0' at position"),
            ((np.array([b"0", 1], object), [0, 1]), TypeError, "got b'0' at position"),
            (([10**400, 1], [0, 1]), ValueError, "`scores` must be numeric: int too"),
            (([[1], [2, 3]], [0, 1]), ValueError, "`scores` must be numeric: setting"),
            (([0.1, 0.2], np.array(["0", "1"], object)), TypeError, "`y` must be num"),
            (([0.1, 0.2], [0, 1], [0, 0]), ValueError, "must not be zero everywhere"),
            (([0.1, 0.2], [0, 1], [1]), ValueError, "`sample_weight` must be as long"),
        ],
    )
    def test_bad_input_is_named(self, arguments, error, message):
        with pytest.raises(error, match=message):
            ScoreSummary.from_scores(*arguments)


class TestMerge:
    @pytest.mark.parametrize("max_cells", [None, 16])
    def test_shards_give_the_summary_of_all_rows(self, rng, max_cells):
        scores = SCORES + rng.uniform(size=300) * (max_cells is not None)
        whole = ScoreSummary.from_scores(scores, Y, WEIGHT, max_cells=max_cells)
        parts = zip(*(np.split(one, 5) for one in (scores, Y, WEIGHT)), strict=True)
        shards = [ScoreSummary.from_scores(*p, max_cells=max_cells) for p in parts]
        for order in itertools.permutations(range(5)):
            chosen = [shards[i] for i in order]
            assert_same(functools.reduce(ScoreSummary.merge, chosen), whole)
        assert_same(sum(shards), whole)
        pair = (shards[0] + shards[1]) + ((shards[2] + shards[3]) + shards[4])
        assert_same(pair, whole)

    def test_an_exact_and_a_bounded_summary_merge(self, rng):
        a = ScoreSummary.from_scores(rng.uniform(size=100), np.ones(100), max_cells=8)
        b = ScoreSummary.from_scores(rng.uniform(size=5), np.zeros(5))
        both = a + b
        assert both.max_cells == 8
        assert both.n_cells <= 8
        assert both.n == 105

    def test_subtraction_leaves_a_part_out(self):
        part = ScoreSummary.from_scores(SCORES[:100], Y[:100], WEIGHT[:100])
        rest = ScoreSummary.from_scores(SCORES[100:], Y[100:], WEIGHT[100:])
        assert_same((part + rest) - part, rest)

    def test_subtracting_all_is_refused(self):
        whole = ScoreSummary.from_scores([0.1, 0.2], [0, 1])
        with pytest.raises(ValueError, match="`other` must leave some weight"):
            whole - whole

    @pytest.mark.parametrize(
        ("scores", "y", "weight"),
        [
            # A score that is not there, however light beside the others.
            ([0.3], [1], [1e-3]),
            ([0.05], [1], None),
            ([0.95], [1], None),
            # The other class, in a cell that is there; or more of it.
            ([0.1], [1], [1e-3]),
            ([0.1], [0], [1.001e13]),
        ],
    )
    def test_subtracting_what_is_not_contained_is_refused(self, scores, y, weight):
        rows = [0.1, 0.2, 0.9], [0, 1, 0], [1e13, 5.0, 1e13]
        part = ScoreSummary.from_scores(scores, y, weight)
        with pytest.raises(ValueError, match="`other` must be a part"):
            ScoreSummary.from_scores(*rows) - part
        if not 0.1 <= scores[0] <= 0.9:  # not in a wide cell either
            with pytest.raises(ValueError, match="`other` must be a part"):
                ScoreSummary.from_scores(*rows, max_cells=2) - part

    def test_a_light_cell_is_left_beside_heavy_ones(self):
        whole = ScoreSummary.from_scores([0.1, 0.2], [0, 1], [1e15, 1.0])
        part = ScoreSummary.from_scores([0.1], [0], [1e15])
        assert_array_equal((whole - part).weight1, [1.0])

    def test_fields_of_different_shapes_are_refused(self):
        with pytest.raises(ValueError, match=r"must have one shape, got \(1,\)"):
            ScoreSummary(np.zeros(2), np.ones(2), np.ones(1))


class TestSplit:
    @pytest.mark.parametrize("max_cells", [None, 32])
    def test_folds_sum_to_the_whole(self, max_cells):
        whole = ScoreSummary.from_scores(SCORES, Y, WEIGHT, max_cells=max_cells)
        folds = whole.split(5, 0)
        assert len(folds) == 5
        assert_same(sum(folds), whole)
        for fold in folds:
            assert_same((whole - fold) + fold, whole)

    def test_folds_do_not_depend_on_order_or_repetition(self, rng):
        long = rng.permutation(np.repeat(np.arange(300), WEIGHT))
        for a, b in zip(
            ScoreSummary.from_scores(SCORES, Y, WEIGHT).split(4, 1),
            ScoreSummary.from_scores(SCORES[long], Y[long]).split(4, 1),
            strict=True,
        ):
            assert_same(a, b)

    def test_seeds_give_different_folds(self, rng):
        summary = ScoreSummary.from_scores(rng.uniform(size=50), np.arange(50) % 2)
        sizes = {tuple(summary.split(2, seed)[0].scores) for seed in range(5)}
        assert len(sizes) == 5

    def test_fewer_rows_than_folds_give_fewer_folds(self):
        folds = ScoreSummary.from_scores([0.1, 0.2], [0, 1]).split(10, 0)
        assert 1 <= len(folds) <= 2


class TestBounded:
    @pytest.mark.parametrize("spread", [1e-12, 1.0, 1e12])
    def test_scores_move_at_most_max_displacement(self, rng, spread):
        scores = spread * rng.normal(size=2000)
        summary = ScoreSummary.from_scores(scores, np.zeros(2000), max_cells=64)
        assert 16 <= summary.n_cells <= 64
        moved = np.sort(np.repeat(summary.scores, summary.weight0.astype(int)))
        assert np.abs(moved - np.sort(scores)).max() <= summary.max_displacement

    def test_probabilities_stay_probabilities(self, rng):
        scores = np.concatenate([rng.uniform(size=500), np.ones(5), np.zeros(5)])
        summary = ScoreSummary.from_scores(scores, np.zeros(510), max_cells=10)
        assert summary.scores[0] >= 0.0
        assert summary.scores[-1] <= 1.0

    @pytest.mark.parametrize("kind", ["near", "wide", "ties", "sorted", "outliers"])
    def test_many_rows_are_counted_as_if_sorted(self, rng, monkeypatch, kind):
        scores = {
            "near": 1e6 + rng.normal(size=3000),
            "wide": rng.standard_cauchy(3000) ** 3,
            "ties": np.round(rng.normal(size=3000), 3),
            "sorted": np.sort(rng.beta(0.2, 0.2, 3000)),
            "outliers": np.append(rng.uniform(size=2998), [-1e300, 1e300]),
        }[kind]
        y = rng.integers(0, 2, 3000)
        counted = []

        def count(*rows, real=summary_module.count_rounded):
            counted.append(len(rows[0]))
            return real(*rows)

        monkeypatch.setattr(summary_module, "count_rounded", count)
        for most in (3, 10, 100):
            quick = ScoreSummary.from_scores(scores, y, max_cells=most)
            # Weights take the other road.
            rows = scores, y, np.ones(3000)
            assert_same(quick, ScoreSummary.from_scores(*rows, max_cells=most))
        assert counted

    def test_few_scores_stay_exact(self):
        summary = ScoreSummary.from_scores([0.1, 0.2], [0, 1], max_cells=2)
        assert summary.level is None
        assert summary.max_displacement == 0.0


class TestCondense:
    def test_keeps_weights_and_means(self, rng):
        scores = 1e9 + rng.uniform(size=1000)
        y = rng.integers(0, 2, 1000)
        summary = ScoreSummary.from_scores(scores, y)
        small = summary.condense(50)
        assert small.n_cells == 50
        assert (small.n0, small.n1) == (summary.n0, summary.n1)
        mean = small.weight @ (small.scores - 1e9) / small.n
        assert mean == pytest.approx((scores - 1e9).mean(), rel=1e-8)
        assert (np.diff(small.scores) > 0).all()

    def test_a_small_summary_is_returned_as_it_is(self):
        summary = ScoreSummary.from_scores([0.1, 0.2], [0, 1])
        assert summary.condense(2) is summary


@pytest.mark.parametrize("kind", ["two", "three"])
def test_tied_rows_with_decimal_weights_may_come_in_any_order(kind, rng):
    n, k = 120, 2 if kind == "two" else 3
    scores = rng.dirichlet(np.ones(k), 5)[rng.integers(0, 5, n)]
    y, weight = rng.integers(0, k, n), rng.integers(1, 9, n) / 10.0
    for order in (rng.permutation(n) for _ in range(5)):
        found = [_merge(scores[o], y[o], weight[o]) for o in (np.arange(n), order)]
        for one, other in zip(*found, strict=True):
            assert_array_equal(one, other)


def _merge(scores, y, weight):
    """Return the weights of distinct rows, of two classes or more."""
    if scores.shape[1] == 2:
        summary = ScoreSummary.from_scores(scores[:, 1], y, weight)
        return summary.weight0, summary.weight1
    rows = read_class_scores(scores, y, weight, None, "probability").merged()
    return rows.weight, rows.labels


def test_percentiles_are_weighted():
    summary = ScoreSummary.from_scores([1, 2, 3, 4], [0, 0, 1, 1], [1, 1, 1, 7])
    assert summary.percentiles([0.0, 0.1, 0.3, 0.31, 1.0]).tolist() == [1, 1, 3, 4, 4]
    assert summary.percentiles([0.5], summary.weight0).tolist() == [1]


def test_fields_are_read_only_and_pickle():
    summary = ScoreSummary.from_scores(SCORES, Y, WEIGHT, max_cells=8)
    with pytest.raises(ValueError, match="read-only"):
        summary.weight0[0] = 1.0
    assert_same(pickle.loads(pickle.dumps(summary)), summary)
    buffer = np.ones(2)
    own = ScoreSummary(np.array([0.1, 0.5]), buffer, np.ones(2))
    buffer *= 0.0
    assert own.weight0.tolist() == [1.0, 1.0]


def test_a_summary_is_scaled_to_forget():
    old = ScoreSummary.from_scores([0.2, 0.7, 0.7], [0, 1, 0])
    new = ScoreSummary.from_scores([0.2, 0.9], [1, 1])
    both = 0.5 * old + new
    assert both.weight0.tolist() == [0.5, 0.5, 0.0]
    assert both.weight1.tolist() == [1.0, 0.5, 1.0]
    assert (old * 2.0).n == 6.0
    bounded = ScoreSummary.from_scores(np.arange(9.0), [0, 1, 0] * 3, max_cells=4)
    half = 0.5 * bounded
    assert (half.level, half.lowest, half.highest) == (bounded.level, 0.0, 8.0)
    assert half.max_cells == 4


@pytest.mark.parametrize("factor", [0.0, -1.0, np.inf, np.nan])
def test_what_is_out_of_bounds_is_refused(factor):
    rows = [0.2, 0.7], [0, 1], [1e-300, 1e-300]
    summary = ScoreSummary.from_scores(*rows)
    with pytest.raises(ValueError, match="`factor` must lie in"):
        _ = summary * factor
    with pytest.raises(ValueError, match="`factor` must leave some weight"):
        _ = summary * 1e-300
    with pytest.raises(ValueError, match="`k` must be at least 2, got 1"):
        summary.split(1)
    with pytest.raises(ValueError, match="`max_cells` must be at least 2, got 1"):
        ScoreSummary.from_scores(*rows, max_cells=1)
