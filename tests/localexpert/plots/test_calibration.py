"""What is drawn of calibration, sharpness and lives, read back from the artists."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.stats import binom, norm, t

from localexpert import (
    PredictiveDistribution,
    censored,
    kaplan_meier,
    plot_coverage,
    plot_pit,
    plot_quantile_reliability,
    plot_sharpness,
    plot_survival,
)
from tests.forecasts import normal, of_values
from tests.localexpert.plots.conftest import labelled, legend, many, ticks


@pytest.fixture
def y(smooth, rng):
    return smooth.ppf(rng.uniform(size=60))


class TestPit:
    def test_bars_are_shares_of_pit_values(self, smooth, y):
        ax = plot_pit(y, smooth, bins=5)
        heights = [bar.get_height() for bar in ax.patches if bar.get_width() < 0.5]
        counts = np.bincount((smooth.cdf(y) * 5).astype(int), minlength=5)
        assert_allclose(heights, counts * 5 / 60)
        assert sum(heights) / 5 == pytest.approx(1.0)

    def test_the_band_is_binomial(self, smooth, y):
        ax = plot_pit(y, smooth, bins=8, coverage=0.9)
        band, tail = labelled(ax, "90% simultaneous band"), 0.05 / 8
        drawn = band.get_y(), band.get_y() + band.get_height()
        counts = binom.ppf([tail, 1.0 - tail], 60, 1 / 8)
        assert_allclose(drawn, counts * 8 / 60)

    def test_draws_at_jumps_are_flat_and_repeat(self, discrete, rng):
        # `rng` is `default_rng(0)`: the draws must not be those of the outcomes.
        rows = np.repeat(np.arange(60), 100)
        dist = discrete[rows]
        y = dist.ppf(rng.uniform(size=6000))
        first, again = (
            [bar.get_height() for bar in plot_pit(y, dist).patches[:20]]
            for _ in range(2)
        )
        assert first == again
        assert np.abs(np.array(first) - 1.0).max() < 0.25
        middles = plot_pit(y, dist, random_state=None)
        heights = [bar.get_height() for bar in middles.patches[:20]]
        assert np.abs(np.array(heights) - 1.0).max() > 0.5

    def test_nothing_is_cut_off(self, smooth):
        ax = plot_pit(np.full(60, -100.0), smooth)
        assert ax.get_ylim()[1] > 20.0
        assert ax.get_xlim() == (0.0, 1.0)


class TestQuantiles:
    def test_shares_below_quantiles(self, smooth, y):
        levels = [0.1, 0.5, 0.8]
        ax = plot_quantile_reliability(y, smooth, levels=levels)
        drawn = labelled(ax, "forecast").get_xydata()
        shares = (y[:, None] <= smooth.quantiles(levels)).mean(axis=0)
        assert_allclose(drawn, np.column_stack([levels, shares]))

    def test_the_band_is_binomial(self, smooth, y):
        ax = plot_quantile_reliability(y, smooth, levels=[0.1, 0.5], coverage=0.8)
        corners = labelled(ax, "80% consistency band").get_paths()[0].vertices
        for level in (0.1, 0.5):
            heights = {round(h * 60, 6) for x, h in corners if x == level}
            assert heights == set(binom.ppf([0.1, 0.9], 60, level))
        for end in (0.0, 1.0):
            assert {h for x, h in corners if x == end} == {end}

    def test_differences(self, smooth, y):
        plain, less = (
            plot_quantile_reliability(y, smooth, difference=difference)
            for difference in (False, True)
        )
        a, b = (labelled(ax, "forecast").get_xydata() for ax in (plain, less))
        assert_allclose(a[:, 1] - a[:, 0], b[:, 1])
        assert_array_equal(labelled(less, "calibrated").get_ydata(), 0.0)
        assert legend(plain) == legend(less)
        assert less.get_ylabel() == "Share of outcomes below, less the level"


def covered(y, dist, coverage=0.9):
    low, high = dist.interval(coverage).T
    return (low <= y) & (y <= high)


def test_shares_of_named_groups_are_sorted(smooth, y):
    groups = np.array(["north", "south", "west"])[np.arange(60) % 3]
    y = np.where((groups == "south") & (np.arange(60) < 30), 99.0, y)
    ax = plot_coverage(y, smooth, groups, coverage=0.7)
    hit = covered(y, smooth, 0.7)
    shares = {name: hit[groups == name].mean() for name in np.unique(groups)}
    names = sorted(shares, key=lambda name: shares[name])
    assert ticks(ax) == [f"{name} (20)" for name in names]
    assert names[0] == "south"
    drawn = labelled(ax, "covered").get_xydata()
    assert_allclose(drawn, [[shares[name], i] for i, name in enumerate(names)])
    assert labelled(ax, "nominal").get_xdata()[0] == 0.7


def test_bars_are_the_shares_that_a_score_test_keeps(smooth, y):
    groups = np.repeat([0, 1], [50, 10])
    ax = plot_coverage(y, smooth, groups, level=0.8)
    bars = np.array(labelled(ax, "80% confidence").get_segments())[:, :, 0]
    z = norm.ppf(0.9)
    for bar, g, m in zip(bars, (0, 1), (50, 10), strict=True):
        share = covered(y, smooth)[groups == g].mean()

        def gap(p, share=share, m=m):
            return (share - p) ** 2 - z**2 * p * (1.0 - p) / m

        inside = min(max(share, 1e-9), 1.0 - 1e-9)
        assert bar[0] == pytest.approx(brentq(gap, 0.0, inside), abs=1e-6)
        high = 1.0 if share == 1.0 else brentq(gap, inside, 1.0)
        assert bar[1] == pytest.approx(high, abs=1e-6)


ROW = np.arange(60)
GAPPY = [None if row < 7 else float(row) for row in ROW]
IN_TWO = ["[7, 33) (26)", "[33, 59] (27)", "missing (7)"]


@pytest.mark.parametrize(
    ("groups", "n_bins", "want"),
    [
        (np.array([10, 2.5, 7])[ROW % 3], 5, ["2.5 (20)", "7 (20)", "10 (20)"]),
        (np.where(ROW % 2, 2019.001, 2019.002), 5, ["2019.001 (30)", "2019.002 (30)"]),
        (ROW * 1.0, 3, ["[0, 20) (20)", "[20, 40) (20)", "[40, 59] (20)"]),
        # Gaps are a group, and numbers are numbers whatever holds them.
        (np.where(ROW < 7, np.nan, ROW % 2), 5, ["0 (26)", "1 (27)", "missing (7)"]),
        *((held(GAPPY), 2, IN_TWO) for held in (list, np.array)),
        (pd.array(GAPPY, dtype="Int64"), 2, IN_TWO),
    ],
)
def test_numbers_are_groups_in_their_order(smooth, y, groups, n_bins, want):
    ax = plot_coverage(y, smooth, pd.Series(groups, name="size"), n_bins=n_bins)
    assert ticks(ax) == want
    assert ax.get_ylabel() == "size"
    if n_bins == 3:
        shares = covered(y, smooth).reshape(3, 20).mean(axis=1)
        assert_allclose(labelled(ax, "covered").get_xdata(), shares)


HOURS = pd.Timestamp("2024-01-01") + pd.to_timedelta(ROW // 20, unit="h")


@pytest.mark.parametrize(
    ("groups", "want"),
    [
        (np.where(ROW < 7, None, "known"), ["known (53)", "missing (7)"]),
        (
            [None if row < 7 else row % 2 == 1 for row in ROW],
            ["False (26)", "True (27)", "missing (7)"],
        ),
        # Times have the digits that tell them apart.
        (HOURS, [f"2024-01-01{hour} (20)" for hour in ("", "T01:00", "T02:00")]),
        (np.datetime64("2024-01") + ROW // 30, ["2024-01 (30)", "2024-02 (30)"]),
    ],
)
def test_other_values_are_names_of_groups(smooth, y, groups, want):
    assert sorted(ticks(plot_coverage(y, smooth, groups))) == want


@pytest.mark.parametrize("known", [True, False])
def test_values_that_repeat_and_outcomes_known_in_part_count_by_their_share(
    known, discrete, rng
):
    y, groups = discrete.ppf(rng.uniform(size=60)), np.arange(60) // 30
    outcomes = y if known else np.column_stack([y, np.full(60, np.inf)])
    low, high = discrete.cdf(y) - discrete.pmf(y), discrete.cdf(y) if known else 1.0
    levels = low + (high - low) * np.linspace(0.0, 1.0, 20_001)[:, None]
    held = ((levels > 0.25) & (levels < 0.75)).mean(axis=0)
    ax = plot_coverage(outcomes, discrete, groups, coverage=0.5)
    drawn = labelled(ax, "covered").get_xdata()
    assert_allclose(drawn, held.reshape(2, 30).mean(axis=1), atol=1e-3)
    assert (drawn < 0.9).all()  # closed intervals would hold more


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
    assert_allclose(means, np.column_stack([spread, error.mean(axis=1)]))
    half = norm.ppf(0.9) * error.std(axis=1, ddof=1) / np.sqrt(20)
    assert_allclose(np.diff(ends)[:, 0], 2.0 * half)
    assert_allclose(ends.mean(axis=1), means[:, 1])


@pytest.mark.parametrize("kind", ["smooth", "discrete", "mixed"])
def test_what_forecasts_expect_is_their_mean_error(kind, request):
    dist = request.getfixturevalue(kind)
    ax = plot_sharpness(np.zeros(60), dist, n_bins=1)
    drawn = labelled(ax, "expected by the forecasts").get_ydata()
    median = dist.median()
    levels = (np.arange(4000) + 0.5) / 4000
    own = np.abs(dist.quantiles(levels) - median[:, None]).mean()
    assert_allclose(drawn, [own], rtol=2e-3)


def test_bins_have_ten_rows_at_least(smooth, y):
    assert len(bars(plot_sharpness(y, smooth, n_bins=50))[0]) == 6
    assert len(bars(plot_sharpness(y[:3], smooth[:3]))[0]) == 1


def test_equal_spreads_are_one_bin():
    ax = plot_sharpness(np.zeros(60), many(60))
    ax.figure.canvas.draw()
    (at,) = {round(float(x), 9) for x in bars(ax)[0][:, 0]}
    assert ax.get_xlim()[0] < at < ax.get_xlim()[1]


def test_a_sample_stands_for_very_many_rows():
    n = 20_500
    dist, y = many(n), np.linspace(0.0, 7.0, n)
    first, again = (plot_sharpness(y, dist) for _ in range(2))
    assert_array_equal(bars(first)[0], bars(again)[0])
    errors = np.abs(y - dist.median())
    assert bars(first)[0][:, 1].mean() == pytest.approx(errors.mean(), rel=0.02)
    dots = labelled(first, "each row")
    assert len(dots.get_xdata()) == 3000


def test_an_outlier_does_not_press_the_others_down():
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


def test_rows_of_infinite_spread_are_left_out_and_counted():
    dist = PredictiveDistribution.from_scipy(t(df=np.append(np.full(60, 30.0), 1.8)))
    ax = plot_sharpness(np.zeros(61), dist)
    dots = labelled(ax, "each row, 1 of infinite spread left out")
    assert len(dots.get_xdata()) == 60
    with pytest.raises(ValueError, match="`dist` must have a finite standard dev"):
        plot_sharpness(np.zeros(1), dist[60:])


# Survival to v: 1 - 1/4, then 1/2 of that, and the last row is censored.
LIVES = censored([1.0, 2.0, 3.0, 4.0], event=[1, 0, 1, 0])


def test_steps_and_curve():
    dist = of_values([1.0, 3.0, 5.0], np.tile([0.25, 0.5, 0.25], (4, 1)))
    ax = plot_survival(LIVES, dist, target_name="days")
    x, height = labelled(ax, "Kaplan-Meier").get_data()
    assert_array_equal(x, [0.0, 1.0, 2.0, 3.0, 4.0])
    assert_array_equal(height, [1.0, *kaplan_meier(LIVES)[1]])
    at, mean = labelled(ax, "mean forecast").get_data()
    assert_allclose(mean[at < 1.0], 1.0)
    assert_allclose(mean[(at >= 1.0) & (at < 3.0)], 0.75)
    assert_allclose(mean[at >= 3.0], 0.25)
    assert at[-1] == 4.0
    assert ax.get_xlabel() == "days"


def test_the_band_is_greenwoods():
    ax = plot_survival(LIVES, normal(np.ones(4), 1.0), coverage=0.9)
    (path,) = labelled(ax, "90% band").get_paths()
    # At 1: d = 1 of n = 4; at 3 also d = 1 of n = 2.
    for time, survival, variance in ((1.5, 0.75, 1 / 12), (3.5, 0.375, 1 / 12 + 1 / 2)):
        drawn = path.vertices[np.abs(path.vertices[:, 0] - np.floor(time)) < 1e-9, 1]
        reach = 1.6448536 * np.sqrt(variance) / abs(np.log(survival))
        want = survival ** np.exp(reach), survival ** np.exp(-reach)
        for end in want:
            assert np.abs(drawn - end).min() < 1e-6


def test_everyone_dead_and_refusals():
    dist = normal(np.ones(3), 1.0)
    ax = plot_survival(censored([1, 2, 2], [1, 1, 1]), dist)
    assert labelled(ax, "Kaplan-Meier").get_ydata()[-1] == 0.0
    with pytest.raises(ValueError, match="`y` must be known or right-censored"):
        plot_survival([[1.0, 2.0], [1.0, 1.0], [1.0, 1.0]], dist)
    # All at the start.
    assert plot_survival(np.zeros((3, 2)), dist).get_xlim() == (0.0, 1.0)
