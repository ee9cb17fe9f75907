"""The mean forecast of each class among the rows of each outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import (
    check_ax,
    check_rows,
    check_weights,
    plain_label,
)
from calibration.plots.canvas import LONGEST_NAME, new_axes
from calibration.plots.class_labels import read_columns, read_names
from calibration.typing import Float64Array, Int64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Numbers in more cells, and names of more classes, cannot be read.
_MOST_NOTES, _MOST_NAMES = 12, 40
# Names of more letters than that do not fit side by side.
_FLAT_LETTERS = 36
# On cells darker than this numbers are white.
_DARK = 0.55


def plot_forecast_matrix(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean forecast of each class among the rows of each outcome.

    A row of the matrix is an outcome, with its share of all rows, and sums to 1: what
    was said, on average, where that came. The diagonal is what the true class was
    given; its mean by these shares is the mean chance of what came.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Column numbers, or names among `classes`.
    y_prob : array-like of shape (n, k)
        Forecast probabilities, a column for each class.
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions.
    classes : sequence of k names, optional
        Of the columns; default their numbers, 0 to k - 1.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on. The row of a class without rows is empty.

    Examples
    --------
    >>> from calibration.plots import plot_forecast_matrix
    >>> y_prob = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.5, 0.3, 0.2]]
    >>> ax = plot_forecast_matrix([0, 1, 2, 1], y_prob)
    >>> [text.get_text() for text in ax.texts][3:6]  # where class 1 came
    ['0.35', '0.45', '0.20']
    """
    check_ax(ax)
    table = check_rows(y_prob)
    k = table.shape[1]
    names = read_names(classes, k)
    labels = read_columns(y_true, names, len(table), "y_true", "y_prob")
    weight = check_weights(sample_weight, len(labels))
    means, shares = _mean_forecasts(labels, table, weight)
    texts = [plain_label(name, LONGEST_NAME) for name in names]
    if ax is None:
        side = min(1.2 + 0.9 * k, 8.0)
        beside = 1.3 + 0.08 * max(map(len, texts))
        ax = new_axes((side + beside, side + 0.8), "compressed")
    image = ax.imshow(means, cmap="Blues", vmin=0.0, vmax=1.0)
    if k <= _MOST_NOTES:
        _write_numbers(ax, means)
    else:
        # Beside numbers a scale says nothing new.
        ax.figure.colorbar(image, ax=ax, label="Mean forecast probability", shrink=0.8)
    if k <= _MOST_NAMES:
        _name_classes(ax, texts, shares)
    ax.set(xlabel="Mean forecast probability of", ylabel="Outcome, share of rows")
    return ax


def _mean_forecasts(
    labels: Int64Array, table: Float64Array, weight: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return means (k, k), an outcome a row, and the share of each outcome, (k,)."""
    k = table.shape[1]
    held = np.bincount(labels, weights=weight, minlength=k)
    sums = [np.bincount(labels, weights=weight * p, minlength=k) for p in table.T]
    means = np.full((k, k), np.nan)
    came = held > 0.0
    means[came] = np.column_stack(sums)[came] / held[came, None]
    return means, held / held.sum()


def _write_numbers(ax: Axes, means: Float64Array) -> None:
    """Write each mean into its cell; a dash where there is none."""
    size = "medium" if len(means) <= 6 else "small"
    for (row, column), mean in np.ndenumerate(means):
        # Where nothing is drawn the ground shows, which may be dark.
        color: Any = ax.xaxis.label.get_color()
        if not np.isnan(mean):
            color = "white" if mean > _DARK else "black"
        text = "\u2013" if np.isnan(mean) else f"{mean:.2f}"
        ax.text(column, row, text, ha="center", va="center", color=color, size=size)


def _name_classes(ax: Axes, names: list[str], shares: Float64Array) -> None:
    """Write names beside the columns and rows, and the shares of the outcomes."""
    places = range(len(names))
    flat = sum(map(len, names)) + 2 * len(names) <= _FLAT_LETTERS
    turn: dict[str, Any] = {} if flat else {"rotation": 40, "ha": "right"}
    if not flat:
        turn["rotation_mode"] = "anchor"
    ax.set_xticks(places, names, **turn)
    pairs = zip(names, shares, strict=True)
    ax.set_yticks(places, [f"{name}, {100.0 * share:.2g}%" for name, share in pairs])
    ax.tick_params(length=0)
