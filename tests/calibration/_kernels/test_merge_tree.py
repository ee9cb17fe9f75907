"""Sums over a forest of merging blocks against solutions formed one by one."""

import numpy as np
import pytest
from scipy.special import xlog1py, xlogy

from calibration._kernels.near_isotonic import (
    average_blocks,
    blocks_at,
    fuse_equal,
    log_likelihoods,
    trace_path,
)


def make_path(rng, m, kind):
    """A path of m cells: (tree, penalties, n_blocks, ones, weight)."""
    weight1 = (rng.uniform(size=m) < np.linspace(0.2, 0.8, m)).astype(float)
    weight0 = 1.0 - weight1
    if kind == "mixed":
        weight0 += rng.integers(0, 3, m)
        weight1 += rng.integers(0, 3, m)
    if kind == "chain":  # a staircase down that merges from its ends
        weight1 = np.arange(m, 0.0, -1.0) ** 1.5
        weight0 = np.full(m, m**1.5) - weight1 + 1.0
    _, ones, weight = fuse_equal(weight0, weight1)
    return *trace_path(ones, weight), ones, weight


def climb(tree, leaf, step):
    """The node that holds a leaf after a step, by searching for parents."""
    n_leaves = len(tree.birth) - len(tree.cut)
    node = leaf
    while True:
        above = np.flatnonzero((tree.left == node) | (tree.right == node))
        if len(above) == 0 or tree.birth[n_leaves + above[0]] > step:
            return node
        node = n_leaves + above[0]


def leaf_values(tree, step, penalty, n_leaves):
    nodes = np.array([climb(tree, leaf, step) for leaf in range(n_leaves)])
    return (tree.ones[nodes] + penalty * tree.pull[nodes]) / tree.weight[nodes], nodes


@pytest.mark.parametrize("kind", ["pure", "mixed", "chain"])
def test_blocks_at_a_step_are_those_that_leaves_belong_to(rng, kind):
    tree, penalties, n_blocks, ones, _ = make_path(rng, 60, kind)
    for step in range(-1, len(penalties)):
        expected = [climb(tree, leaf, step) for leaf in range(len(ones))]
        count = n_blocks[step] if step >= 0 else len(ones)
        nodes, starts = blocks_at(tree, step, count)
        sizes = np.diff(starts, append=len(ones))
        assert np.repeat(nodes, sizes).tolist() == expected


@pytest.mark.parametrize("kind", ["pure", "mixed", "chain"])
def test_log_likelihoods_are_sums_over_rows_and_never_increase(rng, kind):
    tree, penalties, n_blocks, ones, weight = make_path(rng, 60, kind)
    floor = 0.5 / (weight.sum() + 1.0)
    steps = np.arange(len(penalties))
    found = log_likelihoods(tree, steps, penalties, n_blocks, floor)
    for step in steps:
        p, _ = leaf_values(tree, step, penalties[step], len(ones))
        p = np.clip(p, floor, 1.0 - floor)
        expected = (xlogy(ones, p) + xlog1py(weight - ones, -p)).sum()
        assert found[step] == pytest.approx(expected, rel=1e-12)
    assert (np.diff(found) < 1e-9).all()
    some = steps[1::3]
    np.testing.assert_array_equal(
        log_likelihoods(tree, some, penalties[some], n_blocks[some], floor), found[some]
    )


@pytest.mark.parametrize("kind", ["pure", "mixed", "chain"])
def test_average_is_the_sum_of_solutions(rng, kind):
    tree, penalties, n_blocks, ones, _ = make_path(rng, 60, kind)
    for share in (0.1, 0.5, 1.0):
        steps = np.flatnonzero(rng.uniform(size=len(penalties)) < share)
        if len(steps) == 0:
            continue
        weights = rng.uniform(size=len(steps))
        expected = np.zeros(len(ones))
        for step, w in zip(steps, weights, strict=True):
            expected += w * leaf_values(tree, step, penalties[step], len(ones))[0]
        count = n_blocks[steps[0]]
        starts, means = average_blocks(tree, steps, penalties[steps], weights, count)
        sizes = np.diff(starts, append=len(ones))
        np.testing.assert_allclose(np.repeat(means, sizes), expected, atol=1e-13)
        _, nodes = leaf_values(tree, steps[0], 0.0, len(ones))
        assert len(means) == len(np.unique(nodes)) == count
