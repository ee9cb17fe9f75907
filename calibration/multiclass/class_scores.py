"""Checks of scores and labels of several classes, and what is read from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    as_numbers,
    check_list,
    check_same_length,
    check_vector,
    show,
)
from calibration.typing import Float64Array, Int64Array

# Rows of probabilities may miss 1 by this much: rounding of float32.
_ROUNDING = 1e-6


class ClassScores(NamedTuple):
    """Checked rows to learn from, none without weight.

    `scores` (n, k), `labels` (n,) column numbers, `weight` (n,) positive.
    """

    scores: Float64Array
    labels: Int64Array
    weight: Float64Array

    @property
    def n(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    @property
    def counts(self) -> Float64Array:
        """Weight of each class, shape (k,)."""
        k = self.scores.shape[1]
        return np.bincount(self.labels, self.weight, k).astype(np.float64)

    def take(self, rows: NDArray[Any]) -> ClassScores:
        """Return some of the rows."""
        return ClassScores(self.scores[rows], self.labels[rows], self.weight[rows])


def check_score_table(scores: ArrayLike, scale: str) -> Float64Array:
    """Return scores as finite float64 of shape (n, k), rows of probabilities sum to 1.

    Parameters
    ----------
    scores : array-like of shape (n, k)
    scale : {"probability", "logit"}

    Returns
    -------
    ndarray of shape (n, k)
    """
    table = as_numbers(scores, "scores")
    if table.ndim != 2 or table.shape[1] < 2:
        msg = (
            "`scores` must have shape (n, k) with a column for each of k >= 2 classes, "
            f"got shape {table.shape}."
        )
        raise ValueError(msg)
    if len(table) == 0:
        msg = "`scores` must hold at least one row, got none."
        raise ValueError(msg)
    # The sum is not finite where one of the numbers is not, and is quick.
    if not np.isfinite(table.sum()):
        _refuse_at(table, np.isfinite(table), "be finite")
    if scale == "probability":
        return _check_simplex(table)
    return table


def _check_simplex(table: Float64Array) -> Float64Array:
    """Return rows divided by their sums, which must be nearly 1."""
    if table.min() < 0.0:
        _refuse_at(table, table >= 0.0, 'not be negative with `scale="probability"`')
    sums = table.sum(axis=1)
    near = np.abs(sums - 1.0) <= _ROUNDING
    if not near.all():
        place = int(np.argmin(near))
        msg = (
            'rows of `scores` with `scale="probability"` must sum to 1 within '
            f"{_ROUNDING:g}, got {show(sums[place])} in row {place}."
        )
        raise ValueError(msg)
    scaled: Float64Array = table / sums[:, None]
    return scaled


def _refuse_at(table: Float64Array, good: NDArray[np.bool_], rule: str) -> None:
    """Refuse a table whose entries are not all good."""
    if good.all():
        return
    row, column = np.unravel_index(int(np.argmin(good)), table.shape)
    msg = f"`scores` must {rule}, got {table[row, column]:g} at ({row}, {column})."
    raise ValueError(msg)


def check_classes(classes: Sequence[Any] | None, k: int) -> NDArray[Any]:
    """Return the names of k columns; their numbers if there are no names.

    Parameters
    ----------
    classes : sequence of k distinct names, optional
    k : int

    Returns
    -------
    ndarray of shape (k,)
    """
    if classes is None:
        return np.arange(k)
    names = np.asarray(check_list(classes, "classes", "names of the columns"))
    if names.shape != (k,):
        msg = (
            f"`classes` must name the {k} columns of `scores`, got shape {names.shape}."
        )
        raise ValueError(msg)
    try:
        n_names = len(np.unique(names))
    except TypeError as error:
        msg = f"`classes` must hold names of one kind, got {error}."
        raise TypeError(msg) from error
    if n_names < k:
        msg = f"`classes` must be distinct, got {names.tolist()}."
        raise ValueError(msg)
    return names


def check_class_labels(y: ArrayLike, classes: NDArray[Any], n: int) -> Int64Array:
    """Return the column number of each label.

    Parameters
    ----------
    y : array-like of shape (n,)
        Names among the classes.
    classes : ndarray of shape (k,)
    n : int
        Rows that there must be.

    Returns
    -------
    ndarray of shape (n,)
    """
    if classes.dtype.kind in "biuf":
        labels: NDArray[Any] = check_vector(y, "y")
    else:
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1:
            msg = f"`y` must have shape (n,) or (n, 1), got shape {labels.shape}."
            raise ValueError(msg)
    check_same_length(n, "scores", len(labels), "y")
    order = np.argsort(classes, kind="stable")
    # Texts of numbers and numbers do not compare: as texts they do, and differ.
    if classes.dtype.kind in "US":
        labels = labels.astype(str)
    places = np.minimum(np.searchsorted(classes[order], labels), len(classes) - 1)
    columns = order[places]
    known = classes[columns] == labels
    if not known.all():
        place = int(np.argmin(known))
        shown = (
            f"0 to {len(classes) - 1}" if _are_numbers(classes) else classes.tolist()
        )
        msg = (
            f"`y` must hold classes of the columns, {shown}, "
            f"got {labels[place]!r} at position {place}; `classes` names the columns."
        )
        raise ValueError(msg)
    return np.asarray(columns, dtype=np.int64)


def _are_numbers(classes: NDArray[Any]) -> bool:
    """Say whether the classes are the numbers of their columns."""
    return classes.dtype.kind in "iu" and bool(
        (classes == np.arange(len(classes))).all()
    )
