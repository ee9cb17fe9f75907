"""Pool adjacent violators for labels 0 and 1, also with one more row in each cell."""

import numpy as np

from calibration._kernels._jit import fused, njit
from calibration.typing import Float64Array, Int64Array

# Below this a product of weights may have lost digits, down to the last.
_LEAST_PRODUCT = 1e-280
# Two such factors times this are numbers like others, and no digit is rounded.
_UNIT = 2.0**600


@fused
def is_no_lower(one0: float, one1: float, two0: float, two1: float) -> bool:
    """Whether the first of two cells has at least the second's rate of ones."""
    left, right = one1 * two0, two1 * one0
    if left < _LEAST_PRODUCT and right < _LEAST_PRODUCT:
        left = (one1 * _UNIT) * (two0 * _UNIT)
        right = (two1 * _UNIT) * (one0 * _UNIT)
    return left >= right


@njit
def pool_adjacent_violators(
    weight0: Float64Array, weight1: Float64Array
) -> tuple[Int64Array, Float64Array, Float64Array]:
    """Blocks of the isotonic regression of the labels (Ayer et al. 1955), O(n).

    A cell counts weight0 zeros and weight1 ones; some of the two is positive. The
    blocks' means increase strictly: equal neighbours are pooled. Comparing
    w1_left * w0_right with w1_right * w0_left needs no division and is exact for
    integer weights.

    Returns
    -------
    starts, block0, block1 : ndarrays of shape (n_blocks,)
        First cell of each block and the weight of each class in it.
    """
    m = len(weight0)
    starts = np.empty(m, dtype=np.int64)
    block0 = np.empty(m)
    block1 = np.empty(m)
    k = 0
    for i in range(m):
        start, w0, w1 = i, weight0[i], weight1[i]
        # The lemma of Ayer et al.: where a block's mean is not below that of the next
        # the solution is constant over both, so they may be pooled and the pool
        # compared with the block before. Once pooled they never part, hence O(n).
        while k > 0 and is_no_lower(block0[k - 1], block1[k - 1], w0, w1):
            k -= 1
            start = starts[k]
            w0 += block0[k]
            w1 += block1[k]
        starts[k], block0[k], block1[k] = start, w0, w1
        k += 1
    return starts[:k].copy(), block0[:k].copy(), block1[:k].copy()


def always_pooled(weight0: Float64Array, weight1: Float64Array) -> Int64Array:
    """First cell of each run that every reweighting pools into one block.

    A cell of ones followed by a cell of zeros violates the order whatever (positive)
    weights the two get, so runs of ones with the zeros that follow them can be
    summed once before any number of isotonic regressions on reweighted cells. A
    cell that holds both classes may come out with either, so it is kept alone.
    """
    pure1, pure0 = weight0 == 0.0, weight1 == 0.0
    # Ones and then ones or zeros; zeros and then zeros. Zeros and then ones are in
    # order, and may stay apart.
    together = pure1[:-1] & (pure1[1:] | pure0[1:]) | pure0[:-1] & pure0[1:]
    return np.append(0, np.flatnonzero(~together) + 1)


def isotonic_rates(weight0: Float64Array, weight1: Float64Array) -> Float64Array:
    """Value of the isotonic regression of the labels in each cell."""
    starts, block0, block1 = pool_adjacent_violators(weight0, weight1)
    sizes = np.diff(starts, append=len(weight0))
    return np.repeat(block1 / (block0 + block1), sizes)


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
