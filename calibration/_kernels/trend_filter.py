"""Weighted l1 linear trend filtering on uneven cells, by an active set of kinks.

Pieces: the function is linear between knots. Knots are cells of the data. The first and
the last cell are knots too. So the values at the knots solve a tridiagonal system. Its
conditioning does not suffer from cells that nearly coincide, because every hat function
is 1 at a cell.

Steps: how far the active set goes towards its optimum, and which signs are lost.

The dual: which cells must bend, and how far away the optimum is. The residuals are
r = w (z - p), and their running sums are R_i = sum_{k <= i} r_k. Let D give changes of
slope, and E differences. The optimality condition r = D'u - E'v reads

    u_{i+1} = u_i + h_i (R_i - v_i),   u = 0 at both ends,

where h_i is the gap after cell i. It needs |u| <= bend, and u = bend * sign at kinks. v
lies in [0, fall]. It is 0 where the function rises, `fall` where it falls, and free
where it is flat.
"""

from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array, Int64Array

# Values are about 1. Smaller differences of them are rounding.
_ROUNDING = 1e-13


@njit
def fit_pieces(
    x: Float64Array,
    weight: Float64Array,
    target: Float64Array,
    knots: Int64Array,
    signs: Float64Array,
    states: Int64Array,
    bend: float,
    fall: float,
) -> Float64Array:
    """Return the best values (k,) at the knots for given signs of kinks and slopes.

    They minimise sum w (p - z)^2 / 2 + bend * sum s_k kink_k + fall * (total decrease
    of the pieces in state -1). A piece in state 0 is flat. A piece of length h between
    knots k and k + 1 enters the penalty by its slope (c_{k+1} - c_k) / h with the
    factor bend * (s_k - s_{k+1}).
    """
    k = len(knots)
    diagonal, above, right = np.zeros(k), np.zeros(k), np.zeros(k)
    at = 0
    for piece in range(k - 1):
        first, last = knots[piece], knots[piece + 1]
        diagonal[at] += weight[first]
        right[at] += weight[first] * target[first]
        # The two ends of a flat piece are one unknown. All its cells count for it.
        if states[piece] == 0:
            for i in range(first + 1, last):
                diagonal[at] += weight[i]
                right[at] += weight[i] * target[i]
            continue
        # Use hat functions. A cell between two knots counts for both, by its distance.
        inverse = 1.0 / (x[last] - x[first])
        g00, g01, g11, b0, b1 = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(first + 1, last):
            share = (x[i] - x[first]) * inverse
            high = weight[i] * share
            low = weight[i] - high
            g01 += low * share
            g11 += high * share
            g00 += low - low * share
            b0 += low * target[i]
            b1 += high * target[i]
        # This is the derivative of the penalties by the slope of the piece. It raises
        # one end as much as it lowers the other.
        force = bend * (signs[piece] - signs[piece + 1]) * inverse
        if states[piece] < 0:
            force -= fall
        diagonal[at] += g00
        above[at] = g01
        right[at] += b0 + force
        at += 1
        diagonal[at] += g11
        right[at] += b1 - force
    diagonal[at] += weight[knots[k - 1]]
    right[at] += weight[knots[k - 1]] * target[knots[k - 1]]
    _solve_tridiagonal(diagonal[: at + 1], above[: at + 1], right[: at + 1])
    # If a piece is not flat, its far end is an unknown of its own.
    places = np.cumsum((states != 0).astype(np.int64))
    values: Float64Array = right[np.append(0, places)]
    return values


@inner
def _solve_tridiagonal(
    diagonal: Float64Array, above: Float64Array, right: Float64Array
) -> None:
    """Solve a symmetric positive definite system in place. The answer is in `right`."""
    # Eliminate without pivots (the Thomas algorithm), because the matrix is positive
    # definite.
    for i in range(1, len(diagonal)):
        factor = above[i - 1] / diagonal[i - 1]
        diagonal[i] -= factor * above[i - 1]
        right[i] -= factor * right[i - 1]
    right[-1] /= diagonal[-1]
    for i in range(len(diagonal) - 2, -1, -1):
        right[i] = (right[i] - above[i] * right[i + 1]) / diagonal[i]


