"""What holds for every picture: room for legends, plain names, dark grounds."""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from localexpert._validation import format_number, plain_label
from localexpert.plots import (
    plot_coverage,
    plot_fan,
    plot_forecast,
    plot_forecasts,
    plot_importance,
    plot_pit,
    plot_quantile_reliability,
    plot_sharpness,
)
from localexpert.plots.canvas import format_numbers, name_target, shades

KINDS = ["smooth", "discrete", "mixed"]
# What people call columns: prices, formulas that are none, whole sentences.
NAMES = ["cost $", "$\\frac", "a_b^c", "$x$ $", "_x", "x" * 80, "größe", "a\nb", 12345]

PICTURES = {
    "coverage": lambda y, dist: plot_coverage(y, dist, np.arange(60) % 9),
    "fan": lambda y, dist, **more: plot_fan(dist, np.arange(60), y=y, **more),
    "forecast": lambda y, dist, **more: plot_forecast(
        dist, 30, y=y[0], prediction=1.0, expert_points=([0.5], [0.5]), **more
    ),
    "overlay": lambda y, dist, **more: plot_forecasts(
        dist, [0, 30, 59], y=y, labels=NAMES[:3], **more
    ),
    "ridge": lambda y, dist, **more: plot_forecasts(
        dist, range(9), y=y, labels=NAMES, **more
    ),
    "pit": plot_pit,
    "quantiles": plot_quantile_reliability,
    "differences": partial(plot_quantile_reliability, difference=True),
    "sharpness": plot_sharpness,
}
# Those that have an axis of the target.
NAMED = ["fan", "forecast", "overlay", "ridge", "sharpness"]


def draw(name, dist, **more):
    """Draw a picture and return its Axes."""
    y = dist.ppf(np.random.default_rng(1).uniform(size=60))
    drawn = PICTURES[name](y, dist, **more)
    axes = np.atleast_1d(np.asarray(drawn, dtype=object))
    axes[0].figure.canvas.draw()
    return list(axes)


def shown(text):
    r"""Return what a text of matplotlib looks like: no formula, so `\$` is `$`."""
    words, is_formula = text._preprocess_math(text.get_text())
    assert not is_formula
    return words


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PICTURES)
def test_a_legend_lies_over_nothing(name, kind, request):
    axes = draw(name, request.getfixturevalue(kind))
    legends = [ax.get_legend() for ax in axes if ax.get_legend()]
    assert len(legends) == 1
    box = legends[0].get_window_extent()
    figure = axes[0].figure
    assert box.y0 >= axes[0].get_window_extent().y1 - 1.0
    assert box.x0 >= 0.0
    assert box.x1 <= figure.bbox.x1 + 1.0
    assert box.y1 <= figure.bbox.y1 + 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PICTURES)
def test_nothing_is_black_on_black(name, kind, request):
    with plt.style.context("dark_background"):
        axes = draw(name, request.getfixturevalue(kind))
    for line in (line for ax in axes[0].figure.axes for line in ax.lines):
        assert max(to_rgb(line.get_color())) > 0.15, line.get_label()


def test_hollow_heads_show_the_ground(discrete):
    with plt.style.context("dark_background"):
        ax = plot_forecast(discrete, 30, what="density", coverage=0.5)
    heads = [line for line in ax.lines if line.get_marker() == "o"]
    fills = {to_rgb(line.get_markerfacecolor()) for line in heads}
    assert (0.0, 0.0, 0.0) in fills
    assert (1.0, 1.0, 1.0) not in fills


@pytest.mark.parametrize("target_name", ["cost $", "$\\frac", "a_b^c", "größe (€)"])
@pytest.mark.parametrize("name", NAMED)
def test_the_target_has_a_name(name, target_name, smooth):
    axes = draw(name, smooth, target_name=target_name)
    labels = [label for ax in axes for label in (ax.xaxis.label, ax.yaxis.label)]
    told = [
        label for label in labels if target_name in label.get_text().replace("\\$", "$")
    ]
    assert len(told) == (2 if name == "sharpness" else 1)
    assert all(target_name in shown(label) for label in told)


