"""What a calibrator of three classes does, in the triangle of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import (
    check_ax,
    check_integer,
)
from calibration.plots.canvas import GREY, new_axes, put_legend_above
from calibration.plots.class_labels import read_columns
from calibration.plots.three_classes import as_scores, predict_rows, read_scores
from calibration.plots.triangle import (
    CLASS_COLORS,
    draw_triangle,
    grid_probabilities,
    name_corners,
    to_plane,
)
from calibration.typing import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Draws of the rows that are shown have a stream that no data was drawn from.
_STREAM = 54_881
# Shades that black arrows stand out from.
_LIGHT = np.linspace(0.0, 0.55, 256)
# Points on a side of the shaded ground, and how far inside the outer ones lie.
_FINE, _INSET = 90, 0.006


def plot_simplex(
    calibrator: Any,
    scores: ArrayLike,
    y: ArrayLike | None = None,
    *,
    classes: Sequence[Any] | None = None,
    max_arrows: int = 150,
    ax: Axes | None = None,
) -> Axes:
    """Draw arrows from the scores of three classes to the calibrated probabilities.

    Each point of the triangle is a forecast: the nearer to a corner, the more probable
    its class; the lines are probabilities of 25, 50 and 75 %.

    Parameters
    ----------
    calibrator : object with a method `predict`
        Fitted; ``predict(scores)`` returns probabilities (n, 3). If its `scale` is
        "logit", arrows start at the softmax of the scores.
    scores : array-like of shape (n, 3)
        Scores on the scale of the calibrator, else probabilities.
    y : array-like of shape (n,), optional
        Column numbers, or names among `classes`: they colour the arrows.
    classes : sequence of 3 names, optional
        Of the columns; default `classes_` of the calibrator, or their numbers.
    max_arrows : int
        Of more rows the same random sample is shown each time.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from calibration import SoftmaxCalibrator
    >>> from calibration.plots import plot_simplex
    >>> scores = [[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6], [0.2, 0.6, 0.2]]
    >>> y = ["a", "b", "c", "a"]
    >>> softmax = SoftmaxCalibrator("temperature", classes=["a", "b", "c"])
    >>> ax = plot_simplex(softmax.fit(scores, y), scores, y)
    >>> [text.get_text() for text in ax.texts]
    ['a', 'b', 'c']
    """
    check_ax(ax)
    names = name_corners(calibrator, classes)
    table, before = read_scores(calibrator, scores)
    columns = None
    if y is not None:
        columns = read_columns(y, names, len(before), "y", "scores")
    shown = _sample(len(before), check_integer(max_arrows, "max_arrows", 1))
    after = predict_rows(calibrator, table[shown])
    ax = new_axes((5.5, 5.2)) if ax is None else ax
    draw_triangle(ax, names)
    if columns is None:
        _draw_arrows(ax, before[shown], after, ax.xaxis.label.get_color())
        return ax
    for column, color in enumerate(CLASS_COLORS):
        rows = columns[shown] == column
        label = f"outcome {ax.texts[column].get_text()}"
        _draw_arrows(ax, before[shown][rows], after[rows], color, label=label)
    put_legend_above(ax)
    return ax


def plot_simplex_field(
    calibrator: Any,
    *,
    classes: Sequence[Any] | None = None,
    n_steps: int = 9,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the map of a calibrator of three classes as a field over the triangle.

    Arrows lead from forecasts on a grid to what the calibrator makes of them. The
    ground says how much probability goes from some classes to others, and lines where
    the most probable class changes.

    Parameters
    ----------
    calibrator : object with a method `predict`
        Fitted; ``predict(scores)`` takes and returns probabilities (n, 3). If its
        `scale` is "logit", it takes their logarithms.
    classes : sequence of 3 names, optional
        Of the columns; default `classes_` of the calibrator, or their numbers.
    n_steps : int
        Steps between arrows along a side.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Notes
    -----
    The probability moved from p to q is :math:`\sum_j |q_j - p_j| / 2`, the distance
    of total variation.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import SoftmaxCalibrator
    >>> from calibration.plots import plot_simplex_field
    >>> scores = np.random.default_rng(0).dirichlet([1, 1, 1], size=30)
    >>> softmax = SoftmaxCalibrator("temperature").fit(scores, np.arange(30) % 3)
    >>> [text.get_text() for text in plot_simplex_field(softmax).texts]
    ['0', '1', '2']
    """
    check_ax(ax)
    names = name_corners(calibrator, classes)
    steps = check_integer(n_steps, "n_steps", 1)
    # The points are the centres of the small triangles of a grid of one step more.
    before = grid_probabilities(steps, 1.0 / (steps + 1))
    after = predict_rows(calibrator, as_scores(calibrator, before))
    fine = grid_probabilities(_FINE, _INSET)
    smooth = predict_rows(calibrator, as_scores(calibrator, fine))
    ax = new_axes((5.8, 5.2)) if ax is None else ax
    draw_triangle(ax, names)
    _draw_ground(ax, fine, smooth)
    _draw_borders(ax, fine, smooth)
    # The ground is light whatever the style is.
    ax.plot(*to_plane(before).T, "o", color="black", ms=2.0, mew=0.0, zorder=4)
    _draw_arrows(ax, before, after, "black")
    put_legend_above(ax)
    return ax


