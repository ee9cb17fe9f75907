"""What is drawn of an expert report, read back from the artists."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import log_loss

from localexpert.experts.report import ExpertReport
from localexpert.experts.task_record import TaskRecord
from localexpert.plots import plot_expert_report

CUTS = np.array([-1.0, -0.2, 0.5, 3.0])
TITLES = ["Accuracy", "Kappa", "AUC", "Log loss", "Calibration error", "Base rate"]


@pytest.fixture
def below(rng):
    return rng.normal(size=(300, 1)) <= CUTS


@pytest.fixture
def report(rng, below):
    raw = np.clip(below * 0.6 + rng.uniform(size=below.shape) * 0.4, 0.01, 0.99)
    calibrated = 0.5 + 0.9 * (raw - 0.5)
    rows = np.arange(300)
    folds = [(rows[rows % 3 != f], rows[rows % 3 == f]) for f in range(3)]
    record = TaskRecord(CUTS, raw, calibrated, below, folds, np.ones(300))
    return ExpertReport.of(record)


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
    np.testing.assert_array_equal(line.get_xdata(), CUTS)
    np.testing.assert_allclose(line.get_ydata(), figures.mean(axis=1))
    ends = np.array([stick[:, 1] for stick in sticks.get_segments()])
    widths = 2.0 * figures.std(axis=1)
    np.testing.assert_allclose(np.diff(ends)[:, 0], widths, atol=1e-12)


def test_losses_before_and_after(report, panels):
    for title, name in (
        ("Log loss", "log_loss"),
        ("Calibration error", "calibration_error"),
    ):
        drawn = lines(panels[title])
        for label, suffix in (("before", "_raw"), ("after", "")):
            np.testing.assert_array_equal(
                drawn[f"{label} calibration"].get_xydata(),
                np.column_stack([CUTS, getattr(report, name + suffix)]),
            )
    assert panels["Calibration error"].get_ylim()[0] == 0.0


def test_auc_and_base_rate(report, panels):
    for title, figures in (("AUC", report.auc), ("Base rate", report.base_rate)):
        line = panels[title].lines[0]
        np.testing.assert_array_equal(
            line.get_xydata(), np.column_stack([CUTS, figures])
        )


def test_dashed_lines_are_what_the_base_rate_gets(below, panels):
    rate = below.mean(axis=0)
    right = np.maximum(rate, 1.0 - rate)
    drawn = lines(panels["Accuracy"])["base rate alone"]
    np.testing.assert_allclose(drawn.get_ydata(), right)
    assert drawn.get_linestyle() == "--"
    lost = [log_loss(below[:, k], np.full(300, rate[k])) for k in range(4)]
    drawn = lines(panels["Log loss"])["base rate alone"]
    np.testing.assert_allclose(drawn.get_ydata(), lost)
    for title, level in (("AUC", 0.5), ("Kappa", 0.0)):
        (flat,) = [ln for ln in panels[title].lines if ln.get_linestyle() == "--"]
        np.testing.assert_array_equal(flat.get_ydata(), level)


def test_long_thresholds_do_not_run_together(report):
    far = replace(report, thresholds=1e5 * (1.0 + np.arange(4.0)))
    axes = plot_expert_report(far)
    axes[0, 0].figure.canvas.draw()
    for ax in axes[1]:
        low, high = ax.get_xlim()
        ticks = [t for t in ax.xaxis.get_major_ticks() if low <= t.get_loc() <= high]
        boxes = [tick.label1.get_window_extent() for tick in ticks]
        assert min(b.x0 - a.x1 for a, b in pairwise(boxes)) > 0.0


def test_one_class_at_one_threshold_in_one_fold():
    p, below = np.array([[0.9], [0.8]]), np.array([[True], [True]])
    folds = [(np.empty(0, int), np.arange(2))]
    report = ExpertReport.of(TaskRecord(np.zeros(1), p, p, below, folds, np.ones(2)))
    axes = plot_expert_report(report)
    np.testing.assert_array_equal(lines(axes[1, 0])["base rate alone"].get_ydata(), 0.0)
    axes[0, 0].figure.canvas.draw()
