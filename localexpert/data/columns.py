"""Columns: their names, which of them hold categories or dates, and their numbers."""

from __future__ import annotations

import datetime
import re
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration._validation import as_numbers, find_no_number, is_gap, refuse
from calibration.typing import Float64Array
from localexpert.data.unseen import Unseen

# Features of a date besides its days since 1970.
PARTS = ("year", "month", "weekday", "hour")
_MICROSECONDS = 8.64e10


def date_features(dates: Any) -> dict[str, Float64Array]:
    """Return the numbers that stand for a column of dates.

    `LocalExpertRegressor` and the command ``localexpert`` use the same numbers, but
    leave out the parts that do not vary in training.

    Parameters
    ----------
    dates : column of shape (n,)
        Dates or timestamps: a Series of pandas (NumPy's types, Arrow's, or Python
        objects) or of polars, or an array of ``datetime64``. With a time zone they are
        read as UTC.

    Returns
    -------
    dict of str to ndarray of shape (n,)
        "days" since 1970-01-01 with the time of day as a fraction, "year", "month"
        (1 to 12), "weekday" (0 is Monday) and "hour" (0 to 24). NaN where missing.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import date_features
    >>> parts = date_features(np.array(["2024-02-29T06:00", "NaT"], "datetime64[m]"))
    >>> {name: float(values[0]) for name, values in parts.items()}
    {'days': 19782.25, 'year': 2024.0, 'month': 2.0, 'weekday': 3.0, 'hour': 6.0}
    """
    shape = getattr(dates, "shape", ())
    if len(shape) != 1 or not holds_dates(dates):
        got = getattr(dates, "dtype", type(dates).__name__)
        refuse("dates", "be a column of dates", f"{got} of shape {shape}", TypeError)
    days = read_days(dates)
    return {"days": days, **date_parts(days)}


def date_parts(days: Float64Array) -> dict[str, Float64Array]:
    """Return year, month, weekday and hour of days since 1970, NaN where missing."""
    known = ~np.isnan(days)
    whole = np.floor(days[known])
    dates = whole.astype("datetime64[D]")
    months = dates.astype("datetime64[M]").astype(np.int64)
    # 1970-01-01 was a Thursday.
    found = (
        1970 + months // 12,
        1 + months % 12,
        (whole + 3) % 7,
        np.round(24.0 * (days[known] - whole), 6),
    )
    parts = {name: np.full(len(days), np.nan) for name in PARTS}
    for values, part in zip(parts.values(), found, strict=True):
        values[known] = part
    return parts


def choose_features(column: Any) -> tuple[str, ...]:
    """Return the features of dates, those that vary, or () for any other column."""
    if not holds_dates(column):
        return ()
    days = read_days(column)
    parts = date_parts(days[~np.isnan(days)]).items()
    return ("days", *(name for name, part in parts if len(part) and np.ptp(part)))


def holds_dates(column: Any) -> bool:
    """Say whether a column holds dates, by its type or by all of its objects."""
    if str(column.dtype).lower().startswith(("date", "timestamp")):
        return True
    if not _holds_objects(column):
        return False
    cells = column.to_list() if hasattr(column, "to_list") else list(column)
    samples = dict(zip(map(type, cells), cells, strict=True)).values()
    held = [cell for cell in samples if not is_gap(cell)]
    return bool(held) and all(isinstance(cell, datetime.date) for cell in held)


# As pandas, polars, Arrow, `datetime` and dateutil write it.
_NAMES_OF_UTC = {"UTC", "Etc/UTC", "UTC+00:00", "+00:00", "tzutc()"}


def has_zone(column: Any) -> bool | None:
    """Say whether dates have a time zone. None if it is UTC, as which all are read."""
    kind = getattr(column.dtype, "pyarrow_dtype", column.dtype)
    # Of pandas and Arrow, of polars, or of each object.
    zones = {getattr(kind, "tz", getattr(kind, "time_zone", None))}
    if zones == {None} and getattr(kind, "kind", None) == "O":
        zones = {getattr(cell, "tzinfo", None) for cell in column.to_list()}
    names = {str(zone) for zone in zones - {None}}
    return None if names and names <= _NAMES_OF_UTC else bool(names)


def read_days(column: Any) -> Float64Array:
    """Return days since 1970-01-01 UTC of a column of dates, NaN where missing."""
    if hasattr(column, "dt") and hasattr(column.dt, "epoch"):  # polars
        return np.asarray(column.dt.epoch("us").cast(float).to_numpy()) / _MICROSECONDS
    return _count(read_moments(column)) / _MICROSECONDS


