"""What is drawn of forecasts over a variable, read back from the artists."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from matplotlib.dates import date2num

from localexpert import plot_fan

DAYS = np.datetime64("2024-01-01") + np.arange(60)


def edges(band):
    """Return x, lower and upper edge (k,) of a shaded band."""
    corners = band.get_paths()[0].vertices
    k = (len(corners) - 3) // 2
    return corners[1 : k + 1, 0], corners[1 : k + 1, 1], corners[k + 2 : -1, 1][::-1]


def test_median_and_bands_are_quantiles(smooth, labelled, legend, rng):
    x = rng.permutation(np.arange(60.0))
    order = np.argsort(x)
    ax = plot_fan(smooth, x, coverages=[0.9, 0.5])
    median = labelled(ax, "median")
    np.testing.assert_array_equal(median.get_xdata(), x[order])
    np.testing.assert_array_equal(median.get_ydata(), smooth.median()[order])
    for coverage, label in ((0.5, "50%"), (0.9, "90%")):
        at, low, high = edges(labelled(ax, label))
        np.testing.assert_array_equal(at, x[order])
        expected = smooth.interval(coverage)[order]
        np.testing.assert_allclose(np.column_stack([low, high]), expected)
    assert legend(ax) == ["median", "50%", "90%"]


def test_ties_are_averaged(smooth, labelled, rng):
    x = rng.permutation(np.repeat([1.0, 2.0, 5.0], 20))
    ax = plot_fan(smooth, x)
    drawn = labelled(ax, "median").get_xydata()
    means = [smooth.median()[x == value].mean() for value in (1.0, 2.0, 5.0)]
    np.testing.assert_allclose(drawn, np.column_stack([[1.0, 2.0, 5.0], means]))


def test_groups_of_neighbours(smooth, labelled, rng):
    x = rng.normal(size=60)
    ax = plot_fan(smooth, x, n_groups=6)
    parts = np.argsort(x).reshape(6, 10)
    expected = np.column_stack(
        [x[parts].mean(axis=1), smooth.median()[parts].mean(axis=1)]
    )
    drawn = labelled(ax, "median").get_xydata()
    np.testing.assert_allclose(drawn[1:-1], expected)
    # The outer groups reach to the ends of x.
    np.testing.assert_allclose(drawn[[0, -1], 0], [x.min(), x.max()])
    np.testing.assert_allclose(drawn[[0, -1], 1], expected[[0, -1], 1])
    assert ax.get_xlabel() == "x (means of 6 groups)"


def test_groups_are_found_where_neighbours_differ(many, labelled, rng):
    x = rng.gamma(2.0, size=400)
    dist = many(400)[rng.permutation(400)]
    ax = plot_fan(dist, x)
    assert ax.get_xlabel() == "x (means of 20 groups)"
    assert len(labelled(ax, "median").get_xdata()) == 22
    # As many groups as values are none.
    assert len(labelled(plot_fan(dist, x, n_groups=400), "median").get_xdata()) == 400


def test_what_is_a_curve_is_not_joined(many, labelled, rng):
    dist = many(400)
    x = np.sort(rng.gamma(2.0, size=400))
    assert len(labelled(plot_fan(dist, x), "median").get_xdata()) == 400
    noise = dist[rng.permutation(400)]
    series = np.arange(400.0)
    assert len(labelled(plot_fan(noise, series), "median").get_xdata()) == 400
    days = np.datetime64("2024-01-01") + np.rint(1000 * x).astype(int)
    every = len(np.unique(days))
    assert len(labelled(plot_fan(noise, days), "median").get_xdata()) == every
    few = np.arange(400) % 12
    ax = plot_fan(noise, few)
    assert ax.get_xlabel() == "x"
    assert len(labelled(ax, "median").get_xdata()) == 12


def test_groups_never_part_equal_values(smooth, labelled):
    x = np.repeat([1.0, 2.0], [50, 10])
    drawn = labelled(plot_fan(smooth, x, n_groups=5), "median").get_xdata()
    assert drawn.tolist() == [1.0, 2.0]


def test_very_many_values_are_joined(many, labelled):
    x = np.linspace(0.0, 1.0, 2001)
    assert len(labelled(plot_fan(many(2000), x[:2000]), "median").get_xdata()) == 2000
    dist = many(2001)
    drawn = labelled(plot_fan(dist, x), "median").get_xydata()
    assert len(drawn) == 502
    assert (drawn[[0, -1], 0] == [0.0, 1.0]).all()
    drawn = drawn[1:-1]
    assert (np.diff(drawn[:, 0]) > 0.0).all()
    # Of 2001 rows the first 500th holds those whose middle is below 4.002: four.
    np.testing.assert_allclose(drawn[0, 1], dist.median()[:4].mean())


def test_outcomes_are_dots(smooth, many, labelled):
    x, y = np.arange(60.0), np.sin(np.arange(60.0))
    dots = labelled(plot_fan(smooth, x, y=y), "outcome")
    np.testing.assert_array_equal(dots.get_xydata(), np.column_stack([x, y]))
    x = np.linspace(0.0, 1.0, 4000)
    first, again = (
        labelled(plot_fan(many(4000), x, y=2.0 * x), "outcome").get_xydata()
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)
    assert first.shape == (3000, 2)
    np.testing.assert_array_equal(first[:, 1], 2.0 * first[:, 0])


@pytest.mark.parametrize(
    "x",
    [
        DAYS,
        DAYS.astype("datetime64[ns]"),
        pd.to_datetime(DAYS),
        pd.Series(DAYS, name="day"),
        pd.Series(DAYS).dt.tz_localize("UTC"),
        [date(2024, 1, 1) + timedelta(days=i) for i in range(60)],
        [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=i) for i in range(60)],
    ],
    ids=["days", "ns", "index", "series", "zoned", "date", "datetime"],
)
def test_times_of_every_kind(smooth, labelled, x):
    ax = plot_fan(smooth, x, y=np.ones(60))
    drawn = labelled(ax, "median").get_xydata()
    np.testing.assert_allclose(drawn[:, 0], date2num(DAYS))
    np.testing.assert_array_equal(drawn[:, 1], smooth.median())
    ax.figure.canvas.draw()
    ticks = [text.get_text() for text in ax.get_xticklabels()]
    assert "Feb" in ticks
    assert ax.get_xlabel() == (getattr(x, "name", None) or "x")


def test_zones_are_drawn_in_utc(smooth, labelled):
    zone = timezone(timedelta(hours=12))
    x = [datetime(2024, 1, 1, 12, tzinfo=zone) + timedelta(days=i) for i in range(60)]
    drawn = labelled(plot_fan(smooth, x), "median").get_xydata()
    np.testing.assert_allclose(drawn[:, 0], date2num(DAYS))
