"""What is drawn of thresholds' probabilities, read back from the artists."""

from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from calibration import reliability_curve
from localexpert.experts.task_record import TaskRecord
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


def test_panels_hold_their_curves(tasks):
    rare = replace(tasks, raw=0.02 * tasks.raw, calibrated=0.03 * tasks.calibrated)
    for record in (tasks, rare):
        for ax in plot_threshold_reliability(record):
            drawn = np.concatenate([line.get_xydata() for line in ax.lines[1:]])
            low, high = ax.get_xlim()
            assert low < drawn.min() < drawn.max() < high
            assert ax.get_xlim() == ax.get_ylim()
