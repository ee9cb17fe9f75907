"""Folds: every row is tested once, by models that have not seen it."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, TimeSeriesSplit

from localexpert.data.folds import (
    check_learns,
    check_tests_every_row,
    check_trains,
    join_parts,
    judged_rows,
    known_folds,
    make_folds,
    renumber_folds,
)


def check_partition(folds, n):
    tested = np.concatenate([test for _, test in folds])
    np.testing.assert_array_equal(np.sort(tested), np.arange(n))
    for train, test in folds:
        np.testing.assert_array_equal(np.union1d(train, test), np.arange(n))
        assert len(np.intersect1d(train, test)) == 0


FEWER_FOLDS_OF_MORE = {2: 2, 4: 4, 501: 5, 50_000: 5, 50_001: 3, 200_001: 2}


@pytest.mark.parametrize(
    ("n", "cv", "n_folds"),
    [
        *((n, cv, cv) for n, cv in [(10, 3), (7, 7), (2, 2), (101, 5)]),
        *((n, "auto", n_folds) for n, n_folds in FEWER_FOLDS_OF_MORE.items()),
    ],
)
def test_folds_are_as_many_as_asked_for_and_of_one_size(n, cv, n_folds):
    folds = make_folds(n, cv, random_state=0)
    assert len(folds) == n_folds
    check_partition(folds, n)
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("n_groups", [None, 20])
@pytest.mark.parametrize("equal", [True, False])
def test_rows_without_weight_change_nothing(rng, n_groups, equal):
    weight = np.full(90, 0.5) if equal else rng.uniform(1.0, 3.0, 90)
    groups = None if n_groups is None else rng.integers(0, n_groups, 90) * 2
    alone = make_folds(90, 4, None, groups, 0, weight)
    more = np.concatenate([np.zeros(33), weight])
    wide = None
    if n_groups is not None:
        wide = np.concatenate([rng.integers(0, 2 * n_groups + 3, 33), groups])
    folds = make_folds(123, 4, None, wide, 0, more)
    check_partition(folds, 123)
    for (_, small), (train, test) in zip(alone, folds, strict=True):
        np.testing.assert_array_equal(test[test >= 33] - 33, small)
        if wide is not None:
            assert not set(wide[train]) & set(wide[test])
    if equal:
        plain = make_folds(90, 4, None, groups, 0)
        for (_, a), (_, b) in zip(alone, plain, strict=True):
            np.testing.assert_array_equal(a, b)


def test_weighted_groups_are_dealt_as_their_copies(rng):
    groups, weight = np.arange(30), rng.permutation(30) + 1
    rows = np.repeat(groups, weight)
    copies = GroupKFold(4).split(rows, groups=rows)
    folds = make_folds(30, 4, groups=groups, sample_weight=weight)
    for (_, test), (_, many) in zip(folds, copies, strict=True):
        np.testing.assert_array_equal(test, np.unique(rows[many]))


def test_the_seed_decides_among_groups_of_one_size():
    groups = np.repeat(np.arange(20), 3)
    told = [make_folds(60, 4, None, groups, seed) for seed in (0, 0, 1)]
    first, again, other = ([test.tolist() for _, test in folds] for folds in told)
    assert first == again
    assert first != other


def test_folds_are_joined_where_each_may_know_all_others():
    number = np.array([0, 1, 2, 3, 4, 5, 5])
    all_others = [[j for j in range(6) if j != k] for k in range(6)]
    joined, known = join_parts(number, all_others, 3)
    assert joined.tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert known == [[1, 2], [0, 2], [0, 1]]
    same, known = join_parts(number, all_others, 6)
    assert same is number
    assert known is all_others
    in_time = [[], [0], [0, 1]]
    same, known = join_parts(number, in_time, 2)
    assert same is number
    assert known is in_time


def test_splitters_and_iterables(rng):
    groups = rng.integers(0, 11, 40)
    for cv in (KFold(4), LeaveOneOut()):
        check_partition(make_folds(40, cv, y=np.arange(40)), 40)
    check_partition(make_folds(40, GroupKFold(3), groups=groups), 40)
    mask = np.arange(6) < 3
    folds = make_folds(6, [(mask, ~mask), ([3, 4, -1], [0, 1, 2])])
    check_partition(folds, 6)
    np.testing.assert_array_equal(folds[1][0], [3, 4, 5])


def test_rows_may_be_left_untested():
    folds = make_folds(6, TimeSeriesSplit(2))
    assert [(a.tolist(), b.tolist()) for a, b in folds] == [
        ([0, 1], [2, 3]),
        ([0, 1, 2, 3], [4, 5]),
    ]
    assert judged_rows(folds).tolist() == [2, 3, 4, 5]
    assert known_folds(folds, 6) == [[], [0]]
    assert known_folds(make_folds(6, 3, random_state=0), 6) == [[1, 2], [0, 2], [0, 1]]
    rows = np.array([1, 2, 4, 5])
    told = [(a.tolist(), b.tolist()) for a, b in renumber_folds(folds, rows, 6)]
    assert told == [([0], [1]), ([0, 1], [2, 3])]
    only = renumber_folds(folds, np.arange(2, 6), 6)
    assert [len(train) for train, _ in only] == [0, 2]
    with pytest.raises(ValueError, match="test part here, got 2 of 6 rows in none: x"):
        check_tests_every_row(folds, 6, "x")
    check_learns(folds, np.array([0, 0, 0, 0, 0, 1.0]))
    with pytest.raises(ValueError, match="`cv` must put rows with a weight in a test"):
        check_learns(folds, np.array([1.0, 1, 0, 0, 0, 0]))
    with pytest.raises(ValueError, match="with a weight in every fold, got none"):
        check_trains(folds, np.array([0, 0, 0, 0, 0, 1.0]))


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (7, "greater than the number of rows, got 7 folds for 6 rows"),
        (1, "`cv` must be at least 2, got 1"),
        ([([4, 5], [0, 1, 2, 3]), ([0, 1], [3, 4, 5])], "test part, got row 3 in 2 of"),
        ([([0, 1, 2], [2, 3, 4, 5])], "got row 2 in both parts of fold 0"),
        ([([], [0, 1, 2, 3, 4, 5])], "no train part empty, got fold 0"),
        ([([0, 1], [])], "no test part empty, got fold 0"),
        ([([4, 5], [0, 1]), ([4], [2, 6])], "of these 6, got row 6 in fold 1"),
        ([([0, -7], [1, 2])], "yield rows of these 6, got row -7 in fold 0"),
        ([([True] * 5, [False] * 5)], "masks of all 6 rows, got 5 rows in fold 0"),
        ([([0.0, 1.0], [2])], r"numbers or masks .*got float64 of shape \(2,\) in"),
        ([([0], [[1], [2]])], r"shape \(m,\), got int64 of shape \(2, 1\) in fold 0"),
        ([(["a", "b"], ["c"])], "numbers or masks of shape .*, got <U1 of shape"),
    ],
)
def test_wrong_folds_are_refused(cv, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_folds(6, cv)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": [1, 0, 0, 1]}, "got 3 folds for 2 rows"),
        ({"groups": [0, 0, 1, 1]}, "got 3 folds for 2 groups"),
        ({"sample_weight": [0, 0, 0, 1]}, "`sample_weight` .*two rows .*, got 1"),
        ({"groups": [3, 3, 3, 3]}, "`groups` must leave at least two groups .*, got 1"),
        ({"groups": [0, 0, 1]}, "`groups` must be as long as the data, got 3 and 4"),
        ({"groups": np.zeros((4, 2))}, r"`groups` must have shape \(n,\), got .*4, 2"),
        ({"groups": [0.0, np.nan, 1.0, 1.0]}, "`groups` must have no gaps, got nan"),
        ({"groups": np.array(["2020", "NaT"] * 2, "M8[D]")}, "no gaps, got NaT"),
        ({"groups": ["a", None, "b", "b"]}, "`groups` must have no gaps, got None"),
        ({"groups": ["a", np.nan, "b", "b"]}, "`groups` must have no gaps, got nan"),
        ({"groups": np.array([{}, {}, {}, {}])}, r"`groups` .*one kind, got \{\}"),
        ({"cv": 2.5}, r"splitter or folds, got 2\.5"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_folds(4, **{"cv": 3, **options})
