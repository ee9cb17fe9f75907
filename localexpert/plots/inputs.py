"""Inputs of pictures: checks of their arguments, and texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration._validation import (
    check_integer,
    check_list,
    check_same_length,
    is_gap,
    plain_label,
    refuse,
)
from localexpert._validation import format_number
from localexpert.distribution.predictive import check_distribution

# Letters of a label beside an axis, and of the name of one.
LONGEST_TICK, _LONGEST_NAME = 28, 48
# So many digits tell all numbers apart.
_ALL_DIGITS = 17


def check_dist(dist: Any) -> None:
    """Refuse an argument that is no forecast, or has no rows."""
    if len(check_distribution(dist)) == 0:
        refuse("dist", "have at least one row", "none")


def check_row(row: Any, name: str, n: int) -> int:
    """Return the number of a row, counted from the start."""
    number = check_integer(row, name, -n)
    if number >= n:
        refuse(name, f"be less than the {n} rows forecast", number)
    return number % n


def check_labels(
    labels: Sequence[Any], n: int, name: str, other: str, most: int = LONGEST_TICK
) -> list[str]:
    """Return n labels as text of at most so many letters."""
    listed = check_list(labels, name, "labels")
    texts = [plain_label(text, most) for text in format_numbers(listed, 3)]
    check_same_length(n, f"`{other}`", len(texts), name)
    return texts


def label_rows(
    groups: Any, n: int, other: str
) -> tuple[NDArray[Any], list[str] | None]:
    """Return a number for each row, NaN in gaps, and the names that are numbered."""
    array, cells = np.asarray(groups), np.asarray(groups, dtype=object)
    if array.ndim != 1:
        refuse("groups", "hold labels of shape (n,)", f"shape {array.shape}")
    check_same_length(n, f"`{other}`", len(array), "groups")
    if array.dtype.kind in "iuf":
        return array, None
    values, known = np.full(n, np.nan), np.array([not is_gap(c) for c in cells], bool)
    names, values[known] = np.unique(array[known].astype(str), return_inverse=True)
    return values, names.tolist()


def group_numbers(
    values: NDArray[Any],
    most: int,
    n_bins: int,
    show: Callable[[float, int], str],
    looks: tuple[str, str],
) -> tuple[list[str], NDArray[np.intp]]:
    """Return names of groups of numbers, and the group of each; that of NaN is void.

    Up to so many different numbers are a group each; more are put into so many bins,
    which have two looks, the last one for the last bin. A bin begins at one of the
    numbers, so that its name is true of whole numbers.
    """
    known = np.sort(values[~np.isnan(values)])
    distinct = np.unique(known)
    if len(distinct) <= most:
        texts = format_numbers(distinct.tolist(), 4, show)
        return texts, np.searchsorted(distinct, values)
    starts = np.arange(n_bins) * len(known) // n_bins
    edges = np.unique(np.append(known[starts], known[-1]))
    ends = [*pairwise(format_numbers(edges.tolist(), 3, show))]
    texts = [
        *(looks[0].format(*pair) for pair in ends[:-1]),
        looks[1].format(*ends[-1]),
    ]
    return texts, np.searchsorted(edges[1:-1], values, "right")


def format_numbers(
    values: Sequence[Any],
    digits: int,
    show: Callable[[Any, int], str] = format_number,
) -> list[str]:
    """Return short texts of labels; numbers have the digits that tell them apart."""
    different = len(set(map(str, values)))
    for more in range(digits, _ALL_DIGITS):
        texts = [show(value, more) for value in values]
        if len(set(texts)) >= different:
            return texts
    return [str(value) for value in values]


def name_of(values: Any, otherwise: str = "") -> str:
    """Return the name of a column of a data frame, or another for what has none."""
    name = getattr(values, "name", None)
    return otherwise if name is None else plain_label(name)


def name_target(target_name: Any, *columns: Any) -> str:
    """Return what the target's axis is called: as told, as a column is, or y."""
    if target_name is None:
        return next(filter(None, map(name_of, columns)), "y")
    if not isinstance(target_name, str):
        refuse("target_name", "be a text", type(target_name).__name__, TypeError)
    return plain_label(target_name, _LONGEST_NAME)


def format_percent(share: float) -> str:
    """Return a share as a percentage without superfluous digits."""
    return f"{100.0 * share:.3g}%"
