"""What the pictures share: new axes, checks of their arguments, samples of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import (
    check_ax,
    check_integer,
    check_list,
    check_same_length,
    format_number,
    plain_label,
)
from localexpert.distribution import predictive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# As far from black ground as from white.
GREY = "0.5"
# Width and height in inches that fit a notebook.
SIZE = (6.5, 4.0)
# Single outcomes that a cloud shows; more of them are a blot, and slow.
MOST_DOTS = 3000
_FEW_DOTS = 200
# Draws of the rows that are shown have a stream that no outcome was drawn from.
_STREAM = 54_881
# So many digits tell all numbers apart.
_ALL_DIGITS = 17
# In a legend, in heights of its letters: the room between columns, and all of a column
# but its label.
_BETWEEN = 1.4
_HANDLE = 2.8 + _BETWEEN
# Letters of a label beside an axis, and of the name of one.
LONGEST_TICK, _LONGEST_NAME = 28, 48


def new_axes(size: tuple[float, float] = SIZE) -> Axes:
    """Return the axes of a new figure of that size in inches."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def new_grid(
    rows: int, columns: int, size: tuple[float, float], *, sharex: bool = False
) -> NDArray[np.object_]:
    """Return the axes of a new figure of that size, shape (rows, columns)."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=size, layout="constrained")
    return np.asarray(figure.subplots(rows, columns, sharex=sharex, squeeze=False))


def check_axes(axes: Any, n: int, name: str) -> NDArray[np.object_]:
    """Return n axes as a vector."""
    array = np.asarray(axes, dtype=object).ravel()
    if array.size != n:
        msg = f"`{name}` must hold {n} Axes, got {array.size}."
        raise ValueError(msg)
    for ax in array:
        check_ax("None" if ax is None else ax, name)
    return array


def check_dist(dist: Any) -> None:
    """Refuse what is no forecast, or one of no rows."""
    predictive.check_distribution(dist)
    if len(dist) == 0:
        msg = "`dist` must have at least one row, got none."
        raise ValueError(msg)


def check_outcomes(y: ArrayLike, dist: Any) -> Float64Array:
    """Return outcomes, one for each row of a forecast that has some."""
    check_dist(dist)
    return predictive.check_outcomes(y, dist)


def check_row(row: Any, name: str, n: int) -> int:
    """Return the number of a row, counted from the start."""
    number = check_integer(row, name, -n)
    if number >= n:
        msg = f"`{name}` must be less than the {n} rows of `dist`, got {number}."
        raise ValueError(msg)
    return number % n


def check_labels(
    labels: Sequence[Any], n: int, name: str, other: str, most: int = LONGEST_TICK
) -> list[str]:
    """Return n labels as text of at most so many letters."""
    listed = check_list(labels, name, "labels")
    texts = [plain_label(format_number(label, 3), most) for label in listed]
    check_same_length(n, f"`{other}`", len(texts), name)
    return texts


def format_numbers(values: Float64Array, digits: int = 4) -> list[str]:
    """Return short texts of different numbers, of as many digits as tell them apart."""
    for more in range(digits, _ALL_DIGITS):
        texts = [format_number(float(value), more) for value in values]
        if len(set(texts)) == len(texts):
            return texts
    return [repr(float(value)) for value in values]


def name_of(values: Any, otherwise: str = "") -> str:
    """Return the name of a column of a data frame, or another for what has none."""
    name = getattr(values, "name", None)
    return otherwise if name is None else plain_label(name)


def name_target(target_name: Any, *columns: Any) -> str:
    """Return what the target's axis is called: as told, as a column is, or y."""
    if target_name is not None:
        if not isinstance(target_name, str):
            msg = f"`target_name` must be a text, got {type(target_name).__name__}."
            raise TypeError(msg)
        return plain_label(target_name, _LONGEST_NAME)
    return next(filter(None, map(name_of, columns)), "y")


def format_percent(share: float) -> str:
    """Return a share as a percentage without superfluous digits."""
    return f"{100.0 * share:.3g}%"


