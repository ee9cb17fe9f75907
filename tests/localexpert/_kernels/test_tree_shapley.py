"""Shapley values of trees equal sums over all coalitions of what the trees say."""

from math import factorial

import numpy as np
import pytest

from localexpert._kernels.threshold_trees import TreeArrays, sum_trees
from localexpert._kernels.tree_shapley import leaf_shares, tree_shapley, turn_left


def random_trees(rng, n_trees, n_features, depth):
    """Arrays of trees with numbers, gaps and categories, with feature 0 a category."""
    nodes = {name: [] for name in ("feature", "kind", "cut", "gap", "left", "right")}
    leaves, roots = [], []

    def grow(level):
        if level == 0 or rng.random() < 0.2:
            leaves.append(rng.normal())
            return -len(leaves)
        node = len(nodes["feature"])
        feature = rng.integers(n_features)
        # Feature 0 is a category; both words of `category_words` serve all its nodes.
        row = (feature, 2 if feature == 0 else 1, rng.normal(), rng.integers(2), 0, 0)
        for name, value in zip(nodes, row, strict=True):
            nodes[name].append(value)
        nodes["left"][node] = grow(level - 1)
        nodes["right"][node] = grow(level - 1)
        return node

    for _ in range(n_trees):
        roots.append(grow(depth))
    ints = {k: np.array(v, dtype=np.int64) for k, v in nodes.items() if k != "cut"}
    n_nodes = len(nodes["cut"])
    words = rng.integers(2**32, size=2)
    return TreeArrays(
        roots=np.array(roots, dtype=np.int64),
        feature=ints["feature"],
        kind=ints["kind"],
        cut=np.array(nodes["cut"], dtype=np.float64),
        missing_left=ints["gap"],
        left=ints["left"],
        right=ints["right"],
        first_word=np.zeros(n_nodes, dtype=np.int64),
        n_words=np.full(n_nodes, 2, dtype=np.int64),
        category_words=words.astype(np.int64),
        leaf_value=np.array(leaves, dtype=np.float64),
    )


def random_rows(rng, n, n_features):
    X = rng.normal(size=(n, n_features))
    X[:, 0] = rng.integers(0, 70, n)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def ask(trees, X):
    no_threshold = np.full(len(trees.feature), -1, dtype=np.int64)
    return sum_trees(X, 1, trees, no_threshold)[:, 0]


def explain(trees, X, background, player, n_players):
    turns = [turn_left(T, trees) for T in (X, background)]
    return tree_shapley(*turns, player[trees.feature], n_players, trees)


def brute_force(trees, x, background, player, n_players):
    worth = []
    for code in range(2**n_players):
        inside = (code >> player) & 1 == 1
        worth.append(ask(trees, np.where(inside, x, background)).mean())
    values = np.zeros(n_players)
    for code in range(2**n_players):
        size = code.bit_count()
        for j in range(n_players):
            if not (code >> j) & 1:
                share = factorial(size) * factorial(n_players - size - 1)
                gain = worth[code | (1 << j)] - worth[code]
                values[j] += share / factorial(n_players) * gain
    return values


@pytest.mark.parametrize("player", [[0, 1, 2, 3], [0, 1, 0, 2], [0, 0, 0, 0]])
def test_equals_all_coalitions(rng, player):
    player = np.array(player)
    n_players = player.max() + 1
    trees = random_trees(rng, n_trees=6, n_features=4, depth=6)
    X, background = random_rows(rng, 4, 4), random_rows(rng, 5, 4)
    values = explain(trees, X, background, player, n_players)
    for x, value in zip(X, values, strict=True):
        truth = brute_force(trees, x, background, player, n_players)
        np.testing.assert_allclose(value, truth, atol=1e-12)
    assert np.abs(values).max() > 0.1
    # They add up to the difference from the mean of the background.
    gap = ask(trees, X) - ask(trees, background).mean()
    np.testing.assert_allclose(values.sum(axis=1), gap, atol=1e-12)


def test_trees_of_one_leaf_say_nothing(rng):
    trees = random_trees(rng, n_trees=3, n_features=3, depth=0)
    X = random_rows(rng, 2, 3)
    values = explain(trees, X, X, np.arange(3), 3)
    np.testing.assert_array_equal(values, np.zeros((2, 3)))


def test_shares_are_factorials():
    share = leaf_shares(6)
    for a in range(7):
        for b in range(7):
            truth = factorial(a) * factorial(b) / factorial(a + b)
            assert share[a, b] == pytest.approx(truth, rel=1e-13)
