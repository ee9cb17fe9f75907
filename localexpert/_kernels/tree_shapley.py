"""Exact Shapley values of sums of trees against background rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array, Int64Array
from localexpert._kernels.threshold_trees import TreeArrays, goes_left


class _Ways(NamedTuple):
    """Stack of ways down a tree: who has chosen on each, what, and where it goes on.

    Way w goes on at `node[w]`; `length[w]` players have chosen on it, `chosen[w, k]`
    in turn, and `with_x[w, k]` is 1 for "with x" and 0 for "with b". Every choice
    opens one way more, so there are no more of them than players and one.
    """

    chosen: Int64Array
    with_x: Int64Array
    length: Int64Array
    node: Int64Array


@njit
def turn_left(X: Float64Array, trees: TreeArrays) -> NDArray[np.bool_]:
    """Say for every row and node whether the row goes left there, shape (n, n_nodes).

    Rows and background rows meet at every node, so this is asked once for each row
    and not once for each pair.
    """
    n, n_nodes = X.shape[0], len(trees.feature)
    turns = np.empty((n, n_nodes), dtype=np.bool_)
    for i in range(n):
        for node in range(n_nodes):
            turns[i, node] = goes_left(trees, node, X[i, trees.feature[node]])
    return turns


@njit
def leaf_shares(n_players: int) -> Float64Array:
    """Return a! b! / (a + b)! for a, b from 0 to the number of players.

    By share[a, b] = share[a - 1, b] a / (a + b): factorials would overflow.
    """
    share = np.ones((n_players + 1, n_players + 1))
    for a in range(1, n_players + 1):
        for b in range(n_players + 1):
            share[a, b] = share[a - 1, b] * a / (a + b)
    return share


@inner
def _find_choice(
    chosen: Int64Array, with_x: Int64Array, length: int, player: int
) -> int:
    """Return what a player chose on the way: 1 with x, 0 with b, -1 nothing yet."""
    for k in range(length):
        if chosen[k] == player:
            return int(with_x[k])
    return -1


@inner
def _share_leaf(
    values: Float64Array,
    chosen: Int64Array,
    with_x: Int64Array,
    length: int,
    leaf: float,
    share: Float64Array,
) -> None:
    """Add a leaf's part to those who went with x, and take it off the others.

    Over all orders in which players join, those in A come first, and then one of
    theirs is the last of them, with probability a! b! / (a + b)! / a for each. For
    those in B it is the first of theirs that spoils the leaf.
    """
    a = 0
    for k in range(length):
        a += with_x[k]
    part = leaf * share[a, length - a]
    for k in range(length):
        if with_x[k] == 1:
            values[chosen[k]] += part / a
        else:
            values[chosen[k]] -= part / (length - a)


@inner
def _add_pair(
    values: Float64Array,
    x_left: NDArray[np.bool_],
    b_left: NDArray[np.bool_],
    player: Int64Array,
    trees: TreeArrays,
    ways: _Ways,
    share: Float64Array,
) -> None:
    """Add what all trees say of one row and one background row to the values."""
    left, right, leaf_value = trees.left, trees.right, trees.leaf_value
    # Arrays from here on: a tuple that is handed on counts a reference to each of
    # its arrays, which would take longer than the walk from one choice to the next.
    chosen, with_x, lengths, nodes = ways
    for root in trees.roots:
        nodes[0], lengths[0] = root, 0
        top = 0
        while top >= 0:
            node, length = nodes[top], lengths[top]
            while node >= 0:
                go_left = x_left[node]
                if go_left != b_left[node]:
                    mine = player[node]
                    choice = _find_choice(chosen[top], with_x[top], length, mine)
                    if choice == 0:
                        go_left = not go_left
                    elif choice < 0:
                        # b's way waits in this slot; x's goes on in the next.
                        chosen[top, length], with_x[top, length] = mine, 0
                        nodes[top] = right[node] if go_left else left[node]
                        chosen[top + 1] = chosen[top]
                        with_x[top + 1] = with_x[top]
                        with_x[top + 1, length] = 1
                        length += 1
                        lengths[top] = length
                        top += 1
                node = left[node] if go_left else right[node]
            leaf = leaf_value[-node - 1]
            _share_leaf(values, chosen[top], with_x[top], length, leaf, share)
            top -= 1


@njit
def tree_shapley(
    x_left: NDArray[np.bool_],
    b_left: NDArray[np.bool_],
    player: Int64Array,
    n_players: int,
    trees: TreeArrays,
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
    trees : TreeArrays

    References
    ----------
    Lundberg et al. (2020), From local explanations to global understanding with
    explainable AI for trees ("interventional").
    """
    n, m = x_left.shape[0], b_left.shape[0]
    share = leaf_shares(n_players)
    values = np.zeros((n, n_players))
    size = n_players + 1
    ways = _Ways(
        np.empty((size, size), dtype=np.int64),
        np.empty((size, size), dtype=np.int64),
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int64),
    )
    for i in range(n):
        for j in range(m):
            _add_pair(values[i], x_left[i], b_left[j], player, trees, ways, share)
    # The mean over background rows; a Shapley value is linear in the game.
    values /= m
    return values
