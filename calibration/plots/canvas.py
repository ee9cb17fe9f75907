"""What all pictures share: axes and panels, legends, colours, names of classes.

A picture is a function with the decorator `picture` or `panels`. It checks its input
and opens axes. It draws, gives a label to everything that a legend names, and returns
the axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    check_ax,
    check_class_names,
    check_columns,
    check_same_length,
    refuse,
)
from calibration.typing import Float64Array, Int64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

P = ParamSpec("P")
Drawn = TypeVar("Drawn")
Panels = NDArray[np.object_]

# This grey is as far from black ground as from white.
GREY = "0.5"
#: Looks of a band in which a true forecast stays, and of a line for comparison.
BAND: dict[str, Any] = {"color": GREY, "alpha": 0.25, "lw": 0}
DASHED: dict[str, Any] = {"color": GREY, "ls": "--", "lw": 1}
# A name that stands beside other words has at most this many letters.
LONGEST_NAME = 24
# A cloud shows at most this many single outcomes. More would be a blot, and slow.
_MOST_DOTS, _FEW_DOTS = 3000, 200
# A picture can show this many points of a curve apart.
_MOST_POINTS = 2000
# These are in heights of a legend's letters: the room between columns, and all of a
# column except its label.
_BETWEEN = 1.4
_HANDLE = 2.8 + _BETWEEN
# Points of room that are left beside all columns.
_BORDERS = 15.0
_LOOKS: dict[str, Any] = {"frameon": False, "fontsize": "small"}
_LOOKS["columnspacing"] = _BETWEEN


def _decorate(
    put_legend: Callable[[Panels], None], draw: Callable[P, Drawn]
) -> Callable[P, Drawn]:
    """Add a legend to what a picture draws."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Drawn:
        result = draw(*args, **kwargs)
        axes = np.ravel(np.asarray(result, dtype=object))
        if any(ax.get_legend_handles_labels()[1] for ax in axes):
            put_legend(axes)
        return result

    return drawn


def _put_legend_above(axes: Panels) -> None:
    """Put a legend above the first axes, where nothing is drawn, no wider than they."""
    ax = axes[0]
    handles, labels = _named(axes)
    to_points = 72.0 / ax.figure.dpi
    room = to_points * ax.get_window_extent().width
    # If labels beside a picture are long, a layout makes the picture narrower by as
    # much.
    longest = max((_width(text.get_text()) for text in ax.get_yticklabels()), default=0)
    room -= max(1.2 * longest - to_points * ax.get_window_extent().x0, 0.0)
    # Large numbers, such as millions, have their factor, 1e6, on top of the axes.
    numbers, factor = ax.yaxis.get_major_formatter(), ax.yaxis.get_offset_text()
    numbers.set_locs(ax.yaxis.get_majorticklocs())
    above = 1.5 * factor.get_fontsize() if numbers.get_offset() else 0.0
    top = 1.0 + above / (to_points * ax.get_window_extent().height)
    at: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, top)}
    at |= {"ncols": _count_columns(labels, room), "borderaxespad": 0.2}
    ax.legend(handles, labels, **at, **_LOOKS)


def _put_legend_below(axes: Panels) -> None:
    """Put one legend below panels if they are a whole figure, else into the first."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = axes[0].figure
    handles, labels = _named(axes)
    # Other layouts do not allow for a legend outside.
    engine = figure.get_layout_engine()
    laid_out = isinstance(engine, ConstrainedLayoutEngine)
    if not (laid_out and set(figure.axes) == set(axes)):
        axes[0].legend(handles, labels, fontsize="small", framealpha=0.8)
        return
    # A part of a figure has a box too, but no width in inches.
    room = 72.0 * figure.bbox.width / figure.dpi - _BORDERS
    columns = _count_columns(labels, room)
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": columns}
    figure.legend(handles, labels, **place, **_LOOKS)
    # Squares find their place in two rounds. Drawing is the second round.
    engine.execute(figure.figure)


def picture(draw: Callable[P, Drawn]) -> Callable[P, Drawn]:
    """Turn a function into a picture: one, or several below one legend."""
    return _decorate(_put_legend_above, draw)


def panels(draw: Callable[P, Drawn]) -> Callable[P, Drawn]:
    """Turn a function into a picture: several panels above one legend."""
    return _decorate(_put_legend_below, draw)


def _named(axes: Panels) -> tuple[list[Any], list[str]]:
    """Return the handles and labels of all axes for a legend, each of them once."""
    handles, labels = axes[0].get_legend_handles_labels()
    for ax in axes[1:]:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    return handles, labels


def _width(text: str) -> float:
    """Return the width of a small text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size="small")
    return float(text_to_path.get_text_width_height_descent(text, font, False)[0])


def _count_columns(labels: list[str], room: float) -> int:
    """Return the number of columns with which a legend is no wider than its room."""
    from matplotlib.font_manager import FontProperties

    handle = _HANDLE * FontProperties(size="small").get_size_in_points()
    widths = [_width(label) + handle for label in labels]
    for columns in range(len(labels), 1, -1):
        # The legend will divide the labels in this way.
        if sum(part.max() for part in np.array_split(widths, columns)) <= room:
            return columns
    return 1


