"""Every check of what a user passes in, and the wording of every refusal and label.

A message names the parameter in backticks, the rule, and the value got.
"""

import numbers
import re
import reprlib
from collections.abc import Collection
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array

_MOST_WEIGHT = 2.0**53
# Below it floats lose digits.
_LEAST_WEIGHT = float(np.finfo(np.float64).tiny)
# What a cell of an array of objects may be: Decimal is no Real to Python.
_NUMBERS = (numbers.Real, np.bool_, Decimal)
_GAPS = ("NoneType", "NAType", "NaTType")
# Longer names are cut, for a label that fills a picture leaves none of it.
_LONGEST_LABEL = 40


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
        got = reprlib.repr(cells.flat[place])
        msg = f"`{name}` must be numeric, got {got}{where}."
        raise TypeError(msg)
    # NA and NaT are no numbers to numpy; None is.
    known = [np.nan if type(cell).__name__ in _GAPS else cell for cell in cells.ravel()]
    return np.array(known, dtype=np.float64).reshape(cells.shape)


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


def check_labels(y: ArrayLike, name: str = "y") -> NDArray[np.bool_]:
    """Return labels coded 0/1 as booleans, True for 1."""
    labels = check_vector(y, name)
    ones: NDArray[np.bool_] = labels == 1.0
    valid = ones | (labels == 0.0)
    if not valid.all():
        place = int(np.argmin(valid))
        msg = (
            f"`{name}` must hold the two classes coded 0 and 1, "
            f"got {labels[place]:g} at position {place}."
        )
        raise ValueError(msg)
    return ones


def check_weights(sample_weight: ArrayLike | None, n: int) -> Float64Array:
    """Return non-negative weights, not all zero, of length `n`; ones if None.

    Their sum is at most 2^53: beyond it floats do not tell a row more from none.
    """
    if sample_weight is None:
        return np.ones(n)
    weights = check_vector(sample_weight, "sample_weight")
    check_same_length(n, "the data", len(weights), "sample_weight")
    if weights.min() < 0.0:
        place = int(np.argmin(weights))
        msg = (
            "`sample_weight` must not be negative, "
            f"got {weights[place]:g} at position {place}."
        )
        raise ValueError(msg)
    if weights.max() == 0.0:
        msg = "`sample_weight` must not be zero everywhere, got only zeros."
        raise ValueError(msg)
    if weights.max() < _LEAST_WEIGHT:
        msg = (
            f"`sample_weight` must reach {_LEAST_WEIGHT:.3g} somewhere, "
            f"got at most {weights.max():g}; multiply all by a constant."
        )
        raise ValueError(msg)
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if total > _MOST_WEIGHT:
        place = int(np.argmax(weights))
        msg = (
            f"`sample_weight` must add up to at most 2^53 = {_MOST_WEIGHT:.3g} rows, "
            f"got {weights[place]:g} at position {place}; divide all by a constant."
        )
        raise ValueError(msg)
    return weights


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
        msg = f"`{name}` must lie in [0, 1], got {value:g}."
        raise ValueError(msg)


def check_span(low: float, high: float, name: str) -> None:
    """Refuse values, given by their least and greatest, whose range overflows."""
    with np.errstate(over="ignore"):
        span = high - low
    if not np.isfinite(span):
        msg = f"`{name}` must span a finite range, got {low:g} to {high:g}."
        raise ValueError(msg)


def check_probabilities(y_prob: ArrayLike, name: str = "y_prob") -> Float64Array:
    """Return probabilities as a float64 vector."""
    probabilities = check_vector(y_prob, name)
    check_in_unit(float(probabilities.min()), float(probabilities.max()), name)
    return probabilities


def check_forecasts(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray[np.bool_], Float64Array, Float64Array]:
    """Return labels, probabilities and weights (ones if None) of equal length."""
    try:
        ones = check_labels(y_true, "y_true")
    except ValueError as error:
        if not _are_labels(y_prob):
            raise
        msg = f"{error} `y_prob` holds only 0 and 1: are the two swapped?"
        raise ValueError(msg) from error
    probabilities = check_probabilities(y_prob)
    check_same_length(len(ones), "`y_true`", len(probabilities), "y_prob")
    return ones, probabilities, check_weights(sample_weight, len(ones))


def _are_labels(y: ArrayLike) -> bool:
    """Say whether a vector could pass for labels."""
    try:
        check_labels(y)
    except (TypeError, ValueError):
        return False
    return True


def check_choice(value: Any, name: str, choices: Collection[str]) -> None:
    """Refuse a value that is not one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        msg = f"`{name}` must be one of {listed}, got {value!r}."
        raise ValueError(msg)


def check_integer(value: Any, name: str, least: int) -> int:
    """Return an integer parameter that is at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        msg = f"`{name}` must be an integer, got {value!r}."
        raise TypeError(msg)
    if value < least:
        msg = f"`{name}` must be at least {least}, got {value}."
        raise ValueError(msg)
    return int(value)


def check_verbose(value: Any) -> int:
    """Return how much is to be told: True is 1 and False is 0, as in scikit-learn."""
    if isinstance(value, bool | np.bool_):
        return int(value)
    return check_integer(value, "verbose", 0)


def check_n_jobs(value: Any) -> None:
    """Refuse what is no number of jobs: None, or an integer that is not 0."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        msg = f"`n_jobs` must be an integer or None, got {value!r}."
        raise TypeError(msg)
    if value == 0:
        msg = "`n_jobs` must not be 0, got 0."
        raise ValueError(msg)


def check_flag(value: Any, name: str, wanted: str = "True or False") -> None:
    """Refuse a value that is no truth value."""
    if not isinstance(value, bool | np.bool_):
        msg = f"`{name}` must be {wanted}, got {value!r}."
        raise TypeError(msg)


def check_number(
    value: Any,
    name: str,
    low: float,
    high: float = np.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return a real parameter in [low, high], without the ends that are open."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        msg = f"`{name}` must be a real number, got {value!r}."
        raise TypeError(msg)
    number = float(value)
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (above and below):
        left = "(" if open_low else "["
        right = ")" if open_high or high == np.inf else "]"
        msg = f"`{name}` must lie in {left}{low:g}, {high:g}{right}, got {value!r}."
        raise ValueError(msg)
    return number


def check_level(value: Any, name: str) -> float:
    """Return a probability level strictly between 0 and 1."""
    return check_number(value, name, 0.0, 1.0, open_low=True, open_high=True)


def plain_label(text: object, most: int = _LONGEST_LABEL) -> str:
    r"""Return a user's text as matplotlib may write it: one line, and no formula.

    A dollar is escaped once, whoever did it. Long texts lose their middle, for names
    often differ at their ends. Labels that begin with an underscore would be left out
    of legends, so a space goes before it.
    """
    words = " ".join(str(text).split())
    if len(words) > most:
        tail = (most - 1) // 2
        words = f"{words[: most - 1 - tail]}\u2026{words[len(words) - tail :]}"
    words = re.sub(r"(?<!\\)\$", r"\\$", words)
    return f" {words}" if words.startswith("_") else words
