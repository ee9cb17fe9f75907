"""Highest-density regions of densities scanned at increasing points."""

import math

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array

# 40 / 2^26 is below 1e-6: the level of a log density to six decimals.
_HALVINGS = 26


@njit
def _share_above(a: float, b: float, level: float) -> float:
    """Return which share of a cell lies above the level, for a line from a to b."""
    if min(a, b) >= level:
        return 1.0
    if max(a, b) < level:
        return 0.0
    # No line can be drawn to -inf; half the cell is as good as any guess.
    if min(a, b) == -math.inf:
        return 0.5
    return (max(a, b) - level) / abs(b - a)


@njit
def _mass_above(a: float, b: float, level: float) -> float:
    """Return which share of a cell's probability is where it is above the level.

    The density is exponential where its logarithm is a line from a to b.
    """
    top, bottom = max(a, b), min(a, b)
    if bottom >= level or top < level or bottom == -math.inf:
        return _share_above(a, b, level)
    return math.expm1(level - top) / math.expm1(bottom - top)


@njit
def density_levels(
    log_density: Float64Array, cdf: Float64Array, coverage: Float64Array
) -> Float64Array:
    """Return the log density above which a row's `coverage` (n,) lies, shape (n,).

    `log_density` and `cdf` (n, m) are those of increasing points.
    """
    n, m = log_density.shape
    out = np.empty(n)
    for i in range(n):
        high = log_density[i].max()
        # Below exp(-40) of its peak a density counts as none.
        low = high - 40.0
        for _ in range(_HALVINGS):
            level = 0.5 * (low + high)
            held = 0.0
            for j in range(m - 1):
                held += (cdf[i, j + 1] - cdf[i, j]) * _mass_above(
                    log_density[i, j], log_density[i, j + 1], level
                )
            if held >= coverage[i]:
                low = level
            else:
                high = level
        # The lower end: the region holds at least what was asked for.
        out[i] = low
    return out


@njit
def level_crossings(
    y: Float64Array, log_density: Float64Array, level: float
) -> Float64Array:
    """Return the intervals (k, 2) of y where the log density is above the level."""
    m = len(y)
    ends = np.empty((m // 2 + 1, 2))
    k = 0
    inside = False
    for j in range(m):
        above = log_density[j] >= level
        if above == inside:
            continue
        border = y[j]
        if j > 0:
            share = _share_above(log_density[j - 1], log_density[j], level)
            gap = y[j] - y[j - 1]
            border = y[j] - share * gap if above else y[j - 1] + share * gap
        ends[k, 0 if above else 1] = border
        k += 0 if above else 1
        inside = above
    if inside:
        ends[k, 1] = y[m - 1]
        k += 1
    return ends[:k].copy()
