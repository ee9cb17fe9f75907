"""The whole path of near-isotonic regression on cells of 0/1 labels.

Every block of every solution on the path is a node of one binary forest. So no solution
needs to be stored: solution t is the nodes that are alive at step t. A heap tells which
blocks merge next.
"""

import math
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array, Int64Array

# A step that never comes. The roots of the forest would merge at it.
_NEVER = np.iinfo(np.int64).max


class MergeTree(NamedTuple):
    """Binary forest of blocks: the leaves from left to right, then the merges in order.

    Node v has `weight[v]` rows, of which `ones[v]` are of class 1. While it is alive,
    it has the value (ones[v] + penalty * pull[v]) / weight[v]. It starts at leaf
    `first[v]`. It is made at step `birth[v]` (-1 if it is a leaf). Its parent (-1 if it
    has none) comes later in the arrays, and is made at step `death[v]`.
    """

    ones: Float64Array
    weight: Float64Array
    pull: Float64Array
    first: Int64Array
    parent: Int64Array
    birth: Int64Array
    death: Int64Array


def blocks_at(tree: MergeTree, step: int) -> tuple[Int64Array, Int64Array]:
    """Return nodes alive after `step` and their first leaves, left to right, O(n)."""
    nodes = np.flatnonzero((tree.birth <= step) & (tree.death > step))
    at = np.full(np.count_nonzero(tree.birth < 0), -1)
    at[tree.first[nodes]] = nodes
    starts = np.flatnonzero(at >= 0)
    return at[starts], starts


@njit
def log_likelihoods(
    tree: MergeTree, steps: Int64Array, penalties: Float64Array, floor: float
) -> Float64Array:
    """Return the Bernoulli log-likelihood of the labels at some breakpoints, (k,).

    Parameters
    ----------
    steps, penalties : ndarrays of shape (k,)
        Steps, and the penalty of each step.
    floor : float
        Probabilities are clipped to [floor, 1 - floor].
    """
    out = np.zeros(len(steps))
    for i in range(len(steps)):
        for node in range(np.searchsorted(tree.birth, steps[i], side="right")):
            if tree.death[node] <= steps[i]:
                continue
            ones, weight = tree.ones[node], tree.weight[node]
            p = (ones + penalties[i] * tree.pull[node]) / weight
            p = min(max(p, floor), 1.0 - floor)
            # Labels are 0 or 1, so a block with one value needs only its counts.
            out[i] += ones * math.log(p) + (weight - ones) * math.log1p(-p)
    return out


@njit
def average_nodes(
    tree: MergeTree, steps: Int64Array, penalties: Float64Array, shares: Float64Array
) -> Float64Array:
    """Return the weighted mean of the solutions at some breakpoints.

    It is a mean for each block of the first of them. The mean of a leaf is a sum over
    the nodes above it. A node that is alive at the steps from i to j - 1 adds
    (ones (A_j - A_i) + pull (C_j - C_i)) / weight. Here A and C are the running sums of
    share and of share * penalty.

    Parameters
    ----------
    steps, penalties, shares : ndarrays of shape (k,)
        Increasing steps, their penalties and their weights in the mean.

    Returns
    -------
    ndarray of shape (n_nodes,)
        The means of the nodes that are alive at the first of the steps, or later.
    """
    mass, moment = np.zeros(len(steps) + 1), np.zeros(len(steps) + 1)
    mass[1:] = np.cumsum(shares)
    moment[1:] = np.cumsum(shares * penalties)
    means = np.zeros(len(tree.birth))
    # Parents come first.
    for node in range(len(means) - 1, -1, -1):
        if tree.death[node] > steps[0]:
            begin = np.searchsorted(steps, tree.birth[node])
            end = np.searchsorted(steps, tree.death[node])
            total = tree.ones[node] * (mass[end] - mass[begin])
            total += tree.pull[node] * (moment[end] - moment[begin])
            means[node] = total / tree.weight[node]
            if tree.parent[node] >= 0:
                means[node] += means[tree.parent[node]]
    return means


