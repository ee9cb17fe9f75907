"""Columns: what they are called, which hold categories, and their values as numbers."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Number
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import as_numbers, find_no_number, is_gap
from localexpert.data.dates import date_features, holds_dates, read_seconds
from localexpert.data.unseen import Unseen

_TEXTS = ("str", "string", "large_string", "categorical")
_DURATIONS = ("timedelta64", "duration")
# What to do about columns of other types, by how the type's name begins.
_CURES = {
    "date": "; in `fit` it held no dates",
    "timestamp": "; in `fit` it held no dates",
    "timedelta": "; `pandas.to_timedelta` gives durations a type",
    "time": "; make seconds of times of day",
    "period": "; make dates of periods: `.dt.to_timestamp()`",
    "str": "; a column is all numbers or all texts",
}
# Types without kinds that are numbers too.
_OF_POLARS = ("boolean", "null")


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
        if names is not None and not any(
            hasattr(X, name) for name in ("iloc", "with_columns")
        ):
            msg = (
                "`X` must be an array or a data frame of pandas or polars, "
                f"got {type(X).__module__}.{type(X).__qualname__}."
            )
            raise TypeError(msg)
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
            return [(until_free(name, heads), *levels) for name in wanted]
        return [until_free(name, taken) for name in wanted]

    def and_more(self, more: Sequence[Any]) -> Columns:
        """Return the columns of the table with some more, of free names."""
        names = None if self.names is None else (*self.names, *more)
        return Columns(self.n_columns + len(more), names)


def until_free(name: str, taken: tuple[Any, ...]) -> str:
    """Return a name that none of those taken is."""
    return until_free(f"{name}_", taken) if name in taken else name


def has_columns(X: Any) -> bool:
    """Say whether a table is a data frame."""
    return hasattr(X, "columns")


def list_columns(X: Any) -> list[Any]:
    """Return the columns of a data frame by position, for names may repeat."""
    if hasattr(X, "iloc"):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    return [X[name] for name in X.columns]


def list_categories(column: Any) -> list[Any] | None:
    """Return the values of a category in order, None of a column that holds none.

    Texts are categories, and whatever a categorical type holds. A column of objects
    is one if all that is in it are texts.
    """
    kind = _name_type(column)
    # Types with an order of their own: pandas' category, polars' Enum.
    if kind in ("category", "enum"):
        return list(column.dtype.categories)
    texts = kind in _TEXTS
    if texts:
        with_codes = hasattr(column, "factorize")
        column = column.factorize()[1] if with_codes else column.unique()
    elif not _holds_objects(column):
        return None
    cells = column.to_list()
    samples = {type(cell): cell for cell in cells}.values()
    if not all(isinstance(c, str | float | np.floating) or is_gap(c) for c in samples):
        return None  # lists and the like, without a hash
    values = {value for value in cells if not is_gap(value)}
    if not all(isinstance(value, str) for value in values):
        return None
    return sorted(values) if texts or values else None


def read_categories(
    column: Any,
    codes: dict[Any, float],
    name: Any,
    unseen: list[Unseen] | None = None,
) -> Float64Array:
    """Return a column of categories by their codes; what has none is missing, NaN.

    What is not missing and yet has none is added to `unseen`.
    """
    places = np.arange(len(column))
    try:
        if hasattr(column, "factorize"):
            # Values are looked up once each, not once a row; -1 is a missing one.
            places, column = column.factorize()
        cells = column.to_list()
        found = np.array([*map(codes.get, cells), None], dtype=np.float64)
    except TypeError as error:  # lists and the like, without a hash
        msg = f"`X` must hold categories in column {name!r}, got {error}."
        raise TypeError(msg) from error
    unknown = np.flatnonzero(np.isnan(found[:-1])).tolist()
    strange = [place for place in unknown if not is_gap(cells[place])]
    # Values of a kind that no category is of, such as 7 where "7" is one.
    kinds = {_find_kind(type(code)) for code in codes}
    for cell in (cells[place] for place in strange if codes):
        if _find_kind(type(cell)) not in kinds:
            msg = (
                f"`X` must hold categories as in `fit`, got {reprlib.repr(cell)} in "
                f"column {name!r}, where they were such as {next(iter(codes))!r}."
            )
            raise TypeError(msg)
    if unseen is not None and strange:
        n_rows = int(np.isin(places, strange).sum())
        unseen.append(Unseen(name, n_rows, cells[strange[0]]))
    coded: Float64Array = found[places]
    return coded


def _find_kind(cell: type) -> type:
    """Return what types have in common whose values may be equal."""
    if issubclass(cell, (Number, np.bool_)):
        return Number
    return str if issubclass(cell, str) else cell


def read_dates(column: Any, name: Any) -> dict[str, Float64Array]:
    """Return a column's `date_features`; refuse what holds no dates."""
    if holds_dates(column):
        return date_features(column)
    cells = column.to_list()
    if all(map(is_gap, cells)):
        return date_features(np.full(len(cells), "NaT", "datetime64[us]"))
    msg = (
        f"`X` must hold dates as in `fit` in column {name!r}, got dtype {column.dtype}."
    )
    raise TypeError(msg)


def read_numbers(column: Any, name: Any) -> Float64Array:
    """Return a column of numbers, booleans or durations as float64, missing as NaN.

    Durations are seconds.
    """
    kind = getattr(column.dtype, "kind", None)
    if _name_type(column) in _DURATIONS:
        return read_seconds(column)
    if kind is not None and kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind is None and (column.dtype.is_numeric() or _name_type(column) in _OF_POLARS):
        return np.asarray(column.cast(float).to_numpy())
    # Dates would pass as counts of nanoseconds.
    got, what = f"dtype {column.dtype}", _name_type(column)
    if _holds_objects(column):
        cells = np.asarray(column.to_numpy(), dtype=object)
        place = find_no_number(cells)
        if place is None:
            return as_numbers(cells, f"X[{name!r}]")
        got = f"{reprlib.repr(cells[place])} (row {place})"
        what = type(cells[place]).__name__.lower()
    cure = next((cure for kind, cure in _CURES.items() if what.startswith(kind)), "")
    msg = (
        "`X` must hold numbers, booleans, categories or dates, "
        f"got {got} in column {name!r}{cure}."
    )
    raise TypeError(msg)


def read_array(X: Any) -> Float64Array:
    """Return an array of numbers or booleans as float64, missing as NaN."""
    try:
        return np.ascontiguousarray(as_numbers(X, "X"))
    except TypeError as error:
        # Of strings scikit-learn's checks want to hear.
        msg = (
            f"{error} The argument must be a data frame to hold dates, or strings "
            "beside numbers."
        )
        raise TypeError(msg) from error


def _name_type(column: Any) -> str:
    """Return what a type is called, without what is said in brackets."""
    return re.split(r"[\[(<]", str(column.dtype).lower())[0]


def _holds_objects(column: Any) -> bool:
    """Say whether any Python objects may be in a column: its values must tell."""
    return getattr(column.dtype, "kind", None) == "O" or _name_type(column) == "object"
