"""What the pictures share: new axes, checks of their arguments, legends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# As far from black ground as from white.
GREY = "0.5"
# Letters of a label that has room beside another.
_SHORT_LABEL = 30
# And of a name that stands beside other words.
LONGEST_NAME = 24


def new_axes(size: tuple[float, float]) -> Axes:
    """Return the axes of a new figure of that size in inches."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


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
