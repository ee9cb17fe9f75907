"""Rows of probabilities of increasing values: quantiles, intervals, integrals.

Values are (1, m), the same in all rows, or (n, m).
"""

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array

# A touch of slack, so that a level is not missed by the rounding of a sum.
_SLACK = 1.0 - 1e-14


@njit
def step_quantiles(
    values: Float64Array, cumulative: Float64Array, q: Float64Array
) -> Float64Array:
    """Return the least value with probability and cumulative >= q, q is (n, k)."""
    n, k = q.shape
    out = np.empty((n, k))
    for i in range(n):
        own = values[i if len(values) > 1 else 0]
        for j in range(k):
            goal = q[i, j] * _SLACK
            low, high = 0, len(own) - 1
            while low < high:
                middle = (low + high) >> 1
                # At q = 0 the quantile is the least value with any probability, not the
                # least listed.
                if cumulative[i, middle] >= goal and cumulative[i, middle] > 0.0:
                    high = middle
                else:
                    low = middle + 1
            out[i, j] = own[low]
    return out


@njit
def step_shortest(
    values: Float64Array, cumulative: Float64Array, coverage: float
) -> Float64Array:
    """Return the shortest interval between values that holds `coverage`, (n, 2).

    The first of several; two fingers walk over the values once.
    """
    n, m = cumulative.shape
    out = np.empty((n, 2))
    goal = coverage * _SLACK
    for i in range(n):
        own = values[i if len(values) > 1 else 0]
        best, last = np.inf, 0
        for first in range(m):
            before = cumulative[i, first - 1] if first > 0 else 0.0
            # As `first` moves right `last` never has to move left: both pass over the
            # values once.
            while last < m and cumulative[i, last] - before < goal:
                last += 1
            # From here on too little is left on the right.
            if last == m:
                break
            if own[last] - own[first] < best:
                best = own[last] - own[first]
                out[i, 0], out[i, 1] = own[first], own[last]
    return out


def step_integrals(
    values: Float64Array, masses: Float64Array, y: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return integrals (4, n, k) cut at y (n, k), and that of F (1 - F), (n,).

    The four are those of F and of its square below y, of 1 - F and of its square above.
    """
    out, spread = np.empty((4, *y.shape)), np.empty(len(y))
    room = np.empty((5, masses.shape[1]))
    _fill_integrals(values, masses, y, room, out, spread)
    return out, spread


@njit
def _fill_integrals(
    values: Float64Array,
    masses: Float64Array,
    y: Float64Array,
    room: Float64Array,
    out: Float64Array,
    spread: Float64Array,
) -> None:
    """Fill in `out` and `spread`; `room` holds what is summed up to each value."""
    n, m = masses.shape
    for i in range(n):
        own, upto = values[i if len(values) > 1 else 0], 0.0
        room[:, 0] = 0.0
        total = masses[i].sum()
        for j in range(1, m):
            upto = min(upto + masses[i, j - 1] / total, 1.0)
            gap, beyond = own[j] - own[j - 1], 1.0 - upto
            room[0, j] = room[0, j - 1] + gap * upto
            room[1, j] = room[1, j - 1] + gap * upto * upto
            room[2, j] = room[2, j - 1] + gap * beyond
            room[3, j] = room[3, j - 1] + gap * beyond * beyond
            room[4, j] = upto
        spread[i] = room[0, m - 1] - room[1, m - 1]
        for j in range(y.shape[1]):
            at = y[i, j]
            k = np.searchsorted(own, at, side="right")
            if k == 0:
                under = own[0] - at
                out[0, i, j] = out[1, i, j] = 0.0
                out[2, i, j] = room[2, m - 1] + under
                out[3, i, j] = room[3, m - 1] + under
                continue
            level = room[4, k] if k < m else 1.0
            along = at - own[k - 1]
            out[0, i, j] = room[0, k - 1] + along * level
            out[1, i, j] = room[1, k - 1] + along * level * level
            rest = 1.0 - level
            out[2, i, j] = room[2, m - 1] - room[2, k - 1] - along * rest
            out[3, i, j] = room[3, m - 1] - room[3, k - 1] - along * rest * rest
