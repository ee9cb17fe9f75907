"""Targets with two ends: what is read, and what is refused by name."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from localexpert import censored
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


_SWAPPED = np.array([(1.0, True)], dtype=[("time", float), ("event", bool)])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[2, 1], [1, 1]], r"no lower end above the upper one, got \(2, 1\) at pos"),
        ([[0, 1], [1, np.nan]], r"`y` must have no gaps, got \(1, nan\) at position 1"),
        ([[INF, INF], [1, 1]], r"lower ends below inf .*, got \(inf, inf\)"),
        ([[-INF, -INF], [1, 1]], r"upper ends above -inf, got \(-inf, -inf\)"),
        ([[-INF, INF]] * 2, "finite end in some row"),
        ([[1, 2, 3]], r"shape \(n, 2\), lower and upper ends, got shape \(1, 3\)"),
        (np.empty((0, 2)), "at least one row, got none"),
        (pd.DataFrame({"e": [True], "t": [1.0]}), r"booleans; `censored\(time, event"),
        (_SWAPPED, "events of booleans and times of numbers, in this order, got dtype"),
    ],
)
def test_refusals(y, message):
    with pytest.raises(ValueError, match=message):
        read_ends(y)


@pytest.mark.parametrize(
    ("time", "event", "message"),
    [
        ([1.0, np.nan], [1, 0], "`time` must be finite"),
        ([1.0, 2.0], [1, 2], "`event` must hold the two classes coded 0 and 1, got 2"),
        ([1.0, 2.0], [True], "`event` must be as long as time"),
    ],
)
def test_refused_times(time, event, message):
    with pytest.raises(ValueError, match=message):
        censored(time, event)
