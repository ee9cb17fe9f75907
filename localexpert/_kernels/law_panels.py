"""Gauss-Legendre panels over the support of one row of a spline law.

All rows share the panels between the knots of the law and of the base curve, and what
the base curve is at their nodes. Where a row is steep (z moves by more than a step
in a panel) and in its tails, the row gets panels of its own.
"""

import math
from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import fused, inner
from calibration.typing import Float64Array, Int64Array
from localexpert._kernels.base_curve import BaseCurve, level_at, point_at
from localexpert._kernels.hermite import curve_at, curve_inverse, find_segment
from localexpert._kernels.law_spline import SplineRows

# What is dropped beyond the ends is of the order exp(-36) of the whole.
_DECAY = 72.0
# Beyond 37 standard deviations the normal density underflows.
_FURTHEST = 37.0
# A moment of order k counts as finite where k shape / slope^2 is below this.
FINITE = 0.98
# Cuts of a row beyond the shared ones; z runs over 74 units at most.
_MOST_CUTS = 160
# A truncated row is cut finer where its support starts beyond this many deviations.
_FAR = 3.0

# Rows of what `fill_nodes` returns, one column a node: t, r and z there, and weights
# for sums that are integrals in r and in z.
T, R, Z, DR, DZ = range(5)


class Panels(NamedTuple):
    """Shared panels: borders (P + 1,), per node (P, q) t, r, and weight * dr/dt.

    `nodes` and `weights` (q,) are those of the Gauss-Legendre rule on [0, 1].
    """

    borders: Float64Array
    t: Float64Array
    r: Float64Array
    rates: Float64Array
    nodes: Float64Array
    weights: Float64Array


@fused
def reach(
    shape: float, slope: float, center: float, start: float, order: float
) -> float:
    """Return how far out in z a row is integrated on one side, read as an upper one.

    Where z = b (t - c) and the base tail has a shape, |r|^order grows as
    exp(order shape t^2 / 2), so the integrand falls as exp(-(1 - kappa) (z - peak)^2
    / 2) with kappa = order shape / b^2 and peak = kappa b c / (1 - kappa). `slope` is
    b, `center` is b c. A support that starts at a > 0 decays from there on, as
    exp((a^2 - z^2) / 2).
    """
    kappa = order * max(shape, 0.0) / (slope * slope)
    room = 1.0 - min(kappa, FINITE)
    width = math.sqrt(_DECAY / room) + max(kappa * center / room, 0.0)
    return math.sqrt(start * start + min(width, _FURTHEST) ** 2)


@fused
def step_from(start: float, z: float) -> float:
    """Return how much z may move in a panel that starts at z, the support at start."""
    if start > _FAR:
        # Beyond a the density falls as exp(-a (z - a)): it is gone after a few 1 / a.
        return 2.0 / start
    return max(1.0, 0.2 * abs(z))


@inner
def row_panels(
    curve: BaseCurve, rows: SplineRows, panels: Panels, i: int, order: float
) -> tuple[Float64Array, Int64Array]:
    """Return the borders in t (m + 1,) of row i's panels and which are shared (m,).

    A panel of the row's own is marked -1. They are for moments up to `order`, which is
    no integer: numba compiles a kernel for each integer that it is called with.
    """
    knots, values, slopes = rows.knots, rows.values[i], rows.slopes[i]
    low, high, end = rows.low[i], rows.high[i], len(knots) - 1
    lower = values[0] - slopes[0] * knots[0]
    upper = slopes[end] * knots[end] - values[end]
    # Starts are 0 unless all of the support lies on that side of the centre.
    first = -reach(curve.shapes[0], slopes[0], lower, max(-high, 0.0), order)
    last = reach(curve.shapes[1], slopes[end], upper, max(low, 0.0), order)
    first, last, start = max(low, first), min(high, last), max(low, -high)
    t, z = curve_inverse(knots, values, slopes, first), first
    t_end = curve_inverse(knots, values, slopes, last)
    shared = panels.borders
    n_shared = len(shared) - 1
    borders = np.empty(n_shared + _MOST_CUTS)
    which = np.empty(n_shared + _MOST_CUTS, dtype=np.int64)
    p = find_segment(shared, t) + 1
    borders[0] = t
    m = 0
    while t < t_end:
        stop = shared[p] if p <= n_shared else t_end
        if stop < t_end:
            z_stop = curve_at(knots, values, slopes, stop)[0]
        else:
            stop, z_stop = t_end, last
        step = step_from(start, z)
        cut, which[m] = stop, -1
        # A rest of less than half a step is not worth a panel of its own.
        if z_stop - z > 1.5 * step and m < len(borders) - n_shared - 2 + p:
            cut = curve_inverse(knots, values, slopes, z + step)
        # The inverse may round back to where it started.
        if t < cut < stop:
            z += step
        else:
            cut, z = stop, z_stop
            if 0 < p <= n_shared and t == shared[p - 1]:
                which[m] = p - 1 if stop == shared[p] else -1
            p += 1
        m += 1
        borders[m] = cut
        t = cut
    return borders[: m + 1], which[:m]


