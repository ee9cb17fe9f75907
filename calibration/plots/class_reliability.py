"""Reliability of each of several classes, a diagram for each in one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    check_ax,
    check_list,
    check_rows,
    plain_label,
)
from calibration.measures.reliability import ReliabilityCurve, reliability_curve
from calibration.plots.canvas import LONGEST_NAME, new_grid, put_legend_below
from calibration.plots.class_labels import read_columns, read_names
from calibration.plots.reliability import draw_diagram
from calibration.typing import Float64Array, Int64Array

_MOST_COLUMNS = 4
# More diagrams than that are too many for one figure.
_MOST_PANELS = 20


def plot_class_reliability(
    y_true: ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike],
    *,
    classes: Sequence[Any] | None = None,
    shown: Sequence[Any] | None = None,
    axes: Any = None,
    **options: Any,
) -> NDArray[np.object_]:
    """Draw a reliability diagram for each class against all others.

    A panel is what `plot_reliability` draws of one class: bins, band and strip are the
    same. The title says how many of the rows are of the class.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Column numbers, or names among `classes`.
    y_prob : array-like of shape (n, k), or mapping of names to such
        Forecast probabilities, a column for each class. Several forecasts are told
        apart by colour.
    classes : sequence of k names, optional
        Of the columns; default their numbers, 0 to k - 1.
    shown : sequence, optional
        The classes to draw, at most 20; default all.
    axes : array-like of matplotlib Axes, optional
        One for each class shown; default a new figure.
    **options
        Of `reliability_curve`, such as `n_bins`, `bands` and `sample_weight`.

    Returns
    -------
    ndarray of matplotlib Axes, one for each class shown
        The axes that were drawn on.

    Examples
    --------
    >>> from calibration.plots import plot_class_reliability
    >>> y_prob = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.5, 0.3, 0.2]]
    >>> panels = plot_class_reliability([0, 1, 2, 1], y_prob, n_bins=2)
    >>> [ax.get_title() for ax in panels]
    ['0: 25% of rows', '1: 50% of rows', '2: 25% of rows']
    """
    tables = _read_tables(y_prob)
    n, k = next(iter(tables.values())).shape
    names = read_names(classes, k)
    labels = read_columns(y_true, names, n, "y_true", "y_prob")
    columns = _pick_columns(names, shown)
    curves = {column: _curves_of(column, labels, tables, options) for column in columns}
    panels = _read_axes(axes, len(columns))
    for ax, column in zip(panels, columns, strict=True):
        # Ties leave some classes fewer bins: their number is no name for all of them.
        draw_diagram(ax, curves[column], unnamed="observed")
        some = next(iter(curves[column].values()))
        share = (some.event_rate * some.weight).sum() / some.weight.sum()
        name = plain_label(names[column], LONGEST_NAME)
        ax.set_title(f"{name}: {100.0 * share:.2g}% of rows", fontsize="medium")
    _name_axes(panels)
    put_legend_below(panels)
    return panels


def _read_tables(
    y_prob: ArrayLike | Mapping[str, ArrayLike],
) -> dict[str, Float64Array]:
    """Return forecasts by name, all of one shape."""
    given = dict(y_prob) if isinstance(y_prob, Mapping) else {"": y_prob}
    if not given:
        msg = "`y_prob` must hold at least one item, got an empty mapping."
        raise ValueError(msg)
    tables = {name: check_rows(table, "y_prob") for name, table in given.items()}
    shapes = {table.shape for table in tables.values()}
    if len(shapes) > 1:
        msg = f"`y_prob` must hold forecasts of one shape, got {sorted(shapes)}."
        raise ValueError(msg)
    return tables


def _pick_columns(names: list[Any], shown: Sequence[Any] | None) -> list[int]:
    """Return the columns of the classes to draw."""
    picked = names if shown is None else check_list(shown, "shown", "classes")
    if not 1 <= len(picked) <= _MOST_PANELS:
        msg = (
            f"`shown` must name 1 to {_MOST_PANELS} classes, got {len(picked)}"
            f"{' by default' if shown is None else ''}."
        )
        raise ValueError(msg)
    columns: list[int] = read_columns(
        picked, names, len(picked), "shown", "shown"
    ).tolist()
    return columns


def _curves_of(
    column: int,
    labels: Int64Array,
    tables: Mapping[str, Float64Array],
    options: Mapping[str, Any],
) -> dict[str, ReliabilityCurve]:
    """Return the curve of one class against all others, of each forecast."""
    hits = labels == column
    return {
        name: reliability_curve(hits, table[:, column], **options)
        for name, table in tables.items()
    }


def _name_axes(panels: NDArray[np.object_]) -> None:
    """Name the axes of the panels that have none to their left, or none below."""
    places = [ax.get_subplotspec() for ax in panels]
    for ax, place in zip(panels, places, strict=True):
        if place is None or place.is_first_col():
            ax.set_ylabel("Observed event rate")
        if place is None or not any(_is_below(other, place) for other in places):
            ax.set_xlabel("Forecast probability")


def _is_below(other: Any, place: Any) -> bool:
    """Say whether one place of a grid is in the column of another, further down."""
    if other is None or other.get_gridspec() is not place.get_gridspec():
        return False
    same = other.colspan.start == place.colspan.start
    return bool(same and other.rowspan.start > place.rowspan.start)


def _read_axes(axes: Any, n: int) -> NDArray[np.object_]:
    """Return the n axes given, or those of a new figure."""
    if axes is None:
        return new_grid(n, _columns(n))
    array = np.asarray(axes, dtype=object).ravel()
    if array.size != n:
        msg = f"`axes` must hold {n} Axes, got {array.size}."
        raise ValueError(msg)
    for ax in array:
        check_ax("None" if ax is None else ax, "axes")
    return array


def _columns(n: int) -> int:
    """Return how many of n panels stand in a row: 1, 2, 3, 2 by 2, 3 by 2, then 4."""
    if n <= 3:
        return n
    return 2 if n == 4 else 3 if n <= 6 else _MOST_COLUMNS
