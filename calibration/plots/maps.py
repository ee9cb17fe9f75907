"""What calibrators do: curves for two classes, arrows in a triangle for three."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, softmax

from calibration._validation import (
    as_numbers,
    check_choice,
    check_integer,
    check_order,
    check_probabilities,
    check_rows,
    check_table,
    check_vector,
    plain_label,
    refuse,
)
from calibration.base.calibrators import ScoreCalibrator
from calibration.maps import CalibrationMap
from calibration.plots import canvas
from calibration.typing import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Calibrator: TypeAlias = CalibrationMap | ScoreCalibrator

_GRID_SIZE = 1001
# Log-odds shown by default. They are those of probabilities from .0025 to .9975.
_LOG_ODDS_REACH = 6.0


@canvas.picture
def plot_calibration_map(
    calibrators: Calibrator | Mapping[str, Calibrator],
    *,
    ax: Axes | None = None,
    axis: Literal["probability", "log-odds"] = "probability",
    grid: ArrayLike | None = None,
) -> Axes:
    """Draw calibrated probability as a function of the score.

    Parameters
    ----------
    calibrators : CalibrationMap or fitted calibrator, or mapping of names to them
        All must be on one kind of scale. Scores that are probabilities or log-odds can
        share a picture. Real scores cannot join them. A bare map is read as one of
        probabilities if its knots lie in [0, 1], else as one of real scores.
    ax : matplotlib Axes, optional
        Where to draw. Default: a new figure.
    axis : {"probability", "log-odds"}
        "log-odds" shows the logit of the calibrated probability against the logit of
        the score (or a real score itself). Probabilities of 0 and 1 leave a gap.
    grid : array-like of shape (n,), optional
        Scores at which maps are evaluated, each calibrator on its own scale. Default:
        the unit interval, log-odds from -6 to 6, or the range of a map's knots.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from calibration.logistic.polynomial import PlattCalibrator
    >>> from calibration.plots import plot_calibration_map
    >>> platt = PlattCalibrator().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> plot_calibration_map({"Platt": platt}, axis="log-odds").get_ylabel()
    'Log-odds of calibrated probability'
    """
    check_choice(axis, "axis", ("probability", "log-odds"))
    kinds = CalibrationMap, ScoreCalibrator
    items = canvas.read_items(calibrators, "calibrators", kinds)
    scales = {name: _scale_of(one) for name, one in items.items()}
    real = "real" in scales.values()
    if real and set(scales.values()) != {"real"}:
        refuse("calibrators", "not mix real scores with other scales", scales)
    points = [_map_points(one, scales[name], axis, grid) for name, one in items.items()]
    ax = canvas.open_axes(ax, (5.5, 5.0))
    for (x, y), (name, one) in zip(points, items.items(), strict=True):
        label = plain_label(name, canvas.LONGEST_NAME) or type(one).__name__
        ax.plot(x, y, lw=1.8, label=label)
    odds = axis == "log-odds"
    if not real:
        ends = (-_LOG_ODDS_REACH, _LOG_ODDS_REACH) if odds else (0.0, 1.0)
        ax.plot(ends, ends, label="unchanged", zorder=1, **canvas.DASHED)
    if not odds:
        ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("Score" if real or not odds else "Log-odds of score")
    ax.set_ylabel(f"{'Log-odds of c' if odds else 'C'}alibrated probability")
    return ax


def _scale_of(calibrator: Calibrator) -> str:
    """Return the scale of the scores that a calibrator takes."""
    if isinstance(calibrator, ScoreCalibrator):
        return calibrator.scale
    unit = calibrator.knots[0] >= 0.0 and calibrator.knots[-1] <= 1.0
    return "probability" if unit else "real"


def _map_points(
    calibrator: Calibrator, scale: str, axis: str, grid: ArrayLike | None
) -> tuple[Float64Array, Float64Array]:
    """Return the points that are drawn: coordinates of scores and of probabilities."""
    if grid is None:
        scores = _default_grid(calibrator, scale, axis)
    elif scale == "probability":
        scores = np.sort(check_probabilities(grid, "grid"))
    else:
        scores = np.sort(check_vector(grid, "grid"))
    ask = calibrator if isinstance(calibrator, CalibrationMap) else calibrator.predict
    calibrated = ask(scores)
    if axis == "log-odds":
        coordinates = _logit(scores) if scale == "probability" else scores
        return coordinates, _logit(calibrated)
    return (expit(scores) if scale == "logit" else scores), calibrated


def _default_grid(calibrator: Calibrator, scale: str, axis: str) -> Float64Array:
    """Return scores that show all of a map."""
    if scale != "real":
        odds = np.linspace(-_LOG_ODDS_REACH, _LOG_ODDS_REACH, _GRID_SIZE)
        if scale == "logit":
            return odds
        return expit(odds) if axis == "log-odds" else np.linspace(0, 1, _GRID_SIZE)
    knots = getattr(getattr(calibrator, "map_", calibrator), "knots", None)
    if knots is None:
        refuse("grid", "be given for a formula of real scores", None)
    # Beyond its knots a map is flat. Show a little of that.
    margin = 0.05 * (knots[-1] - knots[0]) or 1.0
    return np.linspace(knots[0] - margin, knots[-1] + margin, _GRID_SIZE)


def _logit(p: Float64Array) -> Float64Array:
    """Return log-odds of probabilities, nan (a gap in the line) at 0 and 1."""
    return np.asarray(logit(np.where((p > 0.0) & (p < 1.0), p, np.nan)))


_HEIGHT = 0.75**0.5
# A class is certain in its corner: the first left, the second right, the third on top.
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, _HEIGHT]])
# Names stand outside. Together they are no wider than the triangle.
_NAME_PLACES = (
    ((-0.03, -0.03), "left", "top"),
    ((1.03, -0.03), "right", "top"),
    ((0.5, _HEIGHT + 0.02), "center", "bottom"),
)
_COLORS = ("C0", "C1", "C2")
# Black arrows are clear on these shades.
_LIGHT = np.linspace(0.0, 0.55, 256)
# Points on a side of the shaded ground, and how far inside it the outer ones lie.
_FINE, _INSET = 90, 0.006


@canvas.picture
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

    Each point of the triangle is a forecast. The nearer it is to a corner, the more
    probable is the class there. The lines are probabilities of 25, 50 and 75 %.

    Parameters
    ----------
    calibrator : object with a method `predict`
        A fitted calibrator. ``predict(scores)`` returns probabilities (n, 3). If its
        `scale` is "logit", arrows start at the softmax of the scores.
    scores : array-like of shape (n, 3)
        Scores on the scale of the calibrator, or probabilities if it has no `scale`.
    y : array-like of shape (n,), optional
        Column numbers, or names among `classes`. They give arrows their colours.
    classes : sequence of 3 names, optional
        Names of the columns. The default is `classes_` of the calibrator, or their
        numbers.
    max_arrows : int
        Greatest number of arrows. If there are more rows, always the same random sample
        is shown.
    ax : matplotlib Axes, optional
        Where to draw. Default: a new figure.

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
    table, before = _read_scores(calibrator, scores)
    names = _name_corners(calibrator, classes)
    check_order(scores, names, "scores")
    columns = None
    if y is not None:
        columns = canvas.read_columns(y, names, len(before), "y", "scores")
    shown = canvas.sample_rows(len(before), check_integer(max_arrows, "max_arrows", 1))
    after = _predict(calibrator, table[shown])
    ax = canvas.open_axes(ax, (5.5, 5.2))
    _draw_triangle(ax, names)
    if columns is None:
        _draw_arrows(ax, before[shown], after, canvas.ink_of(ax))
        return ax
    for column, color in enumerate(_COLORS):
        rows = columns[shown] == column
        label = f"outcome {ax.texts[column].get_text()}"
        _draw_arrows(ax, before[shown][rows], after[rows], color, label=label)
    return ax


@canvas.picture
def plot_simplex_field(
    calibrator: Any,
    *,
    classes: Sequence[Any] | None = None,
    n_steps: int = 9,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the map of a calibrator of three classes as a field over the triangle.

    Arrows lead from forecasts on a grid to what the calibrator makes of them. The
    ground shows how much probability goes from some classes to others. Lines show where
    the most probable class changes.

    Parameters
    ----------
    calibrator : object with a method `predict`
        A fitted calibrator. ``predict(scores)`` takes and returns probabilities (n, 3).
        If its `scale` is "logit", it takes their logarithms.
    classes : sequence of 3 names, optional
        Names of the columns. The default is `classes_` of the calibrator, or their
        numbers.
    n_steps : int
        Number of steps between arrows along a side.
    ax : matplotlib Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Notes
    -----
    The probability that moves from p to q is :math:`\sum_j |q_j - p_j| / 2`, the
    distance of total variation.

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
    names = _name_corners(calibrator, classes)
    steps = check_integer(n_steps, "n_steps", 1)
    # The points are the centres of the small triangles of a grid with one step more.
    before, fine = _grid(steps, 1.0 / (steps + 1)), _grid(_FINE, _INSET)
    after, smooth = (
        _predict(calibrator, np.log(grid) if _takes_logits(calibrator) else grid)
        for grid in (before, fine)
    )
    ax = canvas.open_axes(ax, (5.8, 5.2))
    _draw_triangle(ax, names)
    _draw_ground(ax, fine, smooth)
    _draw_borders(ax, fine, smooth)
    # The ground is light in every style, so arrows and dots are black.
    ax.plot(*(before @ _CORNERS).T, "o", color="black", ms=2.0, mew=0.0, zorder=4)
    _draw_arrows(ax, before, after, "black")
    return ax


def _takes_logits(calibrator: Any) -> bool:
    """Return whether a calibrator takes logits. The others take probabilities."""
    return bool(getattr(calibrator, "scale", "probability") == "logit")


def _read_scores(
    calibrator: Any, scores: ArrayLike
) -> tuple[Float64Array, Float64Array]:
    """Return scores as the calibrator takes them, and scores as probabilities."""
    table = as_numbers(scores, "scores")
    if table.ndim != 2 or table.shape[1] != 3:
        rule = "have shape (n, 3), a column for each corner of a triangle"
        refuse("scores", rule, f"shape {table.shape}")
    if _takes_logits(calibrator):
        return table, softmax(check_table(table, "scores"), axis=1)
    return table, check_rows(table, "scores")


def _name_corners(calibrator: Any, classes: Sequence[Any] | None) -> list[Any]:
    """Return names of three classes: the given ones, the calibrator's, or numbers."""
    labels = getattr(calibrator, "classes_", None)
    if labels is not None and len(labels) != 3:
        refuse("calibrator", "be one of three classes", f"{len(labels)} classes")
    return canvas.read_names(labels if classes is None else classes, 3)