def read_moments(column: Any) -> NDArray[np.datetime64]:
    """Return moments in UTC of a column of dates of any year, NaT where missing."""
    # The type of a column of Arrow.
    arrow = str(getattr(column.dtype, "pyarrow_dtype", ""))
    if getattr(column.dtype, "kind", None) != "M" or "date" in arrow:
        cells = column.to_list() if hasattr(column, "to_list") else list(column)
        column = np.array([_as_utc(cell) for cell in cells], "datetime64[us]")
    elif hasattr(column, "to_numpy"):
        column = column.to_numpy("datetime64[us]")
    return np.asarray(column, dtype="datetime64[us]")


def read_seconds(column: Any) -> Float64Array:
    """Return the seconds of a column of durations, NaN where missing."""
    if hasattr(column.dt, "total_microseconds"):  # polars
        return np.asarray(column.dt.total_microseconds().cast(float).to_numpy()) / 1e6
    return _count(column.to_numpy("timedelta64[us]")) / 1e6


def _as_utc(cell: Any) -> datetime.date | np.datetime64 | None:
    """Return a date as NumPy reads it, because NumPy has no time zones."""
    if is_gap(cell):
        return None
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        return cell.astimezone(datetime.UTC).replace(tzinfo=None)
    return cell if isinstance(cell, datetime.date | np.datetime64) else None


def _count(moments: Any) -> Float64Array:
    """Return dates or durations as numbers of their unit, NaN where missing."""
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64))


_TEXTS = ("str", "string", "large_string", "categorical")
_DURATIONS = ("timedelta64", "duration")
# What a user can do about columns of other types, by the start of the type's name.
_CURES = {
    "date": "; in `fit` it held no dates",
    "timestamp": "; in `fit` it held no dates",
    "timedelta": "; `pandas.to_timedelta` gives durations a type",
    "time": "; make seconds of times of day",
    "period": "; make dates of periods: `.dt.to_timestamp()`",
    "str": "; a column is all numbers or all texts",
}
# Types of polars that have no kind but are read as numbers.
_OF_POLARS = ("boolean", "null")


@dataclass(frozen=True)
class Columns:
    """The number of columns of a table, and their names in a data frame."""

    n_columns: int
    names: tuple[Any, ...] | None

    @classmethod
    def of(cls, X: Any) -> Columns:
        """Read the columns of an array or a data frame with two axes."""
        shape = getattr(X, "shape", None)
        if shape is None or len(shape) != 2:
            got = type(X).__name__ if shape is None else f"shape {tuple(shape)}"
            refuse("X", "be an array or data frame with two axes", got)
        names = getattr(X, "columns", None)
        if not (names is None or hasattr(X, "iloc") or hasattr(X, "with_columns")):
            rule = "be an array or a data frame of pandas or polars"
            refuse("X", rule, f"{type(X).__module__}.{type(X).__qualname__}", TypeError)
        return cls(int(shape[1]), None if names is None else tuple(names))

    def check(self, X: Any) -> None:
        """Refuse a table whose columns are not these in this order."""
        got = Columns.of(X)
        if got.n_columns != self.n_columns:
            refuse("X", f"have {self.n_columns} columns as in `fit`", got.n_columns)
        if None in (self.names, got.names) or got.names == self.names:
            return
        pairs = zip(self.names or (), got.names or (), strict=True)
        place, (want, name) = next(
            (i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1]
        )
        rule = "have the columns of `fit` in the same order"
        refuse("X", rule, f"{name!r} in the place of {want!r} (column {place})")

    def free_names(self, wanted: Iterable[str]) -> list[Any]:
        """Return names for more columns that no column has yet.

        They have the same type as the others. scikit-learn does not accept names of
        several types, and pandas does not accept text if names have levels.
        """
        taken = self.names or ()
        if taken and all(isinstance(name, Integral) for name in taken):
            return [max(taken) + 1 + place for place, _ in enumerate(wanted)]
        if taken and isinstance(taken[0], tuple):
            levels = ("",) * (len(taken[0]) - 1)
            heads = tuple(name[0] for name in taken)
            return [(until_free(name, heads), *levels) for name in wanted]
        return [until_free(name, taken) for name in wanted]


def until_free(name: str, taken: tuple[Any, ...]) -> str:
    """Return a name that is not yet taken."""
    return until_free(f"{name}_", taken) if name in taken else name


def has_columns(X: Any) -> bool:
    """Say whether a table is a data frame."""
    return hasattr(X, "columns")


def list_columns(X: Any) -> list[Any]:
    """Return the columns of a data frame by position, because names may repeat."""
    if hasattr(X, "iloc"):
        return [column for _, column in X.items()]
    return [X[name] for name in X.columns]