@fused
def _piece_of(
    knots: Float64Array, values: Float64Array, slopes: Float64Array, t: float
) -> tuple[float, float, float, float, float]:
    """Return the piece of g that t lies in: z = z0 + x (c1 + x (c2 + x c3)).

    Of x = t - origin; first comes the origin, which is the left knot.
    """
    k = find_segment(knots, t)
    start = max(k, 0)
    origin, z0, c1 = knots[start], values[start], slopes[start]
    if k < 0 or k == len(knots) - 1:
        return origin, z0, c1, 0.0, 0.0
    gap = knots[k + 1] - origin
    chord, after = (values[k + 1] - z0) / gap, slopes[k + 1]
    c2 = (3.0 * chord - 2.0 * c1 - after) / gap
    return origin, z0, c1, c2, (c1 + after - 2.0 * chord) / (gap * gap)


@fused
def _own_nodes(
    curve: BaseCurve,
    nodes: Float64Array,
    weights: Float64Array,
    left: float,
    right: float,
    first: float,
    place: int,
    out: Float64Array,
) -> float:
    """Fill in t, r, and the weights of dr and dt at the nodes of a row's own panel.

    They are the columns of `out` from `place` on. `first` is r at the panel's left
    end; returned is r at its right end. Between the ends of
    the base curve's points, where t(r) is quicker to compute than r(t), the nodes are
    those of a rule in r.
    """
    last = point_at(curve, right)[0]
    inside = curve.levels[0] <= left and right <= curve.levels[-1]
    for q in range(len(nodes)):
        if inside:
            r, dr = first + nodes[q] * (last - first), last - first
            t, slope = level_at(curve, r)
            dt = dr * slope
        else:
            t, dt = left + nodes[q] * (right - left), right - left
            r, rate = point_at(curve, t)
            dr = dt * rate
        out[T, place + q], out[R, place + q] = t, r
        out[DR, place + q] = weights[q] * dr
        out[DZ, place + q] = weights[q] * dt
    return last


@inner
def fill_nodes(
    curve: BaseCurve,
    rows: SplineRows,
    panels: Panels,
    i: int,
    borders: Float64Array,
    which: Int64Array,
) -> Float64Array:
    """Return t, r, z and the weights of dr and of dz at the nodes, shape (5, m q).

    Panel j is [borders[j], borders[j + 1]]; no knot lies inside, so g is one cubic.
    """
    knots, values, slopes = rows.knots, rows.values[i], rows.slopes[i]
    nodes, weights = panels.nodes, panels.weights
    shared_t, shared_r, rates = panels.t, panels.r, panels.rates
    n_nodes = len(nodes)
    out = np.empty((5, len(which) * n_nodes))
    # r at the right end of the panel before, nan where that is not known: r(t) is
    # what costs most here, and neighbours have a border in common.
    reached = math.nan
    for j in range(len(which)):
        left, right, p = borders[j], borders[j + 1], which[j]
        place = j * n_nodes
        if p >= 0:
            reached = math.nan
            for q in range(n_nodes):
                out[T, place + q], out[R, place + q] = shared_t[p, q], shared_r[p, q]
                out[DR, place + q] = rates[p, q]
                out[DZ, place + q] = weights[q] * (right - left)
        else:
            if math.isnan(reached):
                reached = point_at(curve, left)[0]
            reached = _own_nodes(
                curve, nodes, weights, left, right, reached, place, out
            )
        # At a border the piece could be either neighbour's; in the middle it is one.
        middle = left + 0.5 * (right - left)
        origin, z0, c1, c2, c3 = _piece_of(knots, values, slopes, middle)
        for q in range(place, place + n_nodes):
            # z = g(t), and the weights of dt become those of dz = g'(t) dt.
            x = out[T, q] - origin
            out[Z, q] = z0 + x * (c1 + x * (c2 + x * c3))
            out[DZ, q] *= c1 + x * (2.0 * c2 + 3.0 * x * c3)
    return out
