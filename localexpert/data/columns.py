"""Columns: what they are called, which hold categories, and their values as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from calibration.typing import Float64Array


@dataclass(frozen=True)
class Columns:
    """Number and, of a data frame, names of the columns of a table."""

    n_columns: int
    names: tuple[Any, ...] | None

    @classmethod
    def of(cls, X: Any) -> Columns:
        """Read them off an array or a data frame with two axes."""
        shape = getattr(X, "shape", None)
        if shape is None or len(shape) != 2:
            got = type(X).__name__ if shape is None else f"shape {tuple(shape)}"
            msg = f"`X` must be an array or data frame with two axes, got {got}."
            raise ValueError(msg)
        names = getattr(X, "columns", None)
        return cls(int(shape[1]), None if names is None else tuple(names))

    def check(self, X: Any) -> None:
        """Refuse a table whose columns are not these in this order."""
        got = Columns.of(X)
        if got.n_columns != self.n_columns:
            msg = (
                f"`X` must have {self.n_columns} columns as in `fit`, "
                f"got {got.n_columns}."
            )
            raise ValueError(msg)
        if None in (self.names, got.names) or got.names == self.names:
            return
        pairs = zip(self.names or (), got.names or (), strict=True)
        place, (want, name) = next(
            (i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1]
        )
        msg = (
            "`X` must have the columns of `fit` in the same order, "
            f"got {name!r} in the place of {want!r} (column {place})."
        )
        raise ValueError(msg)

    def free_names(self, wanted: Iterable[str]) -> list[Any]:
        """Return names for more columns that no column has.

        They are of the kind of the others: scikit-learn takes no names of several
        types, and pandas no text where names have levels.
        """
        taken = self.names or ()
        if taken and all(isinstance(name, Integral) for name in taken):
            return [max(taken) + 1 + place for place, _ in enumerate(wanted)]
        if taken and isinstance(taken[0], tuple):
            levels = ("",) * (len(taken[0]) - 1)
            heads = tuple(name[0] for name in taken)
            return [(_until_free(name, heads), *levels) for name in wanted]
        return [_until_free(name, taken) for name in wanted]

    def and_more(self, more: Sequence[Any]) -> Columns:
        """Return the columns of the table with some more, of free names."""
        names = None if self.names is None else (*self.names, *more)
        return Columns(self.n_columns + len(more), names)


def _until_free(name: str, taken: tuple[Any, ...]) -> str:
    return _until_free(f"{name}_", taken) if name in taken else name


def has_columns(X: Any) -> bool:
    """Say whether a table is a data frame."""
    return hasattr(X, "columns")


def list_columns(X: Any) -> list[Any]:
    """Return the columns of a data frame by position, for names may repeat."""
    if hasattr(X, "iloc"):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    return [X[name] for name in X.columns]


def is_category(column: Any) -> bool:
    """Say whether a column of a data frame holds strings, objects or categories."""
    name = str(column.dtype).lower()
    return name.startswith(("object", "str", "category", "categorical", "enum"))


def list_categories(column: Any) -> list[Any]:
    """Return the values of a category that are not missing, in order."""
    # Types with an order of their own: pandas' category, polars' Enum.
    if str(column.dtype).lower().startswith(("category", "enum")):
        return list(column.dtype.categories)
    values = [value for value in list(column.unique()) if not _is_missing(value)]
    # By their names where values of several types cannot be compared.
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def read_categories(column: Any, codes: dict[Any, float]) -> Float64Array:
    """Return a column of categories by their codes; what has none is missing, NaN."""
    if not hasattr(column, "factorize"):  # polars
        values = column.to_list()
        return np.array([codes.get(value, np.nan) for value in values], dtype=float)
    # Values are looked up once each, not once a row; -1 stands for a missing one.
    places, values = column.factorize()
    known = [codes.get(value, np.nan) for value in values]
    found: Float64Array = np.array([*known, np.nan])[places]
    return found


def read_numbers(column: Any, name: Any) -> Float64Array:
    """Return a column of numbers or booleans as float64, missing as NaN."""
    # Dates would pass as counts of nanoseconds; polars has no kinds of types.
    if getattr(column.dtype, "kind", "f") in "biuf":
        try:
            if hasattr(column, "isna"):
                return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
            return np.asarray(column.to_numpy(), dtype=np.float64)
        except (TypeError, ValueError):
            pass
    msg = (
        "`X` must hold numbers, booleans or categories, "
        f"got dtype {column.dtype} in column {name!r}{_remedy(column)}."
    )
    raise TypeError(msg)


def _is_missing(value: Any) -> bool:
    """Say whether a value of a data frame stands for nothing: None, NaN, NA, NaT."""
    if value is None:
        return True
    same = value == value  # noqa: PLR0124 - NaN and NaT are told by this, NA by its type
    return not isinstance(same, (bool, np.bool_)) or not same


def _remedy(column: Any) -> str:
    """Return what to do about a column of another kind, if that is clear."""
    if str(column.dtype).lower().startswith(("datetime", "date")):
        return "; make numbers of dates: days since one, the month, the weekday"
    return ""
