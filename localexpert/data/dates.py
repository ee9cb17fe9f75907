"""Dates as numbers: days, and parts of a date such as month and weekday."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import is_gap

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
        msg = f"`dates` must be a column of dates, got {got} of shape {shape}."
        raise TypeError(msg)
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


def varying_parts(days: Float64Array) -> tuple[str, ...]:
    """Return the parts that vary among these dates."""
    parts = date_parts(days[~np.isnan(days)])
    return tuple(name for name, part in parts.items() if len(part) and np.ptp(part))


def holds_dates(column: Any) -> bool:
    """Say whether a column holds dates, by its type or by all of its objects."""
    kind = getattr(column, "dtype", None)
    name = str(kind).lower()
    if name.startswith(("date", "timestamp")):
        return True
    if getattr(kind, "kind", None) != "O" and name != "object":
        return False
    cells = column.to_list() if hasattr(column, "to_list") else list(column)
    samples = dict(zip(map(type, cells), cells, strict=True)).values()
    held = [cell for cell in samples if not is_gap(cell)]
    return bool(held) and all(isinstance(cell, datetime.date) for cell in held)


def read_days(column: Any) -> Float64Array:
    """Return days since 1970-01-01 UTC of a column of dates, NaN where missing."""
    if hasattr(column, "dt") and hasattr(column.dt, "epoch"):  # polars
        return np.asarray(column.dt.epoch("us").cast(float).to_numpy()) / _MICROSECONDS
    if getattr(column.dtype, "kind", None) != "M" or "date" in _arrow_name(column):
        column = np.array(
            [_as_utc(cell) for cell in column.to_list()], "datetime64[us]"
        )
    elif hasattr(column, "to_numpy"):
        column = column.to_numpy("datetime64[us]")
    return _count(column.astype("datetime64[us]")) / _MICROSECONDS


def read_seconds(column: Any) -> Float64Array:
    """Return the seconds of a column of durations, NaN where missing."""
    if hasattr(column.dt, "total_microseconds"):  # polars
        return np.asarray(column.dt.total_microseconds().cast(float).to_numpy()) / 1e6
    return _count(column.to_numpy("timedelta64[us]")) / 1e6


def _arrow_name(column: Any) -> str:
    """Return the type of a column of Arrow, "" of any other."""
    return str(getattr(column.dtype, "pyarrow_dtype", ""))


def _as_utc(cell: Any) -> datetime.datetime | datetime.date | None:
    """Return a date as NumPy reads it, because NumPy has no time zones."""
    if is_gap(cell):
        return None
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        return cell.astimezone(datetime.UTC).replace(tzinfo=None)
    return cell if isinstance(cell, datetime.date) else None


def _count(moments: Any) -> Float64Array:
    """Return dates or durations as numbers of their unit, NaN where missing."""
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64))