@njit
def kinks_of(x: Float64Array, knots: Int64Array, values: Float64Array) -> Float64Array:
    """Return the change of slope at every knot, 0 at the two ends, shape (k,).

    A change that rounding of the values can make counts as 0. If the function goes
    through its targets, any cell may carry the kink, and one is enough.
    """
    inverse = 1.0 / np.diff(x[knots])
    inner = np.diff(np.diff(values) * inverse)
    least = _ROUNDING * (inverse[:-1] + inverse[1:])
    kinks = np.zeros(len(knots))
    kinks[1:-1] = np.where(np.abs(inner) > least, inner, 0.0)
    return kinks


@njit
def fill_pieces(
    x: Float64Array, knots: Int64Array, values: Float64Array
) -> Float64Array:
    """Return values of the piecewise-linear function at all cells, shape (m,)."""
    out = np.empty(len(x))
    for piece in range(len(knots) - 1):
        first, last = knots[piece], knots[piece + 1]
        rise = (values[piece + 1] - values[piece]) / (x[last] - x[first])
        for i in range(first, last):
            out[i] = values[piece] + rise * (x[i] - x[first])
    out[knots[-1]] = values[-1]
    return out


@njit
def fit_affine(
    x: Float64Array, weight: Float64Array, target: Float64Array
) -> Float64Array:
    """Return values of the weighted least squares line at all cells, shape (m,)."""
    ends = np.array([0, len(x) - 1], dtype=np.int64)
    none, one = np.zeros(2), np.ones(1, dtype=np.int64)
    values = fit_pieces(x, weight, target, ends, none, one, 0.0, 0.0)
    return fill_pieces(x, ends, values)


class Line(NamedTuple):
    """A piecewise-linear function: its knots, and what holds there.

    For every knot: its cell, the sign that its kink must have (`sides`), the value and
    the kink. For every piece: its state in `slopes`, which is 1 if it rises (or is not
    watched), 0 if it is flat, -1 if it falls. Arrays may be longer than the line,
    because the number of its knots shrinks.
    """

    knots: Int64Array
    sides: Float64Array
    slopes: Int64Array
    values: Float64Array
    kinks: Float64Array


class Goal(NamedTuple):
    """Where the values and the kinks of the knots will go."""

    values: Float64Array
    kinks: Float64Array


@inner
def _share(here: float, goal: float, sign: float) -> float:
    """Return which share of the way to `goal` loses the sign, or 2 if none does."""
    # The way is linear. So if both ends have the sign, it is kept.
    if goal * sign > 0.0:
        return 2.0
    # A new kink that does not grow in the direction of its sign is dropped at once.
    if here * sign <= 0.0:
        return 0.0
    return here / (here - goal)


@njit
def longest_step(line: Line, goal: Goal, fall: float) -> float:
    """Return the largest step to the goal that keeps all signs, 2 if the goal does."""
    _, sides, slopes, values, kinks = line
    ends = goal.values
    step = 2.0
    for k in range(1, len(ends) - 1):
        step = min(step, _share(kinks[k], goal.kinks[k], sides[k]))
    if fall > 0.0:
        for k in range(len(ends) - 1):
            if slopes[k] != 0:
                rise, goal_rise = values[k + 1] - values[k], ends[k + 1] - ends[k]
                step = min(step, _share(rise, goal_rise, slopes[k]))
    return step


@njit
def move_values(line: Line, goal: Goal, fall: float, step: float) -> None:
    """Go `step` of the way, in place, and drop the signs that are lost there."""
    _, sides, slopes, values, kinks = line
    ends = goal.values
    for k in range(1, len(ends) - 1):
        # Read it before it moves. The step is the least of all shares, so at least one
        # sign is lost.
        lost = _share(kinks[k], goal.kinks[k], sides[k]) <= step
        kinks[k] += step * (goal.kinks[k] - kinks[k])
        if lost:
            sides[k] = 0.0
    if fall > 0.0:
        for k in range(len(ends) - 1):
            if slopes[k] != 0:
                rise, goal_rise = values[k + 1] - values[k], ends[k + 1] - ends[k]
                if _share(rise, goal_rise, slopes[k]) <= step:
                    slopes[k] = 0
    for k in range(len(ends)):
        values[k] += step * (ends[k] - values[k])


