"""The mean forecast beside Kaplan and Meier's steps, read back from the artists."""

import numpy as np
import pytest

import localexpert
from tests.forecasts import normal, of_values

# Survival to v: 1 - 1/4, then 1/2 of that, and the last row is censored.
Y = localexpert.censored([1.0, 2.0, 3.0, 4.0], event=[1, 0, 1, 0])


def test_steps_and_curve(labelled):
    dist = of_values([1.0, 3.0, 5.0], np.tile([0.25, 0.5, 0.25], (4, 1)))
    ax = localexpert.plot_survival(Y, dist, target_name="days")
    x, height = labelled(ax, "Kaplan-Meier").get_data()
    np.testing.assert_array_equal(x, [0.0, 1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(height, [1.0, *localexpert.kaplan_meier(Y)[1]])
    at, mean = labelled(ax, "mean forecast").get_data()
    np.testing.assert_allclose(mean[at < 1.0], 1.0)
    np.testing.assert_allclose(mean[(at >= 1.0) & (at < 3.0)], 0.75)
    np.testing.assert_allclose(mean[at >= 3.0], 0.25)
    assert at[-1] == 4.0
    assert ax.get_xlabel() == "days"


def test_the_band_is_greenwoods(labelled):
    ax = localexpert.plot_survival(Y, normal(np.ones(4), 1.0), coverage=0.9)
    (path,) = labelled(ax, "90% band").get_paths()
    # At 1: d = 1 of n = 4; at 3 also d = 1 of n = 2.
    for t, survival, variance in ((1.5, 0.75, 1 / 12), (3.5, 0.375, 1 / 12 + 1 / 2)):
        drawn = path.vertices[np.abs(path.vertices[:, 0] - np.floor(t)) < 1e-9, 1]
        reach = 1.6448536 * np.sqrt(variance) / abs(np.log(survival))
        want = survival ** np.exp(reach), survival ** np.exp(-reach)
        for end in want:
            assert np.abs(drawn - end).min() < 1e-6


def test_everyone_dead_and_refusals(labelled):
    dist = normal(np.ones(3), 1.0)
    ax = localexpert.plot_survival(localexpert.censored([1, 2, 2], [1, 1, 1]), dist)
    assert labelled(ax, "Kaplan-Meier").get_ydata()[-1] == 0.0
    with pytest.raises(ValueError, match="`y` must be known or right-censored"):
        localexpert.plot_survival([[1.0, 2.0], [1.0, 1.0], [1.0, 1.0]], dist)
    with pytest.raises(ValueError, match="`y` must be as long as dist"):
        localexpert.plot_survival(Y, dist)


def test_all_dead_at_the_start():
    ax = localexpert.plot_survival(np.zeros((3, 2)), normal(np.ones(3), 1.0))
    assert ax.get_xlim() == (0.0, 1.0)


def test_pictures_of_pit_values_take_two_ends(rng):
    dist = normal(np.zeros(4000), 1.0)
    y = rng.normal(size=4000)
    ends = localexpert.censored(np.minimum(y, 0.5), y < 0.5)
    heights = [
        bar.get_height()
        for bar in localexpert.plot_pit(ends, dist, bins=10).patches[:10]
    ]
    assert np.abs(np.array(heights) - 1.0).max() < 0.2
    line = localexpert.plot_quantile_reliability(ends, dist).lines[-1]
    np.testing.assert_allclose(line.get_ydata(), line.get_xdata(), atol=0.03)
    with pytest.raises(ValueError, match="`y` must be as long as dist"):
        localexpert.plot_pit(ends[:3], dist)
