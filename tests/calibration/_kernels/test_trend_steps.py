"""Steps of the active set on functions small enough to see."""

import numpy as np
import pytest

from calibration._kernels.trend_filter import (
    Goal,
    Line,
    drop_knots,
    longest_step,
    move_values,
)

# Five knots; inner kinks +, -, + of sizes 1, 2, 4.
KINKS = np.array([0.0, 1.0, -2.0, 4.0, 0.0])
SIDES = np.array([0.0, 1.0, -1.0, 1.0, 0.0])
RISING = np.ones(4, dtype=np.int64)
VALUES = np.array([0.0, 1.0, 3.0, 4.0, 9.0])
KNOTS = np.array([0, 3, 5, 8, 9])


def longest(goal, fall, kinks=KINKS, slopes=RISING):
    return longest_step(Line(KNOTS, SIDES, slopes, VALUES, kinks), goal, fall)


@pytest.mark.parametrize(
    ("goal_kinks", "expected"),
    [
        ([0.0, 0.5, -1.0, 9.0, 0.0], 2.0),  # all keep their signs
        ([0.0, -1.0, -1.0, 4.0, 0.0], 0.5),  # 1 -> -1 passes 0 half-way
        ([0.0, -1.0, 6.0, 4.0, 0.0], 0.25),  # -2 -> 6 passes it earlier
        ([0.0, 0.0, -2.0, 4.0, 0.0], 1.0),  # gone at the goal
    ],
)
def test_step_ends_at_the_first_kink_that_vanishes(goal_kinks, expected):
    goal = np.array(goal_kinks)
    step = longest_step(
        Line(KNOTS, SIDES, RISING, VALUES, KINKS), Goal(VALUES, goal), 0.0
    )
    assert step == expected


def test_a_new_kink_of_the_wrong_sign_allows_no_step():
    kinks = np.array([0.0, 0.0, -2.0, 4.0, 0.0])
    goal = np.array([0.0, -1e-3, -2.0, 4.0, 0.0])
    assert longest(Goal(VALUES, goal), 0.0, kinks=kinks) == 0.0


def test_slopes_are_watched_only_if_falls_cost():
    goal = np.array([0.0, 1.0, 3.0, 0.0, 9.0])  # the third rise goes from 1 to -3
    assert longest(Goal(goal, KINKS), 0.0) == 2.0
    assert longest(Goal(goal, KINKS), 0.1) == 0.25
    flat = np.array([1, 1, 0, 1])
    assert longest(Goal(goal, KINKS), 0.1, slopes=flat) == 2.0


def test_move_goes_the_step_and_drops_what_vanishes():
    kinks, sides, values = KINKS.copy(), SIDES.copy(), VALUES.copy()
    slopes = RISING.copy()
    goal_kinks = np.array([0.0, -3.0, -2.0, 4.0, 0.0])
    goal = np.array([0.0, 1.0, 3.0, 0.0, 9.0])
    line = Line(KNOTS, sides, slopes, values, kinks)
    move_values(line, Goal(goal, goal_kinks), 0.1, 0.25)
    np.testing.assert_array_equal(kinks, [0.0, 0.0, -2.0, 4.0, 0.0])
    np.testing.assert_array_equal(sides, [0.0, 0.0, -1.0, 1.0, 0.0])
    np.testing.assert_array_equal(values, [0.0, 1.0, 3.0, 3.0, 9.0])
    np.testing.assert_array_equal(slopes, [1, 1, 0, 1])


def drop(sides, slopes):
    """Knots, slopes and values that remain of five knots with values 0, ..., 4."""
    knots, values = KNOTS.copy(), np.arange(5.0)
    sides, slopes, kinks = np.array(sides), np.array(slopes), np.zeros(5)
    k = drop_knots(Line(knots, sides, slopes, values, kinks), 5)
    return knots[:k].tolist(), slopes[: k - 1].tolist(), values[:k].tolist()


@pytest.mark.parametrize(
    ("sides", "slopes", "expected"),
    [
        ([0, 1, 1, 1, 0], [1, 1, 1, 1], ([0, 3, 5, 8, 9], [1] * 4, [0, 1, 2, 3, 4])),
        ([0, 0, 1, 0, 0], [1, 1, -1, -1], ([0, 5, 9], [1, -1], [0, 2, 4])),
        # Two flat pieces in a row are one, and its ends have one value.
        ([0, 1, 1, 1, 0], [1, 0, 0, 1], ([0, 3, 8, 9], [1, 0, 1], [0, 1, 1, 4])),
        # A piece joined to a flat one is flat, and so joins the flat one after it.
        ([0, 1, 0, 1, 0], [1, 0, 1, 0], ([0, 3, 9], [1, 0], [0, 1, 1])),
        ([0, 0, 0, 0, 0], [1, -1, 1, 1], ([0, 9], [0], [0, 0])),
    ],
)
def test_knots_without_a_kink_are_dropped(sides, slopes, expected):
    assert drop([float(side) for side in sides], slopes) == expected
