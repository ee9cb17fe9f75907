"""Labels of the classes: reading them, and which there are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from calibration._validation import as_numbers, count_rows, find_no_number, is_gap
from calibration.typing import Float64Array


def read_labels(y: ArrayLike) -> NDArray[Any]:
    """Return labels as a vector without gaps, objects that are numbers as numbers."""
    if count_rows(y) < 0:
        # The last words are those that scikit-learn's checks look for.
        msg = f"`y` must be labels of shape (n,), got {y!r}: y should be a 1d array."
        raise ValueError(msg)
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if labels.dtype.kind not in "OMm":
        return labels
    cells = labels.tolist()
    gaps = [i for i, cell in enumerate(cells) if is_gap(cell)]
    if gaps:
        msg = f"`y` must have no gaps, got {labels[gaps[0]]} at position {gaps[0]}."
        raise ValueError(msg)
    try:
        sorted(set(cells))
    except TypeError as error:
        msg = f"`y` must hold labels of one kind, got {error}."
        raise TypeError(msg) from error
    if labels.dtype.kind == "O" and find_no_number(labels) is None:
        # scikit-learn knows no objects but texts.
        numbers = np.array(cells)
        labels = as_numbers(labels, "y") if numbers.dtype.kind == "O" else numbers
    return labels


def check_many_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return the labels in `y`, two or more, sorted."""
    classes = _distinct_labels(y)
    if len(classes) < 2:
        held = f"one class: {classes.tolist()[0]!r}" if len(classes) else "no row"
        msg = f"`y` must hold two classes or more, got {held}."
        raise ValueError(msg)
    return classes


def check_known_classes(y: NDArray[Any], estimator: Any) -> NDArray[Any]:
    """Return the labels of a fitted classifier, sorted; `y` may hold some of them.

    A classifier that does not say what it was fitted on is taken at the word of `y`.
    """
    if not hasattr(estimator, "classes_"):
        return check_many_classes(y)
    known: NDArray[Any] = np.sort(estimator.classes_)
    if len(known) < 2:
        msg = (
            "`estimator` must have been fitted on two classes or more, "
            f"got {known.tolist()}."
        )
        raise ValueError(msg)
    strange = np.setdiff1d(_distinct_labels(y), known).tolist()
    if strange:
        msg = (
            f"`y` must hold the classes that `estimator` was fitted on, "
            f"{known.tolist()}, got {strange[0]!r}."
        )
        raise ValueError(msg)
    return known


def weigh_classes(
    y: NDArray[Any], classes: NDArray[Any], weights: Float64Array
) -> Float64Array:
    """Return the share of each of the sorted `classes` in the weight, shape (k,)."""
    place = np.searchsorted(classes, y)
    sums = np.bincount(place, weights, minlength=len(classes))
    return np.asarray(sums / sums.sum())


def _distinct_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Return the labels in `y`, sorted."""
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes: NDArray[Any] = np.unique(y)
    return classes
