"""Make every row of a matrix increase: exact weighted projection."""

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array


@njit
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
    n, k = values.shape
    floor = np.empty(k)
    floor[0] = 0.0
    for j in range(1, k):
        floor[j] = floor[j - 1] + rises[j - 1]
    out = np.empty((n, k))
    level, mass, start = np.empty(k), np.empty(k), np.empty(k + 1, dtype=np.int64)
    for i in range(n):
        blocks = 0
        for j in range(k):
            # With floor_j the sum of the rises before j, out - floor has only to
            # increase.
            mean, weight, first = values[i, j] - floor[j], weights[j], j
            # The means of blocks increase from left to right; the new one swallows
            # those that do not lie below it.
            while blocks > 0 and level[blocks - 1] >= mean:
                blocks -= 1
                total = mass[blocks] + weight
                mean = (level[blocks] * mass[blocks] + mean * weight) / total
                weight, first = total, start[blocks]
            level[blocks], mass[blocks], start[blocks] = mean, weight, first
            blocks += 1
        start[blocks] = k
        for b in range(blocks):
            for j in range(start[b], start[b + 1]):
                out[i, j] = level[b] + floor[j]
    return out