# Means of neighbours that are this close (relative to their cross products) are one
# mean. Integer weights are compared exactly if their products stay below 2^50.
_SAME_MEAN = 4 * np.finfo(np.float64).eps
# Meetings are one step of the path if their penalties differ by less than this share.
_SAME_STEP = 1e-12


def fuse_equal(
    weight0: Float64Array, weight1: Float64Array
) -> tuple[Int64Array, Float64Array, Float64Array]:
    """Return runs of neighbouring cells with one mean. They move together from 0 on.

    Returns
    -------
    starts, ones, weight : ndarrays of shape (n_runs,)
        First cell of each run, its weight of class 1 and of both classes.
    """
    # Means are compared by cross products, which are exact for integer weights.
    a, b = weight1[:-1] * weight0[1:], weight1[1:] * weight0[:-1]
    differ = np.abs(a - b) > _SAME_MEAN * np.maximum(a, b)
    starts = np.append(0, np.flatnonzero(differ) + 1)
    ones = np.add.reduceat(weight1, starts)
    return starts, ones, np.add.reduceat(weight0, starts) + ones


class _Front(NamedTuple):
    """The blocks of the present solution, and when neighbours will meet.

    Boundary b lies between leaves b - 1 and b. `falls[b]` says whether the values fall
    there (0 at both ends). It never changes while the boundary stands. `first[i]` is
    for the last leaf i of a block. `node[f]` and `last[f]` are for the first leaf f of
    a block. `meets[b]` is the penalty at which boundary b vanishes, or -1 once it has
    vanished.
    """

    falls: Float64Array
    first: Int64Array
    last: Int64Array
    node: Int64Array
    meets: Float64Array


def trace_path(
    ones: Float64Array, weight: Float64Array
) -> tuple[MergeTree, Float64Array, Int64Array]:
    """Return the near-isotonic regressions for all penalties.

    They solve min 1/2 sum w (y - b)^2 + penalty * sum (b_i - b_{i+1})_+. This is
    modified pool adjacent violators (Tibshirani, Hoefling & Tibshirani 2011). In a
    block the solution is (ones + penalty (s_before - s_after)) / weight. Here s is 1 at
    a boundary where values fall, and 0 where they rise (003 eq. 3.18). Blocks that meet
    stay together, so the boundaries that are left keep their s. A heap of meetings
    gives the path in O(n log n). With integer weights a penalty is one rounded quotient
    of exact integers. So meetings at the same time have equal penalties.

    Parameters
    ----------
    ones, weight : ndarrays of shape (n_runs,)
        Weight of class 1 and of both classes in runs of different means.

    Returns
    -------
    tree : MergeTree
    penalties : ndarray of shape (n_steps,)
        Increasing penalties at which blocks meet. The last solution is the isotonic
        regression. If that is also the first, it is one step at 0.
    n_blocks : ndarray of shape (n_steps,)
        Number of blocks from each penalty on.
    """
    tree, penalties, n_blocks, n_steps = _trace(ones, weight)
    n_nodes = 2 * len(ones) - n_blocks[n_steps - 1]
    tree = MergeTree._make(part[:n_nodes].copy() for part in tree)
    return tree, penalties[:n_steps].copy(), n_blocks[:n_steps].copy()


