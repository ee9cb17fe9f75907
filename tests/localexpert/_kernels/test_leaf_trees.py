"""The walk to a leaf is scikit-learn's; the leaf holds its rows' shares."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from localexpert.experts.leaf_tree import LeafTree


@pytest.mark.parametrize("missing", [False, True])
def test_equals_a_tree_of_scikit_learn(rng, missing):
    """Grown on all indicators, a tree's own prediction is the share in the leaf."""
    n, n_thresholds = 400, 6
    X = rng.normal(size=(n, 3)).astype(np.float32)
    if missing:
        X[rng.random((n, 3)) < 0.1] = np.nan
    below = rng.integers(0, n_thresholds + 1, n)
    below[np.nan_to_num(X[:, 0]) > 0.3] //= 2
    weights = rng.uniform(0.5, 2.0, n)
    indicators = below[:, None] <= np.arange(n_thresholds)
    tree = DecisionTreeRegressor(min_samples_leaf=5, random_state=0)
    tree.fit(X, indicators, sample_weight=weights)
    nodes = tree.tree_
    leaves = LeafTree.fill(
        nodes.feature.astype(np.int32),
        nodes.threshold.copy(),
        nodes.missing_go_to_left.astype(bool),
        nodes.children_left.astype(np.int32),
        nodes.children_right.astype(np.int32),
        leaf_of=tree.apply(X),
        below=below,
        weights=weights,
        n_thresholds=n_thresholds,
    )

    new = rng.normal(size=(200, 3)).astype(np.float32)
    new[rng.random((200, 3)) < 0.2] = np.nan
    asked = rng.random(200) < 0.7
    sums, counts = np.ones((200, n_thresholds)), np.zeros(200)
    leaves.add(new.astype(np.float64), asked, sums, counts)
    np.testing.assert_allclose(sums[asked] - 1.0, tree.predict(new)[asked], atol=1e-6)
    np.testing.assert_array_equal(sums[~asked], 1.0)
    np.testing.assert_array_equal(counts, asked)
    assert (np.diff(sums[asked], axis=1) >= 0.0).all()
    steps = np.split(leaves.reached, leaves.first[1:-1])
    assert all((np.diff(step) >= 0.0).all() for step in steps)
    assert leaves.reached.max() == 1.0
    assert len(leaves.reached) <= n
