"""Inputs of pictures: checks of their arguments, and texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration._validation import (
    as_numbers,
    check_list,
    check_same_length,
    find_no_number,
    is_gap,
    plain_label,
    refuse,
)
from localexpert._validation import format_numbers
from localexpert.distribution.predictive import check_distribution

# Letters of a label beside an axis, and of the name of one.
LONGEST_TICK, _LONGEST_NAME = 28, 48


def check_dist(dist: Any) -> None:
    """Refuse an argument that is no forecast, or has no rows."""
    if len(check_distribution(dist)) == 0:
        refuse("dist", "have at least one row", "none")


def check_labels(
    labels: Sequence[Any], n: int, name: str, other: str, most: int = LONGEST_TICK
) -> list[str]:
    """Return n labels as text of at most so many letters."""
    listed = check_list(labels, name, "labels")
    texts = [plain_label(text, most) for text in format_numbers(listed, 3)]
    check_same_length(n, f"`{other}`", len(texts), name)
    return texts


def label_rows(
    groups: Any, n: int, other: str, name: str = "groups"
) -> tuple[NDArray[Any], list[str] | None]:
    """Return a number for each row, NaN in gaps, and the names that are numbered."""
    array, cells = np.asarray(groups), np.asarray(groups, dtype=object)
    if array.ndim != 1:
        refuse(name, "hold labels of shape (n,)", f"shape {array.shape}")
    check_same_length(n, f"`{other}`", len(array), name)
    if array.dtype.kind in "iuf":
        return array, None
    is_bool = not {bool, np.bool_}.isdisjoint(map(type, cells))
    if array.dtype.kind == "O" and not is_bool and find_no_number(cells) is None:
        return as_numbers(cells, name), None
    values, known = np.full(n, np.nan), np.array([not is_gap(c) for c in cells], bool)
    texts = array[known].astype(str)
    if array.dtype.kind == "M" and not np.can_cast(array.dtype, "M8[D]"):
        texts = np.datetime_as_string(array[known], unit="auto")
    names, values[known] = np.unique(texts, return_inverse=True)
    return values, names.tolist()


def group_numbers(
    values: NDArray[Any],
    most: int,
    n_bins: int,
    show: Callable[[float, int], str],
    looks: tuple[str, str],
) -> tuple[list[str], NDArray[np.intp]]:
    """Return names of groups of numbers, and the group of each; that of NaN is void.

    Up to so many different numbers are a group each; more are put into about so many
    bins, which have two looks, the last one for the last bin. A bin begins at one of
    the numbers, so that its name is true of whole numbers. A number that fills a bin is
    one by itself.
    """
    known = np.sort(values[~np.isnan(values)])
    distinct = np.unique(known)
    if len(distinct) <= most:
        texts = format_numbers(distinct.tolist(), 4, show)
        return texts, np.searchsorted(distinct, values)
    starts, times = np.unique(_split(known, n_bins), return_counts=True)
    full = starts[times > 1]
    if len(full):
        rest = known[~np.isin(known, full)]
        after = np.searchsorted(distinct, full, "right")
        after = distinct[after[after < len(distinct)]]
        rest = _split(rest, n_bins - times[times > 1].sum())
        starts = np.unique(np.concatenate([full, after, rest]))
    edges = format_numbers([*starts.tolist(), float(known[-1])], 3, show)
    look = [*[looks[0]] * (len(starts) - 1), looks[1]]
    size = np.bincount(np.searchsorted(starts, distinct, "right") - 1)
    texts = [
        one.format(*pair) if n > 1 else pair[0]
        for one, pair, n in zip(look, pairwise(edges), size, strict=True)
    ]
    return texts, np.searchsorted(starts[1:], values, "right")


def _split(values: NDArray[Any], n: int) -> NDArray[Any]:
    """Return the first of each of n parts of sorted values that are equally large."""
    return values[np.arange(n) * len(values) // n]


def name_of(values: Any, otherwise: str = "") -> str:
    """Return the name of a column of a data frame, or another for what has none."""
    name = getattr(values, "name", None)
    return otherwise if name is None else plain_label(name)


def name_target(target_name: Any, *columns: Any) -> str:
    """Return what the target's axis is called: as given, as a column is, or y."""
    if target_name is None:
        return next(filter(None, map(name_of, columns)), "y")
    if not isinstance(target_name, str):
        refuse("target_name", "be a text", type(target_name).__name__, TypeError)
    return plain_label(target_name, _LONGEST_NAME)


def format_percent(share: float) -> str:
    """Return a share as a percentage without superfluous digits."""
    return f"{100.0 * share:.3g}%"