def sample_rows(n: int, most: int = MOST_DOTS) -> NDArray[np.intp]:
    """Return all of n rows in order, or of more than `most` always the same sample."""
    if n <= most:
        return np.arange(n)
    chosen = np.random.default_rng([0, _STREAM]).choice(n, most, replace=False)
    return np.sort(chosen)


def ink_of(ax: Axes) -> Any:
    """Return the colour that axes are written in: black, or white on dark ones."""
    return ax.xaxis.label.get_color()


def shades(ax: Axes, color: str, strengths: Iterable[float]) -> list[tuple[float, ...]]:
    """Return mixtures of a colour with the ground of axes, from 0 (none of it) to 1.

    Opaque: what shines through would have other colours on a grid or a band.
    """
    from matplotlib.colors import to_rgb, to_rgba

    # Axes without a ground of their own lie on that of the figure.
    grounds = map(to_rgba, (ax.get_facecolor(), ax.figure.get_facecolor(), "white"))
    ground = next(np.array(rgba[:3]) for rgba in grounds if rgba[3] > 0.0)
    full = np.array(to_rgb(color))
    return [tuple((s * full + (1.0 - s) * ground).tolist()) for s in strengths]


def draw_dots(ax: Axes, x: Any, y: Float64Array, color: Any, **looks: Any) -> None:
    """Draw a dot for each row, or for a sample of very many; few are bold."""
    shown = sample_rows(len(y))
    size, alpha = (3.4, 0.8) if len(shown) <= _FEW_DOTS else (2.2, 0.4)
    style: dict[str, Any] = {"ms": size, "mew": 0, "alpha": alpha, "color": color}
    ax.plot(x[shown], y[shown], "o", **style, **looks)


def put_legend_above(ax: Axes, *others: Axes) -> None:
    """Put a legend above the picture, where nothing is drawn, as wide as it is.

    What other axes of the same picture have named is in it too.
    """
    pairs = [ax.get_legend_handles_labels(), *map(_take_legend, others)]
    handles = [handle for some, _ in pairs for handle in some]
    labels = [label for _, some in pairs for label in some]
    looks: dict[str, Any] = {"frameon": False, "fontsize": "small", "loc": "lower left"}
    spaces: dict[str, Any] = {"borderaxespad": 0.2, "columnspacing": _BETWEEN}
    columns = _count_columns(ax, labels)
    at = {"bbox_to_anchor": (0.0, 1.0)}
    ax.legend(handles, labels, ncols=columns, **at, **looks, **spaces)


def _take_legend(ax: Axes) -> tuple[list[Any], list[str]]:
    """Return what axes have to say in a legend."""
    handles, labels = ax.get_legend_handles_labels()
    return list(handles), list(labels)


def put_legend_below(panels: NDArray[np.object_], columns: int) -> None:
    """Put one legend below panels that are a whole figure, else into the first.

    It names whatever has a label in any of the panels, once.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = panels[0].figure
    named: dict[str, Any] = {}
    for ax in panels:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    looks: dict[str, Any] = {"frameon": False, "fontsize": "small"}
    # Other layouts know nothing of a legend outside.
    laid_out = isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)
    alone = laid_out and set(figure.axes) == set(panels)
    if alone:
        looks |= {"loc": "outside lower center", "ncols": columns}
    else:
        looks |= {"frameon": True, "framealpha": 0.8}
    (figure if alone else panels[0]).legend(named.values(), named.keys(), **looks)


def _count_columns(ax: Axes, labels: list[str]) -> int:
    """Return how many columns a legend has so that it is no wider than its axes."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size="small")
    size = font.get_size_in_points()
    measure = text_to_path.get_text_width_height_descent
    widths = [measure(label, font, False)[0] + _HANDLE * size for label in labels]
    to_points = 72.0 / ax.figure.dpi
    room = to_points * ax.get_window_extent().width
    # A layout takes the room of long labels beside the picture from the picture.
    beside = [text.get_text() for text in ax.get_yticklabels()]
    longest = max((measure(text, font, False)[0] for text in beside), default=0.0)
    room -= max(1.2 * longest - to_points * ax.get_window_extent().x0, 0.0)
    for columns in range(len(labels), 1, -1):
        # As the legend will part them.
        if sum(part.max() for part in np.array_split(widths, columns)) <= room:
            return columns
    return 1
