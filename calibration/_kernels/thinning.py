"""Join neighbouring cells that nearly coincide."""

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array


@njit
def join_close_cells(
    scores: Float64Array,
    weight0: Float64Array,
    weight1: Float64Array,
    least_gap: float,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Cells at least `least_gap` apart, each amid the cells that it joins.

    From the left, a cell joins the group before it if it lies closer than
    `least_gap` to the middle of that group so far. So a group is narrower than
    2 least_gap, and as no middle lies left of its first cell, the gap is kept
    between groups as well.
    """
    m = len(scores)
    middles, sum0, sum1 = np.empty(m), np.empty(m), np.empty(m)
    k, i = 0, 0
    while i < m:
        first, middle = scores[i], scores[i]
        total0, total1 = weight0[i], weight1[i]
        i += 1
        while i < m and scores[i] - middle < least_gap:
            total0 += weight0[i]
            total1 += weight1[i]
            # The middle of the range, not the mean: a group stays narrow whatever the
            # weights.
            middle = 0.5 * (first + scores[i])
            i += 1
        middles[k], sum0[k], sum1[k] = middle, total0, total1
        k += 1
    return middles[:k].copy(), sum0[:k].copy(), sum1[:k].copy()
