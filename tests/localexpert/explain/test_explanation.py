"""Explanations as tables, as text and as pictures."""

from dataclasses import replace
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

from localexpert.explain import Explanation, plot_explanation


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


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_text_lists_the_largest_first(told):
    lines = str(told).splitlines()
    assert lines[0] == "mean of row 0: 7.5 = 5 (base) + contributions"
    assert [line.split()[0] for line in lines[1:4]] == ["dose", "age", "town"]
    assert lines[1].split() == ["dose", "=", "2.5", "+3"]  # exact: no error
    assert lines[2].split() == ["age", "=", "61", "-1", "(se", "0.1)"]
    assert lines[5].split()[:4] == ["town", "=", "bee", "-4"]
    assert repr(told) == "Explanation(of='mean', n=2, n_features=3)"
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


def test_bars_lead_from_the_base_to_the_forecast(told):
    ax = plot_explanation(told, 1)
    bars = list(ax.patches)
    assert [bar.get_width() for bar in bars] == [0.25, 2.0, -4.0]
    assert bars[0].get_x() == 5.0
    for lower, upper in pairwise(bars):
        assert upper.get_x() == pytest.approx(lower.get_x() + lower.get_width())
    assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(told.total[1])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["dose = 0", "age = 20", "town = bee"]
    texts = {text.get_text() for text in ax.texts}
    assert texts == {"+0.25", "+2", "-4", "base 5", "forecast 3.25"}
    assert bars[1].get_facecolor() != bars[2].get_facecolor()
    assert len(ax.containers) == 2  # bars and their errors


def test_draws_where_it_is_told_and_sums_what_is_left_out(told):
    _, ax = plt.subplots()
    assert plot_explanation(told, ax=ax, max_features=2) is ax
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["1 other", "age = 61", "dose = 2.5"]


NAMES = ("cost $", "$\\frac", "a_b^c", "x" * 80, "größe")


def test_names_are_shown_as_they_are():
    k = len(NAMES)
    inputs = np.array([["$x$"] * k], dtype=object)
    told = Explanation(
        "mean", NAMES, np.ones((1, k)), np.zeros((1, k)), 0.0, np.ones(1), inputs
    )
    ax = plot_explanation(told, target_name="$\\alpha$ (€)")
    ax.figure.canvas.draw()
    labels = {
        label._preprocess_math(label.get_text()) for label in ax.get_yticklabels()
    }
    short = {(f"{name} = $x$", False) for name in NAMES if len(name) < 40}
    assert short < labels
    (long,) = labels - short
    assert long == ("x" * 20 + "…" + "x" * 13 + " = $x$", False)
    name = ax.xaxis.label
    assert name._preprocess_math(name.get_text()) == ("mean: $\\alpha$ (€)", False)


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_nothing_runs_together(told, scale):
    big = replace(
        told,
        values=scale * told.values,
        standard_errors=scale * told.standard_errors,
        base=scale * told.base,
        total=scale * told.total,
    )
    ax = plot_explanation(big)
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    ticks = [t for t in ax.xaxis.get_major_ticks() if low <= t.get_loc() <= high]
    boxes = [tick.label1.get_window_extent() for tick in ticks]
    assert min(b.x0 - a.x1 for a, b in pairwise(boxes)) > 0.0
    base = next(text for text in ax.texts if text.get_text().startswith("base"))
    for bar in ax.patches:
        assert not base.get_window_extent().overlaps(bar.get_window_extent())
    for text in ax.texts:
        assert text.get_window_extent().x0 >= ax.get_window_extent().x0
        assert text.get_window_extent().x1 <= ax.figure.bbox.x1
        assert "e+" not in text.get_text()


def test_it_is_written_in_the_colour_of_the_ground(told):
    with plt.style.context("dark_background"):
        ax = plot_explanation(told)
    bars = [c for c in ax.collections if hasattr(c, "get_segments")]
    assert all(line.get_color()[0][:3].max() > 0.4 for line in bars)


def test_refuses_bad_arguments(told):
    with pytest.raises(TypeError, match="`explanation` must be an Explanation, got"):
        plot_explanation(told.values)
    with pytest.raises(ValueError, match="`row` must be less than the 2 rows"):
        plot_explanation(told, 2)
    with pytest.raises(ValueError, match="`max_features` must be at least 1"):
        plot_explanation(told, max_features=0)
