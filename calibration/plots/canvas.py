"""What the pictures share: new axes, checks of their arguments, legends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# As far from black ground as from white.
GREY = "0.5"
# Letters of a label that has room beside another.
_SHORT_LABEL = 30
# And of a name that stands beside other words.
LONGEST_NAME = 24
# Inches in a legend: a letter of mean width, and what stands before and between labels.
_LETTER, _HANDLE = 0.075, 0.7


def new_axes(
    size: tuple[float, float],
    layout: Literal["constrained", "compressed"] = "constrained",
) -> Axes:
    """Return the axes of a new figure of that size in inches.

    A "compressed" layout is for axes of fixed shape that fill their figure.
    """
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout=layout)[1]


def put_legend_above(ax: Axes) -> None:
    """Put the legend above the picture, where no curve is, in two columns at most."""
    labels = ax.get_legend_handles_labels()[1]
    short = max(map(len, labels)) <= _SHORT_LABEL
    looks: dict[str, Any] = {"frameon": False, "fontsize": "small"}
    at: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    ax.legend(ncols=2 if short else 1, **at, **looks)


def check_items(
    items: Mapping[str, object], name: str, kinds: tuple[type, ...]
) -> None:
    """Refuse an argument without items, or with an item of another type."""
    if not items:
        msg = f"`{name}` must hold at least one item, got an empty mapping."
        raise ValueError(msg)
    for item in items.values():
        if not isinstance(item, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            msg = f"`{name}` must be of type {wanted}, got {type(item).__name__}."
            raise TypeError(msg)


def new_grid(n: int, columns: int) -> NDArray[np.object_]:
    """Return n square axes of a new figure in so many columns, shape (n,)."""
    import matplotlib.pyplot as plt

    rows = -(-n // columns)
    size = (0.7 + 2.8 * columns, 0.9 + 2.9 * rows)
    figure = plt.figure(figsize=size, layout="constrained")
    grid = np.asarray(figure.subplots(rows, columns, squeeze=False)).ravel()
    for spare in grid[n:]:
        spare.remove()
    return np.asarray(grid[:n])


def put_legend_below(panels: NDArray[np.object_]) -> None:
    """Put one legend below panels that are a whole figure, else in the first.

    It names what the first panel shows; all must show the same.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = panels[0].figure
    looks: dict[str, Any] = {"frameon": False, "fontsize": "small"}
    # Other layouts know nothing of a legend outside.
    laid_out = isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)
    if not (laid_out and set(figure.axes) == set(panels)):
        panels[0].legend(loc="upper left", **looks)
        return
    handles, labels = panels[0].get_legend_handles_labels()
    longest = _HANDLE + _LETTER * max(map(len, labels))
    # A part of a figure has a box, too, but no width in inches.
    width = figure.bbox.width / figure.dpi
    columns = max(1, min(len(labels), int(width / longest)))
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": columns}
    figure.legend(handles, labels, **place, **looks)
