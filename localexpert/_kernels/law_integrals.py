"""Integrals over increasing curves: powers of F and of 1 - F over y, and moments.

With y = Q(z) an integral of F(y)^a dy is one of Phi(z)^a Q'(z) dz: nothing cancels, and
Gauss-Legendre sums on the pieces are right to many digits.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import fused, inner, njit
from calibration.typing import Float64Array
from localexpert._kernels.hermite import find_segment
from localexpert._kernels.law_curve import (
    Pieces,
    Rows,
    from_coordinate,
    log_rate,
    piece_of,
    score_at,
)
from localexpert._kernels.normal import normal_cdf


class Panels(NamedTuple):
    """Panels of integrals, which all rows share: P of them, with q nodes each.

    `borders` (P + 1,); `piece` (P,) is the number of the piece that one lies in. At
    nodes (P, q): places `s` within the piece, `weight` in integrals over s, levels
    `below` and `above`, and `share`, their probability, of sum 1. `rule` (2, q) are
    nodes and weights from 0 to 1.
    """

    borders: Float64Array
    piece: NDArray[np.int64]
    s: Float64Array
    weight: Float64Array
    below: Float64Array
    above: Float64Array
    share: Float64Array
    rule: Float64Array


@fused
def _rate_at(
    a0: float, a1: float, a2: float, a3: float, s: float, low: float, high: float
) -> float:
    """Return dy/ds at a place in a piece."""
    slope = a1 + s * (2.0 * a2 + 3.0 * s * a3)
    if low == -math.inf and high == math.inf:
        return slope
    u = a0 + s * (a1 + s * (a2 + s * a3))
    return slope * math.exp(log_rate(u, low, high))


@inner
def _add_part(
    shared: Pieces,
    rows: Rows,
    i: int,
    p: int,
    start: float,
    end: float,
    rule: Float64Array,
    sums: Float64Array,
) -> None:
    """Add the integrals between scores in a piece: F, 1 - F, both squared."""
    a0, a1, a2, a3 = piece_of(shared, rows.coefficients[i], p)
    first, span = shared.breaks[p], shared.breaks[p + 1] - shared.breaks[p]
    width = end - start
    for q in range(rule.shape[1]):
        z = start + width * rule[0, q]
        s = (z - first) / span
        rate = _rate_at(a0, a1, a2, a3, s, rows.low[i], rows.high[i])
        dy = width / span * rule[1, q] * rate
        below, above = normal_cdf(z), normal_cdf(-z)
        sums[0] += dy * below
        sums[1] += dy * above
        sums[2] += dy * below * below
        sums[3] += dy * above * above


def curve_integrals(
    shared: Pieces, rows: Rows, panels: Panels, y: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return integrals (4, n, k) cut at y (n, k), and that of F (1 - F), (n,).

    The four are those of F and of its square below y, of 1 - F and of its square above.
    """
    out, spread = np.empty((4, *y.shape)), np.empty(len(y))
    room = np.empty((2, len(panels.borders), 4))
    _fill_integrals(shared, rows, panels, y, room, out, spread)
    return out, spread