@njit
def drop_knots(line: Line, n_knots: int) -> int:
    """Move the knots that remain to the front, and return their number.

    A knot goes if its kink is gone or lies between two flat pieces. A piece that is
    joined to a flat one is flat, and both ends of it get one value.
    """
    knots, sides, slopes, values, kinks = line
    k = 0
    for old in range(1, n_knots):
        # The first knot stays in its place. The last one is moved up.
        inner = old < n_knots - 1
        if inner and (sides[old] == 0.0 or slopes[k] == slopes[old] == 0):
            if slopes[old] != slopes[k]:
                slopes[k] = 0
            continue
        k += 1
        knots[k], sides[k], kinks[k] = knots[old], sides[old], kinks[old]
        values[k] = values[k - 1] if slopes[k - 1] == 0 else values[old]
        if inner:
            slopes[k] = slopes[old]
    return k + 1


class _Cells(NamedTuple):
    """Cells, the running sums R there, and the marks: kinks, and states of gaps."""

    x: Float64Array
    running: Float64Array
    marks: Float64Array
    gaps: Int64Array


class _Piece(NamedTuple):
    """Cells `first` to `last` between two kinks, and the values of u at these two."""

    first: int
    last: int
    start: float
    end: float


class _Penalties(NamedTuple):
    """Penalties on kinks and on falls, and the |u| from which on a cell is marked."""

    bend: float
    fall: float
    limit: float


def largest_bend(x: Float64Array, weight: Float64Array, target: Float64Array) -> float:
    """Return the least penalty at which the trend filter is the weighted affine fit.

    It equals max |(D W^-1 D')^-1 D z|. It is computed as the largest double running sum
    of the residuals of that fit, which loses no digits if cells nearly coincide.
    """
    # This is u of the affine fit, by the recursion above with v = 0. If all
    # |u| <= bend, no kink pays.
    running = np.cumsum(weight * (target - fit_affine(x, weight, target)))
    u = np.cumsum(running[:-1] * np.diff(x))
    return float(np.abs(u[:-1]).max(initial=0.0))


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
    """Mark the kinks and slopes that lower the objective, and bound the dual's excess.

    Parameters
    ----------
    x, residual, weight : ndarrays of shape (m,)
    marks : ndarray of shape (m,)
        Sign of the kink at each cell, or 0 if there is none. New ones are written here.
    gaps : ndarray of shape (m - 1,)
        State of the piece to which each gap belongs: 1 rising (or not watched), 0 flat,
        -1 falling. New slopes of parts of flat pieces are written here.
    bend, fall : float
        The two penalties.
    tolerance : float
        Excess of |u| over `bend`, relative, that counts as rounding.

    Returns
    -------
    n_new, worst, slack
        Number of violations that were marked; the largest |u|; and half the squared
        distance, in the norm of the weights, by which rounding moves the dual's
        function.
    """
    m = len(x)
    running, before = np.cumsum(residual), np.cumsum(weight)
    # The residuals of an optimal fit sum to 0. What rounding leaves would run on
    # through all of u. So it is spread in proportion to weight.
    total, size = running[-1], before[-1]
    running -= total * (before / size)
    slack = 0.5 * total * total / size
    cells = _Cells(x, running, marks, gaps)
    penalties = _Penalties(bend, fall, bend * (1.0 + tolerance))
    n_new, worst = 0, bend
    first = 0
    while first < m - 1:
        last = first + 1
        while last < m - 1 and marks[last] == 0.0:
            last += 1
        # By complementary slackness, u at a kink is the penalty with the kink's sign.
        piece = _Piece(first, last, bend * marks[first], bend * marks[last])
        if gaps[first] == 0:
            found, top, miss = _price_flat(cells, piece, penalties)
        else:
            v = fall if gaps[first] < 0 else 0.0
            found, top, miss = _price_sloped(cells, piece, v, penalties.limit)
        n_new += found
        # If u is tilted along the piece, the miss is closed. Residuals move only at its
        # ends.
        off = miss / (x[last] - x[first])
        slack += 0.5 * off * off * (1.0 / weight[first] + 1.0 / weight[last])
        worst = max(worst, top + miss)
        first = last
    return n_new, worst, slack


