"""Isotonic regressions with one more row of class 1, one for every cell."""

import numpy as np

from calibration._kernels._jit import njit
from calibration._kernels.pav import pool_adjacent_violators
from calibration.typing import Float64Array


@njit
def pools_with_one_more(
    weight0: Float64Array, weight1: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Block of each cell in the isotonic regression that adds one 1 to it, O(m).

    For cell i the cumulative sum diagram is that of the cells with everything
    before i moved by (-1, -1) (Vovk, Petej & Fedorova 2015, algorithms 1 and 2).
    The block of the added row ends at a corner of the diagram without it, so one
    PAV serves all cells: as i grows, the block's end only moves right, and its left
    end is either the one before or cell i + 1. Only sums of the cells at hand are
    formed, so real weights lose no digits to a long cumulative sum.

    Returns
    -------
    pool0, pool1 : ndarrays of shape (n_cells,)
        Weight of each class in the block, the added row included.
    """
    m = len(weight0)
    first, block0, block1 = pool_adjacent_violators(weight0, weight1)
    pool0, pool1 = np.empty(m), np.empty(m)
    top0, top1 = 1.0, 0.0  # the block at hand; at first worse than any
    ahead0, ahead1 = 0.0, 0.0  # cells from i to the end of the block
    end = 0  # first PAV block beyond the block at hand
    for i in range(m):
        # Where cell i lies within the block at hand, `ahead` is what is left of it;
        # rounding of real weights must not make that negative.
        if end == len(first) or i < first[end]:
            ahead0, ahead1 = max(ahead0, 0.0), max(ahead1, 0.0)
        else:
            ahead0, ahead1 = 0.0, 0.0
        # The block that starts at cell i replaces the one at hand if it is higher.
        new0, new1 = ahead0, ahead1 + 1.0
        # Slopes are compared by cross products, as in PAV.
        if new1 * top0 > top1 * new0:
            while end < len(first) and new1 * block0[end] >= block1[end] * new0:
                new0 += block0[end]
                new1 += block1[end]
                ahead0 += block0[end]
                ahead1 += block1[end]
                end += 1
            top0, top1 = new0, new1
        # The added row is in the block that cell i is in: its value is that block's
        # rate.
        pool0[i], pool1[i] = top0, top1
        ahead0 -= weight0[i]
        ahead1 -= weight1[i]
    return pool0, pool1
