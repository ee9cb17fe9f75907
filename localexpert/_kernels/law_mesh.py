"""A fine mesh over the support of each row of a spline law, and integrals on it.

The integrals need the CDF alone, F = Phi(score), which is smoother than the density.
What is integrated may be another law on the same mesh: one whose scores are a smooth
increasing function of the row's own.
"""

import math

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array, Int64Array
from localexpert._kernels.base_curve import BaseCurve, level_at, point_at
from localexpert._kernels.hermite import curve_at, curve_inverse
from localexpert._kernels.law_moments import finite_orders, mark_infinite, tail_indices
from localexpert._kernels.law_panels import DR, DZ, Panels, R, Z, fill_nodes, row_panels
from localexpert._kernels.law_spline import SplineRows
from localexpert._kernels.normal import (
    log_normal_between,
    log_normal_pdf,
    safe_log,
    upper_point,
)
from localexpert._kernels.truncation import truncated_point

_LOG_HALF = math.log(0.5)
# A panel in which scores move by less is not cut where a function has a kink: a rule of
# five nodes integrates one to 1e-5 of what the panel holds.
_NARROW = 0.12


@njit
def truncated_score(z: float, low: float, high: float, log_mass: float) -> float:
    """Return the s with Phi(s) = (Phi(z) - Phi(low)) / (Phi(high) - Phi(low))."""
    if log_mass == 0.0:
        return z
    if z <= low:
        return -math.inf
    if z >= high:
        return math.inf
    below = log_normal_between(low, z) - log_mass
    # From the nearer end, whose probability keeps its digits.
    if below <= _LOG_HALF:
        return -upper_point(below)
    return float(upper_point(min(log_normal_between(z, high) - log_mass, _LOG_HALF)))


@njit
def cut_panels(
    borders: Float64Array, which: Int64Array, cuts: Float64Array
) -> tuple[Float64Array, Int64Array]:
    """Return panels with the sorted cuts among their borders; see `row_panels`."""
    m = len(which)
    out = np.empty(m + len(cuts) + 1)
    marks = np.full(m + len(cuts), -1, dtype=np.int64)
    out[0] = borders[0]
    place, c = 0, 0
    for j in range(m):
        whole = True
        while c < len(cuts) and cuts[c] < borders[j + 1]:
            if cuts[c] > out[place]:
                place += 1
                out[place] = cuts[c]
                whole = False
            c += 1
        # A part of a shared panel has other nodes than the whole.
        marks[place] = which[j] if whole else -1
        place += 1
        out[place] = borders[j + 1]
    return out[: place + 1], marks[:place]


@inner
def _panels_with(
    curve: BaseCurve,
    rows: SplineRows,
    panels: Panels,
    i: int,
    cuts: Float64Array,
    kinks: Float64Array,
    narrow: float,
) -> tuple[Float64Array, Int64Array]:
    """Return the panels of row i, in t, with borders at the y in `cuts`.

    And at the scores in `kinks`, unless in the panel scores move by `narrow` at most.
    """
    borders, which = row_panels(curve, rows, panels, i, 4.0)
    t = np.empty(len(cuts) + len(kinks))
    m = len(cuts)
    # What is integrated may jump there; the rules are for smooth functions only.
    for c in range(m):
        t[c] = level_at(curve, (cuts[c] - rows.center[i]) / rows.scale[i])[0]
    low, high, log_mass = rows.low[i], rows.high[i], rows.log_mass[i]
    for kink in kinks:
        # The law's scores are those after truncation, the curve's those before.
        z = truncated_point(kink, low, high, log_mass)
        t[m] = curve_inverse(rows.knots, rows.values[i], rows.slopes[i], z)
        p = np.searchsorted(borders, t[m])
        if 0 < p < len(borders):
            ends = np.empty(2)
            for side in range(2):
                border = borders[p - 1 + side]
                z = curve_at(rows.knots, rows.values[i], rows.slopes[i], border)[0]
                ends[side] = truncated_score(z, low, high, log_mass)
            m += 1 if ends[1] - ends[0] > narrow else 0
    return cut_panels(borders, which, np.sort(t[:m]))


