"""The whole path of near-isotonic regression on cells of 0/1 labels.

Every block of every solution on the path is a node of one binary forest, so that no
solution needs to be stored: solution t is the nodes alive at step t. Which blocks merge
next a binary heap tells, in arrays with room to grow.
"""

import math
from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array, Int64Array


@njit
def push(
    keys: Float64Array, items: Int64Array, size: int, key: float, item: int
) -> None:
    """Add an entry to the heap in the first `size` places, which becomes one longer."""
    i = size
    # Sift up: a hole moves to the root while its parent is greater.
    while i > 0 and keys[(i - 1) // 2] > key:
        keys[i], items[i] = keys[(i - 1) // 2], items[(i - 1) // 2]
        i = (i - 1) // 2
    keys[i], items[i] = key, item


@njit
def pop_least(keys: Float64Array, items: Int64Array, size: int) -> None:
    """Remove the entry of least key, which stands first; the heap is one shorter."""
    key, item = keys[size - 1], items[size - 1]
    i = 0
    # Sift down: the last entry fills the hole that the least one leaves.
    while 2 * i + 1 < size - 1:
        child = 2 * i + 1
        if child + 1 < size - 1 and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], items[i] = keys[child], items[child]
        i = child
    keys[i], items[i] = key, item


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


# Means of neighbours this close (relative to their cross products) are one mean;
# integer weights whose products stay below 2^50 are compared exactly.
_SAME_MEAN = 4 * np.finfo(np.float64).eps
# Meetings whose penalties differ by less than this share are one step of the path.
_SAME_STEP = 1e-12


class _Front(NamedTuple):
    """The blocks of the present solution, and when neighbours will meet.

    Boundary b lies between leaves b - 1 and b. `falls[b]` says whether the values
    fall there; that never changes while the boundary stands (0 at both ends).
    `first[i]` and `node[f]` hold for a last leaf i and a first leaf f of a block,
    `last[f]` too. `meets[b]` is the penalty at which boundary b vanishes, -1 once it
    has. `keys` and `items` are a binary heap of meetings and boundaries, in which
    entries that `meets` contradicts are out of date. `sizes` holds the heap's size,
    and the numbers of nodes and of blocks.
    """

    falls: Float64Array
    first: Int64Array
    last: Int64Array
    node: Int64Array
    meets: Float64Array
    keys: Float64Array
    items: Int64Array
    sizes: Int64Array


@njit
def fuse_equal(
    weight0: Float64Array, weight1: Float64Array
) -> tuple[Int64Array, Float64Array, Float64Array]:
    """Runs of neighbouring cells with one mean, which move together from penalty 0 on.

    Returns
    -------
    starts, ones, weight : ndarrays of shape (n_runs,)
        First cell of each run, its weight of class 1 and of both classes.
    """
    m = len(weight0)
    starts = np.empty(m, dtype=np.int64)
    zeros, ones = np.empty(m), np.empty(m)
    k = -1
    for i in range(m):
        if i > 0:
            # Means are compared by cross products, which are exact for integer weights.
            a, b = weight1[i - 1] * weight0[i], weight1[i] * weight0[i - 1]
            if abs(a - b) <= _SAME_MEAN * max(a, b):
                zeros[k] += weight0[i]
                ones[k] += weight1[i]
                continue
        k += 1
        starts[k], zeros[k], ones[k] = i, weight0[i], weight1[i]
    k += 1
    return starts[:k].copy(), ones[:k].copy(), zeros[:k] + ones[:k]


@njit
def trace_path(
    ones: Float64Array, weight: Float64Array
) -> tuple[MergeTree, Float64Array, Int64Array]:
    """All solutions of min 1/2 sum w (y - b)^2 + penalty * sum (b_i - b_{i+1})_+.

    Modified pool adjacent violators (Tibshirani, Hoefling & Tibshirani 2011). In a
    block the solution is (ones + penalty (s_before - s_after)) / weight, s being 1
    at a boundary where values fall and 0 where they rise (003 eq. 3.18). Blocks that
    meet stay together, so the boundaries that are left keep their s, and a heap of
    meetings gives the path in O(n log n). With integer weights a penalty is one
    rounded quotient of exact integers: simultaneous meetings have equal penalties.

    Parameters
    ----------
    ones, weight : ndarrays of shape (n_runs,)
        Weight of class 1 and of both classes in runs of different means.

    Returns
    -------
    tree : MergeTree
    penalties : ndarray of shape (n_steps,)
        Increasing penalties at which blocks meet. The last solution is the isotonic
        regression. If that is also the first, it is given as one step at 0.
    n_blocks : ndarray of shape (n_steps,)
        Number of blocks from each penalty on.
    """
    n_leaves = len(ones)
    front, tree = _start(ones, weight)
    penalties = np.zeros(max(n_leaves - 1, 1))
    n_blocks = np.full(len(penalties), n_leaves)
    met = np.empty(n_leaves, dtype=np.int64)
    step, end = -1, -1.0
    while True:
        _settle_top(front)
        if front.sizes[0] == 0:
            break
        if front.keys[0] > end:
            step += 1
            penalties[step] = front.keys[0]
            # Meetings that differ by rounding only are one step, with one penalty.
            end = penalties[step] * (1.0 + _SAME_STEP)
        count = _take_met(front, met, end)
        _merge_met(front, tree, met[:count], step, penalties[step])
        n_blocks[step] = front.sizes[2]
    n_steps = max(step + 1, 1)
    return _finish(front, tree), penalties[:n_steps].copy(), n_blocks[:n_steps].copy()


@njit
def largest_violation(
    values: Float64Array, weight0: Float64Array, weight1: Float64Array, penalty: float
) -> float:
    """Most by which values miss the conditions of optimality at `penalty`, O(n).

    The values minimise the objective if and only if the running sums
    u_k = sum_{i <= k} w_i (y_i - b_i) lie in [0, penalty], are `penalty` where values
    fall and 0 where they rise and at the end. The result is in the unit of weights.
    """
    m = len(values)
    running, lost, worst = 0.0, 0.0, 0.0
    for i in range(m):
        # Kahan's sum: rounding must not pass for a violation on many cells.
        term = weight1[i] - (weight0[i] + weight1[i]) * values[i] - lost
        before = running
        running += term
        lost = (running - before) - term
        low, high = 0.0, penalty
        if i == m - 1 or values[i] < values[i + 1]:
            high = 0.0
        elif values[i] > values[i + 1]:
            low = penalty
        worst = max(worst, low - running, running - high)
    return worst


@inner
def _start(ones: Float64Array, weight: Float64Array) -> tuple[_Front, MergeTree]:
    """The front at penalty 0, every leaf a block, and a tree with room for merges."""
    k = len(ones)
    falls = np.zeros(k + 1)
    # The sign of the step at a boundary, at penalty 0. Blocks only merge when they
    # meet, so it stays while the boundary stands.
    falls[1:k] = ones[:-1] * weight[1:] > ones[1:] * weight[:-1]
    leaves = np.arange(k)
    front = _Front(
        falls,
        leaves.copy(),
        leaves.copy(),
        leaves.copy(),
        np.full(k, -1.0),
        # Each merge takes one boundary away and schedules its two neighbours anew: with
        # the first k there are fewer than 3 k entries.
        np.empty(3 * k),
        np.empty(3 * k, dtype=np.int64),
        np.array([0, k, k]),
    )
    tree = MergeTree(
        np.concatenate((ones, np.empty(k - 1))),
        np.concatenate((weight, np.empty(k - 1))),
        np.concatenate((falls[:-1] - falls[1:], np.empty(k - 1))),
        np.full(2 * k - 1, -1),
        np.empty(k - 1, dtype=np.int64),
        np.empty(k - 1, dtype=np.int64),
        np.empty(k - 1, dtype=np.int64),
        leaves,
        leaves,
    )
    for b in range(1, k):
        _schedule(front, tree, b, 0.0)
    return front, tree


@inner
def _finish(front: _Front, tree: MergeTree) -> MergeTree:
    """The tree without the room that no merge took, and with its roots."""
    k, n_nodes, n_roots = len(front.first), front.sizes[1], front.sizes[2]
    starts = np.empty(n_roots, dtype=np.int64)
    f = 0
    for i in range(n_roots):
        starts[i] = f
        f = front.last[f] + 1
    return MergeTree(
        tree.ones[:n_nodes].copy(),
        tree.weight[:n_nodes].copy(),
        tree.pull[:n_nodes].copy(),
        tree.birth[:n_nodes].copy(),
        tree.left[: n_nodes - k].copy(),
        tree.right[: n_nodes - k].copy(),
        tree.cut[: n_nodes - k].copy(),
        front.node[starts],
        starts,
    )


@inner
def _schedule(front: _Front, tree: MergeTree, b: int, now: float) -> None:
    """Put the meeting of the blocks at boundary b, if there will be one, on the heap.

    The gap between two neighbours only ever closes. One that rounding shows as
    closed already, or as turned over, closes now.
    """
    a, c = front.node[front.first[b - 1]], front.node[b]
    sign = 1.0 if front.falls[b] else -1.0
    # Gap and its rate of closing, both times the product of the weights.
    gap = sign * (tree.ones[a] * tree.weight[c] - tree.ones[c] * tree.weight[a])
    rate = sign * (tree.pull[c] * tree.weight[a] - tree.pull[a] * tree.weight[c])
    # Zero or less: they have met already.
    if gap <= rate * now:
        meets = now
    elif rate > 0.0:
        meets = gap / rate
    else:
        meets = np.inf
    front.meets[b] = meets
    if meets < np.inf:
        push(front.keys, front.items, front.sizes[0], meets, b)
        front.sizes[0] += 1


@inner
def _take_met(front: _Front, met: Int64Array, end: float) -> int:
    """Move the boundaries that vanish by `end` from the heap to `met`; their number."""
    count = 0
    while front.sizes[0] > 0 and front.keys[0] <= end:
        met[count] = front.items[0]
        # No entry of the heap has that penalty: all others of this boundary are out of
        # date from now on.
        front.meets[met[count]] = -1.0
        _drop_top(front)
        _settle_top(front)
        count += 1
    return count


@inner
def _merge_met(
    front: _Front, tree: MergeTree, met: Int64Array, step: int, now: float
) -> None:
    """Merge across all boundaries that vanish in one step, then look ahead again."""
    if len(met) > 1:
        # From left to right, so that a run of boundaries becomes one block.
        met.sort()
    f = 0
    for i in range(len(met)):
        f = _merge(front, tree, met[i], step)
        if i + 1 < len(met) and met[i + 1] == front.last[f] + 1:
            continue  # the block grows on
        if f > 0:
            _schedule(front, tree, f, now)
        if front.last[f] + 1 < len(front.first):
            _schedule(front, tree, front.last[f] + 1, now)


@inner
def _merge(front: _Front, tree: MergeTree, b: int, step: int) -> int:
    """Make one node of the blocks at boundary b; its first leaf."""
    f, i = int(front.first[b - 1]), front.last[b]
    a, c = front.node[f], front.node[b]
    new = front.sizes[1]
    merge = new - len(front.first)
    tree.ones[new] = tree.ones[a] + tree.ones[c]
    tree.weight[new] = tree.weight[a] + tree.weight[c]
    # Inner boundaries cancel: what pulls at a block is at its two ends.
    tree.pull[new] = front.falls[f] - front.falls[i + 1]
    tree.birth[new] = step
    tree.left[merge], tree.right[merge], tree.cut[merge] = a, c, b
    front.node[f], front.last[f], front.first[i] = new, i, f
    front.sizes[1] += 1
    front.sizes[2] -= 1
    return f


@inner
def _drop_top(front: _Front) -> None:
    """Remove the least entry of the heap."""
    pop_least(front.keys, front.items, front.sizes[0])
    front.sizes[0] -= 1


@inner
def _settle_top(front: _Front) -> None:
    """Clear the heap's top of entries that are out of date."""
    while front.sizes[0] > 0 and front.meets[front.items[0]] != front.keys[0]:
        _drop_top(front)
