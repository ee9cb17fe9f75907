"""What is drawn of several forecasts, read back from the artists."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from localexpert.plots import plot_forecasts
from tests.forecasts import beside, normal


def curves(ax):
    """Return the curves of an Axes in the order of drawing."""
    return [line for line in ax.lines if len(line.get_xdata()) > 50]


class TestOverlay:
    def test_lines_are_densities(self, smooth, legend):
        ax = plot_forecasts(smooth, [3, -1], labels=["a", 0.25])
        for line, row in zip(curves(ax), (3, 59), strict=True):
            x, height = line.get_xydata().T
            np.testing.assert_array_equal(height, smooth[row].pdf(x[:, None])[:, 0])
        assert legend(ax) == ["a", "0.25"]
        assert ax.get_ylabel() == "Density"

    def test_outcomes_are_bars_below(self, smooth):
        y = np.arange(60.0) / 10
        ax = plot_forecasts(smooth, [3, 9], y=y)
        bars = np.array(ax.collections[-1].get_segments())
        np.testing.assert_array_equal(bars[:, 0, 0], y[[3, 9]])
        assert (bars[:, :, 1] < 0.0).all()
        assert ax.get_ylim()[0] <= bars[:, :, 1].min()

    def test_stems_stand_beside_one_another(self, discrete):
        ax = plot_forecasts(discrete, [0, 30, 59])
        tops = [np.array(c.get_segments())[:, 1] for c in ax.collections]
        for stems, row in zip(tops, (0, 30, 59), strict=True):
            np.testing.assert_allclose(stems[:, 1], discrete.masses[row])
        places = np.array([stems[:, 0] for stems in tops])
        assert (np.diff(places, axis=0) > 0.0).all()
        np.testing.assert_allclose(places[1], [0.0, 1.0, 3.0], atol=1e-12)
        assert np.abs(places - places[1]).max() < 0.25
        assert ax.get_ylabel() == "Probability"

    def test_stems_beside_densities(self, mixed):
        ax = plot_forecasts(mixed, [0, 59])
        peak = max(line.get_ydata().max() for line in curves(ax))
        stems = [c for c in ax.collections if hasattr(c, "get_segments")]
        tops = [c.get_segments()[0][1, 1] for c in stems]
        np.testing.assert_allclose(tops, peak * np.array([0.1, 0.6]))
        (side,) = ax.child_axes
        ax.figure.canvas.draw()
        assert side.get_ylabel() == "Probability of a value (stem)"
        np.testing.assert_allclose(side.get_ylim(), np.array(ax.get_ylim()) / peak)
        assert not plot_forecasts(normal(np.zeros(5))).child_axes


class TestRidge:
    def test_more_than_five_are_a_ridge(self, smooth):
        ax = plot_forecasts(smooth, range(6), y=np.ones(60))
        names = [text.get_text() for text in ax.get_yticklabels()]
        assert names == [f"row {i}" for i in range(6)]
        assert ax.get_yticks().tolist() == [5, 4, 3, 2, 1, 0]
        assert len(curves(plot_forecasts(smooth, range(5), y=np.ones(60)))) == 5

    def test_rows_are_on_their_lines_and_may_be_equally_high(self, smooth):
        ax = plot_forecasts(smooth, [0, 20, 40], layout="ridge", scale="own")
        assert ax.get_ylabel() == "Density, each row on a scale of its own"
        for base, line, row in zip((2, 1, 0), curves(ax), (0, 20, 40), strict=True):
            x, height = line.get_xydata().T
            density = smooth[row].pdf(x[:, None])[:, 0]
            scaled = 1.6 * density / density.max()
            np.testing.assert_allclose(height - base, scaled, atol=1e-12)

    @pytest.mark.parametrize("scale", ["auto", "common"])
    def test_one_scale(self, smooth, scale):
        ax = plot_forecasts(smooth, [0, 20, 40], layout="ridge", scale=scale)
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
        ax = plot_forecasts(dist, layout="ridge")
        assert ax.get_ylabel() == "Density, each row on a scale of its own"
        tops = [line.get_ydata().max() for line in curves(ax)]
        np.testing.assert_allclose(tops, [2.6, 1.6])
        near = normal(np.zeros(2), [0.25, 1.0])
        ax = plot_forecasts(near, layout="ridge")
        assert ax.get_ylabel() == "Density, all rows on one scale"

    def test_rows_with_and_without_a_density(self):
        dist = beside(normal([3.0, 3.0]), [0.0], [[0.5], [1.0]], [0.01])
        ax = plot_forecasts(dist, layout="ridge")
        assert ax.get_ylabel() == "Density, all rows on one scale"

    def test_outcomes(self, smooth, labelled):
        y = np.arange(60.0) / 10
        ax = plot_forecasts(smooth, [0, 20, 40], layout="ridge", y=y)
        drawn = labelled(ax, "outcome").get_xydata()
        np.testing.assert_array_equal(drawn, [[0.0, 2.0], [2.0, 1.0], [4.0, 0.0]])

    def test_stems_end_below_the_next_row(self, discrete, mixed):
        ax = plot_forecasts(discrete, range(8), scale="own")
        assert ax.get_ylabel() == "Probability, each row on a scale of its own"
        for j, stems in enumerate(ax.collections):
            heights = np.array(stems.get_segments())[:, 1, 1] - (7 - j)
            p = discrete.masses[j]
            np.testing.assert_allclose(heights, 0.8 * p / p.max())
        ax = plot_forecasts(mixed, [59, 0], layout="ridge")
        stems = [c for c in ax.collections if hasattr(c, "get_segments")]
        tops = [c.get_segments()[0][1, 1] for c in stems]
        np.testing.assert_allclose(tops, [1.0 + 0.8 * 0.6, 0.8 * 0.1])


def test_axes_given_and_height_of_new_ones(smooth, ax):
    assert plot_forecasts(smooth, [1], ax=ax) is ax
    assert len(plt.get_fignums()) == 1
    few, many = (plot_forecasts(smooth, range(k)).figure for k in (6, 20))
    assert few.get_figheight() < many.get_figheight() < 10.0


def test_bad_input_is_named(smooth):
    with pytest.raises(ValueError, match=r"`rows` must be a vector .* got float64"):
        plot_forecasts(smooth, [0.5])
    with pytest.raises(ValueError, match="`rows` must be a vector of at least one int"):
        plot_forecasts(smooth, [])
    with pytest.raises(ValueError, match="`rows` must be less than the 60 rows"):
        plot_forecasts(smooth, [0, 99])
    with pytest.raises(
        ValueError, match="`labels` must be as long as rows, got 1 and 2"
    ):
        plot_forecasts(smooth, [0, 1], labels=["a"])
    with pytest.raises(ValueError, match="`y` must be as long as dist, got 2 and 60"):
        plot_forecasts(smooth, [0, 1], y=[1.0, 2.0])
    with pytest.raises(ValueError, match="`scale` must be one of 'auto', 'common'"):
        plot_forecasts(smooth, [0, 1], scale="log")
    with pytest.raises(ValueError, match="`layout` must be one of 'auto', 'overlay'"):
        plot_forecasts(smooth, [0, 1], layout="grid")
    assert not plt.get_fignums()
