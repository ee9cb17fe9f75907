"""Sums of trees at all thresholds at once: a row goes down a tree once, not N times."""

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array, Int64Array

# A child less than zero is the leaf with number -child - 1.


@njit
def _goes_left(
    value: float,
    kind: int,
    cut: float,
    missing_left: int,
    category_words: Int64Array,
    first_word: int,
    n_words: int,
) -> bool:
    """Say where a value goes: kind 0 number, NaN as 0; 1 number, NaN known; 2 category.

    Of a category, word w of the node holds in bit b whether 32 w + b goes left.
    """
    if kind == 2:
        if np.isnan(value) or value < 0.0:
            return False
        code = int(value)
        word = code // 32
        if word >= n_words:
            return False
        return bool((category_words[first_word + word] >> (code % 32)) & 1)
    if np.isnan(value):
        if kind == 1:
            return missing_left == 1
        value = 0.0
    return value <= cut


@njit
def sum_trees(
    X: Float64Array,
    n_places: int,
    roots: Int64Array,
    feature: Int64Array,
    kind: Int64Array,
    cut: Float64Array,
    missing_left: Int64Array,
    place_cut: Int64Array,
    left: Int64Array,
    right: Int64Array,
    first_word: Int64Array,
    n_words: Int64Array,
    category_words: Int64Array,
    leaf_value: Float64Array,
) -> Float64Array:
    """Sum the leaves that rows reach in trees with a threshold feature, (n, n_places).

    Nodes and leaves of all trees lie one after the other; `roots` are nodes, or
    leaves where a tree has but one. A node with `place_cut` >= 0 splits on the
    threshold: places below that number go left, the others right. At such a node
    both ways are followed, each for its run of places.

    Every place is added to in the order of the trees and rounded addition is
    monotone, so where all trees increase along the places the sums do, exactly.
    """
    n = X.shape[0]
    sums = np.zeros((n, n_places))
    # More runs than places cannot be open at a time.
    nodes = np.empty(n_places + 1, dtype=np.int64)
    starts = np.empty(n_places + 1, dtype=np.int64)
    stops = np.empty(n_places + 1, dtype=np.int64)
    for i in range(n):
        for root in roots:
            nodes[0], starts[0], stops[0] = root, 0, n_places
            n_open = 1
            while n_open > 0:
                n_open -= 1
                node, start, stop = nodes[n_open], starts[n_open], stops[n_open]
                while node >= 0:
                    middle = place_cut[node]
                    if middle < 0:
                        goes_left = _goes_left(
                            X[i, feature[node]],
                            kind[node],
                            cut[node],
                            missing_left[node],
                            category_words,
                            first_word[node],
                            n_words[node],
                        )
                        node = left[node] if goes_left else right[node]
                    elif middle <= start:
                        node = right[node]
                    elif middle >= stop:
                        node = left[node]
                    else:
                        nodes[n_open] = right[node]
                        starts[n_open], stops[n_open] = middle, stop
                        n_open += 1
                        node, stop = left[node], middle
                value = leaf_value[-node - 1]
                for k in range(start, stop):
                    sums[i, k] += value
    return sums
