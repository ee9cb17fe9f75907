"""What is drawn of forecasts: one, several, and over a variable; read from artists."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from matplotlib.dates import date2num
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import trapezoid

from localexpert import (
    PredictiveDistribution,
    plot_fan,
    plot_forecast,
    plot_forecasts,
    pool,
)
from localexpert.plots.forecast import ForecastShape
from tests.forecasts import beside, normal, of_values
from tests.localexpert.plots.conftest import labelled, legend, many


def curves(ax):
    """Return the curves of an Axes in the order of drawing: lines of many points."""
    return [line for line in ax.lines if len(line.get_xdata()) > 50]


def curve(ax):
    """Return the only curve of an Axes."""
    (line,) = curves(ax)
    return line.get_xydata().T


def marks(ax):
    """Return where upright lines stand, by the first word of their labels."""
    upright = [line for line in ax.lines if tuple(line.get_ydata()) == (0, 1)]
    return {line.get_label().split()[0]: line.get_xdata()[0] for line in upright}


def corners(band):
    """Return the least and the greatest x of a shaded region."""
    x = band.get_paths()[0].vertices[:, 0]
    return x.min(), x.max()


class TestSmooth:
    def test_lines_are_density_and_cdf(self, smooth):
        density, cdf = plot_forecast(smooth, 7)
        x, height = curve(density)
        assert_array_equal(height, smooth[7].pdf(x[:, None])[:, 0])
        x, level = curve(cdf)
        assert_array_equal(level, smooth.cdf_at(x)[7])
        assert density.get_xlim() == cdf.get_xlim()

    def test_the_region_is_that_of_highest_density(self, smooth):
        ax = plot_forecast(smooth, 4, what="density", coverage=0.6)
        region = corners(labelled(ax, "60% highest density"))
        assert_allclose(region, smooth.hdi_regions(0.6)[4][0])

    def test_the_central_interval_instead(self, smooth):
        axes = plot_forecast(smooth, 4, coverage=0.6, interval="central")
        region = corners(labelled(axes[0], "60% interval"))
        assert_allclose(region, smooth.interval(0.6)[4])

    def test_every_part_of_the_region_is_shaded(self):
        dist = pool([normal([0.0]), normal([8.0])])
        ax = plot_forecast(dist, what="density", coverage=0.5)
        regions = dist.hdi_regions(0.5)[0]
        assert len(regions) == 2
        assert_allclose([corners(c) for c in ax.collections], regions)
        names = [text.get_text() for text in ax.get_legend().get_texts()]
        assert names.count("50% highest density") == 1

    def test_marks(self, smooth):
        density, cdf = plot_forecast(smooth, -1, y=9.0, prediction=4.0)
        expected = {"mean": smooth.mean()[-1], "outcome": 9.0, "prediction": 4.0}
        assert marks(density) == pytest.approx(expected)
        upright = [ln for ln in cdf.lines if len(ln.get_xdata()) == 2]
        assert len(upright) == 3
        assert density.get_xlim()[1] > 9.0

    def test_marks_of_near_numbers_are_told_apart(self):
        ax = plot_forecast(normal([1.7e9], 600.0), what="density", y=1.7e9 + 300.0)
        assert legend(ax)[1:] == ["mean 1.7e+09", "outcome 1.7000003e+09"]

    def test_experts(self, smooth):
        thresholds, p = [0.0, 1.0, 2.0, 900.0], [0.1, 0.4, 0.7, 1.0]
        _, cdf = plot_forecast(smooth, 20, expert_points=(thresholds, p))
        drawn = labelled(cdf, "experts").get_xydata()
        assert_array_equal(drawn, np.column_stack([thresholds, p])[:3])


class TestValues:
    def test_a_discrete_forecast_is_stems(self, discrete):
        density, cdf = plot_forecast(discrete, 30, coverage=0.7)
        assert density.get_ylabel() == "Probability"
        heads = labelled(density, "70% most probable")
        p = discrete.masses[30]
        assert_allclose(heads.get_xydata(), [[0.0, p[0]], [3.0, p[2]]])
        tops = [stem[1] for stem in density.collections[0].get_segments()]
        assert_allclose(tops, np.column_stack([[0.0, 1.0, 3.0], p]))
        x, level = curve(cdf)
        assert level[0] == 0.0
        assert level[-1] == 1.0
        assert x[-1] == cdf.get_xlim()[1]

    def test_spikes_beside_a_density_have_their_own_axis(self, mixed):
        ax = plot_forecast(mixed, 30, what="density")
        (side,) = [other for other in ax.figure.axes if other is not ax]
        assert side.get_ylabel() == "Probability of a value"
        (stem,) = side.collections[0].get_segments()
        mass = mixed.masses[30, 0]
        assert_allclose(stem, [[0.0, 0.0], [0.0, mass]])
        x, height = curve(ax)
        assert height.max() < 1.0
        assert_allclose(height[x != 0.0], mixed.pdf(x[x != 0.0, None])[:, 30])

    @pytest.mark.parametrize("what", ["density", "cdf"])
    def test_a_region_of_values_alone_is_named(self, what):
        dist = beside(normal([3.0]), [0.0], [[0.9]])
        name = "50% highest density"
        assert legend(plot_forecast(dist, coverage=0.5)[0]).count(name) == 1
        ax = plot_forecast(dist, coverage=0.5, what=what)
        assert legend(ax).count(name) == 1
        if what == "cdf":
            drawn = labelled(ax, name).get_xydata()
            assert_allclose(drawn, [[0.0, dist.cdf([0.0])[0]]])


class TestRidge:
    def test_rows_are_on_their_lines_and_may_be_equally_high(self, smooth):
        ax = plot_forecasts(smooth, [0, 20, 40], scale="own")
        assert ax.get_ylabel() == "Density, each row on a scale of its own"
        for base, line, row in zip((2, 1, 0), curves(ax), (0, 20, 40), strict=True):
            x, height = line.get_xydata().T
            density = smooth[row].pdf(x[:, None])[:, 0]
            scaled = 1.6 * density / density.max()
            assert_allclose(height - base, scaled, atol=1e-12)

    @pytest.mark.parametrize("scale", ["auto", "common"])
    def test_one_scale(self, smooth, scale):
        ax = plot_forecasts(smooth, [0, 20, 40], scale=scale)
        assert ax.get_ylabel() == "Density, all rows on one scale"
        heights = [
            line.get_ydata().max() - base
            for base, line in zip((2, 1, 0), curves(ax), strict=True)
        ]
        law = [smooth[row].pdf(smooth[row].ppf([0.5])).item() for row in (0, 20, 40)]
        assert_allclose(heights[0], 1.6)
        ratio = np.array(heights) / heights[0]
        assert_allclose(ratio, np.array(law) / law[0], rtol=0.01)

    def test_rows_of_very_unlike_heights_have_their_own_scales(self):
        dist = normal(np.zeros(2), [0.1, 1.0])
        ax = plot_forecasts(dist)
        assert ax.get_ylabel() == "Density, each row on a scale of its own"
        tops = [line.get_ydata().max() for line in curves(ax)]
        assert_allclose(tops, [2.6, 1.6])
        near = normal(np.zeros(2), [0.25, 1.0])
        ax = plot_forecasts(near)
        assert ax.get_ylabel() == "Density, all rows on one scale"

    def test_outcomes(self, smooth):
        y = np.arange(60.0) / 10
        ax = plot_forecasts(smooth, [0, 20, 40], y=y)
        drawn = labelled(ax, "outcome").get_xydata()
        assert_array_equal(drawn, [[0.0, 2.0], [2.0, 1.0], [4.0, 0.0]])

    def test_stems_end_below_the_next_row(self, discrete, mixed):
        ax = plot_forecasts(discrete, range(8), scale="own")
        assert ax.get_ylabel() == "Probability, each row on a scale of its own"
        for j, stems in enumerate(ax.collections):
            heights = np.array(stems.get_segments())[:, 1, 1] - (7 - j)
            p = discrete.masses[j]
            assert_allclose(heights, 0.8 * p / p.max())
        ax = plot_forecasts(mixed, [59, 0])
        stems = [c for c in ax.collections if hasattr(c, "get_segments")]
        tops = [c.get_segments()[0][1, 1] for c in stems]
        assert_allclose(tops, [1.0 + 0.8 * 0.6, 0.8 * 0.1])


def test_the_density_leaves_out_the_spikes():
    smooth = normal([1.0], 0.7)
    shape = ForecastShape.of(beside(smooth, [0.0], [[0.3]], [0.01]), 0)
    at_zero = shape.density(np.array([0.0]))[0]
    assert at_zero == pytest.approx(0.7 * smooth.pdf(0.0)[0], rel=1e-9)
    x = shape.grid(-3.0, 9.0)
    area = trapezoid(shape.density(x), x)
    assert area == pytest.approx(1.0 - shape.masses[0], abs=1e-3)


def test_the_window_holds_99_percent_and_what_it_must(smooth):
    shape = ForecastShape.of(smooth, 10)
    low, high = shape.window()
    assert smooth.cdf(low)[10] < 0.005
    assert smooth.cdf(high)[10] > 0.995
    assert shape.window([None, 50.0])[1] > 50.0
    assert shape.window([None, 50.0])[0] < low


def test_the_window_of_one_value():
    one = of_values([7.0], [[1.0]])
    shape = ForecastShape.of(one, 0)
    low, high = shape.window()
    assert low < 7.0 < high
    assert shape.grid(low, high).tolist() == [7.0]


def test_long_tails_are_cut(rng):
    dist = PredictiveDistribution.from_samples([rng.standard_t(2, size=4000) ** 3])
    low, high = ForecastShape.of(dist, 0).window()
    q = dist.quantiles([0.005, 0.1, 0.9, 0.995])[0]
    assert q[3] - q[0] > 7.0 * (q[2] - q[1])
    assert high - low == pytest.approx(1.1 * 7.0 * (q[2] - q[1]))


def test_steps_jump_where_the_cdf_does(mixed):
    at, level = ForecastShape.of(mixed, 59).steps(np.linspace(-1.0, 4.0, 7))
    (here,) = np.nonzero(at == 0.0)
    assert len(here) == 2
    assert np.diff(level[here])[0] == pytest.approx(0.6)
    assert_array_equal(level[1::2], mixed.cdf_at(at[1::2])[59])


DAYS = np.datetime64("2024-01-01") + np.arange(60)


def edges(band):
    """Return x, lower and upper edge (k,) of a shaded band."""
    corners = band.get_paths()[0].vertices
    k = (len(corners) - 3) // 2
    return corners[1 : k + 1, 0], corners[1 : k + 1, 1], corners[k + 2 : -1, 1][::-1]


def test_median_and_bands_are_quantiles(smooth, rng):
    x = rng.permutation(np.arange(60.0))
    order = np.argsort(x)
    ax = plot_fan(smooth, x, coverages=[0.9, 0.5])
    median = labelled(ax, "median")
    assert_array_equal(median.get_xdata(), x[order])
    assert_array_equal(median.get_ydata(), smooth.median()[order])
    for coverage, label in ((0.5, "50%"), (0.9, "90%")):
        at, low, high = edges(labelled(ax, label))
        assert_array_equal(at, x[order])
        expected = smooth.interval(coverage)[order]
        assert_allclose(np.column_stack([low, high]), expected)
    assert legend(ax) == ["median", "50%", "90%"]


def test_ties_are_averaged(smooth, rng):
    x = rng.permutation(np.repeat([1.0, 2.0, 5.0], 20))
    ax = plot_fan(smooth, x)
    drawn = labelled(ax, "median").get_xydata()
    means = [smooth.median()[x == value].mean() for value in (1.0, 2.0, 5.0)]
    assert_allclose(drawn, np.column_stack([[1.0, 2.0, 5.0], means]))


def test_groups_of_neighbours(smooth, rng):
    x = rng.normal(size=60)
    ax = plot_fan(smooth, x, n_groups=6)
    parts = np.argsort(x).reshape(6, 10)
    both = (x[parts], smooth.median()[parts])
    expected = np.column_stack([part.mean(axis=1) for part in both])
    drawn = labelled(ax, "median").get_xydata()
    assert_allclose(drawn[1:-1], expected)
    # The outer groups reach to the ends of x.
    assert_allclose(drawn[[0, -1], 0], [x.min(), x.max()])
    assert_allclose(drawn[[0, -1], 1], expected[[0, -1], 1])
    assert ax.get_xlabel() == "x (means of 6 groups)"


def test_neighbours_are_joined_where_they_differ_and_are_no_series(rng):
    x, dist = np.sort(rng.gamma(2.0, size=400)), many(400)
    noise = dist[rng.permutation(400)]
    days = np.datetime64("2024-01-01") + np.rint(1000 * x).astype(int)
    for forecasts, at, options, n in (
        (noise, x, {}, 22),  # 20 groups, and both ends
        (noise, x, {"n_groups": 400}, 400),
        (dist, x, {}, 400),
        (noise, np.arange(400.0), {}, 400),
        (noise, days, {}, len(np.unique(days))),
        (noise, np.arange(400) % 12, {}, 12),
        (many(2000), np.linspace(0.0, 1.0, 2000), {}, 2000),
    ):
        ax = plot_fan(forecasts, at, **options)
        assert len(labelled(ax, "median").get_xdata()) == n
        assert ax.get_xlabel() == f"x{' (means of 20 groups)' * (n == 22)}"


def test_very_many_values_are_joined():
    dist = many(2001)
    ax = plot_fan(dist, np.linspace(0.0, 1.0, 2001))
    drawn = labelled(ax, "median").get_xydata()
    assert len(drawn) == 502
    assert (drawn[[0, -1], 0] == [0.0, 1.0]).all()
    assert (np.diff(drawn[1:-1, 0]) > 0.0).all()
    # Of 2001 rows the first 500th holds those whose middle is below 4.002: four.
    assert_allclose(drawn[1, 1], dist.median()[:4].mean())


def test_a_density_without_bound_can_be_seen():
    dist = PredictiveDistribution.from_scipy(stats.chi2([1.0, 3.0]))
    x, line = curve(plot_forecast(dist, 0)[0])
    assert 3.0 < line.max() < 10.0
    inner = x > 0.1
    assert_allclose(line[inner], stats.chi2(1.0).pdf(x[inner]), rtol=0.01)
    heights = plot_forecasts(dist, scale="common").lines[1].get_ydata()
    assert (heights > 1.05).mean() > 0.1


def test_outcomes_are_dots(smooth):
    x, y = np.arange(60.0), np.sin(np.arange(60.0))
    dots = labelled(plot_fan(smooth, x, y=y), "outcome")
    assert_array_equal(dots.get_xydata(), np.column_stack([x, y]))
    x = np.linspace(0.0, 1.0, 4000)
    first, again = (
        labelled(plot_fan(many(4000), x, y=2.0 * x), "outcome").get_xydata()
        for _ in range(2)
    )
    assert_array_equal(first, again)
    assert first.shape == (3000, 2)
    assert_array_equal(first[:, 1], 2.0 * first[:, 0])


@pytest.mark.parametrize(
    "x",
    [
        DAYS,
        DAYS.astype("datetime64[ns]"),
        pd.to_datetime(DAYS),
        pd.Series(DAYS, name="day"),
        pd.Series(DAYS).dt.tz_localize("UTC"),
        pd.period_range("2024-01-01", periods=60, freq="D"),
        [date(2024, 1, 1) + timedelta(days=i) for i in range(60)],
        [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=i) for i in range(60)],
    ],
    ids=["days", "ns", "index", "series", "zoned", "period", "date", "datetime"],
)
def test_times_of_every_kind(smooth, x):
    ax = plot_fan(smooth, x, y=np.ones(60))
    drawn = labelled(ax, "median").get_xydata()
    assert_allclose(drawn[:, 0], date2num(DAYS))
    assert_array_equal(drawn[:, 1], smooth.median())
    ax.figure.canvas.draw()
    ticks = [text.get_text() for text in ax.get_xticklabels()]
    assert "Feb" in ticks
    assert ax.get_xlabel() == (getattr(x, "name", None) or "x")
