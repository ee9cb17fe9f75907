"""The triangle of all probabilities of three classes: points, grids of them, its frame.

The height of a point over a side is the probability of the class opposite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration._validation import plain_label
from calibration.plots.canvas import GREY, LONGEST_NAME
from calibration.plots.class_labels import read_names
from calibration.typing import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 0.75**0.5
# Where a class is certain: the first left, the second right, the third on top.
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, _HEIGHT]])
# Where names stand: outside, and no wider than the triangle together.
_NAME_PLACES = (
    ((-0.03, -0.03), "left", "top"),
    ((1.03, -0.03), "right", "top"),
    ((0.5, _HEIGHT + 0.02), "center", "bottom"),
)
_GRID = (0.25, 0.5, 0.75)
# Colours of the classes in every picture of them.
CLASS_COLORS = ("C0", "C1", "C2")


def to_plane(probabilities: Float64Array) -> Float64Array:
    """Return where probabilities (n, 3) lie in the triangle, shape (n, 2)."""
    places: Float64Array = probabilities @ _CORNERS
    return places


def grid_probabilities(n_steps: int, inset: float) -> Float64Array:
    """Return a triangular grid of probabilities, shape ((m + 1) (m + 2) / 2, 3).

    m is `n_steps`. The outer points lie inside by `inset` / 3, for a map may treat a
    probability of 0 as a case of its own, and it has no logit.
    """
    first, second = np.meshgrid(np.arange(n_steps + 1), np.arange(n_steps + 1))
    inside = first + second <= n_steps
    left, right = first[inside], second[inside]
    steps = np.column_stack([left, right, n_steps - left - right])
    return (1.0 - inset) * steps / n_steps + inset / 3.0


def name_corners(calibrator: Any, classes: Sequence[Any] | None) -> list[Any]:
    """Return the names of three classes: those given, the calibrator's, or numbers."""
    if classes is None:
        classes = getattr(calibrator, "classes_", None)
    return read_names(classes, 3)


def draw_triangle(ax: Axes, names: Sequence[Any]) -> None:
    """Draw the frame, faint lines of equal probability, and names at the corners."""
    faint: dict[str, Any] = {"color": GREY, "lw": 0.6, "alpha": 0.4, "zorder": 0.5}
    for corner in range(3):
        before, after = (corner + 1) % 3, (corner + 2) % 3
        for share in _GRID:
            ends = share * _CORNERS[corner] + (1.0 - share) * _CORNERS[[before, after]]
            ax.plot(*ends.T, **faint)
    ink = ax.xaxis.label.get_color()
    ax.plot(*_CORNERS[[0, 1, 2, 0]].T, color=ink, lw=1.0, zorder=3)
    looks = zip(names, CLASS_COLORS, _NAME_PLACES, strict=True)
    for name, color, (place, ha, va) in looks:
        text = plain_label(name, LONGEST_NAME)
        ax.text(*place, text, ha=ha, va=va, color=color, fontweight="bold")
    ax.set(xlim=(-0.04, 1.04), ylim=(-0.1, _HEIGHT + 0.08), aspect="equal")
    ax.set_axis_off()
