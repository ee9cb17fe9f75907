"""What is drawn of spreads and errors, read back from the artists."""

import numpy as np
import pytest
from scipy.stats import norm

from localexpert.plots import plot_sharpness
from tests.forecasts import normal


@pytest.fixture
def y(smooth, rng):
    return smooth.ppf(rng.uniform(size=60))


def bars(ax):
    """Return means (k, 2) and the ends (k, 2) of their intervals."""
    line, _, (sticks,) = ax.containers[0].lines
    return line.get_xydata(), np.array([s[:, 1] for s in sticks.get_segments()])


def test_means_of_bins_and_their_intervals(smooth, y):
    ax = plot_sharpness(y, smooth, n_bins=3, level=0.8)
    # Spread grows from row to row, so bins are runs of rows.
    error = np.abs(y - smooth.median()).reshape(3, 20)
    means, ends = bars(ax)
    spread = smooth.std().reshape(3, 20).mean(axis=1)
    np.testing.assert_allclose(means, np.column_stack([spread, error.mean(axis=1)]))
    half = norm.ppf(0.9) * error.std(axis=1, ddof=1) / np.sqrt(20)
    np.testing.assert_allclose(np.diff(ends)[:, 0], 2.0 * half)
    np.testing.assert_allclose(ends.mean(axis=1), means[:, 1])


@pytest.mark.parametrize("kind", ["smooth", "discrete", "mixed"])
def test_what_forecasts_expect_is_their_mean_error(kind, request, labelled):
    dist = request.getfixturevalue(kind)
    ax = plot_sharpness(np.zeros(60), dist, n_bins=1)
    drawn = labelled(ax, "expected by the forecasts").get_ydata()
    median = dist.median()
    levels = (np.arange(4000) + 0.5) / 4000
    own = np.abs(dist.quantiles(levels) - median[:, None]).mean()
    np.testing.assert_allclose(drawn, [own], rtol=2e-3)


def test_bins_have_ten_rows_at_least(smooth, y):
    assert len(bars(plot_sharpness(y, smooth, n_bins=50))[0]) == 6
    assert len(bars(plot_sharpness(y[:3], smooth[:3]))[0]) == 1


def test_equal_spreads_are_one_bin(many):
    ax = plot_sharpness(np.zeros(60), many(60))
    ax.figure.canvas.draw()
    (at,) = {round(float(x), 9) for x in bars(ax)[0][:, 0]}
    assert ax.get_xlim()[0] < at < ax.get_xlim()[1]


def test_a_sample_stands_for_very_many_rows(many, labelled):
    n = 20_500
    dist, y = many(n), np.linspace(0.0, 7.0, n)
    first, again = (plot_sharpness(y, dist) for _ in range(2))
    np.testing.assert_array_equal(bars(first)[0], bars(again)[0])
    errors = np.abs(y - dist.median())
    assert bars(first)[0][:, 1].mean() == pytest.approx(errors.mean(), rel=0.02)
    dots = labelled(first, "each row")
    assert len(dots.get_xdata()) == 3000


def test_an_outlier_does_not_press_the_others_down(many, labelled):
    y = np.linspace(0.0, 5.0, 400)
    y[7] = 1e3
    dist = many(400)
    ax = plot_sharpness(y, dist)
    _, ends = bars(ax)
    assert ax.get_ylim()[1] < 1e3
    assert ends.max() <= ax.get_ylim()[1]
    # What is cut off is counted.
    marks = labelled(ax, "1 of 400 outside, error up to 1000").get_xydata()
    assert marks[:, 1].tolist() == [ax.get_ylim()[1]]
    assert ax.get_ylim()[0] <= 0.0


def test_wide_forecasts_are_counted_but_no_bin_is_cut_off(legend):
    width = np.r_[np.ones(400), 1e6]
    dist = normal(np.zeros(401), width)
    ax = plot_sharpness(np.zeros(401), dist)
    assert bars(ax)[0][:, 0].max() <= ax.get_xlim()[1]
    assert any(text.startswith("1 of 401 outside") for text in legend(ax))
