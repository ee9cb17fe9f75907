"""Checks of what a user passes in, beside the general ones in `calibration`.

And how numbers and names are written in refusals and pictures.

A message names the parameter in backticks, the rule, and the value got.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import (
    as_numbers,
    check_in_unit,
    check_integer,
    check_level,
    check_vector,
    check_weights,
    refuse,
    show,
    warn_of_light,
)
from calibration.typing import Float64Array

# What forests take for a seed.
_LARGEST_SEED = 2**32 - 1
# Squares of squares of targets, of which moments are made, must be numbers.
_LARGEST_TARGET, _LEAST_RANGE = 1e70, 1e-70
# Numbers between these are written without an exponent.
_LEAST_PLAIN, _MOST_PLAIN = 1e-4, 1e7
# So many digits tell all numbers apart.
_ALL_DIGITS = 17
# Weights are summed: one below the last digits of the others would be lost.
_MOST_RATIO, _MOST_ROWS = 1e13, 1e15
# Rounding that a sum of probabilities may carry: sums of float32 leave [0, 1] by it.
_SUM_TOLERANCE = 1e-6
_LAST_BITS = 1e-14


@contextmanager
def speaking_of(**names: str) -> Iterator[None]:
    """Let refusals name an argument, written in backticks, as the caller knows it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        told = str(error)
        for inner, outer in names.items():
            told = re.sub(rf"`{inner}\b", f"`{outer}", told)
        if told == str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(told) from error


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
        refuse(name, f"have shape {wanted}", f"shape {array.shape}")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        refuse(name, "be finite", f"{array[place]} at position {place}")
    return array


def check_increasing(values: Float64Array, name: str) -> None:
    """Refuse a vector that is empty or does not increase strictly."""
    if len(values) == 0:
        refuse(name, "hold at least one value", "none")
    falls = np.diff(values) <= 0.0
    if falls.any():
        k = int(np.argmax(falls))
        got = f"{show(values[k])} before {show(values[k + 1])} at position {k}"
        refuse(name, "increase strictly", got)


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Return (low, high) with low < high; None or an infinity is no bound."""
    pair = list(bounds) if isinstance(bounds, list | tuple | np.ndarray) else []
    # Python takes a truth value for a number.
    flags = any(isinstance(b, bool | np.bool_) for b in pair)
    if len(pair) != 2 or flags or not all(isinstance(b, Real | None) for b in pair):
        rule = "be a pair of numbers (low, high), either None where there is no bound"
        refuse("bounds", rule, f"{bounds!r}")
    low = -np.inf if pair[0] is None else float(pair[0])
    high = np.inf if pair[1] is None else float(pair[1])
    if not low < high:
        refuse("bounds", "be (low, high) with low < high", f"{bounds!r}")
    return low, high


def check_target_size(y: Float64Array) -> None:
    """Refuse targets whose moments are no numbers."""
    most = int(np.argmax(np.abs(y)))
    if abs(y[most]) > _LARGEST_TARGET:
        cure = "leave the row out if that stands for a missing value, or else take"
        got = f"{show(y[most])} at position {most}: {cure} another unit"
        refuse("y", f"lie within +-{_LARGEST_TARGET:g}", got)
    if 0.0 < np.ptp(y) < _LEAST_RANGE:
        rule = f"differ by at least {_LEAST_RANGE:g}"
        refuse("y", rule, f"values from {y.min():g} to {y.max():g}: take another unit")


def check_row_weights(
    sample_weight: ArrayLike | None, n: int, *, stacklevel: int = 3
) -> Float64Array:
    """Return weights that count rows, as `check_weights`, and can be summed."""
    weights = check_weights(sample_weight, n)
    least, most = weights[weights > 0.0].min(), weights.max()
    if least < most / _MOST_RATIO:
        rule = f"not differ by more than a factor of {_MOST_RATIO:g}"
        got = f"{least:g} and {most:g}: rows that hardly count have weight 0"
        refuse("sample_weight", rule, got)
    if most > _MOST_ROWS / n or most < 1.0 / _MOST_ROWS:
        rule = f"count rows, up to {_MOST_ROWS:g} of them in all"
        refuse("sample_weight", rule, f"weights up to {most:g}: divide by their mean")
    warn_of_light(weights, stacklevel=stacklevel)
    return weights


def check_seed(random_state: int | None) -> int:
    """Return a seed that forests take: what is given, or one that is drawn."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    seed = check_integer(random_state, "random_state", 0)
    if seed > _LARGEST_SEED:
        refuse("random_state", f"be at most {_LARGEST_SEED}", seed)
    return seed