@njit
def _fill_integrals(
    shared: Pieces,
    rows: Rows,
    panels: Panels,
    y: Float64Array,
    room: Float64Array,
    out: Float64Array,
    spread: Float64Array,
) -> None:
    """Fill in `out` and `spread`; `room` is for sums up to borders, and beyond."""
    borders, last = panels.borders, len(panels.borders) - 1
    upto, beyond = room[0], room[1]
    left, right = np.zeros(4), np.zeros(4)
    for i in range(y.shape[0]):
        low, high = rows.low[i], rows.high[i]
        upto[0] = 0.0
        beyond[last] = 0.0
        both = 0.0
        for p in range(last):
            a0, a1, a2, a3 = piece_of(shared, rows.coefficients[i], panels.piece[p])
            s0 = s1 = s2 = s3 = 0.0
            for q in range(panels.s.shape[1]):
                rate = _rate_at(a0, a1, a2, a3, panels.s[p, q], low, high)
                dy = panels.weight[p, q] * rate
                below, above = panels.below[p, q], panels.above[p, q]
                s0 += dy * below
                s1 += dy * above
                s2 += dy * below * below
                s3 += dy * above * above
                both += dy * below * above
            upto[p + 1, 0], upto[p + 1, 2] = upto[p, 0] + s0, upto[p, 2] + s2
            beyond[p, 1], beyond[p, 3] = s1, s3
        for p in range(last - 1, -1, -1):
            beyond[p, 1] += beyond[p + 1, 1]
            beyond[p, 3] += beyond[p + 1, 3]
        spread[i] = both
        c = rows.coefficients[i]
        first = from_coordinate(c[0], low, high)
        final = from_coordinate(c[len(c) - 1], low, high)
        for j in range(y.shape[1]):
            z = score_at(shared, rows, i, y[i, j])
            z = min(max(z, borders[0]), borders[last])
            p = min(find_segment(borders, z), last - 1)
            left[:], right[:] = upto[p], beyond[p + 1]
            place = (shared, rows, i, panels.piece[p])
            _add_part(*place, borders[p], z, panels.rule, left)
            _add_part(*place, z, borders[p + 1], panels.rule, right)
            # Beyond the borders F is 0 or 1 but for rounding.
            over, under = max(y[i, j] - final, 0.0), max(first - y[i, j], 0.0)
            out[0, i, j], out[1, i, j] = left[0] + over, left[2] + over
            out[2, i, j], out[3, i, j] = right[1] + under, right[3] + under


def curve_moments(shared: Pieces, rows: Rows, panels: Panels) -> Float64Array:
    """Return the mean and the second to fourth central moment, (n, 4)."""
    out = np.empty((len(rows.coefficients), 4))
    _fill_moments(shared, rows, panels, np.empty(panels.s.shape), out)
    return out


@njit
def _fill_moments(
    shared: Pieces, rows: Rows, panels: Panels, y: Float64Array, out: Float64Array
) -> None:
    """Fill in `out`; `y` is room for the values at nodes."""
    for i in range(len(out)):
        mean = _fill_nodes(shared, rows, panels, i, y)
        m1 = m2 = m3 = m4 = 0.0
        # About the mean up to rounding, which is taken off in the end.
        for p in range(y.shape[0]):
            for q in range(y.shape[1]):
                away, share = y[p, q] - mean, panels.share[p, q]
                square = away * away
                m1 += share * away
                m2 += share * square
                m3 += share * square * away
                m4 += share * square * square
        out[i, 0], out[i, 1] = mean + m1, m2 - m1 * m1
        out[i, 2], out[i, 3] = m3 - 3.0 * m1 * m2, m4 - 4.0 * m1 * m3


@inner
def _fill_nodes(
    shared: Pieces, rows: Rows, panels: Panels, i: int, y: Float64Array
) -> float:
    """Fill in the values (P, q) of a row at the nodes, and return their mean."""
    low, high = rows.low[i], rows.high[i]
    c = rows.coefficients[i]
    # Differences from a middle value: large values would lose digits.
    middle = from_coordinate(c[len(c) // 2], low, high)
    total = 0.0
    for p in range(y.shape[0]):
        a0, a1, a2, a3 = piece_of(shared, c, panels.piece[p])
        for q in range(y.shape[1]):
            s = panels.s[p, q]
            u = a0 + s * (a1 + s * (a2 + s * a3))
            y[p, q] = from_coordinate(u, low, high)
            total += panels.share[p, q] * (y[p, q] - middle)
    return middle + total


def curve_nodes(shared: Pieces, rows: Rows, panels: Panels) -> Float64Array:
    """Return the values at all nodes, (n, P q)."""
    out = np.empty((len(rows.coefficients), *panels.s.shape))
    _fill_all_nodes(shared, rows, panels, out)
    return out.reshape(len(out), -1)


@njit
def _fill_all_nodes(
    shared: Pieces, rows: Rows, panels: Panels, out: Float64Array
) -> None:
    for i in range(len(out)):
        _fill_nodes(shared, rows, panels, i, out[i])
