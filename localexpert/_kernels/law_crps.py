"""CRPS of the rows of a spline law, and the two integrals of its CDF beside it."""

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array
from localexpert._kernels.base_curve import BaseCurve, level_at, point_at
from localexpert._kernels.law_panels import Panels, fill_nodes, row_panels
from localexpert._kernels.law_spline import SplineRows
from localexpert._kernels.truncation import truncated_cdf


@njit
def _integrate(
    at: Float64Array, low: float, high: float, log_mass: float, n_nodes: int
) -> Float64Array:
    """Return the integrals in r of F, F^2, 1 - F, (1 - F)^2 over panels, (4, m)."""
    m = at.shape[1] // n_nodes
    out = np.zeros((4, m))
    for j in range(m):
        for q in range(j * n_nodes, (j + 1) * n_nodes):
            z, weight = at[2, q], at[3, q]
            # The smaller of the two is computed, so that it keeps its digits.
            if z < 0.0:
                below = truncated_cdf(z, low, high, log_mass)
                above = 1.0 - below
            else:
                above = truncated_cdf(-z, -high, -low, log_mass)
                below = 1.0 - above
            out[0, j] += weight * below
            out[1, j] += weight * below * below
            out[2, j] += weight * above
            out[3, j] += weight * above * above
    return out


@njit
def _cumulate(parts: Float64Array) -> Float64Array:
    """Return integrals (4, m + 1): the first two up to each border, the others from."""
    m = parts.shape[1]
    sums = np.zeros((4, m + 1))
    for j in range(m):
        sums[0, j + 1] = sums[0, j] + parts[0, j]
        sums[1, j + 1] = sums[1, j] + parts[1, j]
    for j in range(m - 1, -1, -1):
        sums[2, j] = sums[2, j + 1] + parts[2, j]
        sums[3, j] = sums[3, j + 1] + parts[3, j]
    return sums


@njit
def spline_crps(
    curve: BaseCurve, rows: SplineRows, panels: Panels, y: Float64Array
) -> Float64Array:
    """Return CRPS, E max(y - Y, 0) and E max(Y - y, 0) at y (n, k), shape (3, n, k).

    CRPS is the integral of F^2 below y and of (1 - F)^2 above, the others those of F
    below and of 1 - F above. The panel that y lies in is integrated in two parts.
    """
    n, k = y.shape
    out = np.empty((3, n, k))
    n_nodes = len(panels.nodes)
    own = np.full(2, -1, dtype=np.int64)
    for i in range(n):
        low, high, log_mass = rows.low[i], rows.high[i], rows.log_mass[i]
        borders, which = row_panels(curve, rows, panels, i, 1)
        at = fill_nodes(curve, rows, panels, i, borders, which)
        sums = _cumulate(_integrate(at, low, high, log_mass, n_nodes))
        first, last = borders[0], borders[-1]
        for j in range(k):
            r = (y[i, j] - rows.center[i]) / rows.scale[i]
            t = level_at(curve, r)[0]
            # Beyond the panels F is 0 or 1.
            gap = abs(r - point_at(curve, first if t <= first else last)[0])
            if t <= first:
                below, square, above, rest = (
                    0.0,
                    0.0,
                    sums[2, 0] + gap,
                    sums[3, 0] + gap,
                )
            elif t >= last:
                below, square, above, rest = (
                    sums[0, -1] + gap,
                    sums[1, -1] + gap,
                    0.0,
                    0.0,
                )
            else:
                p = np.searchsorted(borders, t, side="right") - 1
                split = np.array([borders[p], t, borders[p + 1]])
                at = fill_nodes(curve, rows, panels, i, split, own)
                parts = _integrate(at, low, high, log_mass, n_nodes)
                below, square = sums[0, p] + parts[0, 0], sums[1, p] + parts[1, 0]
                above, rest = sums[2, p + 1] + parts[2, 1], sums[3, p + 1] + parts[3, 1]
            out[0, i, j] = rows.scale[i] * (square + rest)
            out[1, i, j] = rows.scale[i] * below
            out[2, i, j] = rows.scale[i] * above
    return out
