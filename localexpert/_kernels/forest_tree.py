"""One randomised tree on binned features, grown depth first."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import fused, njit
from calibration._kernels.hashing import next_key
from calibration.typing import Float64Array, Int64Array
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

# Rows of the table of nodes that `_grow` fills.
_FEATURE, _LAST_LEFT, _GAPS_LEFT, _LEFT, _RIGHT = range(5)


class Nodes(NamedTuple):
    """A tree: the split of every node (see `find_split`), its children; who ends where.

    The feature of a leaf is -1, and so are its children. Node 0 is the root.
    `leaf_of` (n,) is the node in which a row ends.
    """

    feature: NDArray[np.int32]
    last_left: NDArray[np.uint8]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    leaf_of: NDArray[np.int32]


@fused
def shuffle(rows: NDArray[np.uint32], key: np.uint64) -> np.uint64:
    """Put rows in random order, in place; return the key of the last draw.

    Fisher and Yates' method. With all rows in random order the first ones of a node
    are a random sample of it, which is what `find_split` looks at.
    """
    for i in range(len(rows)):
        key = next_key(key)
        drawn = i + draw_below(len(rows) - i, key)
        rows[i], rows[drawn] = rows[drawn], rows[i]
    return key


@fused
def partition_rows(
    codes: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    last_left: int,
    missing_left: bool,
) -> int:
    """Bring the rows that go left to the front, in place; return their number."""
    front, stop = 0, len(rows)
    while front < stop:
        code = codes[rows[front]]
        # A row that goes right changes places with the last one not looked at yet.
        goes_left = missing_left if code == MISSING else code <= last_left
        if goes_left:
            front += 1
        else:
            stop -= 1
            rows[front], rows[stop] = rows[stop], rows[front]
    return front


@fused
def sum_moments(
    rows: NDArray[np.uint32],
    places: Int64Array,
    weights: Float64Array,
    targets: Float64Array,
    moments: Float64Array,
    total: Float64Array,
) -> None:
    """Write the moments of some rows to `moments`, and their sum to `total`."""
    for k in range(N_SUMS):
        total[k] = 0.0
    for i in range(len(rows)):
        weight = weights[rows[i]]
        moments[i, 0] = weight
        moments[i, 1] = 1.0
        for k in range(2, N_SUMS):
            moments[i, k] = weight * targets[places[rows[i]], k - 2]
        for k in range(N_SUMS):
            total[k] += moments[i, k]


@fused
def find_split(
    codes: NDArray[np.uint8],
    places: Int64Array,
    weights: Float64Array,
    targets: Float64Array,
    rows: NDArray[np.uint32],
    order: Int64Array,
    n_tried: int,
    min_leaf: int,
    key: np.uint64,
    moments: Float64Array,
    found: NDArray[np.uint8],
) -> tuple[int, int, bool, np.uint64]:
    """Find the purest split of some rows among random cuts of random features.

    Extremely randomised trees (Geurts, Ernst & Wehenkel 2006), with a few cuts of
    each feature in the place of their one. Arguments are arrays and not tuples of
    them: this is called for every node, most of which are small, and a tuple handed
    on counts references to all of its arrays.

    Parameters
    ----------
    codes, places, weights, targets : ndarrays
        See `grow_tree`.
    rows : ndarray of shape (m,)
    order : ndarray of shape (p,)
        All features; shuffled in place.
    n_tried, min_leaf : int
        Features looked at, more only where none of these can be cut; least number of
        rows on a side.
    key : uint64
    moments, found : ndarrays of shapes (m, 6) and (m,)
        Working memory; may be longer.

    Returns
    -------
    feature : int
        -1 where no split is allowed.
    last_left : int
        Greatest code that goes left; MISSING - 1: all numbers do.
    missing_left : bool
        Where none of the rows misses the feature, whether more rows go left.
    key : uint64
        That of the last draw.
    """
    n_features = len(order)
    found = found[: len(rows)]
    total = np.empty(N_SUMS)
    sum_moments(rows, places, weights, targets, moments, total)
    cuts = np.empty(N_CUTS + 1, dtype=np.int64)
    # The last "cut" parts numbers from missing values.
    cuts[N_CUTS] = MISSING - 1
    buckets = np.empty((N_BUCKETS, N_SUMS))
    best, feature, last_left, missing_left = -np.inf, -1, -1, False
    for t in range(n_features):
        if t >= n_tried and feature >= 0:
            break
        # One more step of a shuffle: features are drawn as they are looked at.
        key = next_key(key)
        drawn = t + draw_below(n_features - t, key)
        order[t], order[drawn] = order[drawn], order[t]
        j = order[t]
        least, greatest, missing = read_codes(codes[j], rows, found)
        if least == greatest and not missing:
            continue
        key = draw_cuts(least, greatest, cuts, key)
        fill_buckets(found, moments, cuts, buckets)
        purity, cut, gaps_left = best_cut(buckets, total, min_leaf, 0.0)
        if missing:
            # Missing values are tried on both sides (Chen & Guestrin 2016, algorithm
            # 3); a tie sends them right.
            gaps_left = False
            other, other_cut, _ = best_cut(buckets, total, min_leaf, 1.0)
            if other > purity:
                purity, cut, gaps_left = other, other_cut, True
        if purity > best:
            best, feature = purity, j
            last_left, missing_left = cuts[cut], gaps_left
    return feature, last_left, missing_left, key


@fused
def differ(rows: NDArray[np.uint32], places: Int64Array) -> bool:
    """Say whether rows differ in their place."""
    first = places[rows[0]]
    # Most nodes that differ do so within a few rows.
    same = 1
    while same < len(rows) and places[rows[same]] == first:
        same += 1
    return same < len(rows)


@njit
def _grow(
    codes: NDArray[np.uint8],
    places: Int64Array,
    weights: Float64Array,
    targets: Float64Array,
    n_tried: int,
    n_searched: int,
    min_leaf: int,
    key: np.uint64,
    rows: NDArray[np.uint32],
    order: Int64Array,
    moments: Float64Array,
    found: NDArray[np.uint8],
    waiting: Int64Array,
    nodes: NDArray[np.int32],
    leaf_of: NDArray[np.int32],
) -> int:
    """Fill `nodes` and `leaf_of`; return the number of nodes. See `grow_tree`."""
    key = shuffle(rows, key)
    # Nodes that wait, and the runs of rows that they hold.
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, 0, len(rows)
    n_waiting, n_nodes = 1, 1
    while n_waiting > 0:
        n_waiting -= 1
        node = waiting[n_waiting, 0]
        start, stop = waiting[n_waiting, 1], waiting[n_waiting, 2]
        mine = rows[start:stop]
        j, cut, gaps_left = -1, 0, False
        if stop - start >= 2 * min_leaf and differ(mine, places):
            j, cut, gaps_left, key = find_split(
                codes,
                places,
                weights,
                targets,
                mine[:n_searched],
                order,
                n_tried,
                min_leaf,
                key,
                moments,
                found,
            )
        nodes[_FEATURE, node] = j
        if j < 0:
            nodes[_LAST_LEFT, node], nodes[_GAPS_LEFT, node] = 0, 0
            nodes[_LEFT, node], nodes[_RIGHT, node] = -1, -1
            for row in mine:
                leaf_of[row] = node
            continue
        nodes[_LAST_LEFT, node], nodes[_GAPS_LEFT, node] = cut, gaps_left
        # Afterwards the rows of either side lie together: every node is a run of rows.
        middle = start + partition_rows(codes[j], mine, cut, gaps_left)
        nodes[_LEFT, node], nodes[_RIGHT, node] = n_nodes, n_nodes + 1
        # Depth first: the child put down last is taken up next.
        for child in range(2):
            run = waiting[n_waiting + child]
            run[0] = n_nodes + 1 - child
            run[1], run[2] = (middle, stop) if child == 0 else (start, middle)
        n_waiting, n_nodes = n_waiting + 2, n_nodes + 2
    return n_nodes


def grow_tree(
    codes: NDArray[np.uint8],
    places: Int64Array,
    weights: Float64Array,
    targets: Float64Array,
    n_tried: int,
    n_searched: int,
    min_leaf: int,
    key: np.uint64,
) -> Nodes:
    """Grow a tree until its leaves are pure or can be split no more.

    Parameters
    ----------
    codes : ndarray of shape (p, n)
        Bin of every feature of every row, see `forest_split`.
    places, weights : ndarrays of shape (n,)
        Number of a row's targets in their table; its weight, positive.
    targets : ndarray of shape (k, 4)
        The table; a node is pure where all its rows have one place in it.
    n_tried : int
        Features looked at for a split.
    n_searched : int
        Rows of a node, drawn at random, by which its split is chosen: with more of
        them the best of a few random cuts is known well enough.
    min_leaf : int
        Least number of rows in a leaf.
    key : uint64
        Seed.

    Returns
    -------
    Nodes
    """
    n_features, n = codes.shape
    # A tree of L leaves has 2 L - 1 nodes.
    most = max(1, 2 * (n // min_leaf) - 1)
    nodes = np.empty((5, most), dtype=np.int32)
    leaf_of = np.empty(n, dtype=np.int32)
    size = min(n, n_searched)
    # Memory is made here: kernels that make it take long to compile.
    n_nodes = _grow(
        codes,
        places,
        weights,
        targets,
        n_tried,
        n_searched,
        min_leaf,
        key,
        np.arange(n, dtype=np.uint32),
        np.arange(n_features),
        np.empty((size, N_SUMS)),
        np.empty(size, dtype=np.uint8),
        np.empty((most, 3), dtype=np.int64),
        nodes,
        leaf_of,
    )
    feature, last_left, gaps_left, left, right = nodes[:, :n_nodes].copy()
    return Nodes(
        feature, last_left.astype(np.uint8), gaps_left == 1, left, right, leaf_of
    )
