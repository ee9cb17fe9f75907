"""Weighted l1 linear trend filtering on uneven cells, by an active set of kinks."""

from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration._kernels.trend_dual import price_cells
from calibration._kernels.trend_pieces import (
    fill_pieces,
    fit_affine,
    fit_pieces,
    kinks_of,
)
from calibration._kernels.trend_steps import (
    Goal,
    Line,
    drop_knots,
    longest_step,
    move_values,
)
from calibration.typing import Float64Array, Int64Array

# Excess of the dual, relative to the penalty, at which a solution is called optimal.
# The relative duality gap is at most about this.
_TOLERANCE = 1e-9
# Rounds without a lower objective: near the optimum rounding hides the last gains.
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
    """Trend filters for decreasing penalties, each started from the one before.

    Minimises, over p in R^m,

        sum_i w_i (p_i - z_i)^2 / 2 + bend * sum_i |s_{i+1} - s_i|
            + fall * sum_i max(p_i - p_{i+1}, 0),

    s_i = (p_{i+1} - p_i) / (x_{i+1} - x_i). An active-set method: with the cells that
    bend and the signs of their kinks known, p solves a tridiagonal system; a step
    ends where a kink (or a slope, if decreases cost) would change its sign, which
    drops it; where the dual variable exceeds its bound a kink is added. The
    objective decreases strictly, so the method ends at the optimum.

    Parameters
    ----------
    x, weight, target : ndarrays of shape (m,)
        Increasing cells, m >= 2, their positive weights and their means z.
    bends : ndarray of shape (n_bends,)
        Penalties on changes of slope, decreasing.
    fall : float
        Penalty on decreases of the values; 0 for plain trend filtering, inf for an
        increasing function.

    Returns
    -------
    values : ndarray of shape (n_bends, m)
    marks : ndarray of shape (n_bends, m)
        Sign of the kink at each cell, 0 where there is none.
    freedom : ndarray of shape (n_bends,)
        Free parameters: kinks + 2 - flat pieces (of which there are none by chance).
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
    """Affine least squares, flat instead of falling if decreases cost.

    Without a cost of decreases every gap is in state 1, and slopes are not watched.
    """
    x, weight, target = data
    p, states = fit_affine(x, weight, target), np.ones(len(x) - 1, dtype=np.int64)
    # An affine function falls everywhere or nowhere.
    if fall > 0.0 and p[-1] <= p[0]:
        # Not `sum`, whose order of additions depends on who compiled it.
        p[:] = np.cumsum(weight * target)[-1] / np.cumsum(weight)[-1]
        states[:] = 0
    return _State(p, np.zeros(len(x)), states)


@inner
def _solve(data: _Data, bend: float, fall: float, state: _State) -> tuple[int, float]:
    """Solve for one penalty from the state at hand, in place; freedom and gap."""
    x, weight, target = data
    p, signs, states = state
    m = len(x)
    residual, marks, gaps = np.empty(m), np.empty(m), np.empty(m - 1, dtype=np.int64)
    lowest, stalled, total = np.inf, 0, np.cumsum(weight)[-1]
    while True:
        freedom, penalty = _descend(data, bend, fall, state)
        # From p as it will be returned: the gap is that of the answer.
        squares = 0.0
        for i in range(m):
            residual[i] = weight[i] * (target[i] - p[i])
            squares += residual[i] * (target[i] - p[i])
        objective = 0.5 * squares + penalty
        stalled = 0 if objective < lowest else stalled + 1
        lowest = min(lowest, objective)
        # On copies: where nothing is violated the state stays as it is.
        marks[:], gaps[:] = signs, states
        n_new, worst, slack = price_cells(
            x, residual, weight, marks, gaps, bend, fall, _TOLERANCE
        )
        if n_new == 0 or stalled > _PATIENCE:
            break
        signs[:], states[:] = marks, gaps
    # The dual point is scaled into its box by 1 - short; with q = D'u - E'v the gap
    # is pen(p) - q'p + |p - z + q / w|^2 / 2, a sum of terms that cannot cancel.
    short = 1.0 - bend / worst if worst > 0.0 else 0.0
    # The distance has three parts: scaling, and two that rounding makes.
    gap = short * penalty + 1.5 * short * short * squares + 3.0 * slack
    # An objective below the rounding of the weights is an exact fit.
    return freedom, gap / (objective + 2.3e-16 * total)


@inner
def _descend(data: _Data, bend: float, fall: float, state: _State) -> tuple[int, float]:
    """Go to the best function with the kinks at hand, dropping those that vanish.

    Returns the number of free parameters and the penalty.
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
    # What is left of the active set is where the next penalty starts.
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
    """The function by its knots: the cells with a kink and the two ends."""
    p, signs, states = state
    inner = np.flatnonzero(signs[1:-1]) + 1
    knots = np.concatenate((np.array([0]), inner, np.array([len(signs) - 1])))
    values, sides = p[knots], signs[knots]
    kinks = kinks_of(x, knots, values)
    # A kink that has just been added is 0, not what rounding makes of it.
    kinks[kinks * sides <= 0.0] = 0.0
    return Line(knots, sides, states[knots[:-1]], values, kinks)