def _predict(calibrator: Any, table: Float64Array) -> Float64Array:
    """Return the calibrated probabilities. There must be a row for each row."""
    if not callable(getattr(calibrator, "predict", None)):
        rule = "have a method predict(scores)"
        refuse("calibrator", rule, type(calibrator).__name__, TypeError)
    after = check_rows(calibrator.predict(table), "calibrator.predict(scores)")
    if after.shape != table.shape:
        rule = f"have the shape of its scores, {table.shape}"
        refuse("calibrator.predict(scores)", rule, f"shape {after.shape}")
    return after


def _grid(n_steps: int, inset: float) -> Float64Array:
    """Return a triangular grid of probabilities, shape ((m + 1) (m + 2) / 2, 3).

    m is `n_steps`. The outer points lie inside by `inset` / 3. A probability of 0 has
    no logit, and a map may treat it as a case of its own.
    """
    left, right = np.indices((n_steps + 1, n_steps + 1)).reshape(2, -1)
    steps = np.column_stack([left, right, n_steps - left - right])
    steps = steps[steps[:, 2] >= 0]
    return (1.0 - inset) * steps / n_steps + inset / 3.0


def _draw_triangle(ax: Axes, names: Sequence[Any]) -> None:
    """Draw the frame, faint lines of equal probability, and names at the corners."""
    faint: dict[str, Any] = {"color": canvas.GREY, "lw": 0.6, "alpha": 0.4}
    for corner in range(3):
        before, after = (corner + 1) % 3, (corner + 2) % 3
        for share in (0.25, 0.5, 0.75):
            ends = share * _CORNERS[corner] + (1.0 - share) * _CORNERS[[before, after]]
            ax.plot(*ends.T, zorder=0.5, **faint)
    ax.plot(*_CORNERS[[0, 1, 2, 0]].T, color=canvas.ink_of(ax), lw=1.0, zorder=3)
    for name, color, (place, ha, va) in zip(names, _COLORS, _NAME_PLACES, strict=True):
        text = plain_label(name, canvas.LONGEST_NAME)
        ax.text(*place, text, ha=ha, va=va, color=color, fontweight="bold")
    ax.set(xlim=(-0.04, 1.04), ylim=(-0.1, _HEIGHT + 0.08), aspect="equal")
    ax.set_axis_off()


