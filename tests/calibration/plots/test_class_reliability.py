import matplotlib.pyplot as plt
import numpy as np
import pytest

from calibration import plot_class_reliability, plot_reliability, reliability_curve

NAMES = ["setosa", "versicolor", "virginica"]


@pytest.fixture(autouse=True)
def closed():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture
def forecasts(rng):
    y_prob = rng.dirichlet([2, 1, 1], size=600)
    cuts = (y_prob**1.5 / (y_prob**1.5).sum(axis=1, keepdims=True)).cumsum(axis=1)
    return (rng.uniform(size=(600, 1)) > cuts).sum(axis=1), y_prob


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


@pytest.mark.parametrize(
    "options", [{}, {"n_bins": 5, "binning": "width", "level": 0.5}, {"bands": None}]
)
def test_a_panel_is_the_picture_of_two_classes(forecasts, options):
    y, y_prob = forecasts
    panels = plot_class_reliability(y, y_prob, **options)
    assert panels.shape == (3,)
    for column, ax in enumerate(panels):
        curve = reliability_curve(y == column, y_prob[:, column], **options)
        drawn = lines(ax)["observed"]
        np.testing.assert_array_equal(drawn.get_xdata(), curve.mean_prob)
        np.testing.assert_array_equal(drawn.get_ydata(), curve.event_rate)
        alone = plot_reliability(curve)
        bands = [
            [c.get_paths()[0].vertices for c in one.collections] for one in (ax, alone)
        ]
        np.testing.assert_array_equal(*bands)
        heights = [[bar.get_height() for bar in one.patches] for one in (ax, alone)]
        np.testing.assert_array_equal(*heights)


def test_titles_say_class_and_share(forecasts):
    y, y_prob = forecasts
    weight = np.where(y == 0, 0.0, 1.0)
    for labels in (y, np.array(NAMES)[y]):
        panels = plot_class_reliability(labels, y_prob, classes=NAMES)
        share = f"{100 * (y == 1).mean():.2g}"
        assert panels[1].get_title() == f"versicolor: {share}% of rows"
    panels = plot_class_reliability(y, y_prob, sample_weight=weight)
    assert panels[0].get_title() == "0: 0% of rows"


def test_shown_classes_in_their_order(forecasts):
    y, y_prob = forecasts
    panels = plot_class_reliability(
        y, y_prob, classes=NAMES, shown=["virginica", "setosa"]
    )
    assert [ax.get_title().partition(":")[0] for ax in panels] == NAMES[::-2]


def test_several_forecasts_have_names_and_colours(forecasts):
    y, y_prob = forecasts
    panels = plot_class_reliability(y, {"a": y_prob, "calibrated": y_prob}, bands=None)
    for ax in panels:
        colors = [line.get_color() for line in ax.lines if line.get_marker() == "o"]
        assert colors == ["C0", "C1"]
    (legend,) = panels[0].figure.legends
    named = [text.get_text() for text in legend.get_texts()]
    assert named == ["calibrated", "a", "calibrated"]  # the diagonal, and one's name


def test_names_of_axes_stand_at_the_edge(rng):
    y_prob = rng.dirichlet(np.ones(5), size=50)
    panels = plot_class_reliability(np.arange(50) % 5, y_prob)
    assert [bool(ax.get_ylabel()) for ax in panels] == [True, False, False, True, False]
    below = [bool(ax.get_xlabel()) for ax in panels]
    assert below == [False, False, True, True, True]


def test_what_cannot_be_drawn_is_named(forecasts, rng):
    y, y_prob = forecasts
    pair = {"a": y_prob, "b": y_prob[:5]}
    with pytest.raises(ValueError, match="`y_prob` must hold forecasts of one shape"):
        plot_class_reliability(y, pair)
    with pytest.raises(ValueError, match="`shown` must hold labels that `classes`"):
        plot_class_reliability(y, y_prob, classes=NAMES, shown=["rose"])
    many = rng.dirichlet(np.ones(21), size=30)
    with pytest.raises(ValueError, match="1 to 20 classes, got 21 by default"):
        plot_class_reliability(np.arange(30) % 21, many)
