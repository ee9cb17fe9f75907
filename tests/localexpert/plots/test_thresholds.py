"""What is drawn of thresholds' probabilities, read back from the artists."""

from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from calibration import reliability_curve
from localexpert.experts.task_record import TaskRecord
from localexpert.learn.values import ConstantLaws
from localexpert.plots import plot_threshold_reliability

CUTS = np.linspace(-1.5, 1.5, 9)


@pytest.fixture
def tasks(rng):
    below = rng.normal(size=(400, 1)) <= CUTS
    calibrated = np.clip(0.4 * below + 0.6 * rng.uniform(size=below.shape), 0.01, 0.99)
    raw = calibrated**2
    return TaskRecord(CUTS, raw, calibrated, below, [], rng.uniform(1.0, 2.0, 400))


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
    titles = [f"{CUTS[k]:.4g}: {100 * rate[k]:.2g}% below" for k in sorted(nearest)]
    assert [ax.get_title() for ax in panels] == titles
    assert len(panels) <= 6
    assert len(plt.get_fignums()) == 1


class _Fitted:
    """A forecaster that only has its record."""

    def __init__(self, tasks):
        self.tasks_ = tasks


@pytest.mark.parametrize("k", [1, 2, 4, 5, 6])
def test_one_legend_and_no_spare_panels(tasks, k):
    panels = plot_threshold_reliability(tasks, numbers=range(k))
    figure = panels[0].figure
    assert figure.axes == panels.tolist()
    (legend,) = figure.legends
    figure.canvas.draw()
    box = legend.get_window_extent()
    assert box.x0 >= 0.0
    assert box.x1 <= figure.bbox.x1
    assert max(ax.get_window_extent().y0 for ax in panels) > box.y1
    assert all(ax.get_legend() is None for ax in panels)


def test_panels_hold_their_curves(tasks):
    rare = replace(tasks, raw=0.02 * tasks.raw, calibrated=0.03 * tasks.calibrated)
    for record in (tasks, rare):
        for ax in plot_threshold_reliability(record):
            drawn = np.concatenate([line.get_xydata() for line in ax.lines[1:]])
            low, high = ax.get_xlim()
            assert low < drawn.min() < drawn.max() < high
            assert ax.get_xlim() == ax.get_ylim()


def test_axes_given(tasks):
    given = plt.subplots(1, 2)[1]
    panels = plot_threshold_reliability(tasks, numbers=[0, 8], axes=given)
    assert panels.tolist() == given.tolist()
    assert not given[0].figure.legends
    assert given[0].get_legend() is not None
    assert len(plt.get_fignums()) == 1


def test_axes_that_are_a_figure_get_the_legend_below(tasks):
    given = plt.subplots(1, 2, layout="constrained")[1]
    plot_threshold_reliability(tasks, numbers=[0, 8], axes=given)
    assert len(given[0].figure.legends) == 1
    assert given[0].get_legend() is None


def test_bad_input_is_named(tasks):
    constant = SimpleNamespace(forecaster_=ConstantLaws(1.0, 5))
    with pytest.raises(TypeError, match="`model` must be a TaskRecord or a fitted"):
        plot_threshold_reliability(constant)
    with pytest.raises(
        ValueError, match=r"`numbers` must hold .* number below 9, got 9"
    ):
        plot_threshold_reliability(tasks, numbers=[0, 9])
    with pytest.raises(
        ValueError, match=r"`numbers` must hold at least one .* got none"
    ):
        plot_threshold_reliability(tasks, numbers=[])
    with pytest.raises(ValueError, match="`n_bins` must be at least 1, got 0"):
        plot_threshold_reliability(tasks, n_bins=0)
    with pytest.raises(ValueError, match="`axes` must hold 2 Axes, got 1"):
        plot_threshold_reliability(tasks, numbers=[0, 1], axes=plt.subplots()[1])
