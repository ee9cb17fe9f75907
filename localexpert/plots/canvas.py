"""What the pictures share: new axes, checks of their arguments, samples of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import (
    check_ax,
    check_integer,
    check_list,
    check_same_length,
)
from localexpert.distribution import predictive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY = "0.45"
# Width and height in inches that fit a notebook.
SIZE = (6.5, 4.0)
# Single outcomes that a cloud shows; more of them are a blot, and slow.
MOST_DOTS = 3000
# Draws of the rows that are shown have a stream that no outcome was drawn from.
_STREAM = 54_881


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


def check_labels(labels: Sequence[Any], n: int, name: str, other: str) -> list[str]:
    """Return n labels as text."""
    listed = check_list(labels, name, "labels")
    texts = [format_number(label, 3) for label in listed]
    check_same_length(n, f"`{other}`", len(texts), name)
    return texts


def format_number(value: Any, digits: int = 4) -> str:
    """Return a short text of a number, or the text of anything else."""
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return f"{value:.{digits}g}"
    return str(value)


def name_of(values: Any, otherwise: str = "") -> str:
    """Return the name of a column of a data frame, or another for what has none."""
    name = getattr(values, "name", None)
    return otherwise if name is None else str(name)


def format_percent(share: float) -> str:
    """Return a share as a percentage without superfluous digits."""
    return f"{100.0 * share:.3g}%"


def sample_rows(n: int, most: int = MOST_DOTS) -> NDArray[np.intp]:
    """Return all of n rows in order, or of more than `most` always the same sample."""
    if n <= most:
        return np.arange(n)
    chosen = np.random.default_rng([0, _STREAM]).choice(n, most, replace=False)
    return np.sort(chosen)


def put_legend_above(ax: Axes) -> None:
    """Put the legend in one line above the picture, where nothing is drawn."""
    columns = len(ax.get_legend_handles_labels()[1])
    looks: dict[str, Any] = {"frameon": False, "fontsize": "small", "loc": "lower left"}
    spaces: dict[str, Any] = {"borderaxespad": 0.2, "columnspacing": 1.4}
    ax.legend(ncols=columns, bbox_to_anchor=(0.0, 1.0), **looks, **spaces)