def open_axes(ax: Axes | None, size: tuple[float, float] = (6.5, 4.0)) -> Axes:
    """Return the given axes, or those of a new figure of this size in inches."""
    check_ax(ax)
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots(figsize=size, layout="constrained")[1]
    return ax


def open_panels(
    given: Any,
    n: int,
    panel: tuple[float, float],
    columns: int | None = None,
    *,
    name: str = "axes",
    **shared: Any,
) -> Panels:
    """Return n axes: the given ones, or those of a new figure, with a size in inches.

    By default, n up to 3 stand in one row. A row has 2 if n is 4, then 3 up to n = 6,
    and 4 beyond.
    """
    if given is None:
        import matplotlib.pyplot as plt

        columns = columns or (2 if n == 4 else min(n, 3) if n <= 6 else 4)
        rows = -(-n // columns)
        size = (0.7 + panel[0] * columns, 0.9 + panel[1] * rows)
        figure = plt.figure(figsize=size, layout="constrained")
        grid = np.asarray(figure.subplots(rows, columns, squeeze=False, **shared))
        for spare in grid.ravel()[n:]:
            spare.remove()
        return grid.ravel()[:n]
    axes = np.asarray(given, dtype=object).ravel()
    if axes.size != n:
        refuse(name, f"hold {n} Axes", axes.size)
    for ax in axes:
        check_ax("None" if ax is None else ax, name)
    return axes


def name_outer(axes: Panels, xlabel: str, ylabel: str) -> None:
    """Name the axes of panels that have no panel to their left, or none below."""
    places = [ax.get_subplotspec() for ax in axes]
    # The last axes of each column count.
    lowest = {p.colspan.start: ax for ax, p in zip(axes, places, strict=True) if p}
    for ax, place in zip(axes, places, strict=True):
        if place is None or place.is_first_col():
            ax.set_ylabel(ylabel)
        if place is None or lowest[place.colspan.start] is ax:
            ax.set_xlabel(xlabel)


def ink_of(ax: Axes) -> Any:
    """Return the colour of the writing of axes: black, or white on dark ones."""
    return ax.xaxis.label.get_color()


def sample_rows(n: int, most: int) -> NDArray[np.intp]:
    """Return all of n rows in order, or if more than `most`, always the same sample."""
    if n <= most:
        return np.arange(n)
    # No data was drawn from this stream.
    chosen = np.random.default_rng([0, 54_881]).choice(n, most, replace=False)
    return np.sort(chosen)


def thin(places: Float64Array) -> NDArray[np.intp]:
    """Return which of increasing places in [0, 1] are drawn: one in every pixel."""
    if len(places) <= _MOST_POINTS:
        return np.arange(len(places))
    pixels = np.floor(places * (_MOST_POINTS - 1))
    first = np.flatnonzero(np.diff(pixels, prepend=-1.0))
    return np.unique(np.append(first, len(places) - 1))


def shades(ax: Axes, color: str, strengths: Iterable[float]) -> list[tuple[float, ...]]:
    """Return mixtures of a colour with the ground of axes, from 0 (no colour) to 1.

    They are opaque. Transparent ones would have other colours on a grid or a band.
    """
    from matplotlib.colors import to_rgb, to_rgba

    # If axes have no ground of their own, they lie on that of the figure.
    grounds = map(to_rgba, (ax.get_facecolor(), ax.figure.get_facecolor(), "white"))
    ground = next(np.array(rgba[:3]) for rgba in grounds if rgba[3] > 0.0)
    full = np.array(to_rgb(color))
    return [tuple((s * full + (1.0 - s) * ground).tolist()) for s in strengths]


def draw_dots(ax: Axes, x: Any, y: Float64Array, color: Any, **looks: Any) -> None:
    """Draw a dot for each row, or for a sample of many rows. A few dots are bold."""
    shown = sample_rows(len(y), _MOST_DOTS)
    size, alpha = (3.4, 0.8) if len(shown) <= _FEW_DOTS else (2.2, 0.4)
    style: dict[str, Any] = {"ms": size, "mew": 0, "alpha": alpha, "color": color}
    ax.plot(x[shown], y[shown], "o", **style, **looks)


def read_items(items: Any, name: str, kinds: tuple[type, ...], more: str = "") -> Any:
    """Return a thing, or a mapping of names to things of one type, as a mapping."""
    named = dict(items) if isinstance(items, Mapping) else {"": items}
    if not named:
        refuse(name, "hold at least one item", "an empty mapping")
    for item in named.values():
        if not isinstance(item, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            refuse(name, f"be of type {wanted}{more}", type(item).__name__, TypeError)
    return named


def read_names(classes: Sequence[Any] | None, k: int) -> list[Any]:
    """Return the names of k columns: the given ones, or their numbers."""
    return check_class_names(range(k) if classes is None else classes, k)


def read_columns(
    y: ArrayLike, names: Sequence[Any], n: int, name: str, table: str
) -> Int64Array:
    """Return the column of each of n labels, shape (n,).

    If all names are texts, numbers are column numbers. So names in a picture need not
    be the names in the labels.
    """
    numbered = np.asarray(y).dtype.kind in "biuf"
    worded = all(isinstance(one, str) for one in names)
    by_number = (numbered and worded) or list(names) == list(range(len(names)))
    columns = check_columns(y, len(names), None if by_number else names, name)
    check_same_length(n, table, len(columns), name)
    return columns
