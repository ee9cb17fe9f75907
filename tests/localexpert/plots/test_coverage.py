"""What is drawn of coverage by group, read back from the artists."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from localexpert.plots import plot_coverage


@pytest.fixture
def y(smooth, rng):
    return smooth.ppf(rng.uniform(size=60))


def ticks(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def covered(y, dist, coverage=0.9):
    low, high = dist.interval(coverage).T
    return (low <= y) & (y <= high)


def test_shares_of_named_groups_are_sorted(smooth, y, labelled):
    groups = np.array(["north", "south", "west"])[np.arange(60) % 3]
    y = np.where((groups == "south") & (np.arange(60) < 30), 99.0, y)
    ax = plot_coverage(y, smooth, groups, coverage=0.7)
    hit = covered(y, smooth, 0.7)
    shares = {name: hit[groups == name].mean() for name in np.unique(groups)}
    names = sorted(shares, key=lambda name: shares[name])
    assert ticks(ax) == [f"{name} (20)" for name in names]
    assert names[0] == "south"
    drawn = labelled(ax, "covered").get_xydata()
    np.testing.assert_allclose(
        drawn, [[shares[name], i] for i, name in enumerate(names)]
    )
    assert labelled(ax, "nominal").get_xdata()[0] == 0.7


def test_bars_are_the_shares_that_a_score_test_keeps(smooth, y, labelled):
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
        assert bar[1] == pytest.approx(
            1.0 if share == 1.0 else brentq(gap, inside, 1.0), abs=1e-6
        )


def test_numbers_keep_their_order(smooth, y):
    groups = pd.Series(np.array([10.0, 2.5, 7.0])[np.arange(60) % 3], name="size")
    ax = plot_coverage(y, smooth, groups)
    assert ticks(ax) == ["2.5 (20)", "7 (20)", "10 (20)"]
    assert ax.get_ylabel() == "size"


def test_many_numbers_are_binned_by_quantiles(smooth, y, labelled):
    values = np.arange(60.0)
    ax = plot_coverage(y, smooth, values, n_bins=3)
    assert ticks(ax) == ["[0, 19.7) (20)", "[19.7, 39.3) (20)", "[39.3, 59] (20)"]
    shares = covered(y, smooth).reshape(3, 20).mean(axis=1)
    np.testing.assert_allclose(labelled(ax, "covered").get_xdata(), shares)


def test_tied_numbers_stay_together(smooth, y):
    values = np.concatenate([np.zeros(45), np.arange(1.0, 16.0)])
    ax = plot_coverage(y, smooth, values, n_bins=4)
    assert ticks(ax) == ["[0, 0.25) (45)", "[0.25, 15] (15)"]


def test_missing_numbers_are_a_group(smooth, y):
    values = np.where(np.arange(60) < 7, np.nan, np.arange(60.0) % 2)
    assert ticks(plot_coverage(y, smooth, values)) == [
        "0 (26)",
        "1 (27)",
        "missing (7)",
    ]


def test_values_that_repeat_count_by_their_share(discrete, labelled, rng):
    outcomes = discrete.ppf(rng.uniform(size=60))
    groups = np.arange(60) // 30
    ax = plot_coverage(outcomes, discrete, groups, coverage=0.5)
    upto, p = discrete.cdf(outcomes), discrete.pmf(outcomes)
    levels = upto[:, None] - p[:, None] * np.linspace(0.0, 1.0, 20_001)
    held = ((levels > 0.25) & (levels < 0.75)).mean(axis=1)
    shares = held.reshape(2, 30).mean(axis=1)
    drawn = labelled(ax, "covered").get_xdata()
    np.testing.assert_allclose(drawn, shares, atol=1e-3)
    assert (drawn < 0.9).all()  # closed intervals would hold more


def test_groups_of_near_numbers_have_different_names(smooth, y):
    groups = np.where(np.arange(60) % 2, 2019.0001, 2019.0002)
    assert ticks(plot_coverage(y, smooth, groups)) == [
        "2019.0001 (30)",
        "2019.0002 (30)",
    ]
