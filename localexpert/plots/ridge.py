"""Pictures of several forecasts side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import check_ax, check_choice
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.plots.canvas import (
    GREY,
    SIZE,
    check_dist,
    check_labels,
    check_outcomes,
    check_row,
    ink_of,
    name_target,
    new_axes,
    put_legend_above,
    shades,
)
from localexpert.plots.shape import ForecastShape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More densities than this in one place cannot be told apart.
_MOST_OVERLAID = 5
# A row of a ridge reaches this far up into the rows above it.
_OVERLAP = 1.6
# Stems that did would be taken for stems of the next row.
_STEM = 0.8
# Rows on one scale may be so many times as high as the lowest.
_MOST_RATIO = 5.0
# Stems of several rows at one value stand apart by this share of the picture at most.
_STEP = 0.012
# Rows drawn where none are named.
_MOST_UNASKED = 12
_LEAST_ROOM, _MOST_HEIGHT = 0.34, 14.0


def plot_forecasts(
    dist: PredictiveDistribution,
    rows: ArrayLike | None = None,
    *,
    labels: Sequence[Any] | None = None,
    y: ArrayLike | None = None,
    layout: Literal["auto", "overlay", "ridge"] = "auto",
    scale: Literal["auto", "common", "own"] = "auto",
    target_name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the densities of several forecasts in one picture.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    rows : array-like of k int, optional
        Rows to draw, the first on top; default all, or the first twelve.
    labels : sequence of length k, optional
        Names of the rows; default their numbers.
    y : array-like of shape (n,), optional
        Outcomes of all rows of the forecast; those of `rows` are marked.
    layout : {"auto", "overlay", "ridge"}
        "overlay": on one another. "ridge": each on a line of its own. "auto" is a
        ridge for more than five rows.
    scale : {"auto", "common", "own"}
        Of heights in a ridge: one for all rows, or all rows equally high, so that
        widths compare but heights do not. "auto" is one for all unless the highest
        would be more than five times as high as the lowest. The axis says which. In an
        overlay it is one for all.
    target_name : str, optional
        What the target is called on its axis, with its unit; default the name of `y`
        if it has one.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Notes
    -----
    Values of positive probability are stems. In an overlay those of several rows stand
    beside one another, and where there are densities too they have an axis of their
    own on the right; else heights are probabilities. In a ridge a probability of 1 is
    .8 of the distance between two rows where there are densities; else the likeliest
    value is, that of all rows or, on scales of their own, of each.

    Examples
    --------
    >>> from localexpert.distribution.predictive import PredictiveDistribution
    >>> from localexpert.plots.ridge import plot_forecasts
    >>> rows = [[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> ax = plot_forecasts(dist, [0, 2], labels=["a", "b"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    check_ax(ax)
    check_choice(layout, "layout", ("auto", "overlay", "ridge"))
    check_choice(scale, "scale", ("auto", "common", "own"))
    check_dist(dist)
    if rows is None:
        rows = np.arange(min(len(dist), _MOST_UNASKED))
    picked = _check_rows(rows, len(dist))
    given = [f"row {row}" for row in picked] if labels is None else labels
    names = check_labels(given, len(picked), "labels", "rows")
    outcomes = None if y is None else check_outcomes(y, dist)[picked]
    shapes = [ForecastShape.of(dist, row) for row in picked]
    ridge = layout == "ridge" or (layout == "auto" and len(picked) > _MOST_OVERLAID)
    if ax is None:
        height = min(max(SIZE[1], 0.8 + _LEAST_ROOM * len(picked)), _MOST_HEIGHT)
        ax = new_axes((SIZE[0], height) if ridge else SIZE)
    low, high = _common_window(shapes, outcomes)
    ax.set(xlim=(low, high), xlabel=name_target(target_name, y))
    ridges = [_Ridge.of(*pair, low, high) for pair in zip(names, shapes, strict=True)]
    if ridge:
        _draw_ridge(ax, ridges, outcomes, scale)
    else:
        _draw_overlay(ax, ridges, outcomes)
    return ax


class _Ridge(NamedTuple):
    """A forecast, its name, and its density over x, which a discrete one has not."""

    name: str
    shape: ForecastShape
    x: Float64Array
    line: Float64Array

    @classmethod
    def of(cls, name: str, shape: ForecastShape, low: float, high: float) -> Self:
        """Work out the density between the ends of the picture."""
        if shape.is_discrete:
            return cls(name, shape, np.empty(0), np.empty(0))
        x = shape.grid(low, high)
        return cls(name, shape, x, shape.density(x))


def _check_rows(rows: ArrayLike, n: int) -> list[int]:
    """Return the numbers of the rows, counted from the start."""
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "iu":
        msg = (
            "`rows` must be a vector of at least one integer, "
            f"got {numbers.dtype} of shape {numbers.shape}."
        )
        raise ValueError(msg)
    return [check_row(row, "rows", n) for row in numbers]


def _common_window(
    shapes: list[ForecastShape], outcomes: Float64Array | None
) -> tuple[float, float]:
    """Return the range of y that shows every forecast and outcome."""
    marks = [None] * len(shapes) if outcomes is None else outcomes.tolist()
    ends = [shape.window([y]) for shape, y in zip(shapes, marks, strict=True)]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _draw_overlay(
    ax: Axes, ridges: list[_Ridge], outcomes: Float64Array | None
) -> None:
    """Draw all forecasts from one line; outcomes are bars below it."""
    discrete = all(one.shape.is_discrete for one in ridges)
    # What a probability of 1 is as high as.
    unit = 1.0 if discrete else max(one.line.max(initial=0.0) for one in ridges)
    step = _stem_step(ridges, ax.get_xlim())
    for j, (name, shape, x, line) in enumerate(ridges):
        color = f"C{j % 10}"
        if len(x):
            ax.plot(x, line, color=color, lw=1.6, label=name)
            ax.fill_between(x, line, color=color, alpha=0.12, lw=0)
        shift = step * (j - 0.5 * (len(ridges) - 1))
        label = "" if len(x) else name
        _draw_stems(ax, shape.spikes + shift, unit * shape.masses, 0.0, color, label)
    ax.set_ylim(bottom=0.0)
    if outcomes is not None:
        _draw_bars(ax, outcomes, step)
    ax.set_ylabel("Probability" if discrete else "Density")
    if not discrete and any(len(one.shape.spikes) for one in ridges):
        to, back = (lambda d: d / unit), (lambda p: p * unit)
        side = ax.secondary_yaxis("right", functions=(to, back))
        side.set_ylabel("Probability of a value (stem)")
        side.set_yticks(np.linspace(0.0, 1.0, 6))
    put_legend_above(ax)


def _draw_bars(ax: Axes, outcomes: Float64Array, step: float) -> None:
    """Make room below the forecasts for a bar at each outcome."""
    room = 0.06 * ax.get_ylim()[1]
    ax.set_ylim(bottom=-1.2 * room)
    ax.axhline(0.0, color=GREY, lw=0.8, zorder=1)
    place = outcomes + step * (np.arange(len(outcomes)) - 0.5 * (len(outcomes) - 1))
    colors = [f"C{j % 10}" for j in range(len(outcomes))]
    ax.vlines(place, -room, -0.1 * room, colors=colors, lw=2.2)
    # The legend shows one bar of no row.
    looks: dict[str, Any] = {"color": GREY, "ms": 8, "mew": 2.2, "label": "outcome"}
    ax.plot([], [], "|", **looks)


def _find_peaks(ridges: list[_Ridge], scale: str) -> tuple[Float64Array, bool]:
    """Return the height (k,) that each row's scale ends at, and if it is one for all.

    That of a density, or the likeliest value where there is none.
    """
    smooth = np.array([len(one.x) > 0 for one in ridges])
    own = np.array(
        [one.line.max() if len(one.x) else one.shape.masses.max() for one in ridges]
    )
    kinds = [kind for kind in (smooth, ~smooth) if kind.any()]
    if scale == "auto":
        ratios = [own[kind].max() / own[kind].min() for kind in kinds]
        scale = "common" if max(ratios) <= _MOST_RATIO else "own"
    if scale == "own":
        return own, len(own) == 1
    peaks = own.copy()
    for kind in kinds:
        peaks[kind] = own[kind].max()
    return peaks, True


def _draw_ridge(
    ax: Axes, ridges: list[_Ridge], outcomes: Float64Array | None, scale: str
) -> None:
    """Draw each forecast from a line of its own, the first on top and behind."""
    k = len(ridges)
    peaks, same = _find_peaks(ridges, scale)
    line_tone, fill_tone = shades(ax, GREY, [0.35])[0], shades(ax, "C0", [0.4])[0]
    for j, (_, shape, x, line) in enumerate(ridges):
        base, layer = float(k - 1 - j), 2.0 + j / k
        ax.axhline(base, color=line_tone, lw=0.8, zorder=layer)
        unit, color = _STEM / peaks[j], "C0"
        if len(x):
            top = base + _OVERLAP * line / peaks[j]
            ax.fill_between(x, base, top, color=fill_tone, lw=0, zorder=layer)
            ax.plot(x, top, color="C0", lw=1.1, zorder=layer)
            unit, color = _STEM, "C1"
        _draw_stems(ax, shape.spikes, unit * shape.masses, base, color, "", layer)
    smooth = any(len(one.x) for one in ridges)
    told = "all rows on one scale" if same else "each row on a scale of its own"
    ax.set_ylabel(f"{'Density' if smooth else 'Probability'}, {told}")
    if outcomes is not None:
        looks: dict[str, Any] = {"color": ink_of(ax), "ms": 9, "mew": 1.6, "zorder": 4}
        ax.plot(outcomes, np.arange(k)[::-1], "|", label="outcome", **looks)
        put_legend_above(ax)
    ax.set_yticks(np.arange(k)[::-1], [one.name for one in ridges])
    ax.tick_params(axis="y", length=0)
    highest = _OVERLAP if smooth else 1.0
    ax.set_ylim(-0.3, k - 1 + highest + 0.1)


def _draw_stems(
    ax: Axes,
    values: Float64Array,
    heights: Float64Array,
    base: float,
    color: str,
    label: str,
    layer: float = 2.0,
) -> None:
    """Draw upright lines with heads from a base, if there are any."""
    if len(values):
        tops = base + heights
        ax.vlines(values, base, tops, color=color, lw=1.6, zorder=layer)
        ax.plot(values, tops, "o", color=color, ms=4, zorder=layer, label=label)


def _stem_step(ridges: list[_Ridge], ends: tuple[float, float]) -> float:
    """Return by how much to move the stems of each row so that none hides another."""
    values = np.unique(np.concatenate([one.shape.spikes for one in ridges]))
    if not len(values):
        return 0.0
    gap = float(np.diff(values).min(initial=np.inf))
    return min(_STEP * (ends[1] - ends[0]), 0.5 * gap / len(ridges))
