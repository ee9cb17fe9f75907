"""A tree of few codes is the one that a slow recursion over all splits grows."""

import numpy as np
import pytest

from localexpert._kernels.forest_split import MISSING
from localexpert._kernels.forest_tree import grow_tree, partition_rows, shuffle
from tests.open_kernels import open_kernels

(
    partition_rows,
    shuffle,
) = open_kernels(partition_rows, shuffle)


def make_rows(rng, n, n_codes, *, missing=False, n_places=6):
    """Codes (3, n), and places that depend on the first; weights, a table."""
    codes = rng.integers(0, n_codes, (3, n)).astype(np.uint8)
    places = np.clip(codes[0] * n_places // n_codes + rng.integers(-1, 2, n), 0, 5)
    if missing:
        codes[rng.random((3, n)) < 0.15] = MISSING
    weights = rng.uniform(0.2, 3.0, n)
    return codes, places.astype(np.int64), weights, rng.normal(size=(n_places, 4))


def squared_error(weights, targets):
    mean = np.average(targets, axis=0, weights=weights)
    return float(np.sum(weights[:, None] * (targets - mean) ** 2))


def grow_slowly(rows, codes, places, weights, targets, min_leaf):
    """Return the leaves, as sets of rows, of the tree with the best of all splits."""
    best, sides = np.inf, None
    if len(np.unique(places[rows])) > 1:
        for column in codes[:, rows]:
            for cut in range(MISSING):
                for missing_left in (False, True):
                    left = np.where(column == MISSING, missing_left, column <= cut)
                    parts = rows[left], rows[~left]
                    if min(map(len, parts)) < min_leaf:
                        continue
                    error = sum(squared_error(weights[p], targets[p]) for p in parts)
                    if error < best - 1e-9:
                        best, sides = error, parts
    if sides is None:
        return {frozenset(rows.tolist())}
    both = (grow_slowly(s, codes, places, weights, targets, min_leaf) for s in sides)
    return set().union(*both)


def leaves_of(leaf_of):
    return {
        frozenset(np.flatnonzero(leaf_of == leaf).tolist())
        for leaf in np.unique(leaf_of)
    }


def walk(tree, codes):
    """Return the node in which every row ends, by the splits of a tree."""
    feature, last_left, missing_left, left, right, _ = tree
    ends = np.empty(codes.shape[1], dtype=int)
    for i in range(codes.shape[1]):
        node = 0
        while left[node] >= 0:
            code = codes[feature[node], i]
            goes_left = (
                missing_left[node] if code == MISSING else code <= last_left[node]
            )
            node = left[node] if goes_left else right[node]
        ends[i] = node
    return ends


@pytest.mark.parametrize("min_leaf", [1, 3])
@pytest.mark.parametrize("missing", [False, True])
def test_equals_a_slow_recursion(rng, missing, min_leaf):
    """Nine codes have eight cuts: all are tried, and chance plays no part."""
    for seed in range(2):
        rows = make_rows(rng, 30, 9, missing=missing)
        codes, places, weights, table = rows
        tree = grow_tree(*rows, 3, 100, min_leaf, np.uint64(seed))
        everyone = np.arange(len(places))
        slow = grow_slowly(everyone, codes, places, weights, table[places], min_leaf)
        assert leaves_of(tree[5]) == slow
        assert len(slow) > 3


@pytest.mark.parametrize("n_searched", [20, 10_000])
@pytest.mark.parametrize("n_tried", [1, 3])
@pytest.mark.parametrize("min_leaf", [1, 2, 7])
def test_is_a_tree_with_leaves_of_the_least_size(rng, min_leaf, n_tried, n_searched):
    rows = make_rows(rng, 250, 200, missing=True)
    tree = grow_tree(*rows, n_tried, n_searched, min_leaf, np.uint64(3))
    feature, _, _, left, right, leaf_of = tree
    inner = left >= 0
    np.testing.assert_array_equal(feature >= 0, inner)
    np.testing.assert_array_equal(right >= 0, inner)
    children = np.sort(np.concatenate([left[inner], right[inner]]))
    np.testing.assert_array_equal(children, np.arange(1, len(feature)))
    np.testing.assert_array_equal(np.unique(leaf_of), np.flatnonzero(~inner))
    np.testing.assert_array_equal(walk(tree, rows[0]), leaf_of)
    assert np.bincount(leaf_of)[~inner].min() >= min_leaf
    assert (~inner).sum() > 250 / (12 * min_leaf)


def test_no_split_is_left_out(rng):
    """A leaf holds one place, or rows that are too few or alike in all features."""
    codes, places, weights, table = make_rows(rng, 200, 2)
    leaf_of = grow_tree(codes, places, weights, table, 1, 100, 1, np.uint64(1))[5]
    for leaf in np.unique(leaf_of):
        mine = leaf_of == leaf
        alike = (codes[:, mine] == codes[:, mine][:, :1]).all()
        assert alike or len(np.unique(places[mine])) == 1


def test_missing_values_follow_the_many_where_none_were_seen():
    """The rows left are the larger side, then the right ones are."""
    for n_left in (7, 3):
        codes = (np.arange(10) >= n_left).astype(np.uint8)[None, :]
        places = (np.arange(10) >= n_left).astype(np.int64)
        table = np.arange(8.0).reshape(2, 4)
        tree = grow_tree(codes, places, np.ones(10), table, 1, 50, 1, np.uint64(0))
        assert tree[2][0] == (n_left == 7)
        assert len(tree[0]) == 3


@pytest.mark.parametrize(
    ("codes", "places"),
    [([[1, 2, 3]], [4, 4, 4]), ([[7, 7, 7]], [0, 1, 2]), ([[255] * 3], [0, 1, 2])],
    ids=["pure", "constant", "missing"],
)
def test_one_leaf(rng, codes, places):
    tree = grow_tree(
        np.array(codes, dtype=np.uint8),
        np.array(places),
        np.ones(3),
        rng.normal(size=(5, 4)),
        1,
        50,
        1,
        np.uint64(0),
    )
    assert len(tree[0]) == 1
    np.testing.assert_array_equal(tree[5], 0)


def test_a_key_is_a_tree(rng):
    rows = make_rows(rng, 200, 200)
    first, again, other = (
        grow_tree(*rows, 2, 100, 2, np.uint64(key))[5] for key in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert leaves_of(first) != leaves_of(other)


def test_scratch_of_the_kernel(rng, frozen):
    """Inputs stay as they are; rows are shuffled and parted without loss."""
    rows = make_rows(rng, 60, 20)
    plain = grow_tree(*rows, 3, 50, 2, np.uint64(9))
    locked = grow_tree(*(frozen(part) for part in rows), 3, 50, 2, np.uint64(9))
    np.testing.assert_array_equal(plain[5], locked[5])
    order = np.arange(50).astype(np.uint32)
    shuffle(order, np.uint64(4))
    assert (order != np.arange(50)).any()
    np.testing.assert_array_equal(np.sort(order), np.arange(50))
    codes = rng.integers(0, 9, 50).astype(np.uint8)
    codes[::6] = MISSING
    for missing_left in (False, True):
        front = partition_rows(codes, order, 4, missing_left)
        left = np.where(codes[order] == MISSING, missing_left, codes[order] <= 4)
        np.testing.assert_array_equal(left, np.arange(50) < front)
        np.testing.assert_array_equal(np.sort(order), np.arange(50))
