"""Targets with two ends: what is read, what is refused, and Kaplan and Meier's law."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from localexpert import censored, kaplan_meier
from localexpert.partial.outcomes import is_partial, read_ends

INF = np.inf
ENDS = np.array([[1.0, 1.0], [2.0, INF], [-INF, 3.0], [4.0, 5.0]])


@pytest.mark.parametrize(
    "y",
    [
        ENDS,
        ENDS.tolist(),
        pd.DataFrame(ENDS, columns=["low", "high"]),
        pl.DataFrame(ENDS, schema=["low", "high"]),
        np.asfortranarray(ENDS.astype(np.float32)),
    ],
)
def test_two_columns_of_any_container(y):
    assert is_partial(y)
    np.testing.assert_array_equal(np.column_stack(read_ends(y)), ENDS)


def test_times_with_events():
    time, event = [3.0, 5.0, 2.0], [True, False, True]
    wanted = [[3.0, 3.0], [5.0, INF], [2.0, 2.0]]
    np.testing.assert_array_equal(censored(time, event), wanted)
    np.testing.assert_array_equal(censored(time, np.array(event, int)), wanted)
    rows = list(zip(event, time, strict=True))
    fields = np.array(rows, dtype=[("event", bool), ("time", float)])
    assert is_partial(fields)
    np.testing.assert_array_equal(np.column_stack(read_ends(fields)), wanted)


@pytest.mark.parametrize("y", [[1.0, 2.0], np.zeros((3, 1)), [[1, 2], [3]], None])
def test_other_targets_are_not_partial(y):
    assert not is_partial(y)


def _times(given):
    return censored(*given)


_SWAPPED = np.array([(1.0, True)], dtype=[("time", float), ("event", bool)])


@pytest.mark.parametrize(
    ("read", "given", "message"),
    [
        (read_ends, [[2, 1], [1, 1]], r"no lower end above .*, got \(2, 1\) at pos"),
        (read_ends, [[0, 1], [1, np.nan]], r"no gaps, got \(1, nan\) at position 1"),
        (read_ends, [[INF, INF], [1, 1]], r"lower ends below inf .*, got \(inf, inf"),
        (read_ends, [[-INF, -INF], [1, 1]], r"upper ends above -inf, got \(-inf, -in"),
        (read_ends, [[-INF, INF]] * 2, "finite end in some row"),
        (read_ends, [[1, 2, 3]], r"shape \(n, 2\), lower and .*, got shape \(1, 3\)"),
        (read_ends, np.empty((0, 2)), "at least one row, got none"),
        (read_ends, pd.DataFrame({"e": [True], "t": [1.0]}), r"booleans; `censored\("),
        (read_ends, _SWAPPED, "events of booleans and times of numbers, in this order"),
        (_times, ([1.0, np.nan], [1, 0]), "`time` must be finite"),
        (_times, ([1.0, 2.0], [1, 2]), "`event` must hold .* coded 0 and 1, got 2"),
        (_times, ([1.0, 2.0], [True]), "`event` must be as long as time"),
        (kaplan_meier, [[1, 1], [1, 2]], "`y` must be known or right-censored, .*1"),
        (kaplan_meier, [[1, 1], [-INF, 2]], "`y` must be known or right-censored, .*1"),
    ],
)
def test_refusals(read, given, message):
    with pytest.raises(ValueError, match=message):
        read(given)


TIME = np.array([float(c) for c in "765331112768558665583761475176"])
EVENT = np.array([int(c) for c in "101111100010000011011100111111"])
# kaplan_meier_estimator(EVENT, TIME) of scikit-survival 0.28.
OF_SKSURV = [0.9, 0.9, 0.7875, 0.75, 0.6375, 0.500893, 0.250446, 0.166964]


def test_kaplan_meier_of_ties_as_scikit_survival():
    values, survival = kaplan_meier(censored(TIME, EVENT))
    np.testing.assert_array_equal(values, np.arange(1.0, 9.0))
    np.testing.assert_allclose(survival, OF_SKSURV, atol=5e-7)
    rows = list(zip(EVENT, TIME, strict=True))
    array = np.array(rows, dtype=[("dead", "?"), ("days", "f8")])
    np.testing.assert_array_equal(kaplan_meier(array)[1], survival)


def test_weights_of_kaplan_meier_are_repetitions():
    y, weight = censored(TIME, EVENT), np.arange(len(TIME)) % 3
    values, survival = kaplan_meier(y, weight)
    repeated, expected = kaplan_meier(np.repeat(y, weight, axis=0))
    at = np.searchsorted(repeated, values, "right")
    np.testing.assert_allclose(survival, np.append(1.0, expected)[at], rtol=1e-13)
