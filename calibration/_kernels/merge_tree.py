"""The history of blocks that only ever merge, and sums over it.

Every block of every solution on a near-isotonic path is a node of one binary forest,
so that no solution needs to be stored: solution t is the nodes alive at step t.
"""

import math
from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array, Int64Array


class MergeTree(NamedTuple):
    """Binary forest of blocks: K leaves from left to right, then merges in order.

    Node v has `weight[v]` rows, `ones[v]` of class 1, and, while it is alive, the
    value (ones[v] + penalty * pull[v]) / weight[v]. It is made at step `birth[v]`
    (-1: a leaf) of nodes `left[v - K]` and `right[v - K]`; the right one starts at
    leaf `cut[v - K]`. `roots` are the nodes that never merge, from left to right.
    """

    ones: Float64Array
    weight: Float64Array
    pull: Float64Array
    birth: Int64Array
    left: Int64Array
    right: Int64Array
    cut: Int64Array
    roots: Int64Array
    root_starts: Int64Array


@njit
def blocks_at(
    tree: MergeTree, step: int, n_blocks: int
) -> tuple[Int64Array, Int64Array]:
    """Nodes alive after step `step` and their first leaves, left to right, O(n_blocks).

    A node is alive from its own step on until the step of its parent. All nodes
    that are waiting on the stack hold a block of their own, so it never overflows.
    """
    n_leaves = len(tree.birth) - len(tree.cut)
    nodes = np.empty(n_blocks, dtype=np.int64)
    starts = np.empty(n_blocks, dtype=np.int64)
    stack = np.empty(n_blocks, dtype=np.int64)
    stack_starts = np.empty(n_blocks, dtype=np.int64)
    size = len(tree.roots)
    # The leftmost on top, so that blocks are found from left to right.
    stack[:size] = tree.roots[::-1]
    stack_starts[:size] = tree.root_starts[::-1]
    found = 0
    while size > 0:
        size -= 1
        node, start = stack[size], stack_starts[size]
        # Children are older than their parent: from the root down the first one that is
        # alive covers its leaves.
        if tree.birth[node] <= step:
            nodes[found], starts[found] = node, start
            found += 1
            continue
        merge = node - n_leaves
        stack[size], stack_starts[size] = tree.right[merge], tree.cut[merge]
        stack[size + 1], stack_starts[size + 1] = tree.left[merge], start
        size += 2
    return nodes, starts


@njit
def log_likelihoods(
    tree: MergeTree,
    steps: Int64Array,
    penalties: Float64Array,
    n_blocks: Int64Array,
    floor: float,
) -> Float64Array:
    """Bernoulli log-likelihood of the labels at some breakpoints, shape (k,).

    Parameters
    ----------
    steps, penalties, n_blocks : ndarrays of shape (k,)
        A step, its penalty and its number of blocks.
    floor : float
        Probabilities are clipped to [floor, 1 - floor].
    """
    out = np.empty(len(steps))
    for i in range(len(steps)):
        nodes, _ = blocks_at(tree, steps[i], n_blocks[i])
        total = 0.0
        for node in nodes:
            ones, weight = tree.ones[node], tree.weight[node]
            p = (ones + penalties[i] * tree.pull[node]) / weight
            p = min(max(p, floor), 1.0 - floor)
            # A block of one value needs its counts only: the labels are Bernoulli.
            total += ones * math.log(p) + (weight - ones) * math.log1p(-p)
        out[i] = total
    return out


@njit
def average_blocks(
    tree: MergeTree,
    steps: Int64Array,
    penalties: Float64Array,
    shares: Float64Array,
    n_blocks: int,
) -> tuple[Int64Array, Float64Array]:
    """Weighted mean of the solutions at some breakpoints, O(n_blocks log k).

    A leaf's mean is a sum over the nodes above it. A node that is alive at the
    steps from i to j - 1 adds (ones (A_j - A_i) + pull (C_j - C_i)) / weight, A and C
    being the running sums of share and of share * penalty.

    Parameters
    ----------
    steps, penalties, shares : ndarrays of shape (k,)
        Increasing steps, their penalties and their weights in the mean.
    n_blocks : int
        Number of blocks at the first of the steps.

    Returns
    -------
    starts : ndarray of shape (n_blocks,)
        First leaf of each block of the first step, the finest.
    means : ndarray of shape (n_blocks,)
    """
    n_leaves = len(tree.birth) - len(tree.cut)
    k = len(steps)
    mass, moment = np.zeros(k + 1), np.zeros(k + 1)
    mass[1:] = np.cumsum(shares)
    moment[1:] = np.cumsum(shares * penalties)
    starts = np.empty(n_blocks, dtype=np.int64)
    means = np.empty(n_blocks)
    # Rows of the stack: node, first leaf, number of steps before its parent is born.
    stack = np.empty((n_blocks, 3), dtype=np.int64)
    above = np.zeros(n_blocks)
    size = len(tree.roots)
    stack[:size, 0] = tree.roots[::-1]
    stack[:size, 1] = tree.root_starts[::-1]
    stack[:size, 2] = k
    found = 0
    while size > 0:
        size -= 1
        node, start, end = stack[size]
        # Steps before `begin` have not seen this node yet; from `end` on its parent
        # stands in its place.
        begin = np.searchsorted(steps, tree.birth[node])
        share, pulled = mass[end] - mass[begin], moment[end] - moment[begin]
        total = tree.ones[node] * share + tree.pull[node] * pulled
        mean = above[size] + total / tree.weight[node]
        if begin == 0:
            starts[found], means[found] = start, mean
            found += 1
            continue
        merge = node - n_leaves
        stack[size, 0], stack[size, 1] = tree.right[merge], tree.cut[merge]
        stack[size + 1, 0], stack[size + 1, 1] = tree.left[merge], start
        stack[size : size + 2, 2] = begin
        above[size : size + 2] = mean
        size += 2
    return starts, means
