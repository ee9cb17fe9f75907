"""Sums of a kernel over many rows, through an even grid of nodes."""

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array


@njit
def bin_rows(
    x: Float64Array, weight: Float64Array, step: float
) -> tuple[Float64Array, Float64Array]:
    """Share each row's weight between the two nodes beside it (linear binning).

    Nodes lie at step times a whole number. The nodes (as whole numbers) that get any
    weight are returned in order with what they get, so that empty stretches cost
    nothing. A node's weight is continuous in `x`, which must be sorted (rounding
    that puts neighbours the wrong way round is taken back).
    """
    nodes = np.empty(2 * len(x))
    mass = np.empty(2 * len(x))
    k, place = 0, -np.inf
    for i in range(len(x)):
        if weight[i] == 0.0:
            continue
        # Nodes are written in order; a place that rounds below the one before would
        # break it.
        place = max(x[i] / step, place)
        node = np.floor(place)
        share = weight[i] * (place - node)
        # The node before last is the left neighbour of the row before, if any.
        if k == 0 or nodes[k - 1] < node:
            nodes[k], mass[k] = node, 0.0
            k += 1
        if nodes[k - 1] == node:
            nodes[k], mass[k] = node + 1.0, 0.0
            k += 1
        # What one node gets the other does not: mass is kept.
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
    """Kernel sum at a node; `start` is the first occupied node within reach."""
    total = 0.0
    for k in range(start, len(nodes)):
        # Nodes are whole numbers held as floats: distances are exact, however far out.
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

    `table[d]` is the kernel at a distance of d steps, 0 beyond the table. Between
    nodes the sums are joined by lines. Sorted `x` are cheapest: neighbours between
    the same nodes share the work.
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