def _sample(n: int, most: int) -> Any:
    """Return all of n rows in order, or of more than `most` always the same sample."""
    if n <= most:
        return np.arange(n)
    chosen = np.random.default_rng([0, _STREAM]).choice(n, most, replace=False)
    return np.sort(chosen)


def _draw_arrows(
    ax: Axes, before: Float64Array, after: Float64Array, color: Any, **looks: Any
) -> None:
    """Draw an arrow for each row, to scale: its head is where the row has come to."""
    start, end = to_plane(before), to_plane(after)
    scale: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1.0}
    shape: dict[str, Any] = {"width": 0.0035, "headwidth": 4.2, "headlength": 5.0}
    shape |= {"headaxislength": 4.4, "minlength": 0.5, "zorder": 4, "alpha": 0.8}
    ax.quiver(*start.T, *(end - start).T, color=color, **scale, **shape, **looks)


def _draw_ground(ax: Axes, before: Float64Array, after: Float64Array) -> None:
    """Shade the triangle by the probability that is moved, with a scale beside it."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    moved = 0.5 * np.abs(after - before).sum(axis=1)
    top = max(float(moved.max()), 1e-3)
    # Pixels in vector formats, too: thousands of triangles are slow to show.
    x, y = to_plane(before).T
    shade = ax.tripcolor(
        x,
        y,
        moved,
        shading="gouraud",
        cmap=ListedColormap(colormaps["Blues"](_LIGHT)),
        vmin=0.0,
        vmax=top,
        rasterized=True,
    )
    shade.set_zorder(0)
    ax.figure.colorbar(shade, ax=ax, label="Probability moved", shrink=0.7)


def _draw_borders(ax: Axes, before: Float64Array, after: Float64Array) -> None:
    """Draw where the most probable class changes, before and after calibration."""
    halves = (1.0 - np.eye(3)) / 2.0
    middle = np.full(3, 1.0 / 3.0)
    label = "equal chances before calibration"
    for half in halves:
        ends = to_plane(np.array([middle, half]))
        ax.plot(*ends.T, "--", color=GREY, lw=1.3, zorder=2, label=label)
        label = ""  # one line in the legend stands for all three
    x, y = to_plane(before).T
    looks: dict[str, Any] = {"colors": "C3", "linewidths": 1.3, "zorder": 2}
    # A border of the third class is one of the first or the second.
    for column in (0, 1):
        lead = after[:, column] - np.delete(after, column, axis=1).max(axis=1)
        if lead.min() < 0.0 < lead.max():
            ax.tricontour(x, y, lead, [0.0], **looks)
    ax.plot([], [], color="C3", lw=1.3, label="equal chances after calibration")
