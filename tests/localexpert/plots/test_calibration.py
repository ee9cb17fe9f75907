"""What is drawn of PIT values and quantiles, read back from the artists."""

from math import comb

import numpy as np
import pytest

from localexpert.plots import plot_pit, plot_quantile_reliability


def least_count(n, p, level):
    """Return the least k with P(Bin(n, p) <= k) >= level, by summing."""
    held = 0.0
    for k in range(n + 1):
        held += comb(n, k) * p**k * (1.0 - p) ** (n - k)
        if held >= level:
            return k
    return n


@pytest.fixture
def y(smooth, rng):
    return smooth.ppf(rng.uniform(size=60))


class TestPit:
    def test_bars_are_shares_of_pit_values(self, smooth, y):
        ax = plot_pit(y, smooth, bins=5)
        heights = [bar.get_height() for bar in ax.patches if bar.get_width() < 0.5]
        counts = np.bincount((smooth.cdf(y) * 5).astype(int), minlength=5)
        np.testing.assert_allclose(heights, counts * 5 / 60)
        assert sum(heights) / 5 == pytest.approx(1.0)

    def test_the_band_is_binomial(self, smooth, y, labelled):
        ax = plot_pit(y, smooth, bins=8, coverage=0.9)
        band, tail = labelled(ax, "90% simultaneous band"), 0.05 / 8
        drawn = band.get_y(), band.get_y() + band.get_height()
        counts = [least_count(60, 1 / 8, level) for level in (tail, 1.0 - tail)]
        np.testing.assert_allclose(drawn, np.array(counts) * 8 / 60)

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
    def test_shares_below_quantiles(self, smooth, y, labelled):
        levels = [0.1, 0.5, 0.8]
        ax = plot_quantile_reliability(y, smooth, levels=levels)
        drawn = labelled(ax, "forecast").get_xydata()
        shares = (y[:, None] <= smooth.quantiles(levels)).mean(axis=0)
        np.testing.assert_allclose(drawn, np.column_stack([levels, shares]))

    def test_the_band_is_binomial(self, smooth, y, labelled):
        ax = plot_quantile_reliability(y, smooth, levels=[0.1, 0.5], coverage=0.8)
        corners = labelled(ax, "80% consistency band").get_paths()[0].vertices
        for level in (0.1, 0.5):
            heights = {round(h * 60, 6) for x, h in corners if x == level}
            assert heights == {least_count(60, level, q) for q in (0.1, 0.9)}
        for end in (0.0, 1.0):
            assert {h for x, h in corners if x == end} == {end}

    def test_differences(self, smooth, y, labelled, legend):
        plain, less = (
            plot_quantile_reliability(y, smooth, difference=difference)
            for difference in (False, True)
        )
        a, b = (labelled(ax, "forecast").get_xydata() for ax in (plain, less))
        np.testing.assert_allclose(a[:, 1] - a[:, 0], b[:, 1])
        np.testing.assert_array_equal(labelled(less, "calibrated").get_ydata(), 0.0)
        assert legend(plain) == legend(less)
        assert less.get_ylabel() == "Share of outcomes below, less the level"

    def test_true_forecasts_with_jumps_are_reliable(self, discrete, rng, labelled):
        dist = discrete[np.repeat(np.arange(60), 200)]
        y = dist.ppf(rng.uniform(size=12_000))
        ax = plot_quantile_reliability(y, dist, difference=True)
        gaps = labelled(ax, "forecast").get_ydata()
        # Five deviations of the share at the middle level.
        assert np.abs(gaps).max() < 5.0 * 0.5 / np.sqrt(12_000)
