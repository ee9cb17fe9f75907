"""Explanations as tables and as text."""

import numpy as np
import pytest

from localexpert import Explanation


@pytest.fixture
def told():
    return Explanation(
        "mean",
        ("age", "dose", "town"),
        np.array([[-1.0, 3.0, 0.5], [2.0, 0.25, -4.0]]),
        np.array([[0.1, 0.0, 0.2], [0.3, 0.1, 0.4]]),
        5.0,
        np.array([7.5, 3.25]),
        np.array([["61", "2.5", "ant"], ["20", "0", "bee"]], dtype=object),
    )


def test_text_lists_the_largest_first(told):
    lines = str(told).splitlines()
    assert lines[0] == "mean of row 0: 7.5 = 5 (base) + contributions"
    assert [line.split()[0] for line in lines[1:4]] == ["dose", "age", "town"]
    assert lines[1].split() == ["dose", "=", "2.5", "+3"]  # exact: no error
    assert lines[2].split() == ["age", "=", "61", "-1", "(se", "0.1)"]
    assert lines[5].split()[:4] == ["town", "=", "bee", "-4"]
    assert len(told) == 2


def test_small_contributions_are_summed(told):
    parts = told.largest(1, 1)
    assert [label for label, _, _ in parts] == ["town = bee", "2 others"]
    assert parts[1][1:] == pytest.approx((2.25, 0.4))
    assert told.describe(1, 1).splitlines()[2].split() == [
        "2", "others", "+2.25", "(se", "0.4)"
    ]  # fmt: skip


def test_more_rows_are_counted():
    many = Explanation(
        "mean",
        ("a",),
        np.ones((5, 1)),
        np.zeros((5, 1)),
        0.0,
        np.ones(5),
        np.full((5, 1), "1", dtype=object),
    )
    assert str(many).splitlines()[-1] == "and 2 more rows"


def test_frame_has_a_line_per_row_and_feature(told):
    table = told.to_frame()
    assert list(table.columns) == [
        "row", "feature", "input", "contribution", "standard_error"
    ]  # fmt: skip
    wide = table.pivot(index="row", columns="feature", values="contribution")
    np.testing.assert_array_equal(wide[["age", "dose", "town"]], told.values)
    assert table.loc[4].tolist() == [1, "dose", "0", 0.25, 0.1]
