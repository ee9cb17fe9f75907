"""`Directions`: the features with which forecasts may only rise, or only fall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from calibration._validation import check_mapping, refuse
from localexpert.data.table import TableReader

# Columns with +1 or -1, by name, or by position in an array. Or a number for every
# column, as in LightGBM.
Directions: TypeAlias = Mapping[Any, int] | Sequence[int]

# A message names at most this many columns.
_MOST_NAMED = 8


def check_directions(monotone: Any) -> Directions | None:
    """Return directions as integers, or None if there are none. Refuse anything else.

    Parameters
    ----------
    monotone : mapping of column to {-1, 1}, list of {-1, 0, 1}, or None

    Returns
    -------
    dict, list or None
    """
    if monotone is None:
        return None
    listed = isinstance(monotone, list | tuple | np.ndarray)
    if not listed:
        check_mapping(monotone, "monotone", "columns and +1 or -1, or a list")
    allowed, rule = ((-1, 0, 1), "+1, -1 or 0") if listed else ((-1, 1), "+1 or -1")
    signs = dict(enumerate(monotone)) if listed else monotone
    for column, sign in signs.items():
        number = isinstance(sign, Real) and not isinstance(sign, bool)
        if not number or sign not in allowed:
            refuse("monotone", f"be {rule}", f"{sign!r} of column {column!r}")
    if not any(signs.values()):
        return None
    if listed:
        return [int(sign) for sign in monotone]
    return {column: int(sign) for column, sign in monotone.items()}


def read_directions(monotone: Directions | None, reader: TableReader) -> list[int]:
    """Return the direction of each feature of a table, or 0 if it has none.

    Parameters
    ----------
    monotone : mapping of column to {-1, 1}, list of {-1, 0, 1}, or None
        Columns by name, or by position in an array. Or one number for each column,
        except those that a frame adds. The features of dates have their own names
        (`TableReader.features`). A number for a column of dates applies to its days.
    reader : TableReader
        The reader that has read the table.

    Returns
    -------
    list of int, of length p
    """
    signs, n = [0] * reader.features.n_columns, reader.columns.n_columns
    n -= reader.n_added
    if isinstance(monotone, Mapping) or monotone is None:
        found = {
            _find(column, reader): sign for column, sign in (monotone or {}).items()
        }
    elif len(monotone) == n:
        owner = reader.column_of
        found = {owner.index(j): sign for j, sign in enumerate(monotone) if sign}
    else:
        rule = "have a number for each column of `X` where it is a list"
        refuse("monotone", rule, f"{len(monotone)} for {n} columns")
    for place, sign in found.items():
        if place in reader.category_codes:
            name = (reader.features.names or ())[place]
            rule = "name columns of numbers, for categories have no order"
            refuse("monotone", rule, repr(name))
        signs[place] = sign
    return signs


def describe_directions(monotone: Directions) -> dict[str, str]:
    """Return the directions in the form of a report.

    Parameters
    ----------
    monotone : mapping of column to {-1, 1}, or list of {-1, 0, 1}

    Returns
    -------
    dict
        Ready for JSON.
    """
    listed = monotone if isinstance(monotone, Mapping) else dict(enumerate(monotone))
    signed = [f"{column} {sign:+d}" for column, sign in listed.items() if sign]
    return {"chosen": ", ".join(signed)}


def _find(column: Any, reader: TableReader) -> int:
    """Return the position of a column that `monotone` names."""
    names, n = reader.features.names, reader.features.n_columns
    if names is None:
        position = isinstance(column, Integral) and not isinstance(column, bool)
        if position and 0 <= column < n:
            return int(column)
        rule = f"name columns of an array by their positions, 0 to {n - 1}"
        refuse("monotone", rule, repr(column))
    places = [place for place, name in enumerate(names) if name == column]
    if not places:
        listed = ", ".join(repr(name) for name in names[:_MOST_NAMED])
        more = ", ..." if len(names) > _MOST_NAMED else ""
        refuse("monotone", f"name columns of `X` ({listed}{more})", repr(column))
    if len(places) > 1:
        refuse("monotone", "name one column each", f"{column!r} of {len(places)}")
    return places[0]
