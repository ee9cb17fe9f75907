"""Checks of what a user passes in; the general ones are those of `calibration`.

A message names the parameter in backticks, the rule, and the value got.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import (
    as_numbers,
    check_choice,
    check_in_unit,
    check_integer,
    check_level,
    check_number,
    check_same_length,
    check_vector,
    check_weights,
    find_no_number,
    is_gap,
)
from calibration.typing import Float64Array

__all__ = [
    "as_numbers",
    "check_array",
    "check_bounds",
    "check_choice",
    "check_in_unit",
    "check_increasing",
    "check_integer",
    "check_level",
    "check_levels",
    "check_number",
    "check_probability_rows",
    "check_same_length",
    "check_targets",
    "check_vector",
    "check_weights",
    "find_no_number",
    "is_gap",
]

# Rounding that a sum of probabilities may carry.
_SUM_TOLERANCE = 1e-6
_LAST_BITS = 1e-14


def check_array(
    values: ArrayLike, name: str, shape: tuple[int | None, ...]
) -> Float64Array:
    """Return finite, contiguous float64 values of a shape; None: any length."""
    array = np.array(as_numbers(values, name), order="C")
    fits = array.ndim == len(shape) and all(
        want is None or got == want
        for got, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        sizes = ["any" if want is None else str(want) for want in shape]
        wanted = f"({', '.join(sizes)}{',' if len(shape) == 1 else ''})"
        msg = f"`{name}` must have shape {wanted}, got shape {array.shape}."
        raise ValueError(msg)
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        msg = f"`{name}` must be finite, got {array[place]} at position {place}."
        raise ValueError(msg)
    return array


def check_increasing(values: Float64Array, name: str) -> None:
    """Refuse a vector that is empty or does not increase strictly."""
    if len(values) == 0:
        msg = f"`{name}` must hold at least one value, got none."
        raise ValueError(msg)
    falls = np.diff(values) <= 0.0
    if falls.any():
        k = int(np.argmax(falls))
        msg = (
            f"`{name}` must increase strictly, "
            f"got {values[k]:g} before {values[k + 1]:g} at position {k}."
        )
        raise ValueError(msg)


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Return (low, high) with low < high; None or an infinity is no bound."""
    try:
        low, high = bounds
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
    except (TypeError, ValueError) as error:
        msg = (
            "`bounds` must be a pair of numbers (low, high), either None where there "
            f"is no bound, got {bounds!r}."
        )
        raise ValueError(msg) from error
    if not low < high:
        msg = f"`bounds` must be (low, high) with low < high, got {bounds!r}."
        raise ValueError(msg)
    return low, high


def check_levels(levels: ArrayLike, name: str) -> Float64Array:
    """Return a vector of levels in [0, 1]; a number is a vector of one."""
    vector = check_vector(np.atleast_1d(np.asarray(levels)), name)
    check_in_unit(float(vector.min()), float(vector.max()), name)
    return vector


def check_targets(
    values: ArrayLike, name: str, n: int, *, finite: bool = True
) -> Float64Array:
    """Return values broadcast against (n,), shape (..., n); no NaN.

    With `finite=False` minus and plus infinity are let pass.
    """
    array = np.array(as_numbers(values, name), order="C")
    if np.isnan(array).any() or (finite and not np.isfinite(array).all()):
        rule = "be finite" if finite else "not be NaN"
        wrong = array[~np.isfinite(array)] if finite else array[np.isnan(array)]
        msg = f"`{name}` must {rule}, got {wrong.flat[0]}."
        raise ValueError(msg)
    try:
        return np.broadcast_to(array, np.broadcast_shapes(array.shape, (n,)))
    except ValueError as error:
        msg = (
            f"`{name}` must broadcast against the {n} rows, shape ({n},), got shape "
            f"{array.shape}; for values that all rows share take `cdf_at` or "
            "`quantiles`, or a column of shape (k, 1)."
        )
        raise ValueError(msg) from error


def check_probability_rows(
    probabilities: ArrayLike, name: str, k: int, *, full: bool = True
) -> Float64Array:
    """Return probabilities (n, k) whose rows sum to 1, or to at most 1 if not `full`.

    Sums are allowed to miss by rounding, 1e-6, and are then made exact.
    """
    rows = check_array(probabilities, name, (None, k))
    if rows.size:
        check_in_unit(float(rows.min()), float(rows.max()), name)
    sums = rows.sum(axis=1)
    excess = np.abs(sums - 1.0) if full else sums - 1.0
    if (excess > _SUM_TOLERANCE).any():
        i = int(np.argmax(excess))
        rule = "1" if full else "at most 1"
        msg = f"`{name}` must sum to {rule} in every row, got {sums[i]:g} in row {i}."
        raise ValueError(msg)
    # Rows that are exact up to the last bits are left as they are.
    scale = np.where(excess > _LAST_BITS, sums, 1.0)
    return np.ascontiguousarray(rows / scale[:, None])
