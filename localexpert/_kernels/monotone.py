"""Make every row of a matrix increase: exact weighted projection."""

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array, Int64Array


def increase_rows(
    values: Float64Array, weights: Float64Array, rises: Float64Array
) -> Float64Array:
    """Nearest rows whose steps are at least `rises`, shape (n, k).

    Minimises sum_j weights_j (out_ij - values_ij)^2 under out_i,j+1 - out_ij >=
    rises_j for every row i. With the cumulated rises taken off this is isotonic
    regression, by pool adjacent violators.

    Parameters
    ----------
    values : ndarray of shape (n, k)
    weights : ndarray of shape (k,)
        Positive.
    rises : ndarray of shape (k - 1,)
        Least step from one column to the next.
    """
    # Arrays are made here: each kernel that makes one compiles that, too.
    floor = np.concatenate([[0.0], np.cumsum(rises)])
    out = np.empty(values.shape)
    blocks = np.empty((2, len(floor)))
    starts = np.empty(len(floor) + 1, dtype=np.int64)
    _pool_rows(values, weights, floor, blocks, starts, out)
    return out


@njit
def _pool_rows(
    values: Float64Array,
    weights: Float64Array,
    floor: Float64Array,
    blocks: Float64Array,
    starts: Int64Array,
    out: Float64Array,
) -> None:
    """Fill in `out`; `blocks` and `starts` are room for levels, masses and places."""
    n, k = values.shape
    level, mass = blocks
    for i in range(n):
        n_blocks = 0
        for j in range(k):
            # With floor_j the sum of the rises before j, out - floor has only to
            # increase.
            mean, weight, first = values[i, j] - floor[j], weights[j], j
            # The means of blocks increase from left to right; the new one swallows
            # those that do not lie below it.
            while n_blocks > 0 and level[n_blocks - 1] >= mean:
                n_blocks -= 1
                total = mass[n_blocks] + weight
                mean = (level[n_blocks] * mass[n_blocks] + mean * weight) / total
                weight, first = total, starts[n_blocks]
            level[n_blocks], mass[n_blocks], starts[n_blocks] = mean, weight, first
            n_blocks += 1
        starts[n_blocks] = k
        for b in range(n_blocks):
            for j in range(starts[b], starts[b + 1]):
                out[i, j] = level[b] + floor[j]