@njit
def spline_mesh(
    curve: BaseCurve,
    rows: SplineRows,
    panels: Panels,
    cuts: Float64Array,
    kinks: Float64Array,
    with_density: bool,
) -> tuple[Float64Array, Float64Array]:
    """Return y, dy, score and log density at nodes, (4, n, m), and the ends, (n, 2).

    Sums over dy are integrals over y between the ends, for functions that may jump at
    the y in `cuts` (n, c) and have kinks at the scores in `kinks` (n, d). Beyond the
    ends the CDF is 0 or 1. Rows with fewer nodes than others repeat their last one
    with dy = 0. Without density the shape is (3, n, m).
    """
    n = len(rows.center)
    n_nodes, most = len(panels.nodes), 0
    # Where the CDF has a kink the density jumps, which no rule of a panel can bear.
    narrow = 0.0 if with_density else _NARROW
    for i in range(n):
        which = _panels_with(curve, rows, panels, i, cuts[i], kinks[i], narrow)[1]
        most = max(most, len(which))
    out = np.empty((4 if with_density else 3, n, most * n_nodes))
    ends = np.empty((n, 2))
    for i in range(n):
        borders, which = _panels_with(curve, rows, panels, i, cuts[i], kinks[i], narrow)
        at = fill_nodes(curve, rows, panels, i, borders, which)
        center, scale, log_mass = rows.center[i], rows.scale[i], rows.log_mass[i]
        m = at.shape[1]
        for k in range(out.shape[2]):
            # The last node again: no reader has to know how many a row has.
            q = min(k, m - 1)
            z = at[Z, q]
            out[0, i, k] = center + scale * at[R, q]
            out[1, i, k] = scale * at[DR, q] if k < m else 0.0
            out[2, i, k] = truncated_score(z, rows.low[i], rows.high[i], log_mass)
            if with_density:
                # The weights' ratio is dz/dr.
                rate = safe_log(at[DZ, q] / at[DR, q] / scale)
                out[3, i, k] = log_normal_pdf(z) - log_mass + rate
        for side in range(2):
            end = point_at(curve, borders[0 if side == 0 else -1])[0]
            y = min(max(center + scale * end, rows.bounds[0]), rows.bounds[1])
            ends[i, side] = y
    return out, ends


@njit
def mesh_crps(
    y: Float64Array,
    dy: Float64Array,
    below: Float64Array,
    above: Float64Array,
    ends: Float64Array,
    at: Float64Array,
) -> Float64Array:
    """Return CRPS, E max(a - Y, 0) and E max(Y - a, 0) at a = `at` (n, k), (3, n, k).

    The law's F and 1 - F at the mesh are `below` and `above`; it must have borders at
    `at`.
    """
    n, k = at.shape
    m = y.shape[1]
    out = np.zeros((3, n, k))
    # Up to each node the integrals of F and F^2, from it those of 1 - F, (1 - F)^2.
    sums = np.zeros((4, m + 1))
    for i in range(n):
        for q in range(m):
            part = dy[i, q] * below[i, q]
            sums[0, q + 1] = sums[0, q] + part
            sums[1, q + 1] = sums[1, q] + part * below[i, q]
        for q in range(m - 1, -1, -1):
            part = dy[i, q] * above[i, q]
            sums[2, q] = sums[2, q + 1] + part
            sums[3, q] = sums[3, q + 1] + part * above[i, q]
        for j in range(k):
            # `at` is a border, hence between nodes: the sums up to it are sums of whole
            # panels.
            q = np.searchsorted(y[i], at[i, j])
            before = max(ends[i, 0] - at[i, j], 0.0)
            after = max(at[i, j] - ends[i, 1], 0.0)
            out[0, i, j] = sums[1, q] + sums[3, q] + before + after
            out[1, i, j] = sums[0, q] + after
            out[2, i, j] = sums[2, q] + before
    return out


def mesh_moments(
    curve: BaseCurve,
    rows: SplineRows,
    y: Float64Array,
    dy: Float64Array,
    below: Float64Array,
    above: Float64Array,
    origin: Float64Array,
) -> Float64Array:
    """Return mean and second to fourth central moment, (n, 4), as `spline_moments`.

    By parts about the row's `origin` (n,), a border of the mesh: E (Y - c)^k is the
    integral of k (y - c)^(k - 1) (1 - F) above c minus that of the same with F below.
    The tails must be those of the law, up to a factor.
    """
    lower, upper = tail_indices(curve, rows)
    orders = finite_orders(lower, upper)
    found = _mesh_moments(y, dy, below, above, origin, orders)
    return mark_infinite(lower, upper, found)


@njit
def _mesh_moments(
    y: Float64Array,
    dy: Float64Array,
    below: Float64Array,
    above: Float64Array,
    origin: Float64Array,
    orders: Int64Array,
) -> Float64Array:
    """Return the moments up to the order of each row; the others mean nothing."""
    n, m = y.shape
    out = np.empty((n, 4))
    for i in range(n):
        order = orders[i]
        sums = np.zeros(5)
        for q in range(m):
            x = y[i, q] - origin[i]
            # From the small factor up: nothing overflows.
            part = dy[i, q] * (above[i, q] if x > 0.0 else -below[i, q])
            for power in range(1, order + 1):
                sums[power] += power * part
                part *= x
        m1, m2, m3, m4 = sums[1], sums[2], sums[3], sums[4]
        out[i, 0] = origin[i] + m1
        out[i, 1] = m2 - m1 * m1
        out[i, 2] = m3 - m1 * (3.0 * m2 - 2.0 * m1 * m1)
        out[i, 3] = m4 - m1 * (4.0 * m3 - 3.0 * m1 * (2.0 * m2 - m1 * m1))
    return out
