"""Quantiles and shortest intervals of the rows of a discrete law."""

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array

# A touch of slack, so that a level is not missed by the rounding of a sum.
_SLACK = 1.0 - 1e-14


@njit
def discrete_quantiles(
    values: Float64Array, cumulative: Float64Array, q: Float64Array
) -> Float64Array:
    """Return the least value with probability and cumulative >= q, q is (n, k)."""
    n, k = q.shape
    out = np.empty((n, k))
    for i in range(n):
        for j in range(k):
            goal = q[i, j] * _SLACK
            low, high = 0, len(values) - 1
            while low < high:
                middle = (low + high) >> 1
                # At q = 0 the quantile is the least value with any probability, not the
                # least listed.
                if cumulative[i, middle] >= goal and cumulative[i, middle] > 0.0:
                    high = middle
                else:
                    low = middle + 1
            out[i, j] = values[low]
    return out


@njit
def discrete_shortest(
    values: Float64Array, cumulative: Float64Array, coverage: float
) -> Float64Array:
    """Return the shortest interval between values that holds `coverage`, (n, 2).

    The first of several; two fingers walk over the values once.
    """
    n, m = cumulative.shape
    out = np.empty((n, 2))
    goal = coverage * _SLACK
    for i in range(n):
        best = np.inf
        last = 0
        for first in range(m):
            before = cumulative[i, first - 1] if first > 0 else 0.0
            # As `first` moves right `last` never has to move left: both pass over the
            # values once.
            while last < m and cumulative[i, last] - before < goal:
                last += 1
            # From here on too little is left on the right.
            if last == m:
                break
            width = values[last] - values[first]
            if width < best:
                best = width
                out[i, 0], out[i, 1] = values[first], values[last]
    return out
