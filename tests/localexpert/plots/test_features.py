"""What is drawn of importance and of explanations, read back from the artists."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from localexpert import Explanation, plot_explanation, plot_importance

TABLE = np.array([[0.1, 0.2, 0.0], [0.5, 0.4, 0.6], [0.3, 0.0, 0.3]])


def ticks(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def heads(ax):
    return [text.get_text() for text in ax.get_xticklabels()]


def test_colours_are_the_table(ax):
    assert plot_importance(TABLE, sort=False, ax=ax) is ax
    (image,) = ax.images
    np.testing.assert_array_equal(image.get_array(), TABLE)
    assert image.get_clim() == (0.0, 0.6)
    assert ticks(ax) == heads(ax) == ["0", "1", "2"]
    assert len(plt.get_fignums()) == 1


def test_the_most_important_feature_is_on_top():
    ax = plot_importance(TABLE, features=["a", "b", "c"])
    assert ticks(ax) == ["b", "c", "a"]
    np.testing.assert_array_equal(ax.images[0].get_array(), TABLE[[1, 2, 0]])
    # Row 0 of an image is drawn on top.
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_few_of_many_features():
    ax = plot_importance(TABLE, max_features=2, features=["a", "b", "c"], sort=False)
    assert ticks(ax) == ["b", "c"]
    assert ax.get_ylabel() == "2 of 3 features"
    assert plot_importance(TABLE).get_ylabel() == "Feature"
    assert plot_importance(TABLE).get_xlabel() == "Column"


def test_names_of_a_data_frame():
    cuts = pd.Index([0.25, 1 / 3, 7.0], name="threshold")
    frame = pd.DataFrame(TABLE, index=["a", "b", "c"], columns=cuts)
    ax = plot_importance(frame)
    assert ticks(ax) == ["b", "c", "a"]
    assert heads(ax) == ["0.25", "0.333", "7"]
    assert ax.get_xlabel() == "threshold"
    assert heads(plot_importance(frame, columns=["x", "y", "z"])) == ["x", "y", "z"]


def test_colours_of_signed_tables_are_symmetric():
    image = plot_importance(TABLE - 0.2).images[0]
    assert image.get_clim() == pytest.approx((-0.4, 0.4))
    assert image.get_cmap().name == "RdBu_r"


def test_numbers_in_few_columns_only():
    ax = plot_importance(TABLE, sort=False)
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written[(1, 0)] == "0.2"
    assert len(written) == 9
    assert not plot_importance(np.tile(TABLE, 4)).texts


def test_numbers_are_white_on_dark():
    ax = plot_importance([[0.0, 0.5, 1.0]])
    assert [text.get_color() for text in ax.texts] == ["0.15", "0.15", "white"]


@pytest.mark.parametrize("k", [3, 13, 25, 40])
def test_names_of_columns_do_not_overlap(k):
    ax = plot_importance(np.ones((2, k)), columns=np.linspace(-1.2345, 1.5, k))
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.get_xticklabels()]
    gaps = [b.x0 - a.x1 for a, b in pairwise(boxes)]
    assert min(gaps) > 0.0


def test_zeros():
    ax = plot_importance(np.zeros((2, 2)))
    assert ax.images[0].get_clim() == (0.0, 1.0)


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


def test_small_bars_are_one(told):
    labels = [
        one.get_text()
        for one in plot_explanation(told, max_features=2).get_yticklabels()
    ]
    assert labels == ["1 other", "age = 61", "dose = 2.5"]