def _draw_arrows(
    ax: Axes, before: Float64Array, after: Float64Array, color: Any, **looks: Any
) -> None:
    """Draw an arrow for each row, to scale: its head is where the row has come to."""
    start, end = before @ _CORNERS, after @ _CORNERS
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
    # Draw pixels in vector formats too, because thousands of triangles are slow to
    # show.
    colors = ListedColormap(colormaps["Blues"](_LIGHT))
    looks: dict[str, Any] = {"cmap": colors, "vmin": 0.0, "vmax": top, "zorder": 0}
    looks |= {"shading": "gouraud", "rasterized": True}
    x, y = (before @ _CORNERS).T
    shade = ax.tripcolor(x, y, moved, **looks)
    ax.figure.colorbar(shade, ax=ax, label="Probability moved", shrink=0.7)


def _draw_borders(ax: Axes, before: Float64Array, after: Float64Array) -> None:
    """Draw where the most probable class changes, before and after calibration."""
    halves = (1.0 - np.eye(3)) / 2.0
    middle = np.full(3, 1.0 / 3.0)
    label = "equal chances before calibration"
    for half in halves:
        ends = np.array([middle, half]) @ _CORNERS
        ax.plot(*ends.T, "--", color=canvas.GREY, lw=1.3, zorder=2, label=label)
        label = ""  # one line in the legend is enough for all three
    x, y = (before @ _CORNERS).T
    looks: dict[str, Any] = {"colors": "C3", "linewidths": 1.3, "zorder": 2}
    # Every border of the third class is also one of the first or the second.
    for column in (0, 1):
        lead = after[:, column] - np.delete(after, column, axis=1).max(axis=1)
        if lead.min() < 0.0 < lead.max():
            ax.tricontour(x, y, lead, [0.0], **looks)
    ax.plot([], [], color="C3", lw=1.3, label="equal chances after calibration")
