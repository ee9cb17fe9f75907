"""Heat maps of how much features matter, threshold by threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import (
    check_array,
    check_ax,
    check_flag,
    check_integer,
    format_number,
)
from localexpert.plots.canvas import check_labels, name_of, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

# So many columns have room for a number in each cell, and for a label each.
_MOST_NUMBERS, _MOST_TICKS = 8, 13
# Beyond this share of the colours numbers are white.
_DARK = 0.6
# Letters of the name of a column, which may stand on end.
_LONGEST_HEAD = 16


def plot_importance(
    table: Any,
    *,
    features: Sequence[Any] | None = None,
    columns: Sequence[Any] | None = None,
    max_features: int = 20,
    sort: bool = True,
    label: str = "Importance",
    ax: Axes | None = None,
) -> Axes:
    """Draw a heat map of importance: features by thresholds or quantiles.

    Parameters
    ----------
    table : PermutationImportance, array-like or data frame of shape (p, k)
        Importance of p features for k thresholds or quantiles. Where some of it is
        negative the colours are symmetric about 0.
    features : sequence of length p, optional
        Names of the rows; default those of a data frame, else their numbers.
    columns : sequence of length k, optional
        Names of the columns, in the same way; the name of an index that has one is
        that of the axis. Of many, some are written.
    max_features : int
        Only the features of greatest mean absolute importance are drawn.
    sort : bool
        Put the feature of greatest mean absolute importance on top, or leave features
        in the order of the table.
    label : str
        What the colours are, written beside their scale.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from localexpert.plots.importance import plot_importance
    >>> table = [[0.1, 0.2], [0.5, 0.4]]
    >>> ax = plot_importance(table, features=["age", "income"], columns=[10, 20])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['income', 'age']
    """
    check_ax(ax)
    if not hasattr(table, "columns") and hasattr(table, "to_frame"):
        table = table.to_frame()
    values = check_array(table, "table", (None, None))
    if 0 in values.shape:
        msg = f"`table` must hold at least one value, got shape {values.shape}."
        raise ValueError(msg)
    p, k = values.shape
    # A list has an `index` too, which is no names.
    frame = table if hasattr(table, "columns") else None
    first, second = ([str(i) for i in range(size)] for size in (p, k))
    rows = getattr(frame, "index", first) if features is None else features
    heads = getattr(frame, "columns", second) if columns is None else columns
    names = check_labels(rows, p, "features", "table")
    tops = check_labels(heads, k, "columns", "table", _LONGEST_HEAD)
    check_flag(sort, "sort")
    most = check_integer(max_features, "max_features", 1)
    order = np.argsort(-np.abs(values).mean(axis=1), kind="stable")[:most]
    shown = (order if sort else np.sort(order)).tolist()
    if ax is None:
        longest = max(len(names[i]) for i in shown)
        width = min(max(3.2 + 0.25 * k, 5.0) + 0.07 * longest, 9.0)
        ax = new_axes((width, max(2.2, 1.0 + 0.27 * len(shown))))
    image = _draw_cells(ax, values[shown], values)
    ax.figure.colorbar(image, ax=ax, label=label, pad=0.02)
    ax.set_yticks(np.arange(len(shown)), [names[i] for i in shown])
    _write_heads(ax, tops)
    ax.set_xlabel(name_of(heads, "Column"))
    if k <= _MOST_NUMBERS:
        _write_numbers(ax, values[shown], image)
    few = f"{len(shown)} of {p} features"
    ax.set_ylabel(few if len(shown) < p else "Feature")
    return ax


def _draw_cells(ax: Axes, cells: Float64Array, table: Float64Array) -> AxesImage:
    """Draw cells in colours that are those of the whole table."""
    high = float(np.abs(table).max()) or 1.0
    signed = bool(table.min() < 0.0)
    cmap, low = ("RdBu_r", -high) if signed else ("Blues", 0.0)
    looks: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest"}
    image = ax.imshow(cells, cmap=cmap, vmin=low, vmax=high, **looks)
    ax.set_xticks(np.arange(cells.shape[1] + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(cells.shape[0] + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", lw=0.8)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
    return image


def _write_heads(ax: Axes, heads: list[str]) -> None:
    """Write as many names of columns as have room, evenly spaced."""
    step = -(-len(heads) // _MOST_TICKS)
    # Long names stand on end.
    room = 45 / max(min(len(heads), _MOST_TICKS), 1)
    upright = max(len(head) for head in heads) > room
    places = np.arange(0, len(heads), step)
    ax.set_xticks(places, heads[::step], rotation=90 if upright else 0)


def _write_numbers(ax: Axes, cells: Float64Array, image: AxesImage) -> None:
    """Write each number into its cell, white on dark."""
    high = float(np.max(image.get_clim()))
    for (i, j), value in np.ndenumerate(cells):
        color = "white" if abs(value) > _DARK * high else "0.15"
        text = format_number(float(f"{value:.2g}"))
        ax.text(j, i, text, ha="center", va="center", color=color, fontsize="small")
