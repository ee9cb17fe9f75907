"""Reliability diagrams, of two classes and of several; maps, ROC curves and ranks."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import ConvexHull
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score, roc_curve

from calibration import (
    CalibrationMap,
    HistogramCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    compare_methods,
    plot_calibration_map,
    plot_class_reliability,
    plot_ranks,
    plot_reliability,
    plot_roc,
    reliability_curve,
)

RNG = np.random.default_rng(0)
P = RNG.uniform(size=500)
Y = (RNG.uniform(size=500) < P**2).astype(int)
NAMES = ["setosa", "versicolor", "virginica"]
# Of three classes.
TABLE = RNG.dirichlet([2, 1, 1], size=600)
CUTS = (TABLE**1.5 / (TABLE**1.5).sum(axis=1, keepdims=True)).cumsum(axis=1)
LABELS = (RNG.uniform(size=(600, 1)) > CUTS).sum(axis=1)


def lines(ax):
    """Return the lines of an Axes by their labels."""
    return {line.get_label(): line for line in ax.lines}


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


class TestReliability:
    def test_draws_the_curve_on_the_axes_given(self, ax):
        curve = reliability_curve(Y, P)
        assert plot_reliability(curve, ax=ax) is ax
        drawn = lines(ax)["10 bins"]
        assert_array_equal(drawn.get_xdata(), curve.mean_prob)
        assert_array_equal(drawn.get_ydata(), curve.event_rate)
        diagonal = lines(ax)["calibrated"]
        assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
        assert len(plt.get_fignums()) == 1

    def test_band(self, ax):
        curve = reliability_curve(Y, P, binning="isotonic", level=0.8)
        plot_reliability(curve, ax=ax)
        (band,) = [c for c in ax.collections if "80% consistency" in c.get_label()]
        corners = band.get_paths()[0].vertices
        for x, low, high in zip(curve.mean_prob, curve.lower, curve.upper, strict=True):
            heights = corners[corners[:, 0] == x, 1]
            assert {low, high} <= set(heights.tolist())

    def test_confidence_of_bins_is_an_interval_each(self, ax):
        curve = reliability_curve(Y, P, bands="confidence", n_bins=4)
        plot_reliability(curve, ax=ax)
        segments = ax.collections[0].get_segments()
        expected = np.stack([curve.lower, curve.upper], axis=1)
        assert_array_equal([s[:, 1] for s in segments], expected)

    def test_one_forecast_has_a_band_too(self, ax):
        curve = reliability_curve(np.arange(60) % 2, np.full(60, 0.4))
        plot_reliability(curve, ax=ax)
        (line,) = ax.collections[0].get_segments()
        assert line.tolist() == [[0.4, curve.lower[0]], [0.4, curve.upper[0]]]

    def test_strip_shows_where_the_forecasts_are(self, ax):
        curve = reliability_curve([0, 1, 1], [0.11, 0.91, 0.91], binning="isotonic")
        plot_reliability(curve, ax=ax)
        heights = {bar.get_x(): bar.get_height() for bar in ax.patches}
        held = {x: h for x, h in heights.items() if h > 0.0}
        assert sorted(held) == pytest.approx([0.1, 0.9])
        assert held[max(held)] == pytest.approx(2.0 * held[min(held)])
        assert all(bar.get_y() + bar.get_height() < 0.0 for bar in ax.patches)

    def test_many_curves_have_names_colours_and_strips(self, ax):
        plot_reliability(Y, {"raw": P, "squared": P**2}, bands=None, ax=ax)
        assert legend(ax) == ["calibrated", "raw", "squared"]
        assert lines(ax)["raw"].get_color() != lines(ax)["squared"].get_color()
        assert len({bar.get_y() for bar in ax.patches}) == 2
        assert not ax.collections

    def test_very_many_points_are_thinned(self, ax, rng):
        p = rng.uniform(size=20_000)
        curve = reliability_curve(p > 0.5, p, binning="isotonic", n_resamples=2)
        plot_reliability(curve, ax=ax)
        x = lines(ax)["isotonic"].get_xdata()
        assert len(x) <= 2001
        assert (x[0], x[-1]) == (curve.mean_prob[0], curve.mean_prob[-1])
        assert np.diff(x).max() < 0.002

    def test_labels_and_probabilities(self, ax):
        plot_reliability(Y, P, n_bins=7, ax=ax)
        curve = reliability_curve(Y, P, n_bins=7)
        assert_array_equal(lines(ax)["7 bins"].get_ydata(), curve.event_rate)
        weight = np.arange(500) % 3
        both = {"one": P, "two": P**2}
        other = plot_reliability(list(Y), both, sample_weight=weight)
        two = reliability_curve(Y, P**2, sample_weight=weight)
        assert_array_equal(lines(other)["two"].get_ydata(), two.event_rate)


class TestCalibrationMap:
    def test_draws_a_fitted_calibrator(self, ax):
        platt = PlattCalibrator().fit(P, Y)
        assert plot_calibration_map(platt, ax=ax) is ax
        drawn = lines(ax)["PlattCalibrator"]
        assert_allclose(drawn.get_ydata(), platt.predict(drawn.get_xdata()))
        assert (drawn.get_xdata()[[0, -1]] == [0.0, 1.0]).all()
        assert_array_equal(lines(ax)["unchanged"].get_xydata(), [[0, 0], [1, 1]])
        assert ax.get_xlabel() == "Score"
        assert ax.get_ylabel() == "Calibrated probability"

    def test_log_odds_axis(self, ax):
        platt = PlattCalibrator().fit(P, Y)
        plot_calibration_map({"Platt": platt}, ax=ax, axis="log-odds")
        x, z = lines(ax)["Platt"].get_data()
        assert (x[0], x[-1]) == (pytest.approx(-6.0), pytest.approx(6.0))
        assert_allclose(z, logit(platt.predict(expit(x))), rtol=1e-9)
        # Platt's map is a line there.
        assert_allclose(np.diff(z, 2), 0.0, atol=1e-9)
        assert ax.get_xlabel() == "Log-odds of score"
        assert ax.get_ylabel() == "Log-odds of calibrated probability"
        assert legend(ax) == ["Platt", "unchanged"]

    def test_certain_probabilities_leave_a_gap_in_log_odds(self, ax):
        steps = CalibrationMap.step(*np.array([[0.0, 0.4, 0.6], [0.0, 0.5, 1.0]]))
        plot_calibration_map(steps, ax=ax, axis="log-odds", grid=[0.1, 0.5, 0.9])
        z = lines(ax)["CalibrationMap"].get_ydata()
        assert_array_equal(z, [np.nan, 0.0, np.nan])

    def test_scores_in_log_odds_join_probabilities(self, ax):
        both = {
            "p": PlattCalibrator().fit(P, Y),
            "z": PlattCalibrator(scale="logit").fit(logit(P), Y),
        }
        plot_calibration_map(both, ax=ax)
        x, q = lines(ax)["z"].get_data()
        assert_allclose(q, both["p"].predict(x), rtol=1e-6)
        other = plot_calibration_map(both, axis="log-odds")
        first, second = (lines(other)[name].get_xydata() for name in "pz")
        assert_allclose(first, second, rtol=1e-6, atol=1e-6)

    def test_real_scores_take_the_range_of_the_map(self, ax, rng):
        scores = rng.normal(5.0, 2.0, size=200)
        y = rng.uniform(size=200) < expit(scores - 5.0)
        isotonic = IsotonicCalibrator(scale="real").fit(scores, y)
        bins = HistogramCalibrator(5, scale="real").fit(scores, y)
        plot_calibration_map({"a": isotonic, "b": bins.map_}, ax=ax)
        x = lines(ax)["a"].get_xdata()
        assert x[0] < isotonic.map_.knots[0] < isotonic.map_.knots[-1] < x[-1]
        assert "unchanged" not in lines(ax)
        assert ax.get_xlabel() == "Score"
        other = plot_calibration_map(isotonic, grid=[2, -1, 0])
        assert_array_equal(lines(other)["IsotonicCalibrator"].get_xdata(), [-1, 0, 2])


class TestROC:
    @pytest.mark.parametrize("digits", [1, 6])
    def test_curve_and_hull(self, ax, rng, digits):
        scores = np.round(rng.uniform(size=300), digits)
        y = (rng.uniform(size=300) < 0.5 + 0.4 * np.sin(6.0 * scores)).astype(int)
        weight = rng.integers(1, 4, 300)
        assert plot_roc(scores, y, sample_weight=weight, ax=ax) is ax
        _, curve, hull = (line.get_xydata() for line in ax.lines)
        rates = roc_curve(y, scores, sample_weight=weight, drop_intermediate=False)
        assert_allclose(curve, np.column_stack(rates[:2]), atol=1e-12)
        # The upper side of the hull of all points, by another library: what lies
        # above the chord from (0, 0) to (1, 1), its ends and their corner apart.
        points = np.vstack([curve, [1.0, 0.0]])
        corners = points[np.sort(ConvexHull(points).vertices)][:-1]
        assert_allclose(hull, corners, atol=1e-12)
        # And it is the ROC curve of what isotonic regression says.
        pooled = IsotonicCalibrator().fit(scores, y, weight).predict(scores)
        x, height, _ = roc_curve(y, pooled, sample_weight=weight)
        on_hull = np.interp(x, *hull.T)
        assert_allclose(on_hull[1:], height[1:], atol=1e-12)
        areas = [roc_auc_score(y, s, sample_weight=weight) for s in (scores, pooled)]
        names = [
            f"{n}, area {a:.3f}" for n, a in zip(("ROC", "hull"), areas, strict=True)
        ]
        assert legend(ax) == ["chance", *names]

    def test_several_without_hulls_and_one_class(self, ax):
        plot_roc({"a": P, "b": -P}, Y, hull=False, ax=ax)
        names = [name.split(",")[0] for name in legend(ax)]
        assert names == ["chance", "a", "b"]
        with pytest.raises(ValueError, match="`y` must hold both classes, got 0 rows"):
            plot_roc(P, np.ones(len(P)))


LOSSES = RNG.normal([0.0, 0.1, 1.0, 2.0, 3.0], 0.5, size=(30, 5))
COMPARISON = compare_methods(LOSSES, names=["BBQ", "ENIR", "Platt", "raw", "coin"])


class TestRanks:
    def test_draws_every_method_at_its_rank(self, ax):
        assert plot_ranks(COMPARISON, ax=ax) is ax
        names = " ".join(text.get_text() for text in ax.texts)
        assert len({(t.get_ha(), t.get_position()[1]) for t in ax.texts}) == 5
        for name, rank in zip(COMPARISON.names, COMPARISON.average_ranks, strict=True):
            assert name in names
            assert any(
                line.get_xdata()[0] == rank and line.get_ydata()[0] == 0.0
                for line in ax.lines
            )
        assert ax.get_xlabel() == "Average rank (1 is best)"

    def test_bar_joins_what_is_not_different_from_the_control(self, ax):
        plot_ranks(COMPARISON, ax=ax)
        (bar,) = [line for line in ax.lines if line.get_linewidth() == 5]
        joined = COMPARISON.average_ranks[~COMPARISON.different]
        assert len(joined) == 2
        assert_array_equal(bar.get_xdata(), [joined.min(), joined.max()])
        (text,) = legend(ax)
        assert text.startswith("not different from BBQ (Holm, level 0.05; all equal:")


def test_what_cannot_be_drawn_is_named(rng):
    scores = rng.normal(size=50)
    y = rng.uniform(size=50) < expit(scores)
    real = PlattCalibrator(scale="real").fit(scores, y)
    unit = PlattCalibrator().fit(expit(scores), y)
    with pytest.raises(ValueError, match="`grid` must be given for a formula of"):
        plot_calibration_map(real)
    with pytest.raises(ValueError, match="must not mix real scores with other sc"):
        plot_calibration_map({"a": real, "b": unit})
    with pytest.raises(ValueError, match=r"`grid` must lie in \[0, 1\], got 2"):
        plot_calibration_map(unit, grid=[0.5, 2.0])
    with pytest.raises(TypeError, match="or labels beside `y_prob`, got ndarray"):
        plot_reliability(Y)
    curve = reliability_curve(Y, P)
    with pytest.raises(TypeError, match="`y_prob` must be given with labels only"):
        plot_reliability(curve, P)
    with pytest.raises(TypeError, match="`n_bins` must be given with labels only"):
        plot_reliability({"a": curve}, n_bins=3)


@pytest.mark.parametrize(
    "options", [{}, {"n_bins": 5, "binning": "width", "level": 0.5}, {"bands": None}]
)
def test_a_panel_is_the_picture_of_two_classes(options):
    panels = plot_class_reliability(LABELS, TABLE, **options)
    assert panels.shape == (3,)
    for column, ax in enumerate(panels):
        curve = reliability_curve(column == LABELS, TABLE[:, column], **options)
        drawn = lines(ax)["observed"]
        assert_array_equal(drawn.get_xdata(), curve.mean_prob)
        assert_array_equal(drawn.get_ydata(), curve.event_rate)
        alone = plot_reliability(curve)
        bands = [
            [c.get_paths()[0].vertices for c in one.collections] for one in (ax, alone)
        ]
        assert_array_equal(*bands)
        heights = [[bar.get_height() for bar in one.patches] for one in (ax, alone)]
        assert_array_equal(*heights)


def test_titles_say_class_and_share():
    weight = np.where(LABELS == 0, 0.0, 1.0)
    for labels in (LABELS, np.array(NAMES)[LABELS]):
        panels = plot_class_reliability(labels, TABLE, classes=NAMES)
        share = f"{100 * (LABELS == 1).mean():.3g}"
        assert panels[1].get_title() == f"versicolor: {share}% of rows"
    panels = plot_class_reliability(LABELS, TABLE, sample_weight=weight)
    assert panels[0].get_title() == "0: 0% of rows"
    panels = plot_class_reliability(LABELS, TABLE, classes=NAMES, shown=NAMES[::-2])
    assert [ax.get_title().partition(":")[0] for ax in panels] == NAMES[::-2]


def test_several_forecasts_have_names_and_colours():
    both = dict.fromkeys(["a", "calibrated"], TABLE)
    panels = plot_class_reliability(LABELS, both, bands=None)
    for ax in panels:
        colors = [line.get_color() for line in ax.lines if line.get_marker() == "o"]
        assert colors == ["C0", "C1"]
    (legend,) = panels[0].figure.legends
    named = [text.get_text() for text in legend.get_texts()]
    assert named == ["calibrated", "a", "calibrated"]  # the diagonal, and one's name


def test_names_of_axes_stand_at_the_edge(rng):
    y_prob = rng.dirichlet(np.ones(5), size=50)
    panels = plot_class_reliability(np.arange(50) % 5, y_prob)
    assert [bool(ax.get_ylabel()) for ax in panels] == [True, False, False, True, False]
    below = [bool(ax.get_xlabel()) for ax in panels]
    assert below == [False, False, True, True, True]


def test_what_cannot_be_drawn_of_classes_is_named(rng):
    pair = {"a": TABLE, "b": TABLE[:5]}
    with pytest.raises(ValueError, match="`y_prob` must hold forecasts of one shape"):
        plot_class_reliability(LABELS, pair)
    frame = pd.DataFrame(TABLE, columns=NAMES[::-1])
    with pytest.raises(ValueError, match="`y_prob` must have its columns in the order"):
        plot_class_reliability(LABELS, {"a": TABLE, "b": frame}, classes=NAMES)
    with pytest.raises(ValueError, match="`shown` must hold labels that `classes`"):
        plot_class_reliability(LABELS, TABLE, classes=NAMES, shown=["rose"])
    many = rng.dirichlet(np.ones(21), size=30)
    with pytest.raises(ValueError, match="1 to 20 classes, got 21 by default"):
        plot_class_reliability(np.arange(30) % 21, many)
