"""What is drawn of several forecasts, read back from the artists."""

import numpy as np
import pytest

from localexpert.plots import plot_forecasts
from tests.forecasts import beside, normal


def curves(ax):
    """Return the curves of an Axes in the order of drawing."""
    return [line for line in ax.lines if len(line.get_xdata()) > 50]


class TestRidge:
    def test_rows_are_on_their_lines_and_may_be_equally_high(self, smooth):
        ax = plot_forecasts(smooth, [0, 20, 40], scale="own")
        assert ax.get_ylabel() == "Density, each row on a scale of its own"
        for base, line, row in zip((2, 1, 0), curves(ax), (0, 20, 40), strict=True):
            x, height = line.get_xydata().T
            density = smooth[row].pdf(x[:, None])[:, 0]
            scaled = 1.6 * density / density.max()
            np.testing.assert_allclose(height - base, scaled, atol=1e-12)

    @pytest.mark.parametrize("scale", ["auto", "common"])
    def test_one_scale(self, smooth, scale):
        ax = plot_forecasts(smooth, [0, 20, 40], scale=scale)
        assert ax.get_ylabel() == "Density, all rows on one scale"
        heights = [
            line.get_ydata().max() - base
            for base, line in zip((2, 1, 0), curves(ax), strict=True)
        ]
        law = [smooth[row].pdf(smooth[row].ppf([0.5])).item() for row in (0, 20, 40)]
        np.testing.assert_allclose(heights[0], 1.6)
        ratio = np.array(heights) / heights[0]
        np.testing.assert_allclose(ratio, np.array(law) / law[0], rtol=0.01)

    def test_rows_of_very_unlike_heights_have_their_own_scales(self):
        dist = normal(np.zeros(2), [0.1, 1.0])
        ax = plot_forecasts(dist)
        assert ax.get_ylabel() == "Density, each row on a scale of its own"
        tops = [line.get_ydata().max() for line in curves(ax)]
        np.testing.assert_allclose(tops, [2.6, 1.6])
        near = normal(np.zeros(2), [0.25, 1.0])
        ax = plot_forecasts(near)
        assert ax.get_ylabel() == "Density, all rows on one scale"

    def test_rows_with_and_without_a_density(self):
        dist = beside(normal([3.0, 3.0]), [0.0], [[0.5], [1.0]], [0.01])
        ax = plot_forecasts(dist)
        assert ax.get_ylabel() == "Density, all rows on one scale"

    def test_outcomes(self, smooth, labelled):
        y = np.arange(60.0) / 10
        ax = plot_forecasts(smooth, [0, 20, 40], y=y)
        drawn = labelled(ax, "outcome").get_xydata()
        np.testing.assert_array_equal(drawn, [[0.0, 2.0], [2.0, 1.0], [4.0, 0.0]])

    def test_stems_end_below_the_next_row(self, discrete, mixed):
        ax = plot_forecasts(discrete, range(8), scale="own")
        assert ax.get_ylabel() == "Probability, each row on a scale of its own"
        for j, stems in enumerate(ax.collections):
            heights = np.array(stems.get_segments())[:, 1, 1] - (7 - j)
            p = discrete.masses[j]
            np.testing.assert_allclose(heights, 0.8 * p / p.max())
        ax = plot_forecasts(mixed, [59, 0])
        stems = [c for c in ax.collections if hasattr(c, "get_segments")]
        tops = [c.get_segments()[0][1, 1] for c in stems]
        np.testing.assert_allclose(tops, [1.0 + 0.8 * 0.6, 0.8 * 0.1])
