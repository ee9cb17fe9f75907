"""What is drawn of features, explanations and experts, read back from the artists."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

from calibration import reliability_curve
from localexpert import (
    PermutationImportance,
    plot_expert_report,
    plot_explanation,
    plot_importance,
    plot_threshold_reliability,
)
from localexpert.experts.report import ExpertReport, TaskRecord
from tests.forecasts import explained, record
from tests.localexpert.plots.conftest import labelled, ticks

TABLE = np.array([[0.1, 0.2, 0.0], [0.5, 0.4, 0.6], [0.3, 0.0, 0.3]])


def heads(ax):
    return [text.get_text() for text in ax.get_xticklabels()]


def test_colours_are_the_table(ax):
    (image,) = plot_importance(TABLE, sort=False, ax=ax).images
    assert_array_equal(image.get_array(), TABLE)
    assert image.get_clim() == (0.0, 0.6)
    assert ticks(ax) == heads(ax) == ["0", "1", "2"]


def test_the_most_important_feature_is_on_top():
    ax = plot_importance(TABLE, features=["a", "b", "c"])
    assert ticks(ax) == ["b", "c", "a"]
    assert_array_equal(ax.images[0].get_array(), TABLE[[1, 2, 0]])
    # Row 0 of an image is drawn on top.
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


CUTS_OF_FRAME = pd.Index([0.25, 1 / 3, 7.0], name="threshold")
FRAME = pd.DataFrame(TABLE, index=["a", "b", "c"], columns=CUTS_OF_FRAME)
# Without thresholds importance is that for the CRPS.
CRPS = np.array([[0.1], [0.2]])
CRPS = PermutationImportance(("a", "b"), *[np.empty(0)] * 2, np.ones(1), CRPS, CRPS)
SERIES = pd.Series([0.1, 0.4], index=["age", "income"])
BCA, NUMBERS = ["b", "c", "a"], ["0", "1", "2"]


@pytest.mark.parametrize(
    ("table", "options", "rows", "columns", "labels"),
    [
        (
            TABLE,
            {"max_features": 2, "features": ["a", "b", "c"], "sort": False},
            *(["b", "c"], NUMBERS, ("Column", "2 of 3 features")),
        ),
        (TABLE, {}, ["1", "2", "0"], NUMBERS, ("Column", "Feature")),
        (FRAME, {}, BCA, ["0.25", "0.333", "7"], ("threshold", "Feature")),
        (FRAME, {"columns": BCA}, BCA, BCA, ("Column", "Feature")),
        # Near numbers have different names.
        (
            TABLE,
            {"columns": [1012.68, 1012.91, 1013.3], "features": [0.5, 0.5, 1 / 3]},
            ["0.5", "0.333", "0.5"],
            *(["1012.7", "1012.9", "1013.3"], ("Column", "Feature")),
        ),
        (CRPS, {}, ["b", "a"], ["crps"], ("loss", "Feature")),
        (SERIES, {}, ["income", "age"], ["0"], ("Column", "Feature")),
    ],
)
def test_names_of_rows_and_columns(table, options, rows, columns, labels):
    ax = plot_importance(table, **options)
    assert (ticks(ax), heads(ax)) == (rows, columns)
    assert (ax.get_xlabel(), ax.get_ylabel()) == labels


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


@pytest.mark.parametrize("k", [3, 13, 25, 40])
def test_names_of_columns_do_not_overlap(k):
    ax = plot_importance(np.ones((2, k)), columns=np.linspace(-1.2345, 1.5, k))
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.get_xticklabels()]
    gaps = [b.x0 - a.x1 for a, b in pairwise(boxes)]
    assert min(gaps) > 0.0


def test_bars_lead_from_the_base_to_the_forecast():
    told = explained()
    ax = plot_explanation(told, 1)
    bars = list(ax.patches)
    assert [bar.get_width() for bar in bars] == [0.25, 2.0, -4.0]
    assert bars[0].get_x() == 5.0
    for lower, upper in pairwise(bars):
        assert upper.get_x() == pytest.approx(lower.get_x() + lower.get_width())
    assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(told.total[1])
    assert ticks(ax) == ["dose = 0", "age = 20", "town = bee"]
    texts = {text.get_text() for text in ax.texts}
    assert texts == {"+0.25", "+2", "-4", "base 5", "forecast 3.25"}
    assert bars[1].get_facecolor() != bars[2].get_facecolor()
    assert len(ax.containers) == 2  # bars and their errors


def test_small_bars_are_one():
    ax = plot_explanation(explained(), max_features=2)
    assert ticks(ax) == ["1 other", "age = 61", "dose = 2.5"]


CUTS = np.array([-1.0, -0.2, 0.5, 3.0])


@pytest.fixture
def report():
    return ExpertReport.of(record(CUTS, 300))


@pytest.fixture
def panels(report):
    """The panels by their titles."""
    axes = plot_expert_report(report)
    return {ax.get_title(): ax for ax in axes.ravel()}


def lines(ax):
    """Return the lines of an Axes by their labels."""
    return {line.get_label(): line for line in ax.lines}


@pytest.mark.parametrize("name", ["accuracy", "kappa"])
def test_means_and_deviations_over_folds(report, panels, name):
    figures = getattr(report, name)
    (bars,) = panels[name.capitalize()].containers
    line, _, (sticks,) = bars.lines
    assert_array_equal(line.get_xdata(), CUTS)
    assert_allclose(line.get_ydata(), figures.mean(axis=1))
    ends = np.array([stick[:, 1] for stick in sticks.get_segments()])
    widths = 2.0 * figures.std(axis=1)
    assert_allclose(np.diff(ends)[:, 0], widths, atol=1e-12)


def test_losses_before_and_after_auc_and_base_rate(report, panels):
    for title in ("Log loss", "Calibration error"):
        name = title.lower().replace(" ", "_")
        drawn = lines(panels[title])
        for label, suffix in (("before", "_raw"), ("after", "")):
            want = np.column_stack([CUTS, getattr(report, name + suffix)])
            assert_array_equal(drawn[f"{label} calibration"].get_xydata(), want)
    assert panels["Calibration error"].get_ylim()[0] == 0.0
    for title, figures in (("AUC", report.auc), ("Base rate", report.base_rate)):
        line = panels[title].lines[0]
        assert_array_equal(line.get_xydata(), np.column_stack([CUTS, figures]))


def test_dashed_lines_are_what_the_base_rate_gets(panels):
    below = record(CUTS, 300).below
    rate = below.mean(axis=0)
    right = np.maximum(rate, 1.0 - rate)
    drawn = lines(panels["Accuracy"])["base rate alone"]
    assert_allclose(drawn.get_ydata(), right)
    assert drawn.get_linestyle() == "--"
    lost = [log_loss(below[:, k], np.full(300, rate[k])) for k in range(4)]
    drawn = lines(panels["Log loss"])["base rate alone"]
    assert_allclose(drawn.get_ydata(), lost)
    for title, level in (("AUC", 0.5), ("Kappa", 0.0)):
        (flat,) = [ln for ln in panels[title].lines if ln.get_linestyle() == "--"]
        assert_array_equal(flat.get_ydata(), level)


def test_one_class_at_one_threshold_in_one_fold():
    p, below = np.array([[0.9], [0.8]]), np.array([[True], [True]])
    folds = [(np.empty(0, int), np.arange(2))]
    report = ExpertReport.of(TaskRecord(np.zeros(1), p, p, below, folds, np.ones(2)))
    axes = plot_expert_report(report)
    assert_array_equal(lines(axes[1, 0])["base rate alone"].get_ydata(), 0.0)
    axes[0, 0].figure.canvas.draw()


NINE = np.linspace(-1.5, 1.5, 9)


@pytest.fixture
def tasks(rng):
    return replace(record(NINE, 400), weight=rng.uniform(1.0, 2.0, 400))


def test_curves_before_and_after(tasks):
    (ax,) = plot_threshold_reliability(tasks, numbers=[4], n_bins=5)
    for label, p in (("before", tasks.raw), ("after", tasks.calibrated)):
        options = {"sample_weight": tasks.weight, "n_bins": 5}
        curve = reliability_curve(tasks.below[:, 4], p[:, 4], **options)
        want = np.column_stack([curve.mean_prob, curve.event_rate])
        assert_array_equal(labelled(ax, f"{label} calibration").get_xydata(), want)


def test_a_handful_is_shown_by_default(tasks):
    model = SimpleNamespace(forecaster_=SimpleNamespace(tasks_=tasks))
    panels = plot_threshold_reliability(model)
    rate = tasks.weight @ tasks.below / tasks.weight.sum()
    nearest = {np.abs(rate - share).argmin() for share in np.linspace(0.1, 0.9, 6)}
    titles = [f"{NINE[k]:.4g}: {100 * rate[k]:.3g}% below" for k in sorted(nearest)]
    assert [ax.get_title() for ax in panels] == titles


def test_near_thresholds_are_told_apart(tasks, report):
    far = replace(tasks, thresholds=1.7e9 + 200.0 * np.arange(len(NINE)))
    first, second = plot_threshold_reliability(far, numbers=[1, 2])
    assert first.get_title().startswith("1.7000002e+09: ")
    assert second.get_title().startswith("1.7000004e+09: ")
    told = str(replace(report, thresholds=1.7e9 + 200.0 * np.arange(4))).splitlines()
    width = told[1].index("threshold") + len("threshold")
    names = [line[:width].strip() for line in told[2:]]
    assert names == ["1.7e+09", "1.7000002e+09", "1.7000004e+09", "1.7000006e+09"]


def test_nearly_all_is_written_as_people_do():
    p = np.full((200, 1), 0.9)
    below = np.arange(200)[:, None] > 0
    tasks = TaskRecord(np.ones(1), p, p, below, [], np.ones(200))
    (ax,) = plot_threshold_reliability(tasks)
    assert ax.get_title() == "1: 99.5% below"
