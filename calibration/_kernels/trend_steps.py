"""Steps of the active set of trend filtering: how far, and which signs are lost."""

from typing import NamedTuple

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array, Int64Array


class Line(NamedTuple):
    """A piecewise-linear function: its knots, and what holds there.

    Of every knot its cell, the sign that its kink has to have (`sides`), the value
    and the kink; of every piece its state in `slopes`: 1 rising (or not watched), 0
    flat, -1 falling. Arrays may be longer than the line, whose knots get fewer.
    """

    knots: Int64Array
    sides: Float64Array
    slopes: Int64Array
    values: Float64Array
    kinks: Float64Array


class Goal(NamedTuple):
    """Where the knots' values and kinks are to go."""

    values: Float64Array
    kinks: Float64Array


@inner
def _share(here: float, goal: float, sign: float) -> float:
    """Share of the way from `here` to `goal` at which the sign is lost; 2 if never."""
    # Linear on the way from here to there, so a sign that both ends have is kept.
    if goal * sign > 0.0:
        return 2.0
    # A new kink that does not grow in the direction of its sign is dropped at once.
    if here * sign <= 0.0:
        return 0.0
    return here / (here - goal)


@njit
def longest_step(line: Line, goal: Goal, fall: float) -> float:
    """Largest step to the goal that keeps all signs; 2 if the goal keeps them."""
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
        # Read before it moves; the step is the least of all shares, so one at least is
        # lost.
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
    """Move the knots that remain to the front; their number.

    A knot goes if its kink is gone or lies between two flat pieces. A piece that is
    joined to a flat one is flat, and both ends of it get one value.
    """
    knots, sides, slopes, values, kinks = line
    k = 0
    for old in range(1, n_knots):
        # The first knot stays in its place, the last one is moved up.
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
