"""What is drawn of one forecast, read back from the artists."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from localexpert import pool
from localexpert.plots import plot_forecast
from tests.forecasts import normal, of_values


def curve(ax):
    """Return the curve of an Axes: its only line of many points."""
    (line,) = [line for line in ax.lines if len(line.get_xdata()) > 50]
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
        np.testing.assert_array_equal(height, smooth[7].pdf(x[:, None])[:, 0])
        x, level = curve(cdf)
        np.testing.assert_array_equal(level, smooth.cdf_at(x)[7])
        assert len(plt.get_fignums()) == 1
        assert density.get_xlim() == cdf.get_xlim()

    def test_the_region_is_that_of_highest_density(self, smooth, labelled):
        ax = plot_forecast(smooth, 4, what="density", coverage=0.6)
        region = corners(labelled(ax, "60% highest density"))
        np.testing.assert_allclose(region, smooth.hdi_regions(0.6)[4][0])

    def test_the_central_interval_instead(self, smooth, labelled):
        axes = plot_forecast(smooth, 4, coverage=0.6, interval="central")
        region = corners(labelled(axes[0], "60% interval"))
        np.testing.assert_allclose(region, smooth.interval(0.6)[4])

    def test_every_part_of_the_region_is_shaded(self):
        dist = pool([normal([0.0]), normal([8.0])])
        ax = plot_forecast(dist, what="density", coverage=0.5)
        regions = dist.hdi_regions(0.5)[0]
        assert len(regions) == 2
        np.testing.assert_allclose([corners(c) for c in ax.collections], regions)
        names = [text.get_text() for text in ax.get_legend().get_texts()]
        assert names.count("50% highest density") == 1

    def test_marks(self, smooth):
        density, cdf = plot_forecast(smooth, -1, y=9.0, prediction=4.0)
        expected = {"mean": smooth.mean()[-1], "outcome": 9.0, "prediction": 4.0}
        assert marks(density) == pytest.approx(expected)
        upright = [ln for ln in cdf.lines if len(ln.get_xdata()) == 2]
        assert len(upright) == 3
        assert density.get_xlim()[1] > 9.0

    def test_experts(self, smooth, labelled):
        thresholds, p = [0.0, 1.0, 2.0, 900.0], [0.1, 0.4, 0.7, 1.0]
        _, cdf = plot_forecast(smooth, 20, expert_points=(thresholds, p))
        drawn = labelled(cdf, "experts").get_xydata()
        np.testing.assert_array_equal(drawn, np.column_stack([thresholds, p])[:3])


class TestValues:
    def test_a_discrete_forecast_is_stems(self, discrete, labelled):
        density, cdf = plot_forecast(discrete, 30, coverage=0.7)
        assert density.get_ylabel() == "Probability"
        heads = labelled(density, "70% most probable")
        p = discrete.masses[30]
        np.testing.assert_allclose(heads.get_xydata(), [[0.0, p[0]], [3.0, p[2]]])
        tops = [stem[1] for stem in density.collections[0].get_segments()]
        np.testing.assert_allclose(tops, np.column_stack([[0.0, 1.0, 3.0], p]))
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
        np.testing.assert_allclose(stem, [[0.0, 0.0], [0.0, mass]])
        x, height = curve(ax)
        assert height.max() < 1.0
        np.testing.assert_allclose(
            height[x != 0.0], mixed.pdf(x[x != 0.0, None])[:, 30]
        )

    def test_one_value(self):
        axes = plot_forecast(of_values([2.0], [[1.0]]))
        axes[0].figure.canvas.draw()
        np.testing.assert_array_equal(
            axes[0].collections[0].get_segments()[0][1], [2, 1]
        )


def test_points_of_experts_are_pairs(smooth):
    with pytest.raises(ValueError, match=r"`expert_points` must have shape \(2, any\)"):
        plot_forecast(smooth, expert_points=([1.0], [0.5], [1.0]))
    with pytest.raises(ValueError, match=r"`expert_points\[1\]` must lie in \[0, 1\]"):
        plot_forecast(smooth, expert_points=([1.0], [1.5]))
