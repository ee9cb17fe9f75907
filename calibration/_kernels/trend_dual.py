"""The dual of weighted trend filtering: who must bend, and how far from the optimum.

With residuals r = w (z - p) and their running sums R_i = sum_{k <= i} r_k, the
optimality condition r = D'u - E'v (D: changes of slope, E: differences) reads

    u_{i+1} = u_i + h_i (R_i - v_i),   u = 0 at both ends,

h_i being the gap after cell i, with |u| <= bend, u = bend * sign at kinks, and v in
[0, fall]: 0 where the function rises, `fall` where it falls, free where it is flat.
"""

from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration._kernels.trend_pieces import fit_affine
from calibration.typing import Float64Array, Int64Array


class _Cells(NamedTuple):
    """Cells, the running sums R there, and what is marked: kinks, states of gaps."""

    x: Float64Array
    running: Float64Array
    marks: Float64Array
    gaps: Int64Array


class _Piece(NamedTuple):
    """Cells `first` to `last` between two kinks, and what u is at these two."""

    first: int
    last: int
    start: float
    end: float


class _Penalties(NamedTuple):
    """Those on kinks and on falls, and the |u| from which on a cell is marked."""

    bend: float
    fall: float
    limit: float


@njit
def largest_bend(x: Float64Array, weight: Float64Array, target: Float64Array) -> float:
    """Least penalty at which the trend filter is the weighted affine fit.

    It equals max |(D W^-1 D')^-1 D z|, here as the largest double running sum of the
    residuals of that fit, which loses no digits where cells nearly coincide.
    """
    line = fit_affine(x, weight, target)
    running, u, largest = 0.0, 0.0, 0.0
    for i in range(len(x) - 2):
        # u of the affine fit, by the recursion above with v = 0: all |u| <= bend means
        # that no kink pays.
        running += weight[i] * (target[i] - line[i])
        u += running * (x[i + 1] - x[i])
        largest = max(largest, abs(u))
    return largest


@njit
def price_cells(
    x: Float64Array,
    residual: Float64Array,
    weight: Float64Array,
    marks: Float64Array,
    gaps: Int64Array,
    bend: float,
    fall: float,
    tolerance: float,
) -> tuple[int, float, float]:
    """Mark the kinks and slopes that lower the objective; bound the dual's excess.

    Parameters
    ----------
    x, residual, weight : ndarrays of shape (m,)
    marks : ndarray of shape (m,)
        Sign of the kink at each cell, 0 for none. New ones are written here.
    gaps : ndarray of shape (m - 1,)
        State of the piece that each gap belongs to: 1 rising (or not watched),
        0 flat, -1 falling. New slopes of parts of flat pieces are written here.
    bend, fall : float
        The two penalties.
    tolerance : float
        Excess of |u| over `bend`, relative, that is taken for rounding.

    Returns
    -------
    n_new, worst, slack
        Number of violations marked; the largest |u|; half the squared distance, in
        the norm of the weights, that rounding moves the dual's function by.
    """
    m = len(x)
    running, slack = _running_sums(residual, weight)
    cells = _Cells(x, running, marks, gaps)
    penalties = _Penalties(bend, fall, bend * (1.0 + tolerance))
    n_new, worst = 0, bend
    first = 0
    while first < m - 1:
        last = first + 1
        while last < m - 1 and marks[last] == 0.0:
            last += 1
        # Complementary slackness: at a kink u is the penalty with the kink's sign.
        piece = _Piece(first, last, bend * marks[first], bend * marks[last])
        if gaps[first] == 0:
            found, top, miss = _price_flat(cells, piece, penalties)
        else:
            v = fall if gaps[first] < 0 else 0.0
            found, top, miss = _price_sloped(cells, piece, v, penalties.limit)
        n_new += found
        # Tilting u along the piece closes the miss; residuals move at its ends only.
        off = miss / (x[last] - x[first])
        slack += 0.5 * off * off * (1.0 / weight[first] + 1.0 / weight[last])
        worst = max(worst, top + miss)
        first = last
    return n_new, worst, slack


