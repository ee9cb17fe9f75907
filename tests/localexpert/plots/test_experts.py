"""What is drawn of a regressor's experts, read back from the artists."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.metrics import log_loss

from calibration import reliability_curve
from localexpert import plot_expert_report, plot_threshold_reliability
from localexpert.experts.report import ExpertReport
from localexpert.experts.task_record import TaskRecord

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


NINE = np.linspace(-1.5, 1.5, 9)


@pytest.fixture
def tasks(rng):
    below = rng.normal(size=(400, 1)) <= NINE
    calibrated = np.clip(0.4 * below + 0.6 * rng.uniform(size=below.shape), 0.01, 0.99)
    raw = calibrated**2
    return TaskRecord(NINE, raw, calibrated, below, [], rng.uniform(1.0, 2.0, 400))


def test_curves_before_and_after(tasks, labelled):
    (ax,) = plot_threshold_reliability(tasks, numbers=[4], n_bins=5)
    for label, p in (("before", tasks.raw), ("after", tasks.calibrated)):
        curve = reliability_curve(
            tasks.below[:, 4], p[:, 4], sample_weight=tasks.weight, n_bins=5
        )
        np.testing.assert_array_equal(
            labelled(ax, f"{label} calibration").get_xydata(),
            np.column_stack([curve.mean_prob, curve.event_rate]),
        )


def test_the_band_is_that_of_the_calibrated_curve(tasks, labelled):
    (ax,) = plot_threshold_reliability(tasks, numbers=[2], n_bins=5, coverage=0.8)
    curve = reliability_curve(
        tasks.below[:, 2],
        tasks.calibrated[:, 2],
        sample_weight=tasks.weight,
        n_bins=5,
        level=0.8,
    )
    corners = labelled(ax, "80% consistency band").get_paths()[0].vertices
    for x, low, high in zip(curve.mean_prob, curve.lower, curve.upper, strict=True):
        assert {low, high} <= set(corners[corners[:, 0] == x, 1].tolist())


def test_a_handful_is_shown_by_default(tasks):
    panels = plot_threshold_reliability(SimpleNamespace(forecaster_=_Fitted(tasks)))
    rate = tasks.weight @ tasks.below / tasks.weight.sum()
    nearest = {np.abs(rate - share).argmin() for share in np.linspace(0.1, 0.9, 6)}
    titles = [f"{NINE[k]:.4g}: {100 * rate[k]:.2g}% below" for k in sorted(nearest)]
    assert [ax.get_title() for ax in panels] == titles
    assert len(panels) <= 6
    assert len(plt.get_fignums()) == 1


class _Fitted:
    """A forecaster that only has its record."""

    def __init__(self, tasks):
        self.tasks_ = tasks


def test_panels_hold_their_curves(tasks):
    rare = replace(tasks, raw=0.02 * tasks.raw, calibrated=0.03 * tasks.calibrated)
    for record in (tasks, rare):
        for ax in plot_threshold_reliability(record):
            drawn = np.concatenate([line.get_xydata() for line in ax.lines[1:]])
            low, high = ax.get_xlim()
            assert low < drawn.min() < drawn.max() < high
            assert ax.get_xlim() == ax.get_ylim()
