"""`Directions`: in which features forecasts may only rise, or only fall."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Integral, Real
from typing import Any, TypeAlias

from localexpert._validation import check_mapping
from localexpert.data.table import TableReader

# +1 or -1 of columns, by their names, or of an array by their positions.
Directions: TypeAlias = Mapping[Hashable, int]

# Columns that a message names.
_MOST_NAMED = 8


def check_directions(monotone: Any) -> Directions | None:
    """Return directions as integers, None where there is none; refuse what is none.

    Parameters
    ----------
    monotone : mapping of column to {-1, 1}, or None

    Returns
    -------
    dict or None
    """
    if monotone is None:
        return None
    check_mapping(monotone, "monotone", "columns and +1 or -1")
    for column, sign in monotone.items():
        number = isinstance(sign, Real) and not isinstance(sign, bool)
        if not number or sign not in (-1, 1):
            msg = f"`monotone` must be +1 or -1, got {sign!r} of column {column!r}."
            raise ValueError(msg)
    return {column: int(sign) for column, sign in monotone.items()} or None


def read_directions(monotone: Directions | None, reader: TableReader) -> list[int]:
    """Return the direction of each column of a table, 0 where there is none.

    Parameters
    ----------
    monotone : mapping of column to {-1, 1}, or None
        Columns by name, or of an array by position.
    reader : TableReader
        Which has read the table.

    Returns
    -------
    list of int, of length p
    """
    signs = [0] * reader.columns.n_columns
    for column, sign in (monotone or {}).items():
        place = _find(column, reader)
        if place in reader.category_codes:
            msg = (
                "`monotone` must name columns of numbers, for categories have no "
                f"order, got {column!r}."
            )
            raise ValueError(msg)
        signs[place] = sign
    return signs


def describe_directions(monotone: Directions) -> dict[str, str]:
    """Return the directions as a report tells them.

    Parameters
    ----------
    monotone : mapping of column to {-1, 1}

    Returns
    -------
    dict
        Ready for JSON.
    """
    told = [f"{column} {sign:+d}" for column, sign in monotone.items()]
    return {"chosen": ", ".join(told)}


def _find(column: Any, reader: TableReader) -> int:
    """Return the position of a column that `monotone` names."""
    names, n = reader.columns.names, reader.columns.n_columns
    if names is None:
        position = isinstance(column, Integral) and not isinstance(column, bool)
        if position and 0 <= column < n:
            return int(column)
        msg = (
            "`monotone` must name columns of an array by their positions, "
            f"0 to {n - 1}, got {column!r}."
        )
        raise ValueError(msg)
    places = [place for place, name in enumerate(names) if name == column]
    if len(places) == 1:
        return places[0]
    if places:
        msg = f"`monotone` must name one column each, got {column!r} of {len(places)}."
        raise ValueError(msg)
    listed = ", ".join(repr(name) for name in names[:_MOST_NAMED])
    more = ", ..." if len(names) > _MOST_NAMED else ""
    msg = f"`monotone` must name columns of `X` ({listed}{more}), got {column!r}."
    raise ValueError(msg)