@inner
def _running_sums(
    residual: Float64Array, weight: Float64Array
) -> tuple[Float64Array, float]:
    """Running sums of the residuals, less what rounding leaves of their total.

    The total is spread in proportion to weight; second, half its squared norm.
    """
    running, before = np.cumsum(residual), np.cumsum(weight)
    total, size = running[-1], before[-1]
    # An optimal fit has residuals that sum to 0; what rounding leaves would run on
    # through all of u.
    running -= total * (before / size)
    return running, 0.5 * total * total / size


@inner
def _price_sloped(
    cells: _Cells, piece: _Piece, v: float, limit: float
) -> tuple[int, float, float]:
    """Follow u along a piece with known v; mark the peak of every excursion.

    The objective falls by |u| - bend per unit of a new kink, fastest at the peak.
    Kinks at all cells beyond the limit would have to be dropped again.

    Returns
    -------
    found, top, miss
        Number of cells marked; a bound on |u| along the piece; how far from its end
        u arrives, by rounding.
    """
    x, running, marks, _ = cells
    last = piece.last
    u, top, found = piece.start, 0.0, 0
    peak, height = 0, 0.0
    for i in range(piece.first, last - 1):
        u += (x[i + 1] - x[i]) * (running[i] - v)
        top = max(top, abs(u))
        outside = abs(u) > limit
        if height != 0.0 and (not outside or u * height < 0.0):
            marks[peak] = 1.0 if height > 0.0 else -1.0
            found += 1
            height = 0.0
        if outside and abs(u) > abs(height):
            peak, height = i + 1, u
    if height != 0.0:
        marks[peak] = 1.0 if height > 0.0 else -1.0
        found += 1
    u += (x[last] - x[last - 1]) * (running[last - 1] - v)
    return found, top, abs(u - piece.end)


@inner
def _price_flat(
    cells: _Cells, piece: _Piece, penalties: _Penalties
) -> tuple[int, float, float]:
    """Look for v in [0, fall] that keeps |u| <= bend along a flat piece.

    [low, high] are the values of u that can be reached. Where none is allowed, the
    part from the cell `since` at which the bound was last touched has to slope: the
    path of low has v = fall there (it falls), that of high v = 0 (it rises).

    Returns
    -------
    found, top, miss
        1 if a part was told to slope, else 0; see `_price_sloped`.
    """
    x, running, marks, gaps = cells
    bend, fall, last = penalties.bend, penalties.fall, piece.last
    room = penalties.limit - bend
    low, high, top, found = piece.start, piece.start, 0.0, 0
    since_low, since_high = piece.first, piece.first
    for i in range(piece.first, last):
        gap = x[i + 1] - x[i]
        # v = fall takes u as far down as it goes, v = 0 as far up.
        low += gap * (running[i] - fall)
        high += gap * running[i]
        inner = i + 1 < last
        # Within the piece u may be anywhere between the bounds; its end is given.
        least, most = (-bend, bend) if inner else (piece.end, piece.end)
        if found == 0 and low > most + room:
            stop = _follow(running, fall, i + 1, last, 1.0)
            _slope_part(marks, gaps, since_low, stop, -1)
            found = 1
        if found == 0 and high < least - room:
            stop = _follow(running, 0.0, i + 1, last, -1.0)
            _slope_part(marks, gaps, since_high, stop, 1)
            found = 1
        if inner:
            # What must leave the bound is followed on, so that `top` stays a bound.
            top = max(top, low, -high)
            if low <= -bend:
                since_low = i + 1
            if high >= bend:
                since_high = i + 1
            # Of what was reached only what is allowed goes on from here.
            low, high = max(low, min(-bend, high)), min(high, max(bend, low))
    return found, top, max(low - piece.end, piece.end - high, 0.0)


@inner
def _follow(
    running: Float64Array, v: float, cell: int, last: int, direction: float
) -> int:
    """Cell from `cell` on at which u, moving in `direction`, turns back."""
    while cell < last and (running[cell] - v) * direction > 0.0:
        cell += 1
    return cell


@inner
def _slope_part(
    marks: Float64Array, gaps: Int64Array, first: int, last: int, state: int
) -> None:
    """Let the cells from `first` to `last` of a flat piece slope, with new kinks."""
    gaps[first:last] = state
    if first > 0 and marks[first] == 0.0:
        marks[first] = state
    if last < len(marks) - 1 and marks[last] == 0.0:
        marks[last] = -state
