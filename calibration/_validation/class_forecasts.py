"""Forecasts with a column for each class, and labels that name the columns."""

import reprlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation.arrays import (
    as_numbers,
    check_in_unit,
    check_same_length,
    check_vector,
    count_rows,
)
from calibration._validation.forecasts import check_forecasts
from calibration._validation.texts import show
from calibration._validation.weights import check_weights
from calibration.typing import Float64Array, Int64Array

# Of the sum of a row: float32 probabilities of a thousand classes are off by less.
_ROUNDING = 1e-5


def check_table(scores: ArrayLike, name: str) -> Float64Array:
    """Return finite scores of shape (n, k), k >= 2."""
    table = np.ascontiguousarray(as_numbers(scores, name))
    if table.ndim != 2 or table.shape[1] < 2:
        msg = f"`{name}` must have shape (n, k), k >= 2, got shape {table.shape}."
        raise ValueError(msg)
    if len(table) == 0:
        msg = f"`{name}` must hold at least one row, got none."
        raise ValueError(msg)
    check_finite(table, name)
    return table


def check_finite(table: Float64Array, name: str) -> None:
    """Refuse what is not finite in a table (n, k)."""
    finite = np.isfinite(table)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        msg = (
            f"`{name}` must be finite, got {table[row, column]} in row {row}, "
            f"column {column}."
        )
        raise ValueError(msg)


def check_rows(y_prob: ArrayLike, name: str = "y_prob") -> Float64Array:
    """Return probabilities of shape (n, k), k >= 2, whose rows sum to 1."""
    table = check_table(y_prob, name)
    check_in_unit(float(table.min()), float(table.max()), name)
    sums = table.sum(axis=1)
    row = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[row] - 1.0) > _ROUNDING:
        got = f"{show(sums[row])} in row {row}"
        msg = f"`{name}` must have rows that sum to 1, got {got}."
        raise ValueError(msg)
    return table


def check_columns(
    y: ArrayLike, k: int, classes: ArrayLike | None = None, name: str = "y"
) -> Int64Array:
    """Return the column of each label, shape (n,): its number, or its place in names.

    Without `classes` labels are numbers from 0 to k - 1; with them any that they name.
    """
    if classes is not None:
        return _find_names(y, check_class_names(classes, k), name)
    if np.size(y) and isinstance(first := np.asarray(y).flat[0], str):
        msg = (
            f"`classes` must name the columns where `{name}` holds texts, "
            f"got None and {str(first)!r}."
        )
        raise TypeError(msg)
    labels = check_vector(y, name)
    valid = (labels >= 0.0) & (labels < k) & (labels == np.floor(labels))
    if not valid.all():
        place = int(np.argmin(valid))
        msg = (
            f"`{name}` must hold column numbers from 0 to {k - 1}, or `classes` must "
            f"name the columns, got {show(labels[place])} at position {place}."
        )
        raise ValueError(msg)
    return labels.astype(np.int64)


def check_class_forecasts(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    sample_weight: ArrayLike | None,
    classes: ArrayLike | None = None,
) -> tuple[NDArray[Any], Float64Array, Float64Array]:
    """Return labels, forecasts and weights (ones if None), of two classes or more.

    Forecasts (n,) or (n, 1) are chances of class 1 and have labels of truth values;
    forecasts (n, k) have labels that are column numbers.
    """
    forecasts = as_numbers(y_prob, "y_prob")
    if forecasts.ndim < 2 or forecasts.shape[1:] == (1,):
        ones = (
            y_true if classes is None else check_columns(y_true, 2, classes, "y_true")
        )
        return check_forecasts(ones, forecasts, sample_weight)
    rows = check_rows(forecasts)
    columns = check_columns(y_true, rows.shape[1], classes, "y_true")
    check_same_length(len(columns), "`y_true`", len(rows), "y_prob")
    return columns, rows, check_weights(sample_weight, len(rows))


def check_class_names(classes: ArrayLike, k: int) -> list[Any]:
    """Return the names of k columns, all different."""
    if count_rows(classes) < 0 or np.ndim(classes) != 1:
        msg = f"`classes` must be a list of names, got {reprlib.repr(classes)}."
        raise TypeError(msg)
    names: list[Any] = np.asarray(classes).tolist()
    if len(names) != k or len(set(names)) != k:
        msg = (
            f"`classes` must name each of the {k} columns once, "
            f"got {reprlib.repr(names)}."
        )
        raise ValueError(msg)
    return names


def _find_names(y: ArrayLike, names: list[Any], name: str) -> Int64Array:
    """Return the place of each label among the names."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or labels.size == 0:
        msg = (
            f"`{name}` must be labels of shape (n,), n >= 1, got shape {labels.shape}."
        )
        raise ValueError(msg)
    try:
        held, inverse = np.unique(labels, return_inverse=True)
    except TypeError as error:
        msg = f"`{name}` must hold labels of one kind, got {error}."
        raise TypeError(msg) from error
    places = {label: place for place, label in enumerate(names)}
    columns = np.array([places.get(label, -1) for label in held.tolist()])
    if columns.min() < 0:
        strange = held.tolist()[int(np.argmin(columns))]
        msg = f"`{name}` must hold labels that `classes` names, got {strange!r}."
        raise ValueError(msg)
    return columns.astype(np.int64)[inverse]