@inner
def _price_sloped(
    cells: _Cells, piece: _Piece, v: float, limit: float
) -> tuple[int, float, float]:
    """Follow u along a piece with known v, and mark the peak of every excursion.

    A new kink lowers the objective by |u| - bend per unit, which is fastest at the
    peak. If there were kinks at all cells beyond the limit, they would have to be
    dropped again.

    Returns
    -------
    found, top, miss
        Number of cells that were marked; a bound on |u| along the piece; and how far
        from its end u arrives, by rounding.
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

    [low, high] are the values of u that can be reached. If none of them is allowed, a
    part of the piece has to slope. It begins at the cell `since`, where the bound was
    last touched. The path of low has v = fall there (it falls). That of high has v = 0
    (it rises).

    Returns
    -------
    found, top, miss
        1 if a part was made to slope, else 0. The others are as in `_price_sloped`.
    """
    x, running, marks, gaps = cells
    bend, fall, last = penalties.bend, penalties.fall, piece.last
    room = penalties.limit - bend
    low, high, top, found = piece.start, piece.start, 0.0, 0
    since_low, since_high = piece.first, piece.first
    for i in range(piece.first, last):
        gap = x[i + 1] - x[i]
        # v = fall moves u as far down as it can go, and v = 0 as far up.
        low += gap * (running[i] - fall)
        high += gap * running[i]
        inner = i + 1 < last
        # Within the piece u may be anywhere between the bounds. At its end u is given.
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
            # A path that must leave the bound is still followed, so that `top` stays a
            # bound.
            top = max(top, low, -high)
            if low <= -bend:
                since_low = i + 1
            if high >= bend:
                since_high = i + 1
            # Only values that are allowed go on from here.
            low, high = max(low, min(-bend, high)), min(high, max(bend, low))
    return found, top, max(low - piece.end, piece.end - high, 0.0)


@inner
def _follow(
    running: Float64Array, v: float, cell: int, last: int, direction: float
) -> int:
    """Return the first cell, from `cell` on, where u stops moving in `direction`."""
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


# A solution counts as optimal up to this excess of the dual, relative to the penalty.
# The relative duality gap is at most about this.
_TOLERANCE = 1e-9
# Rounds without a lower objective. Near the optimum rounding hides the last gains.
_PATIENCE = 30


class _Data(NamedTuple):
    """Increasing cells, their weights and their means."""

    x: Float64Array
    weight: Float64Array
    target: Float64Array


class _State(NamedTuple):
    """The function at all cells, the signs of its kinks, and the states of its gaps."""

    p: Float64Array
    signs: Float64Array
    states: Int64Array


@njit
def trend_filter_path(
    x: Float64Array,
    weight: Float64Array,
    target: Float64Array,
    bends: Float64Array,
    fall: float,
) -> tuple[Float64Array, Float64Array, Int64Array, Float64Array]:
    """Return trend filters for decreasing penalties. Each starts from the one before.

    They minimise, over p in R^m,

        sum_i w_i (p_i - z_i)^2 / 2 + bend * sum_i |s_{i+1} - s_i|
            + fall * sum_i max(p_i - p_{i+1}, 0),

    where s_i = (p_{i+1} - p_i) / (x_{i+1} - x_i). This is an active-set method. If the
    cells that bend and the signs of their kinks are known, p solves a tridiagonal
    system. A step ends where a kink (or a slope, if decreases cost) would change its
    sign, which drops it. Where the dual variable exceeds its bound, a kink is
    added. The objective decreases strictly, so the method ends at the optimum.

    Parameters
    ----------
    x, weight, target : ndarrays of shape (m,)
        Increasing cells, their positive weights and their means z, m >= 2.
    bends : ndarray of shape (n_bends,)
        Decreasing penalties on changes of slope.
    fall : float
        Penalty on decreases of the values. 0 means plain trend filtering. inf means an
        increasing function.

    Returns
    -------
    values : ndarray of shape (n_bends, m)
    marks : ndarray of shape (n_bends, m)
        Sign of the kink at each cell, or 0 if there is none.
    freedom : ndarray of shape (n_bends,)
        Free parameters: kinks + 2 - flat pieces. No piece is flat by chance.
    gaps : ndarray of shape (n_bends,)
        Upper bound on (objective - optimum) / objective from a feasible dual point.
    """
    m = len(x)
    values = np.empty((len(bends), m))
    marks = np.zeros((len(bends), m))
    freedom = np.empty(len(bends), dtype=np.int64)
    gaps = np.empty(len(bends))
    data = _Data(x, weight, target)
    state = _affine_start(data, fall)
    for index in range(len(bends)):
        freedom[index], gaps[index] = _solve(data, bends[index], fall, state)
        values[index], marks[index] = state.p, state.signs
    return values, marks, freedom, gaps


