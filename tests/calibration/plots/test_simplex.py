from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import TriMesh
from matplotlib.quiver import Quiver
from scipy.special import softmax

import calibration

NAMES = ["setosa", "versicolor", "virginica"]
TOP = (0.5, 0.75**0.5)


def to_plane(p):
    """Return places in the triangle: the first left, the second right, then on top."""
    return np.asarray(p) @ [[0.0, 0.0], [1.0, 0.0], TOP]


def grid_probabilities(steps, inset):
    """Return a triangular grid that lies inside by a third of `inset`."""
    grid = [(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1)]
    inside = np.array([point for point in grid if point[2] >= 0]) / steps
    return (1.0 - inset) * inside + inset / 3.0


class Sharpened:
    """A map made by hand: nothing but `predict`."""

    def predict(self, scores):
        powers = np.asarray(scores) ** [2.0, 1.0, 0.5]
        return powers / powers.sum(axis=1, keepdims=True)


class Flat:
    """A map of logits."""

    scale = "logit"

    def predict(self, scores):
        assert np.isfinite(scores).all()
        return softmax(0.5 * np.asarray(scores), axis=1)


NOTHING = SimpleNamespace(predict=np.asarray)
CONSTANT = SimpleNamespace(predict=lambda t: np.tile([0.5, 0.3, 0.2], (len(t), 1)))


def always(answer):
    """Return what gives the same answer, whatever was asked."""
    return SimpleNamespace(predict=lambda _: answer)


SCORES = np.random.default_rng(0).dirichlet([1, 1, 1], size=40)


def arrows(ax):
    """Return starts and heads of the arrows of each set."""
    sets = [one for one in ax.collections if isinstance(one, Quiver)]
    for one in sets:  # drawn to scale
        assert (one.angles, one.scale_units, one.scale) == ("xy", "xy", 1.0)
    return [(one.XY.copy(), one.XY + np.column_stack([one.U, one.V])) for one in sets]


def corner_names(ax):
    return [text.get_text() for text in ax.texts]


class TestArrows:
    @pytest.mark.parametrize("calibrator", [Sharpened(), Flat()])
    def test_lead_from_scores_to_predictions(self, ax, calibrator):
        given = np.log(SCORES) + 7.0 if isinstance(calibrator, Flat) else SCORES
        assert calibration.plot_simplex(calibrator, given, ax=ax) is ax
        ((start, head),) = arrows(ax)
        np.testing.assert_allclose(start, to_plane(SCORES))
        np.testing.assert_allclose(head, to_plane(calibrator.predict(given)))
        assert ax.get_legend() is None
        assert len(plt.get_fignums()) == 1

    def test_names_stand_outside_their_corners(self, ax):
        calibration.plot_simplex(Sharpened(), np.eye(3), ax=ax, classes=NAMES)
        assert corner_names(ax) == NAMES
        left, right, top = (text.get_position() for text in ax.texts)
        assert left[0] < 0
        assert right[0] > 1
        assert max(left[1], right[1]) < 0 < TOP[1] < top[1]
        colors = [text.get_color() for text in ax.texts]
        assert colors == ["C0", "C1", "C2"]

    @pytest.mark.parametrize("named", [False, True])
    def test_outcomes_colour_the_arrows(self, ax, named):
        y = np.arange(40) % 3
        labels = np.array(NAMES)[y] if named else y
        calibration.plot_simplex(Sharpened(), SCORES, labels, classes=NAMES, ax=ax)
        for column, (start, _) in enumerate(arrows(ax)):
            np.testing.assert_allclose(start, to_plane(SCORES[y == column]))
        legend = [text.get_text() for text in ax.get_legend().get_texts()]
        assert legend == [f"outcome {name}" for name in NAMES]


class TestField:
    @pytest.mark.parametrize("calibrator", [Sharpened(), Flat(), NOTHING, CONSTANT])
    def test_arrows_are_the_map(self, ax, calibrator):
        assert calibration.plot_simplex_field(calibrator, n_steps=4, ax=ax) is ax
        ((start, head),) = arrows(ax)
        grid = grid_probabilities(4, 1 / 5)
        scores = np.log(grid) if isinstance(calibrator, Flat) else grid
        np.testing.assert_allclose(start, to_plane(grid))
        np.testing.assert_allclose(head, to_plane(calibrator.predict(scores)))
        ax.figure.canvas.draw()

    def test_ground_is_the_distance_of_total_variation(self, ax):
        calibration.plot_simplex_field(Sharpened(), ax=ax)
        (ground,) = [c for c in ax.collections if isinstance(c, TriMesh)]
        shown = ground.get_array()
        grid = grid_probabilities(90, 0.006)
        moved = np.maximum(Sharpened().predict(grid) - grid, 0.0).sum(axis=1)
        np.testing.assert_allclose(shown, moved, atol=1e-12)
        assert ground.get_clim() == (0.0, pytest.approx(moved.max()))

    def test_borders_lie_where_two_classes_are_equal(self, ax):
        calibration.plot_simplex_field(Sharpened(), ax=ax)
        lines = [c for c in ax.collections if c.get_zorder() == 2]
        points = np.concatenate([p.vertices for c in lines for p in c.get_paths()])
        corners = np.column_stack([to_plane(np.eye(3)), np.ones(3)])
        ends = np.column_stack([points, np.ones(len(points))])
        chances = ends @ np.linalg.inv(corners)
        ordered = np.sort(Sharpened().predict(chances), axis=1)
        np.testing.assert_allclose(ordered[:, 1], ordered[:, 2], atol=0.01)
        assert len(points) > 100
        (before,) = [n for n in ax.lines if n.get_label().startswith("equal chances b")]
        np.testing.assert_allclose(
            before.get_xydata(), to_plane(np.array([[1 / 3] * 3, [0.0, 0.5, 0.5]]))
        )
        legend = [text.get_text() for text in ax.get_legend().get_texts()]
        wanted = ["equal chances before calibration", "equal chances after calibration"]
        assert legend == wanted


class TestBadInput:
    @pytest.mark.parametrize("k", [2, 4])
    def test_other_numbers_of_classes(self, rng, k):
        table = rng.dirichlet(np.ones(k), size=40)
        fitted = calibration.IdentityCalibrator().fit(table, np.arange(40) % k)
        message = rf"`scores` must have shape \(n, 3\).*got shape \(40, {k}\)"
        with pytest.raises(ValueError, match=message):
            calibration.plot_simplex(fitted, table)
        message = f"`calibrator` must be one of three classes, got {k} classes"
        with pytest.raises(ValueError, match=message):
            calibration.plot_simplex_field(fitted)

    def test_columns_in_another_order(self):
        frame = pd.DataFrame(SCORES, columns=list("bac"))
        with pytest.raises(ValueError, match="`scores` must have its columns in the"):
            calibration.plot_simplex(Sharpened(), frame, classes=list("abc"))

    def test_what_predict_returns(self):
        message = r"`calibrator.predict\(scores\)` must have"
        with pytest.raises(ValueError, match=f"{message} rows that sum to 1"):
            calibration.plot_simplex(always(np.ones((40, 3)) / 2), SCORES)
        with pytest.raises(ValueError, match=f"{message} the shape of its scores"):
            calibration.plot_simplex(always(np.eye(3)), SCORES)
