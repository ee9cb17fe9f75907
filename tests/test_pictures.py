"""What holds for every picture: axes given, room for all, plain names, dark grounds."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

import calibration
import localexpert
from calibration._validation import plain_label
from localexpert import ExpertReport, Explanation
from localexpert._validation import format_number
from tests.forecasts import normal, record, sixty

# Real column names: prices, texts that look like formulas, whole sentences.
NAMES = ["cost $", "$\\frac", "a_b^c", "$x$ $", "_x", "x" * 80, "größe", "a\nb"]
N, CUTS = 60, [-1.0, 0.0, 2.0]


@cache
def data():
    """Return forecasts of two classes, of three, and of numbers of every kind."""
    rng = np.random.default_rng(0)
    p, three = rng.uniform(size=N), rng.dirichlet([1.0, 1.0, 1.0], size=N)
    kinds = {kind: sixty(kind) for kind in ("smooth", "discrete", "mixed")}
    return kinds | {
        "p": p,
        "y": (rng.uniform(size=N) < p).astype(int),
        "three": three,
        "column": rng.integers(0, 3, N),
        "monitor": calibration.CalibrationMonitor().fit(p, rng.uniform(size=N) < p),
        "outcomes": kinds["smooth"].ppf(rng.uniform(size=N)),
    }


def binary():
    return {"y_true": data()["y"], "y_prob": data()["p"], "n_bins": 4}


def softmax():
    kind = calibration.SoftmaxCalibrator("temperature")
    return kind.fit(data()["three"], data()["column"])


def explanation():
    inputs = np.array([["$x$"] * len(NAMES)], dtype=object)
    values = np.linspace(-1e5, 2e5, len(NAMES))[None]
    parts = values, 0.1 * np.abs(values), 5e5, 5e5 + values.sum(axis=1), inputs
    return Explanation("mean", tuple(NAMES), *parts)


def named(name):
    """Return something for each of the names that people use."""
    return dict.fromkeys(NAMES[:5], name)


# The arguments of every picture, or of one several times.
PICTURES = {
    "plot_reliability": lambda: {
        "curve": named(calibration.reliability_curve(**binary()))
    },
    "plot_calibration_map": lambda: {
        "calibrators": named(
            calibration.PlattCalibrator().fit(data()["p"], data()["y"])
        )
    },
    "plot_roc": lambda: {"scores": named(data()["p"]), "y": data()["y"]},
    "plot_ranks": lambda: {
        "comparison": calibration.compare_methods(
            np.arange(5) + data()["three"].reshape(-1, 5), names=NAMES[:5]
        )
    },
    "plot_monitor": lambda: {"monitor": data()["monitor"]},
    "plot_class_reliability": lambda: {
        "y_true": data()["column"],
        "y_prob": dict.fromkeys(["the first of two names", "$2"], data()["three"]),
        "classes": NAMES[:3],
    },
    "plot_simplex": lambda: {
        "calibrator": softmax(),
        "scores": data()["three"],
        "y": data()["column"],
        "classes": NAMES[:3],
    },
    "plot_simplex_field": lambda: {"calibrator": softmax(), "classes": NAMES[:3]},
    "plot_importance": lambda: {
        "table": np.arange(24.0).reshape(8, 3) - 3.0,
        "features": NAMES,
        "columns": NAMES[:3],
    },
    "plot_explanation": lambda: {"explanation": explanation(), "target_name": NAMES[3]},
    "plot_expert_report": lambda: {"report": ExpertReport.of(record(CUTS, N))},
    "plot_survival": lambda: {
        "y": localexpert.censored(data()["outcomes"], data()["y"]),
        "dist": data()["smooth"],
    },
    "plot_threshold_reliability": lambda: {"model": record(CUTS, N)},
}
# Those of forecasts, of each kind of them.
FORECASTS = {
    "plot_coverage": {"groups": np.array(NAMES)[np.arange(N) % 8]},
    "plot_fan": {"x": np.datetime64("2024-01-01") + np.arange(N)},
    "plot_forecast": {"row": 30, "y": 1.0, "prediction": 1e5 / 3},
    "plot_forecasts": {"rows": range(8), "labels": NAMES},
    "plot_pit": {},
    "plot_quantile_reliability": {"difference": True},
    "plot_sharpness": {},
}


def plot(name, kind="smooth", **more):
    """Make a picture and return its axes as a list."""
    function = getattr(calibration, name, None) or getattr(localexpert, name)
    if name in FORECASTS:
        given = {"dist": data()[kind], "y": data()["outcomes"], **FORECASTS[name]}
    else:
        given = PICTURES[name]()
    return list(np.atleast_1d(np.asarray(function(**given, **more), dtype=object)).flat)


def draw(*what, **more):
    """Draw a picture to the end, and return its axes as a list."""
    axes = plot(*what, **more)
    axes[0].figure.canvas.draw()
    return axes


ALL = [(name, "") for name in PICTURES]
ALL += [(name, kind) for name in FORECASTS for kind in ("smooth", "discrete", "mixed")]
EVERY = pytest.mark.parametrize(("name", "kind"), ALL)
# How our own formulas begin.
FORMULAS = (r"$P(Y \leq y)$", r"$\mathdefault{")


def test_every_public_picture_is_here():
    public = [*calibration.__all__, *localexpert.__all__]
    drawn = {name for name in public if name.startswith("plot_")}
    assert drawn == {*PICTURES, *FORECASTS}


@EVERY
def test_everything_lies_in_the_figure_and_shows_on_black(name, kind):
    # A style of colours alone: where things lie is the same without it.
    with plt.style.context("dark_background"):
        axes = draw(name, kind)
    figure = axes[0].figure
    legends = [ax.get_legend() for ax in axes if ax.get_legend()] + figure.legends
    assert len(legends) == (name not in {"plot_importance", "plot_explanation"})
    boxes = [ax.get_tightbbox() for ax in figure.axes]
    for box in boxes + [legend.get_window_extent() for legend in legends]:
        assert figure.bbox.x0 - 1.0 <= box.x0 <= box.x1 <= figure.bbox.x1 + 1.0
        assert figure.bbox.y0 - 1.0 <= box.y0 <= box.y1 <= figure.bbox.y1 + 1.0
    for legend in legends:
        box = legend.get_window_extent()
        assert not any(box.overlaps(ax.bbox) for ax in figure.axes)
    ground = [ax for ax in axes if not ax.images and name != "plot_simplex_field"]
    for line in (line for ax in ground for line in ax.lines):
        assert max(to_rgb(line.get_color())) > 0.15, line.get_label()
    # Names are shown as they are: only our own texts may be formulas.
    for text in figure.findobj(plt.Text):
        if not text.get_text().startswith(FORMULAS):
            assert not text._preprocess_math(text.get_text())[1], text.get_text()


# Those that take several panels.
PANELS = ["plot_class_reliability", "plot_expert_report", "plot_threshold_reliability"]


@EVERY
def test_axes_given_are_drawn_on(name, kind):
    n = len(plot(name, kind))
    plt.close("all")
    given = plt.subplots(1, n, squeeze=False)[1][0]
    panels = "axes" if name in PANELS else "ax"
    here = list(given) if n > 1 or panels == "axes" else given[0]
    assert draw(name, kind, **{panels: here}) == list(given)
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("name", [*PANELS, "plot_monitor", "plot_forecast"])
def test_a_wrong_number_of_axes_is_refused(name):
    panels = "axes" if name in PANELS else "ax"
    nine = plt.subplots(1, 9)[1]
    for n, given in ((9, nine), (1, nine[0])):
        with pytest.raises(ValueError, match=rf"`{panels}` must hold \d Axes, got {n}"):
            plot(name, "smooth", **{panels: given})


@pytest.mark.parametrize("name", PANELS)
def test_panels_beside_others_have_the_legend_inside(name):
    n = len(plot(name, ""))
    figure, grid = plt.subplots(2, n, layout="constrained", figsize=(20, 9))
    first = draw(name, "", axes=grid[0])[0]
    assert not figure.legends
    assert first.get_legend() is not None


@pytest.mark.parametrize("name", ["plot_fan", "plot_class_reliability"])
def test_pictures_fit_into_a_part_of_a_figure(name):
    figure = plt.figure(layout="constrained", figsize=(16, 4))
    part = figure.subfigures(1, 2)[1]
    given = {"ax": part.subplots()} if name == "plot_fan" else {}
    given = given or {"axes": part.subplots(1, 3)}
    first = draw(name, **given)[0]
    legend = first.get_legend() or part.legends[0]
    box = legend.get_window_extent()
    assert part.bbox.x0 - 1.0 <= box.x0
    assert box.x1 <= part.bbox.x1 + 1.0


@pytest.mark.parametrize("size", [1e-7, 1.0, 1e7])
def test_the_factor_of_numbers_lies_below_the_legend(size):
    dist = normal(np.full(N, 3.0 * size), size * np.linspace(0.5, 1.0, N))
    y = size * data()["outcomes"]
    drawn = [localexpert.plot_sharpness(y, dist), localexpert.plot_fan(dist, y, y=y)]
    for ax in [*drawn, localexpert.plot_forecast(dist, 0, what="density")]:
        ax.figure.canvas.draw()
        factor, legend = ax.yaxis.get_offset_text(), ax.get_legend()
        assert bool(factor.get_text()) == (size != 1.0)
        top = factor.get_window_extent().y1 if factor.get_text() else ax.bbox.y1
        assert top <= legend.get_window_extent().y0 < top + 10.0


@pytest.mark.parametrize("name", ["plot_fan", "plot_forecasts", "plot_sharpness"])
def test_the_target_has_the_name_of_its_column_or_the_one_given(name):
    pd = pytest.importorskip("pandas")
    y = pd.Series(data()["outcomes"], name="cost $")
    function = getattr(localexpert, name)
    given = {**FORECASTS[name], "dist": data()["smooth"], "y": y}
    for more, told in (({}, r"cost \$"), ({"target_name": "größe"}, "größe")):
        ax = function(**given, **more)
        assert told in f"{ax.get_xlabel()} {ax.get_ylabel()}"


def test_what_is_refused_leaves_no_figure():
    dist = data()["smooth"]
    with pytest.raises(ValueError, match="`dist` must have at least one row, got none"):
        localexpert.plot_forecast(dist[:0])
    with pytest.raises(TypeError, match="`ax` must be one of matplotlib's Axes, got"):
        localexpert.plot_pit(data()["outcomes"], dist, ax="here")
    with pytest.raises(ValueError, match="`y` must be as long as dist, got 2 and 60"):
        localexpert.plot_pit([1.0, 2.0], dist)
    assert not plt.get_fignums()


def test_a_dollar_is_escaped_once():
    assert plain_label("a $b$") == r"a \$b\$" == plain_label(plain_label("a $b$"))
    assert plain_label("x" * 50, 11) == "xxxxx…xxxxx"
    assert plain_label(7) == "7"
    assert plain_label("") == ""


def test_numbers_are_written_plainly():
    numbers = [2019, 2019.0, np.int64(123456), 34567.8, -1234.56, 0.12345, 3.2e8]
    texts = ["2019", "2019", "123456", "34568", "-1235", "0.1235", "3.2e+08"]
    assert [format_number(number) for number in numbers] == texts
    others = [np.float32(0.1), 1e-9, 0.0, np.nan, True, "1e5"]
    assert [*map(format_number, others)] == ["0.1", "1e-09", "0", "nan", "True", "1e5"]