@inner
def _affine_start(data: _Data, fall: float) -> _State:
    """Return the affine least squares fit, flat instead of falling if decreases cost.

    If decreases cost nothing, every gap is in state 1, and slopes are not watched.
    """
    x, weight, target = data
    p, states = fit_affine(x, weight, target), np.ones(len(x) - 1, dtype=np.int64)
    # An affine function falls everywhere or nowhere.
    if fall > 0.0 and p[-1] <= p[0]:
        # Do not use `sum`, because its order of additions depends on the compiler.
        p[:] = np.cumsum(weight * target)[-1] / np.cumsum(weight)[-1]
        states[:] = 0
    return _State(p, np.zeros(len(x)), states)


@inner
def _solve(data: _Data, bend: float, fall: float, state: _State) -> tuple[int, float]:
    """Solve for a penalty from the present state, in place. Return freedom and gap."""
    x, weight, target = data
    p, signs, states = state
    m = len(x)
    residual, marks, gaps = np.empty(m), np.empty(m), np.empty(m - 1, dtype=np.int64)
    lowest, stalled, total = np.inf, 0, np.cumsum(weight)[-1]
    while True:
        freedom, penalty = _descend(data, bend, fall, state)
        # Take p as it will be returned, so that the gap is that of the answer.
        squares = 0.0
        for i in range(m):
            residual[i] = weight[i] * (target[i] - p[i])
            squares += residual[i] * (target[i] - p[i])
        objective = 0.5 * squares + penalty
        stalled = 0 if objective < lowest else stalled + 1
        lowest = min(lowest, objective)
        # Work on copies. If nothing is violated, the state stays as it is.
        marks[:], gaps[:] = signs, states
        n_new, worst, slack = price_cells(
            x, residual, weight, marks, gaps, bend, fall, _TOLERANCE
        )
        if n_new == 0 or stalled > _PATIENCE:
            break
        signs[:], states[:] = marks, gaps
    # The dual point is scaled into its box by 1 - short. With q = D'u - E'v the gap is
    # pen(p) - q'p + |p - z + q / w|^2 / 2, a sum of terms that cannot cancel.
    short = 1.0 - bend / worst if worst > 0.0 else 0.0
    # The distance has three parts: one from scaling, and two from rounding.
    gap = short * penalty + 1.5 * short * short * squares + 3.0 * slack
    # If the objective is below the rounding of the weights, the fit is exact.
    return freedom, gap / (objective + 2.3e-16 * total)


@inner
def _descend(data: _Data, bend: float, fall: float, state: _State) -> tuple[int, float]:
    """Go to the best function with the present kinks, and drop those that vanish.

    Return the number of free parameters and the penalty.
    """
    x, weight, target = data
    p, signs, states = state
    line = _line_of(x, state)
    knots, sides, slopes, _, _ = line
    k = len(knots)
    while True:
        values = fit_pieces(
            x, weight, target, knots[:k], sides[:k], slopes[: k - 1], bend, fall
        )
        goal = Goal(values, kinks_of(x, knots[:k], values))
        step = longest_step(line, goal, fall)
        # The goal keeps all signs, so it is the optimum for these kinks.
        if step > 1.0:
            break
        move_values(line, goal, fall, step)
        k = drop_knots(line, k)
    p[:] = fill_pieces(x, knots[:k], values)
    # The next penalty starts from what is left of the active set.
    signs[:] = 0.0
    penalty, freedom = 0.0, 1
    for piece in range(k - 1):
        signs[knots[piece]] = sides[piece]
        states[knots[piece] : knots[piece + 1]] = slopes[piece]
        penalty += bend * abs(goal.kinks[piece])
        freedom += abs(slopes[piece])
        if slopes[piece] < 0:
            penalty += fall * (values[piece] - values[piece + 1])
    return freedom, penalty


@inner
def _line_of(x: Float64Array, state: _State) -> Line:
    """Return the function by its knots: the cells with a kink, and the two ends."""
    p, signs, states = state
    inner = np.flatnonzero(signs[1:-1]) + 1
    knots = np.concatenate((np.array([0]), inner, np.array([len(signs) - 1])))
    values, sides = p[knots], signs[knots]
    kinks = kinks_of(x, knots, values)
    # A kink that has just been added is 0, whatever rounding makes of it.
    kinks[kinks * sides <= 0.0] = 0.0
    return Line(knots, sides, states[knots[:-1]], values, kinks)
