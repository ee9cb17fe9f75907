"""Values of pandas that a fitted model may hold: labels of columns, categories, dtypes.

pandas is asked only where a value or a file is about it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibration.storage.errors import StorageError

# Indices that `pandas.Index` makes again from values and a dtype.
_INDICES = (
    "Index",
    "DatetimeIndex",
    "TimedeltaIndex",
    "PeriodIndex",
    "IntervalIndex",
    "CategoricalIndex",
)


def is_pandas(*names: str) -> Callable[[Any], bool]:
    """Return a function that tells values of classes of pandas by their names."""

    def holds(value: Any) -> bool:
        cls = type(value)
        return cls.__module__.partition(".")[0] == "pandas" and cls.__name__ in names

    return holds


def is_pandas_dtype(value: Any) -> bool:
    """Say whether a value is a dtype of pandas, but for those with categories."""
    cls = type(value)
    is_dtype = cls.__name__.endswith("Dtype") and cls.__name__ != "CategoricalDtype"
    return is_dtype and cls.__module__.partition(".")[0] == "pandas"


def take_timestamp(value: Any) -> list[Any]:
    """Return the instant, in its unit, and the name of the zone."""
    zone = None if value.tz is None else str(value.tz)
    return _checked(value, [value.to_datetime64(), zone], make_timestamp)


def make_timestamp(instant: np.datetime64, zone: str | None) -> Any:
    """Return the `Timestamp`."""
    stamp = _pandas().Timestamp(instant)
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(zone)


def take_interval(value: Any) -> list[Any]:
    """Return the ends, and which of them belong to the interval."""
    return [value.left, value.right, value.closed]


def make_interval(left: Any, right: Any, closed: Any) -> Any:
    """Return the `Interval`."""
    return _pandas().Interval(left, right, closed)


def take_dtype(value: Any) -> list[Any]:
    """Return the name of a dtype."""
    return _checked(value, [str(value)], make_dtype)


def make_dtype(name: str) -> Any:
    """Return the dtype of a name."""
    return _pandas().api.types.pandas_dtype(name)


def take_categories(value: Any) -> list[Any]:
    """Return the categories, and whether they have an order."""
    return [value.categories, value.ordered]


def make_categories(categories: Any, ordered: Any) -> Any:
    """Return the `CategoricalDtype`."""
    return _pandas().CategoricalDtype(categories, ordered)


def take_range(value: Any) -> list[Any]:
    """Return the limits and the name of a `RangeIndex`."""
    return [value.start, value.stop, value.step, value.name]


def make_range(start: int, stop: int, step: int, name: Any) -> Any:
    """Return the `RangeIndex`."""
    return _pandas().RangeIndex(start, stop, step, name=name)


def take_index(value: Any) -> list[Any]:
    """Return values, dtype and name of an index."""
    plain = isinstance(value.dtype, np.dtype)
    values = value.to_numpy() if plain else list(value)
    return _checked(value, [values, value.dtype, value.name], make_index)


def make_index(values: Any, dtype: Any, name: Any) -> Any:
    """Return the index."""
    return _pandas().Index(values, dtype=dtype, name=name)


#: By the name in the file: whether a value is of the kind, its parts, and back.
TABLE_KINDS: dict[str, tuple[Callable[..., Any], ...]] = {
    "pandas.timestamp": (is_pandas("Timestamp"), take_timestamp, make_timestamp),
    "pandas.timedelta": (
        is_pandas("Timedelta"),
        lambda value: [value.to_timedelta64()],
        lambda value: _pandas().Timedelta(value),
    ),
    "pandas.interval": (is_pandas("Interval"), take_interval, make_interval),
    "pandas.categories": (
        is_pandas("CategoricalDtype"),
        take_categories,
        make_categories,
    ),
    "pandas.dtype": (is_pandas_dtype, take_dtype, make_dtype),
    "pandas.range": (is_pandas("RangeIndex"), take_range, make_range),
    "pandas.index": (is_pandas(*_INDICES), take_index, make_index),
}


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        msg = "it holds values of pandas, which is not installed."
        raise StorageError(msg) from error
    return pd


def _checked(value: Any, parts: list[Any], make: Callable[..., Any]) -> list[Any]:
    """Return the parts if they make the value again."""
    twin = make(*parts)
    same = value.equals(twin) if hasattr(value, "equals") else value == twin
    if not same or getattr(twin, "dtype", None) != getattr(value, "dtype", None):
        msg = f"{value!r:.120} cannot be saved: what is read would not equal it."
        raise StorageError(msg)
    return parts
