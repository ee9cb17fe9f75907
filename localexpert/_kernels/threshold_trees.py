"""Sums of trees at all thresholds at once: a row goes down a tree once, not N times."""

from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array, Int64Array

# What a node splits: a number whose NaN counts as 0, a number whose NaN has a way of
# its own, or a category. LightGBM tells the three apart in a node's decision type.
NUMBER, NUMBER_OR_NAN, CATEGORY = range(3)
# Categories are held as bits of words of this length.
_WORD = 32


class TreeArrays(NamedTuple):
    """All trees of a model: nodes, and leaves, one tree after the other.

    `roots` (n_trees,) are nodes, or leaves where a tree has but one. Of every node:
    the `feature` that it splits and its `kind` (see `NUMBER`); numbers up to `cut` go
    left, and missing ones if `missing_left` is 1; of a category, word w of the node's
    `n_words` from `first_word` on in `category_words` holds in bit b whether 32 w + b
    goes left. `left` and `right` are the children: a child less than zero is the
    leaf with number -child - 1, whose value is in `leaf_value`.
    """

    roots: Int64Array
    feature: Int64Array
    kind: Int64Array
    cut: Float64Array
    missing_left: Int64Array
    left: Int64Array
    right: Int64Array
    first_word: Int64Array
    n_words: Int64Array
    category_words: Int64Array
    leaf_value: Float64Array


@inner
def goes_left(trees: TreeArrays, node: int, value: float) -> bool:
    """Say whether a value of the node's feature goes left."""
    kind = trees.kind[node]
    if kind == CATEGORY:
        # What was never seen in training (NaN, or beyond the words) goes right.
        if np.isnan(value) or value < 0.0:
            return False
        code = int(value)
        word = code // _WORD
        if word >= trees.n_words[node]:
            return False
        bits = trees.category_words[trees.first_word[node] + word]
        return bool((bits >> (code % _WORD)) & 1)
    if np.isnan(value):
        if kind == NUMBER_OR_NAN:
            return bool(trees.missing_left[node] == 1)
        value = 0.0
    return bool(value <= trees.cut[node])


class _Runs(NamedTuple):
    """Stack of runs of places, and of the nodes where they go on."""

    nodes: Int64Array
    starts: Int64Array
    stops: Int64Array


@inner
def _find_leaf(
    trees: TreeArrays, place_cut: Int64Array, x: Float64Array, runs: _Runs, top: int
) -> tuple[int, int, int, int]:
    """Take the run at `top` down to a leaf; what parts from it takes its place.

    Returns the leaf, the places from start to stop that reach it, and how many runs
    are on the stack.
    """
    node, start, stop = runs.nodes[top], runs.starts[top], runs.stops[top]
    while node >= 0:
        middle = place_cut[node]
        if middle < 0:
            left = goes_left(trees, node, x[trees.feature[node]])
            node = trees.left[node] if left else trees.right[node]
        elif middle <= start:
            node = trees.right[node]
        elif middle >= stop:
            node = trees.left[node]
        else:
            # The places part here: the upper ones wait, the lower ones go on.
            runs.nodes[top] = trees.right[node]
            runs.starts[top], runs.stops[top] = middle, stop
            top += 1
            node, stop = trees.left[node], middle
    return -node - 1, start, stop, top


@njit
def sum_trees(
    X: Float64Array, n_places: int, trees: TreeArrays, place_cut: Int64Array
) -> Float64Array:
    """Sum the leaves that rows reach in trees with a threshold feature, (n, n_places).

    A node with `place_cut` (n_nodes,) >= 0 splits on the threshold: places below that
    number go left, the others right. At such a node both ways are followed, each for
    its run of places.

    Every place is added to in the order of the trees and rounded addition is
    monotone, so where all trees increase along the places the sums do, exactly.
    """
    n = X.shape[0]
    sums = np.zeros((n, n_places))
    # More runs than places cannot be open at a time.
    size = n_places + 1
    runs = _Runs(
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int64),
    )
    for i in range(n):
        for root in trees.roots:
            runs.nodes[0], runs.starts[0], runs.stops[0] = root, 0, n_places
            n_open = 1
            while n_open > 0:
                leaf, start, stop, n_open = _find_leaf(
                    trees, place_cut, X[i], runs, n_open - 1
                )
                value = trees.leaf_value[leaf]
                for k in range(start, stop):
                    sums[i, k] += value
    return sums