@njit
def _trace(
    ones: Float64Array, weight: Float64Array
) -> tuple[MergeTree, Float64Array, Int64Array, int]:
    """Return what `trace_path` does, with room at the ends, and the number of steps."""
    k = n_nodes = len(ones)
    front, tree = _start(ones, weight)
    # Meetings, and their boundaries. Those that `meets` contradicts are out of date. So
    # is the first one, because there is no boundary 0. The compiler takes the types
    # from it.
    heap = [(0.0, 0)]
    for b in range(1, k):
        _schedule(front, tree, heap, b, 0.0)
    penalties, n_blocks = np.zeros(max(k - 1, 1)), np.full(max(k - 1, 1), k)
    step, end = -1, -1.0
    while len(heap) > 0:
        now, boundary = heappop(heap)
        if front.meets[boundary] != now:
            continue
        if now > end:
            step += 1
            penalties[step] = now
            # Meetings that differ only by rounding are one step, with one penalty.
            end = now * (1.0 + _SAME_STEP)
        front.meets[boundary] = -1.0
        met = [boundary]
        while len(heap) > 0 and heap[0][0] <= end:
            key, boundary = heappop(heap)
            if front.meets[boundary] == key:
                # From now on all other entries of this boundary are out of date.
                front.meets[boundary] = -1.0
                met.append(boundary)
        # Go from left to right, so that a run of boundaries becomes one block.
        met.sort()
        for i in range(len(met)):
            f = _merge(front, tree, met[i], n_nodes, step)
            n_nodes += 1
            beyond = front.last[f] + 1
            if i + 1 < len(met) and met[i + 1] == beyond:
                continue  # the block grows on
            if f > 0:
                _schedule(front, tree, heap, f, penalties[step])
            if beyond < k:
                _schedule(front, tree, heap, beyond, penalties[step])
        n_blocks[step] = 2 * k - n_nodes
    return tree, penalties, n_blocks, max(step + 1, 1)


@inner
def _start(ones: Float64Array, weight: Float64Array) -> tuple[_Front, MergeTree]:
    """Return the front at penalty 0, where leaves are blocks, and a tree with room."""
    k = len(ones)
    falls = np.zeros(k + 1)
    # This is the sign of the step at a boundary, at penalty 0. Blocks merge only when
    # they meet, so the sign stays while the boundary stands.
    falls[1:k] = ones[:-1] * weight[1:] > ones[1:] * weight[:-1]
    leaves = np.arange(k)
    front = _Front(falls, leaves.copy(), leaves.copy(), leaves, np.full(k, -1.0))
    room = np.zeros(k - 1)
    tree = MergeTree(
        np.concatenate((ones, room)),
        np.concatenate((weight, room)),
        np.concatenate((falls[:-1] - falls[1:], room)),
        np.concatenate((leaves, leaves[1:])),
        np.full(2 * k - 1, -1),
        np.full(2 * k - 1, -1),
        np.full(2 * k - 1, _NEVER),
    )
    return front, tree


@inner
def _schedule(
    front: _Front, tree: MergeTree, heap: list[tuple[float, int]], b: int, now: float
) -> None:
    """Put the meeting of the blocks at boundary b, if they will meet, on the heap.

    The gap between two neighbours can only close. If rounding shows that it is closed
    already, or negative, it closes now.
    """
    a, c = front.node[front.first[b - 1]], front.node[b]
    sign = 1.0 if front.falls[b] else -1.0
    # The gap, and the rate at which it closes, both times the product of the weights.
    gap = sign * (tree.ones[a] * tree.weight[c] - tree.ones[c] * tree.weight[a])
    rate = sign * (tree.pull[c] * tree.weight[a] - tree.pull[a] * tree.weight[c])
    # If it is zero or less, they have met already.
    if gap <= rate * now:
        meets = now
    elif rate > 0.0:
        meets = gap / rate
    else:
        meets = np.inf
    front.meets[b] = meets
    if meets < np.inf:
        heappush(heap, (meets, b))


@inner
def _merge(front: _Front, tree: MergeTree, b: int, new: int, step: int) -> int:
    """Make node `new` of the blocks at boundary b, and return its first leaf."""
    f, i = int(front.first[b - 1]), front.last[b]
    a, c = front.node[f], front.node[b]
    tree.ones[new] = tree.ones[a] + tree.ones[c]
    tree.weight[new] = tree.weight[a] + tree.weight[c]
    # Inner boundaries cancel. A block is pulled at its two ends only.
    tree.pull[new] = front.falls[f] - front.falls[i + 1]
    tree.first[new], tree.birth[new] = f, step
    tree.parent[a] = tree.parent[c] = new
    tree.death[a] = tree.death[c] = step
    front.node[f], front.last[f], front.first[i] = new, i, f
    return f
