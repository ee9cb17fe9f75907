"""Checks of arrays: numbers, labels, probabilities, lengths."""

import numbers
import reprlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation.texts import show
from calibration.typing import Float64Array

# What a cell of an array of objects may be: Decimal is no Real to Python.
_NUMBERS = (numbers.Real, np.bool_, Decimal)
_GAPS = ("NoneType", "NAType", "NaTType")


def as_numbers(values: ArrayLike, name: str) -> Float64Array:
    """Return numbers in any container and shape as float64; what is missing is NaN.

    None, pandas' NA and NaT, and masked values are missing. Texts are refused, even
    those of digits: they may be codes, and are as a rule a mistake.
    """
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "biuf":
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            return _read_cells(array, name)
    except (ValueError, OverflowError) as error:
        msg = f"`{name}` must be numeric: {str(error).rstrip('.')}."
        raise ValueError(msg) from error
    if array.dtype.kind in "SUT" and array.size:
        return _read_cells(array.astype(object), name)
    if array.dtype.kind not in "biuf":
        msg = f"`{name}` must be numeric, got dtype {array.dtype}."
        raise TypeError(msg)
    return np.asarray(array, dtype=np.float64)


def is_gap(cell: Any) -> bool:
    """Say whether a cell stands for nothing: None, NaN, NA, NaT."""
    is_nan = isinstance(cell, float | np.floating) and cell != cell  # noqa: PLR0124
    return is_nan or type(cell).__name__ in _GAPS


def find_no_number(cells: NDArray[np.object_]) -> int | None:
    """Return the place of the first cell that is neither a number nor missing."""
    strange = {
        kind
        for kind in set(map(type, cells.flat))
        if not issubclass(kind, _NUMBERS) and kind.__name__ not in _GAPS
    }
    if not strange:
        return None
    return next(i for i, cell in enumerate(cells.flat) if type(cell) in strange)


def _read_cells(cells: NDArray[np.object_], name: str) -> Float64Array:
    """Return an array of objects, all numbers or missing, as float64."""
    place = find_no_number(cells)
    if place is not None:
        indices = [int(i) for i in np.unravel_index(place, cells.shape)]
        where = f" at position {', '.join(map(str, indices))}" if indices else ""
        cell = cells.flat[place]
        got = reprlib.repr(cell)
        if not indices and not isinstance(cell, str):
            msg = f"`{name}` must be an array or a list of numbers, got {got}."
            raise TypeError(msg)
        cure = "; convert texts to numbers first" if _is_numeral(cell) else ""
        msg = f"`{name}` must be numeric, got {got}{where}{cure}."
        raise TypeError(msg)
    # NA and NaT are no numbers to numpy; None is.
    known = [np.nan if type(cell).__name__ in _GAPS else cell for cell in cells.ravel()]
    return np.array(known, dtype=np.float64).reshape(cells.shape)


def _is_numeral(cell: Any) -> bool:
    """Say whether a cell is a text that reads as a number."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return isinstance(cell, str)


def check_vector(values: ArrayLike, name: str) -> Float64Array:
    """Return `values` as a finite, contiguous float64 vector of shape (n,), n >= 1.

    A column of shape (n, 1) is accepted, as scikit-learn's users expect.
    """
    array = as_numbers(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        msg = f"`{name}` must have shape (n,) or (n, 1), got shape {array.shape}."
        raise ValueError(msg)
    if array.size == 0:
        msg = f"`{name}` must hold at least one value, got an empty array."
        raise ValueError(msg)
    vector = np.ascontiguousarray(array)
    finite = np.isfinite(vector)
    if not finite.all():
        place = int(np.argmin(finite))
        msg = f"`{name}` must be finite, got {vector[place]} at position {place}."
        raise ValueError(msg)
    return vector


def count_rows(table: Any) -> int:
    """Return the number of rows of what has rows, -1 of anything else."""
    has_shape = hasattr(table, "shape")
    if isinstance(table, str | bytes) or (isinstance(table, Mapping) and not has_shape):
        return -1
    if hasattr(table, "__array__") and not has_shape:
        table = np.asarray(table)
    shape = getattr(table, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else -1
    return len(table) if hasattr(table, "__len__") else -1


def check_same_length(n: int, name: str, other_n: int, other_name: str) -> None:
    """Refuse two arguments of different length."""
    if n != other_n:
        msg = (
            f"`{other_name}` must be as long as {name.strip('`')}, "
            f"got {other_n} and {n} values."
        )
        raise ValueError(msg)


def check_in_unit(low: float, high: float, name: str) -> None:
    """Refuse values, given by their least and greatest, outside [0, 1]."""
    if low < 0.0 or high > 1.0:
        value = low if low < 0.0 else high
        msg = f"`{name}` must lie in [0, 1], got {show(value)}."
        raise ValueError(msg)


def check_span(low: float, high: float, name: str) -> None:
    """Refuse values, given by their least and greatest, whose range overflows."""
    with np.errstate(over="ignore"):
        span = high - low
    if not np.isfinite(span):
        msg = f"`{name}` must span a finite range, got {show(low)} to {show(high)}."
        raise ValueError(msg)
