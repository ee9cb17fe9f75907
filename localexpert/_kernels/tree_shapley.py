"""Exact Shapley values of sums of trees against background rows."""

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import njit
from calibration.typing import Float64Array, Int64Array
from localexpert._kernels.threshold_trees import _goes_left


@njit
def turn_left(
    X: Float64Array,
    feature: Int64Array,
    kind: Int64Array,
    cut: Float64Array,
    missing_left: Int64Array,
    first_word: Int64Array,
    n_words: Int64Array,
    category_words: Int64Array,
) -> NDArray[np.bool_]:
    """Say for every row and node whether the row goes left there, shape (n, n_nodes).

    Nodes are laid out as in `sum_trees`.
    """
    n, n_nodes = X.shape[0], len(feature)
    goes_left = np.empty((n, n_nodes), dtype=np.bool_)
    for i in range(n):
        for node in range(n_nodes):
            goes_left[i, node] = _goes_left(
                X[i, feature[node]],
                kind[node],
                cut[node],
                missing_left[node],
                category_words,
                first_word[node],
                n_words[node],
            )
    return goes_left


@njit
def leaf_shares(n_players: int) -> Float64Array:
    """Return a! b! / (a + b)! for a, b from 0 to the number of players."""
    share = np.ones((n_players + 1, n_players + 1))
    for a in range(1, n_players + 1):
        for b in range(n_players + 1):
            share[a, b] = share[a - 1, b] * a / (a + b)
    return share


@njit
def _find_choice(
    chosen: Int64Array, with_x: Int64Array, length: int, player: int
) -> int:
    """Return what a player chose on the way: 1 with x, 0 with b, -1 nothing yet."""
    for k in range(length):
        if chosen[k] == player:
            return int(with_x[k])
    return -1


@njit
def _share_leaf(
    values: Float64Array,
    chosen: Int64Array,
    with_x: Int64Array,
    length: int,
    leaf: float,
    share: Float64Array,
) -> None:
    """Add a leaf's part to those who went with x, and take it off the others."""
    a = 0
    for k in range(length):
        a += with_x[k]
    part = leaf * share[a, length - a]
    for k in range(length):
        if with_x[k] == 1:
            values[chosen[k]] += part / a
        else:
            values[chosen[k]] -= part / (length - a)


@njit
def tree_shapley(
    x_left: NDArray[np.bool_],
    b_left: NDArray[np.bool_],
    player: Int64Array,
    n_players: int,
    roots: Int64Array,
    left: Int64Array,
    right: Int64Array,
    leaf_value: Float64Array,
) -> Float64Array:
    """Return every player's contribution to the sum of trees, shape (n, n_players).

    For an explained row x and a background row b, walk down every tree. Where both go
    the same way, follow them. Where they part, the player of the split is either in
    the coalition (go with x) or out of it (go with b): follow both ways, and keep to
    the choice farther down. A leaf with the players A in and the players B out is
    reached by the coalitions that hold A and nothing of B; with a and b their numbers,
    its value times a! b! / (a + b)! is split evenly over A, and taken off B evenly.

    Parameters
    ----------
    x_left, b_left : ndarrays of shape (n, n_nodes) and (m, n_nodes)
        See `turn_left`.
    player : ndarray of shape (n_nodes,)
        That of the feature which the node splits.
    n_players : int
    roots, left, right, leaf_value : ndarrays
        See `sum_trees`.

    References
    ----------
    Lundberg et al. (2020), From local explanations to global understanding with
    explainable AI for trees ("interventional").
    """
    n, m = x_left.shape[0], b_left.shape[0]
    share = leaf_shares(n_players)
    values = np.zeros((n, n_players))
    # A way per slot: who has chosen on it, what, and the node where it goes on. Every
    # choice opens one way more, so there are no more of them than choices and one.
    size = n_players + 1
    chosen = np.empty((size, size), dtype=np.int64)
    with_x = np.empty((size, size), dtype=np.int64)
    lengths, nodes = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for i in range(n):
        for j in range(m):
            for root in roots:
                nodes[0], lengths[0] = root, 0
                top = 0
                while top >= 0:
                    node, length = nodes[top], lengths[top]
                    while node >= 0:
                        go_left = x_left[i, node]
                        if go_left != b_left[j, node]:
                            choice = _find_choice(
                                chosen[top], with_x[top], length, player[node]
                            )
                            if choice == 0:
                                go_left = not go_left
                            elif choice < 0:
                                # b's way waits in this slot; x's goes on in the next.
                                chosen[top, length], with_x[top, length] = (
                                    player[node],
                                    0,
                                )
                                nodes[top] = right[node] if go_left else left[node]
                                chosen[top + 1] = chosen[top]
                                with_x[top + 1] = with_x[top]
                                with_x[top + 1, length] = 1
                                length += 1
                                lengths[top] = length
                                top += 1
                        node = left[node] if go_left else right[node]
                    _share_leaf(
                        values[i],
                        chosen[top],
                        with_x[top],
                        length,
                        leaf_value[-node - 1],
                        share,
                    )
                    top -= 1
    values /= m
    return values
