"""Piecewise maps, and sums of a kernel over many rows, at many points."""

import numpy as np

from calibration._kernels._jit import for_kernels, inner, njit
from calibration.typing import Float64Array, Int64Array


def window_sums(
    values: Float64Array, first: Int64Array, length: Int64Array
) -> Float64Array:
    """Return the sum of `length` values from each `first` on.

    It is made from sums of runs of 1, 2, 4, ... values, as the bits of the length say.
    In differences of running sums, light rows would be lost beside heavy ones.
    """
    total, place, runs = np.zeros(len(first)), first.copy(), values
    width, longest = 1, length.max()
    while width <= longest:
        asked = np.flatnonzero(length & width)
        total[asked] += runs[place[asked]]
        place[asked] += width
        runs = runs[:-width] + runs[width:]
        width *= 2
    return total


def count_below(knots: Float64Array, points: Float64Array) -> Int64Array:
    """Return how many knots are <= each point (`searchsorted` side="right"), (n,).

    A table of buckets of equal width narrows the binary search. For unsorted points
    this is several times faster than a search over all knots, and it is never much
    slower.
    """
    out = np.empty(len(points), dtype=np.int64)
    _search_buckets(for_kernels(knots), for_kernels(points), out)
    return out


@njit
def _search_buckets(knots: Float64Array, points: Float64Array, out: Int64Array) -> None:
    k = len(knots)
    # There are two buckets for each knot. If knots are evenly spaced, a bucket has one
    # knot or none. With fewer points than knots, a table does not pay.
    n_buckets = 2 * k if len(points) >= k else 0
    span = knots[-1] - knots[0]
    per_bucket = n_buckets / span if span > 0.0 else 0.0
    # There are no buckets if the range of the knots overflows or vanishes.
    if not 0.0 < per_bucket < np.inf:
        n_buckets = 0
    first = np.zeros(n_buckets + 1, dtype=np.int64)
    if n_buckets > 0:
        for knot in knots:
            first[min(int((knot - knots[0]) * per_bucket), n_buckets - 1) + 1] += 1
    for bucket in range(n_buckets):
        first[bucket + 1] += first[bucket]
    for i in range(len(points)):
        point = points[i]
        if point < knots[0]:
            out[i] = 0
            continue
        if point >= knots[-1]:
            out[i] = k
            continue
        low, high = 0, k
        if n_buckets > 0:
            # Points are rounded like knots. So a point and a knot of one value are
            # always in one bucket.
            bucket = min(int((point - knots[0]) * per_bucket), n_buckets - 1)
            low, high = first[bucket], first[bucket + 1]
        while low < high:
            middle = (low + high) >> 1
            if knots[middle] <= point:
                low = middle + 1
            else:
                high = middle
        out[i] = low


def evaluate_map(
    points: Float64Array,
    knots: Float64Array,
    left: Float64Array,
    at: Float64Array,
    right: Float64Array,
    linear: bool,
) -> Float64Array:
    """Return the values of the map at `points`, shape (n,).

    The value is left[0] below the first knot, at[k] on knot k, and right[-1] above the
    last knot. Between knots k and k + 1 it is right[k] (step), or on the line from
    right[k] to left[k + 1].
    """
    out, below = np.empty(len(points)), np.empty(len(points), dtype=np.int64)
    points, knots = for_kernels(points), for_kernels(knots)
    _search_buckets(knots, points, below)
    values = for_kernels(left), for_kernels(at), for_kernels(right)
    _follow(points, knots, *values, linear, below, out)
    return out


@njit
def _follow(
    points: Float64Array,
    knots: Float64Array,
    left: Float64Array,
    at: Float64Array,
    right: Float64Array,
    linear: bool,
    below: Int64Array,
    out: Float64Array,
) -> None:
    last = len(knots) - 1
    for i in range(len(points)):
        k = below[i] - 1
        if k < 0:
            out[i] = left[0]
        elif points[i] == knots[k]:
            out[i] = at[k]
        # Do not interpolate between equal ends. It would round, and give nan for
        # infinite ends (log-likelihood ratios).
        elif not linear or k == last or right[k] == left[k + 1]:
            out[i] = right[k]
        else:
            share = (points[i] - knots[k]) / (knots[k + 1] - knots[k])
            out[i] = right[k] + share * (left[k + 1] - right[k])


@njit
def bin_rows(
    x: Float64Array, weight: Float64Array, step: float
) -> tuple[Float64Array, Float64Array]:
    """Share the weight of each row between the two nodes beside it (linear binning).

    Nodes lie at step times a whole number. Only nodes with weight are returned, in
    order: their whole numbers, and their weights. So empty stretches cost nothing. The
    weight of a node is continuous in `x`. `x` must be sorted, but may have neighbours
    in the wrong order by rounding.
    """
    nodes = np.empty(2 * len(x))
    mass = np.empty(2 * len(x))
    k, place = 0, -np.inf
    for i in range(len(x)):
        if weight[i] == 0.0:
            continue
        # Nodes are written in order. A place that rounds below the one before would
        # break the order.
        place = max(x[i] / step, place)
        node = np.floor(place)
        share = weight[i] * (place - node)
        # The node before last is the left neighbour of the row before, if there is one.
        if k == 0 or nodes[k - 1] < node:
            nodes[k], mass[k] = node, 0.0
            k += 1
        if nodes[k - 1] == node:
            nodes[k], mass[k] = node + 1.0, 0.0
            k += 1
        # One node gets what the other does not get, so mass is kept.
        mass[k - 2] += weight[i] - share
        mass[k - 1] += share
    return nodes[:k].copy(), mass[:k].copy()


@inner
def _sum_at(
    node: float,
    start: int,
    nodes: Float64Array,
    mass: Float64Array,
    table: Float64Array,
) -> float:
    """Return the kernel sum at a node. `start` is the first occupied node in reach."""
    total = 0.0
    for k in range(start, len(nodes)):
        # Nodes are whole numbers held as floats, so distances are exact, even far out.
        distance = abs(nodes[k] - node)
        if distance < len(table):
            total += table[int(distance)] * mass[k]
        elif nodes[k] > node:
            break
    return total


@njit
def kernel_sums(
    x: Float64Array,
    nodes: Float64Array,
    mass: Float64Array,
    table: Float64Array,
    step: float,
) -> Float64Array:
    """Sum the kernel over binned rows at each of `x`, shape (len(x),).

    `table[d]` is the kernel at a distance of d steps. It is 0 beyond the table. Between
    nodes the sums are joined by lines. Sorted `x` are cheapest, because neighbours
    between the same nodes share the work.
    """
    out = np.empty(len(x))
    reach = float(len(table) - 1)
    last, below, above = np.nan, 0.0, 0.0
    for i in range(len(x)):
        place = x[i] / step
        node = np.floor(place)
        # Sorted points between the same two nodes share both sums.
        if node != last:
            start = np.searchsorted(nodes, node - reach)
            below = _sum_at(node, start, nodes, mass, table)
            above = _sum_at(node + 1.0, start, nodes, mass, table)
            last = node
        share = place - node
        out[i] = (1.0 - share) * below + share * above
    return out