def check_row(row: Any, name: str, n: int) -> int:
    """Return the number of a row, counted from the start."""
    number = check_integer(row, name, -n)
    if number >= n:
        refuse(name, f"be less than the {n} rows forecast", number)
    return number % n


def check_levels(levels: ArrayLike, name: str, *, inner: bool = False) -> Float64Array:
    """Return a vector of levels in [0, 1], or (0, 1); a number is a vector of one."""
    vector = check_vector(np.atleast_1d(np.asarray(levels)), name)
    ends = float(vector.min()), float(vector.max())
    if inner:
        for level in ends:
            check_level(level, name)
    else:
        check_in_unit(*ends, name)
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
        refuse(name, rule, wrong.flat[0])
    try:
        return np.broadcast_to(array, np.broadcast_shapes(array.shape, (n,)))
    except ValueError as error:
        cure = "take `cdf_at` or `quantiles`, or a column of shape (k, 1)"
        got = f"shape {array.shape}; for values that all rows share {cure}"
        rule = f"broadcast against the {n} rows, shape ({n},)"
        refuse(name, rule, got, cause=error)


def are_probabilities(p: Float64Array) -> bool:
    """Say whether all numbers lie in [0, 1] but for rounding."""
    return bool(((p >= -_SUM_TOLERANCE) & (p <= 1.0 + _SUM_TOLERANCE)).all())


def check_answers(answers: ArrayLike, n: int, rule: str) -> Float64Array:
    """Return what a learner says of `n` rows; refuse what are not so many numbers."""
    numbers = np.asarray(answers, dtype=np.float64)
    if numbers.shape != (n,):
        msg = f"{rule}, got shape {numbers.shape} for {n} rows"
        raise ValueError(msg)
    if not np.isfinite(numbers).all():
        msg = f"{rule}, got NaN or infinity"
        raise ValueError(msg)
    return numbers


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
        got = show(sums[i])
        refuse(name, f"sum to {rule} in every row", f"{got} in row {i}")
    # Rows that are exact up to the last bits are left as they are.
    scale = np.where(excess > _LAST_BITS, sums, 1.0)
    return np.ascontiguousarray(rows / scale[:, None])


def format_number(value: Any, digits: int = 4) -> str:
    """Return a short text of a number, or the text of anything else.

    Below ten million there is no exponent and nothing before the point is rounded:
    years, rows and prices are read as they are written elsewhere.
    """
    no_number = not isinstance(value, int | float | np.number)
    if no_number or isinstance(value, int | np.integer):
        return str(value)
    number = float(value)
    size = abs(float(f"{number:.{digits}g}"))
    if not (_LEAST_PLAIN <= size < _MOST_PLAIN):
        return f"{number:.{digits}g}"
    decimals = max(digits - 1 - math.floor(math.log10(size)), 0)
    return f"{round(number, decimals):.15g}"


def format_numbers(
    values: Sequence[Any], digits: int, show: Callable[[Any, int], str] = format_number
) -> list[str]:
    """Return short texts of labels; numbers have the digits that tell them apart."""
    different = len(set(map(str, values)))
    for more in range(digits, _ALL_DIGITS):
        texts = [show(value, more) for value in values]
        if len(set(texts)) >= different:
            return texts
    return [str(value) for value in values]
