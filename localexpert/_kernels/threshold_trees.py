"""Sums of trees at all thresholds at once: a row goes down a tree once, not N times."""

import math
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

    The feature with the number `n_features` is the place of the threshold.

    `roots` (n_trees,) are nodes, or leaves where a tree has but one. Of every node:
    the `feature` that it splits and its `kind` (see `NUMBER`); numbers up to `cut` go
    left, and missing ones if `missing_left` is 1; of a category, word w of the node's
    `n_words` from `first_word` on in `category_words` holds in bit b whether 32 w + b
    goes left. `left` and `right` are the children: a child less than zero is the
    leaf with number -child - 1, whose value is in `leaf_value`.
    """

    n_features: int
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
        if math.isnan(value) or value < 0.0:
            return False
        code = int(value)
        word = code // _WORD
        if word >= trees.n_words[node]:
            return False
        bits = trees.category_words[trees.first_word[node] + word]
        return bool((bits >> (code % _WORD)) & 1)
    if math.isnan(value):
        if kind == NUMBER_OR_NAN:
            return bool(trees.missing_left[node] == 1)
        value = 0.0
    return bool(value <= trees.cut[node])


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
    # Arrays are made here: each kernel that makes one compiles that, too.
    sums = np.zeros((X.shape[0], n_places))
    # More runs of places than places cannot be open at a time.
    runs = np.empty((3, n_places + 1), dtype=np.int64)
    _add_trees(X, trees, place_cut, runs, sums)
    return sums


@njit
def _add_trees(
    X: Float64Array,
    trees: TreeArrays,
    place_cut: Int64Array,
    runs: Int64Array,
    sums: Float64Array,
) -> None:
    """Add the leaves to `sums`.

    `runs` is room for nodes where runs of places go on, and where these start and stop.
    """
    n, n_places = sums.shape
    feature, left, right = trees.feature, trees.left, trees.right
    for i in range(n):
        for tree in range(len(trees.roots)):
            runs[0, 0], runs[1, 0], runs[2, 0] = trees.roots[tree], 0, n_places
            top = 0
            while top >= 0:
                node, start, stop = runs[0, top], runs[1, top], runs[2, top]
                while node >= 0:
                    middle = place_cut[node]
                    if middle < 0:
                        is_left = goes_left(trees, node, X[i, feature[node]])
                    else:
                        is_left = middle > start
                        if start < middle < stop:
                            # The places part here: the upper ones wait, the lower ones
                            # go on.
                            runs[0, top], runs[1, top] = right[node], middle
                            runs[2, top] = stop
                            top, stop = top + 1, middle
                    node = left[node] if is_left else right[node]
                top -= 1
                value = trees.leaf_value[-node - 1]
                for k in range(start, stop):
                    sums[i, k] += value
