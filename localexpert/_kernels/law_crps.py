"""CRPS of the rows of a spline law, and the two integrals of its CDF beside it."""

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array
from localexpert._kernels.base_curve import BaseCurve, level_at, point_at
from localexpert._kernels.hermite import find_segment
from localexpert._kernels.law_panels import DR, Panels, Z, fill_nodes, row_panels
from localexpert._kernels.law_spline import SplineRows
from localexpert._kernels.truncation import truncated_cdf

# Rows of integrals over panels, in r: of F, F^2, 1 - F and (1 - F)^2.
_F, _F2, _S, _S2 = range(4)


@inner
def _integrate(
    at: Float64Array, low: float, high: float, log_mass: float, n_nodes: int
) -> Float64Array:
    """Return the integrals in r of F, F^2, 1 - F, (1 - F)^2 over panels, (4, m)."""
    m = at.shape[1] // n_nodes
    out = np.zeros((4, m))
    for j in range(m):
        for q in range(j * n_nodes, (j + 1) * n_nodes):
            z, weight = at[Z, q], at[DR, q]
            # The smaller of the two is computed, so that it keeps its digits.
            if z < 0.0:
                below = truncated_cdf(z, low, high, log_mass)
                above = 1.0 - below
            else:
                above = truncated_cdf(-z, -high, -low, log_mass)
                below = 1.0 - above
            out[_F, j] += weight * below
            out[_F2, j] += weight * below * below
            out[_S, j] += weight * above
            out[_S2, j] += weight * above * above
    return out


@inner
def _cumulate(parts: Float64Array) -> Float64Array:
    """Return integrals (4, m + 1): those of F up to each border, those of 1 - F from.

    Each is summed from the end where it is small. The difference of two running sums
    from one end would lose the digits of the far tail.
    """
    m = parts.shape[1]
    sums = np.zeros((4, m + 1))
    for j in range(m):
        sums[_F, j + 1] = sums[_F, j] + parts[_F, j]
        sums[_F2, j + 1] = sums[_F2, j] + parts[_F2, j]
    for j in range(m - 1, -1, -1):
        sums[_S, j] = sums[_S, j + 1] + parts[_S, j]
        sums[_S2, j] = sums[_S2, j + 1] + parts[_S2, j]
    return sums


@njit
def spline_crps(
    curve: BaseCurve, rows: SplineRows, panels: Panels, y: Float64Array
) -> Float64Array:
    """Return CRPS, E max(y - Y, 0) and E max(Y - y, 0) at y (n, k), shape (3, n, k).

    CRPS is the integral of F^2 below y and of (1 - F)^2 above (Gneiting & Raftery
    2007, section 4.2), the others those of F below and of 1 - F above (by parts). The
    panel that y lies in is integrated in two parts.
    """
    n, k = y.shape
    out = np.empty((3, n, k))
    n_nodes = len(panels.nodes)
    # Both parts of a panel that is split are the row's own.
    split, own = np.empty(3), np.empty(2, dtype=np.int64)
    own[0], own[1] = -1, -1
    for i in range(n):
        low, high, log_mass = rows.low[i], rows.high[i], rows.log_mass[i]
        borders, which = row_panels(curve, rows, panels, i, 1.0)
        at = fill_nodes(curve, rows, panels, i, borders, which)
        sums = _cumulate(_integrate(at, low, high, log_mass, n_nodes))
        first, last = borders[0], borders[-1]
        for j in range(k):
            r = (y[i, j] - rows.center[i]) / rows.scale[i]
            t = level_at(curve, r)[0]
            # Beyond the panels F is 0 or 1, and the integrals grow with the distance.
            gap = abs(r - point_at(curve, first if t <= first else last)[0])
            if t <= first:
                f, f2, s, s2 = 0.0, 0.0, sums[_S, 0] + gap, sums[_S2, 0] + gap
            elif t >= last:
                f, f2, s, s2 = sums[_F, -1] + gap, sums[_F2, -1] + gap, 0.0, 0.0
            else:
                p = find_segment(borders, t)
                split[0], split[1], split[2] = borders[p], t, borders[p + 1]
                at = fill_nodes(curve, rows, panels, i, split, own)
                parts = _integrate(at, low, high, log_mass, n_nodes)
                # The panels before it and its left part; its right part, those after.
                f, f2 = sums[_F, p] + parts[_F, 0], sums[_F2, p] + parts[_F2, 0]
                s = sums[_S, p + 1] + parts[_S, 1]
                s2 = sums[_S2, p + 1] + parts[_S2, 1]
            # dy = scale dr.
            out[0, i, j] = rows.scale[i] * (f2 + s2)
            out[1, i, j] = rows.scale[i] * f
            out[2, i, j] = rows.scale[i] * s
    return out