@pytest.mark.parametrize("name", NAMED)
def test_a_name_is_a_text(name, smooth):
    with pytest.raises(TypeError, match="`target_name` must be a text, got int"):
        draw(name, smooth, target_name=3)


def test_a_column_gives_its_name():
    y = pd.Series([1.0, 2.0], name="cost $")
    assert name_target(None, y) == r"cost \$"
    assert name_target("price", y) == "price"
    assert name_target(None, None, [1.0]) == "y"


@pytest.mark.parametrize("name", NAMES[:-1])
def test_names_are_shown_as_they_are(name, smooth):
    ax = plot_forecasts(smooth, [0, 1], labels=[name, "b"])
    ax.figure.canvas.draw()
    (first, _) = ax.get_legend().get_texts()
    if len(name) < 28:
        assert shown(first).strip() == name.replace("\n", " ")
    else:
        assert shown(first) == "x" * 14 + "…" + "x" * 13
    ax = plot_coverage(np.ones(60), smooth, [name] * 60)
    ax.figure.canvas.draw()
    assert shown(ax.get_yticklabels()[0]) == f"{shown(first)} (60)"
    ax = plot_importance([[1.0]], features=[name], columns=[name])
    ax.figure.canvas.draw()
    assert shown(ax.get_yticklabels()[0]) == shown(first)
    x = pd.Series(np.arange(60), name=name)
    ax = plot_fan(smooth, x)
    ax.figure.canvas.draw()
    assert shown(ax.xaxis.label).strip()[:14] == name.replace("\n", " ")[:14]


def test_a_dollar_is_escaped_once():
    assert plain_label("a $b$") == r"a \$b\$" == plain_label(plain_label("a $b$"))
    assert plain_label("x" * 50, 11) == "xxxxx…xxxxx"
    assert plain_label(7) == "7"
    assert plain_label("") == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2019, "2019"),
        (2019.0, "2019"),
        (np.int64(123456), "123456"),
        (34567.8, "34568"),
        (-1234.56, "-1235"),
        (0.12345, "0.1235"),
        (np.float32(0.1), "0.1"),
        (1e-9, "1e-09"),
        (3.2e8, "3.2e+08"),
        (0.0, "0"),
        (np.nan, "nan"),
        (True, "True"),
        ("1e5", "1e5"),
    ],
)
def test_numbers_are_written_plainly(value, text):
    assert format_number(value) == text


def test_different_numbers_have_different_texts():
    assert format_numbers(np.array([1000.1, 1000.2])) == ["1000.1", "1000.2"]
    assert format_numbers(np.array([1.0, 2.0])) == ["1", "2"]
    near = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert len(set(format_numbers(near))) == 2


def test_a_legend_has_as_many_columns_as_have_room(smooth):
    short = plot_forecasts(smooth, [0, 1, 2], labels=["a", "b", "c"])
    long = plot_forecasts(smooth, [0, 1, 2], labels=["a" * 27, "b" * 27, "c" * 27])
    assert short.get_legend()._ncols == 3
    assert long.get_legend()._ncols < 3


@pytest.mark.parametrize("ground", ["white", "black"])
def test_axes_without_a_ground_lie_on_that_of_the_figure(ground):
    figure = plt.figure(facecolor=ground)
    ax = figure.add_subplot(facecolor="none")
    faint, full = shades(ax, "red", [0.0, 1.0])
    assert faint == to_rgb(ground)
    assert full == (1.0, 0.0, 0.0)
    figure.set_facecolor("none")
    assert shades(ax, "red", [0.0]) == [(1.0, 1.0, 1.0)]


def test_pictures_fit_into_a_part_of_a_figure(smooth):
    part = plt.figure(layout="constrained", figsize=(9, 4)).subfigures(1, 2)[1]
    ax = plot_fan(smooth, np.arange(60), ax=part.subplots())
    ax.figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    assert box.y0 >= ax.get_window_extent().y1 - 1.0
    assert box.x1 <= part.bbox.x1 + 1.0