def list_categories(column: Any) -> list[Any] | None:
    """Return the values of a category in order, or None if the column holds none.

    Texts are categories, and so are the values of a categorical type. A column of
    objects holds categories if all of its values are texts. A value that a type lists
    and no row has only counts if the type is ordered: then it lies between others.
    """
    kind = _name_type(column)
    # Types that list their values: pandas' category, polars' Enum. What an Enum lists
    # has an order, too, but most often it means nothing.
    if kind in ("category", "enum"):
        listed = list(column.dtype.categories)
        if getattr(column.dtype, "ordered", False):
            return listed
        held = set(column.unique())
        return [value for value in listed if value in held]
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
    column: Any, codes: dict[Any, float], name: Any, unseen: list[Unseen] | None = None
) -> Float64Array:
    """Return a column of categories as codes. A value without a code becomes NaN.

    If such a value is not missing, it is added to `unseen`.
    """
    places = np.arange(len(column))
    try:
        if hasattr(column, "factorize"):
            # Each value is looked up once, not once per row. -1 is a missing value.
            places, column = column.factorize()
        cells = column.to_list()
        found = np.array([*map(codes.get, cells), None], dtype=np.float64)
    except TypeError as error:  # lists and the like, without a hash
        rule = f"hold categories in column {name!r}"
        refuse("X", rule, error, TypeError, cause=error)
    unknown = np.flatnonzero(np.isnan(found[:-1])).tolist()
    strange = [place for place in unknown if not is_gap(cells[place])]
    # Refuse values of another type than the categories, such as 7 instead of "7".
    kinds = {_find_kind(type(code)) for code in codes}
    for cell in (cells[place] for place in strange if codes):
        if _find_kind(type(cell)) not in kinds:
            met = f"column {name!r}, where they were such as {next(iter(codes))!r}"
            rule, got = "hold categories as in `fit`", f"{reprlib.repr(cell)} in {met}"
            refuse("X", rule, got, TypeError)
    if unseen is not None and strange:
        n_rows = int(np.isin(places, strange).sum())
        unseen.append(Unseen(name, n_rows, cells[strange[0]]))
    return np.asarray(found[places])


def _find_kind(cell: type) -> type:
    """Return a common base for types whose values may be equal."""
    if issubclass(cell, (Number, np.bool_)):
        return Number
    return str if issubclass(cell, str) else cell


def read_dates(
    column: Any, name: Any, zoned: bool | None = None
) -> dict[str, Float64Array]:
    """Return a column's `date_features`. Refuse a column without dates.

    Refuse dates without a time zone if those of `fit` had one, and the other way round:
    the same hour of a clock would be read as another one.
    """
    if holds_dates(column):
        odd = zoned is not None and has_zone(column) not in (zoned, None)
        if odd and not all(map(is_gap, column.to_list())):
            rule = f"have {'a' if zoned else 'no'} time zone as in `fit`"
            refuse(f"X[{name!r}]", rule, f"dtype {column.dtype}", TypeError)
        return date_features(column)
    cells = column.to_list()
    if not all(map(is_gap, cells)):
        rule = f"hold dates as in `fit` in column {name!r}"
        refuse("X", rule, f"dtype {column.dtype}", TypeError)
    return date_features(np.full(len(cells), "NaT", "datetime64[us]"))


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
    # Without this check dates would be read as counts of nanoseconds.
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


def refuse_infinite(values: Float64Array, names: Sequence[Any] | None) -> None:
    """Refuse infinite numbers (n, p), the first by its row and column."""
    infinite = np.isinf(values)
    if infinite.any():
        row, place = np.argwhere(infinite)[0].tolist()
        name = place if names is None else names[place]
        refuse("X", "hold finite numbers or gaps", f"inf in row {row}, column {name!r}")


def read_array(X: Any) -> Float64Array:
    """Return an array of numbers or booleans as float64, missing as NaN."""
    try:
        return np.ascontiguousarray(as_numbers(X, "X"))
    except TypeError as error:
        # scikit-learn's checks expect this message for strings.
        msg = (
            f"{error} The argument must be a data frame to hold dates, or strings "
            "beside numbers."
        )
        raise TypeError(msg) from error


def _name_type(column: Any) -> str:
    """Return the name of a type, without the part in brackets."""
    return re.split(r"[\[(<]", str(column.dtype).lower())[0]


def _holds_objects(column: Any) -> bool:
    """Say whether a column may hold any Python objects, so its values must be read."""
    return getattr(column.dtype, "kind", None) == "O" or _name_type(column) == "object"
