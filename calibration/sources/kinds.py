"""What kinds of columns there are, and that all parts of a table agree on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["number", "bool", "text", "time", "gaps"]


def kinds_of(frame: Any) -> dict[str, Kind]:
    """Return the kind of every column of a pandas frame, or of one like it.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    dict of str to {"number", "bool", "text", "time", "gaps"}
        Columns of gaps alone go with any kind.
    """
    return {str(name): _kind_of(frame[name]) for name in frame.columns}


def _kind_of(column: Any) -> Kind:
    from pandas.api import types

    dtype = column.dtype
    if isinstance(dtype, types.CategoricalDtype):
        dtype = dtype.categories.dtype
    if types.is_bool_dtype(dtype):
        return "bool"
    if types.is_numeric_dtype(dtype):
        # A column of a CSV file without entries is read as numbers that all lack.
        return "gaps" if _is_empty(column) else "number"
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "time"
    return "gaps" if _is_empty(column) else "text"


def _is_empty(column: Any) -> bool:
    """Say whether a column of a frame in memory holds nothing but gaps."""
    if getattr(column, "array", None) is None or len(column) == 0:
        return False
    return not column.iloc[:1].notna().any() and not column.notna().any()


def check_alike(
    kinds: Mapping[str, Kind], of: str, first: Mapping[str, Kind], of_first: str
) -> None:
    """Refuse columns that differ from those of the first file or part.

    Parameters
    ----------
    kinds, first : mapping of str to str
        Kinds by name of column, here and in the first.
    of, of_first : str
        What each is called.
    """
    for name in first:
        if name not in kinds:
            msg = (
                f"`source` must have the same columns everywhere, got {of} without "
                f"the column {name!r} of {of_first}."
            )
            raise ValueError(msg)
    for name, kind in kinds.items():
        if name not in first:
            msg = (
                f"`source` must have the same columns everywhere, got {of} with a "
                f"column {name!r} that {of_first} lacks."
            )
            raise ValueError(msg)
        if "gaps" not in (kind, first[name]) and kind != first[name]:
            msg = (
                f"`source` must have columns of one type, got the column {name!r} as "
                f"{kind} in {of}, as {first[name]} in {of_first}."
            )
            raise ValueError(msg)


def join_kinds(one: Mapping[str, Kind], other: Mapping[str, Kind]) -> dict[str, Kind]:
    """Return the kinds of two parts that agree: what a part of gaps lacks.

    Parameters
    ----------
    one, other : mapping of str to str

    Returns
    -------
    dict of str to str
    """
    return {name: other[name] if kind == "gaps" else kind for name, kind in one.items()}
