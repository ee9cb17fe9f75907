"""All checks of what a user passes in, and the wording of all refusals and labels.

A message names the parameter in backticks, the rule, and the value that it got. If a
fit is refused, or fails later, nothing changes.
"""

import numbers
import os
import re
import reprlib
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.exceptions import CalibrationWarning
from calibration.typing import Float64Array, Int64Array

# Longer names are cut, because a label that fills a picture hides it.
_LONGEST_LABEL = 40


def refuse(
    name: str,
    rule: str,
    got: object,
    kind: type[Exception] = ValueError,
    cause: Exception | None = None,
) -> NoReturn:
    """Raise the error of a parameter that breaks a rule, with the value that it got.

    Parameters
    ----------
    name : str
        Name of the parameter.
    rule : str
        The rule, as in "be finite".
    got : object
        The value, or words about it.
    kind : type of Exception
    cause : Exception, optional
    """
    error = kind(f"`{name}` must {rule}, got {got}.")
    if cause is not None:
        raise error from cause
    raise error


def show(value: Any) -> str:
    """Return a number as text that reads back as the number, to refuse it in a message.

    It has six digits if that is exact. A bound that is missed by less must not look as
    if it were met.
    """
    text = f"{value:g}"
    return text if float(text) == float(value) else repr(float(value))


def plain_label(text: object, most: int = _LONGEST_LABEL) -> str:
    r"""Return a user's text as matplotlib may write it: one line, and no formula.

    A dollar is escaped once, even if the user has escaped it. Long texts lose their
    middle, since names often differ at their ends. Legends leave out labels that begin
    with an underscore, so a space goes before it.
    """
    words = " ".join(str(text).split())
    if len(words) > most:
        tail = (most - 1) // 2
        words = f"{words[: most - 1 - tail]}\u2026{words[len(words) - tail :]}"
    words = re.sub(r"(?<!\\)\$", r"\\$", words)
    return f" {words}" if words.startswith("_") else words


# What a cell of an array of objects may be. To Python, Decimal is no Real.
_NUMBERS = (numbers.Real, np.bool_, Decimal)
_GAPS = ("NoneType", "NAType", "NaTType")
_FLOATS = (float, np.floating)


def as_numbers(values: ArrayLike, name: str) -> Float64Array:
    """Return numbers in any container and shape as float64. Missing ones become NaN.

    None, pandas' NA and NaT, and masked values are missing. Texts are refused, even
    texts of digits: they may be codes, and are usually a mistake.
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
        refuse(name, "be numeric", f"dtype {array.dtype}", TypeError)
    return np.asarray(array, dtype=np.float64)


def is_gap(cell: Any) -> bool:
    """Return whether a cell stands for nothing: None, NaN, NA, NaT."""
    is_nan = isinstance(cell, _FLOATS) and cell != cell  # noqa: PLR0124
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
    """Return an array of objects as float64. All must be numbers or missing."""
    place = find_no_number(cells)
    if place is not None:
        indices = [int(i) for i in np.unravel_index(place, cells.shape)]
        where = f" at position {', '.join(map(str, indices))}" if indices else ""
        cell = cells.flat[place]
        got = reprlib.repr(cell)
        if not indices and not isinstance(cell, str):
            refuse(name, "be an array or a list of numbers", got, TypeError)
        cure = "; convert texts to numbers first" if _is_numeral(cell) else ""
        refuse(name, "be numeric", f"{got}{where}{cure}", TypeError)
    # NA and NaT are no numbers to numpy, but None is.
    known = [np.nan if type(cell).__name__ in _GAPS else cell for cell in cells.ravel()]
    return np.array(known, dtype=np.float64).reshape(cells.shape)


def _is_numeral(cell: Any) -> bool:
    """Return whether a cell is a text that reads as a number."""
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
        refuse(name, "have shape (n,) or (n, 1)", f"shape {array.shape}")
    if array.size == 0:
        refuse(name, "hold at least one value", "an empty array")
    vector = np.ascontiguousarray(array)
    finite = np.isfinite(vector)
    if not finite.all():
        place = int(np.argmin(finite))
        refuse(name, "be finite", f"{vector[place]} at position {place}")
    return vector


def count_rows(table: Any) -> int:
    """Return the number of rows of a table, or -1 if it is no table."""
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
        rule = f"be as long as {name.strip('`')}"
        refuse(other_name, rule, f"{other_n} and {n} values")


def check_in_unit(low: float, high: float, name: str) -> None:
    """Refuse values outside [0, 1], given the least and the greatest of them."""
    if low < 0.0 or high > 1.0:
        value = low if low < 0.0 else high
        refuse(name, "lie in [0, 1]", show(value))


def check_span(low: float, high: float) -> None:
    """Refuse scores whose range overflows, given the least and the greatest of them."""
    with np.errstate(over="ignore"):
        span = high - low
    if not np.isfinite(span):
        refuse("scores", "span a finite range", f"{show(low)} to {show(high)}")


_MOST_WEIGHT = 2.0**53
# Below this, floats lose digits.
_LEAST_WEIGHT = float(np.finfo(np.float64).tiny)
# Rows count for too little if their weights add up to less than this share of their
# number, or to less than two rows while the mean weight is below a half.
_LIGHT_SHARE, _FEW_ROWS, _LIGHT_MEAN = 0.1, 2.0, 0.5
_told_of_light: ContextVar[bool] = ContextVar("told_of_light", default=False)


def check_weights(
    sample_weight: ArrayLike | None, n: int, name: str = "sample_weight"
) -> Float64Array:
    """Return non-negative weights of length `n`, not all zero, or ones if None.

    Their sum is at most 2^53. Beyond it, floats do not notice one more row.
    """
    if sample_weight is None:
        return np.ones(n)
    weights = check_vector(sample_weight, name)
    check_same_length(n, "the data", len(weights), name)
    if weights.min() < 0.0:
        place = int(np.argmin(weights))
        refuse(name, "not be negative", f"{show(weights[place])} at position {place}")
    if weights.max() == 0.0:
        refuse(name, "not be zero everywhere", "only zeros")
    if weights.max() < _LEAST_WEIGHT:
        rule = f"reach {_LEAST_WEIGHT:.3g} somewhere"
        refuse(name, rule, f"at most {weights.max():g}; multiply all by a constant")
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if total > _MOST_WEIGHT:
        place = int(np.argmax(weights))
        got = f"{weights[place]:g} at position {place}; divide all by a constant"
        refuse(name, f"add up to at most 2^53 = {_MOST_WEIGHT:.3g} rows", got)
    return weights


def warn_of_light(sample_weight: ArrayLike | None, stacklevel: int = 2) -> None:
    """Warn of weights with which rows count for almost nothing, such as 1 / n.

    A weight is a number of repetitions. A fit is as vague as one on so many rows as the
    weights add up to. True shares of rows, which are a half on average, pass.
    """
    if sample_weight is None or _told_of_light.get():
        return
    weights = as_numbers(sample_weight, "sample_weight")
    held, total = int(np.count_nonzero(weights)), float(weights.sum())
    if total >= max(_LIGHT_SHARE * held, min(_FEW_ROWS, _LIGHT_MEAN * held)):
        return
    msg = (
        f"`sample_weight` counts repetitions, and {held} rows add up to {total:.3g}: "
        "what is learned is as vague as from so few. To count each row as one on "
        f"average, multiply by {held / total:.4g} (their number / the sum)."
    )
    warnings.warn(msg, CalibrationWarning, stacklevel=stacklevel + 1)


def told_of_light() -> AbstractContextManager[None]:
    """Stop warnings of light weights in fits within a fit that has already warned."""
    return setting(_told_of_light, True)


def check_labels(y: ArrayLike, name: str = "y") -> NDArray[np.bool_]:
    """Return labels coded 0/1 as booleans, True for 1."""
    labels = check_vector(y, name)
    ones: NDArray[np.bool_] = labels == 1.0
    valid = ones | (labels == 0.0)
    if not valid.all():
        place = int(np.argmin(valid))
        rule = "hold the two classes coded 0 and 1"
        refuse(name, rule, f"{show(labels[place])} at position {place}")
    return ones


def check_probabilities(y_prob: ArrayLike, name: str = "y_prob") -> Float64Array:
    """Return probabilities as a float64 vector."""
    probabilities = check_vector(y_prob, name)
    check_in_unit(float(probabilities.min()), float(probabilities.max()), name)
    return probabilities


def check_forecasts(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray[np.bool_], Float64Array, Float64Array]:
    """Return labels, probabilities and weights (ones if None), all of one length."""
    try:
        ones = check_labels(y_true, "y_true")
    except ValueError as error:
        with suppress(TypeError, ValueError):
            check_labels(y_prob)
            error.args = (f"{error} `y_prob` holds only 0 and 1: are the two swapped?",)
        raise
    probabilities = check_probabilities(y_prob)
    check_same_length(len(ones), "`y_true`", len(probabilities), "y_prob")
    return ones, probabilities, check_weights(sample_weight, len(ones))


# Tolerance of the sum of a row. float32 probabilities of a thousand classes are nearer.
_ROUNDING = 1e-5


def check_table(scores: ArrayLike, name: str) -> Float64Array:
    """Return finite scores of shape (n, k), k >= 2."""
    table = np.ascontiguousarray(as_numbers(scores, name))
    if table.ndim != 2 or table.shape[1] < 2:
        refuse(name, "have shape (n, k), k >= 2", f"shape {table.shape}")
    if len(table) == 0:
        refuse(name, "hold at least one row", "none")
    check_finite(table, name)
    return table


def check_finite(table: Float64Array, name: str) -> None:
    """Refuse a table (n, k) with values that are not finite."""
    finite = np.isfinite(table)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        refuse(name, "be finite", f"{table[row, column]} in row {row}, column {column}")


def check_rows(y_prob: ArrayLike, name: str = "y_prob") -> Float64Array:
    """Return probabilities of shape (n, k), k >= 2, whose rows sum to 1."""
    table = check_table(y_prob, name)
    check_in_unit(float(table.min()), float(table.max()), name)
    sums = table.sum(axis=1)
    row = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[row] - 1.0) > _ROUNDING:
        got = f"{show(sums[row])} in row {row}"
        refuse(name, "have rows that sum to 1", got)
    return table


def check_columns(
    y: ArrayLike,
    k: int,
    classes: ArrayLike | None = None,
    name: str = "y",
    *,
    nameable: bool = True,
) -> Int64Array:
    """Return the column of each label, shape (n,): its number, or its place in names.

    Without `classes`, labels are numbers from 0 to k - 1. With `classes`, they are any
    labels that these name. Refusals mention `classes` if columns are `nameable` by such
    a parameter.
    """
    if classes is not None:
        return _find_names(y, check_class_names(classes, k), name)
    if nameable and np.size(y) and isinstance(first := np.asarray(y).flat[0], str):
        rule = f"name the columns where `{name}` holds texts"
        refuse("classes", rule, f"None and {str(first)!r}", TypeError)
    labels = check_vector(y, name)
    valid = (labels >= 0.0) & (labels < k) & (labels == np.floor(labels))
    if not valid.all():
        place = int(np.argmin(valid))
        rule = f"hold column numbers from 0 to {k - 1}"
        rule += ", or `classes` must name the columns" if nameable else ""
        refuse(name, rule, f"{show(labels[place])} at position {place}")
    return labels.astype(np.int64)


def read_labelled(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    sample_weight: ArrayLike | None,
    classes: ArrayLike | None = None,
) -> tuple[NDArray[Any], Float64Array, Float64Array]:
    """Return labels, forecasts and weights (ones if None) of two classes or more.

    Forecasts (n,) or (n, 1) are chances of class 1, and the labels returned are truth
    values. With forecasts (n, k), the labels returned are column numbers.
    """
    forecasts = as_numbers(y_prob, "y_prob")
    if forecasts.ndim < 2 or forecasts.shape[1:] == (1,):
        ones = (
            y_true if classes is None else check_columns(y_true, 2, classes, "y_true")
        )
        return check_forecasts(ones, forecasts, sample_weight)
    rows = check_rows(forecasts)
    columns = check_columns(y_true, rows.shape[1], classes, "y_true")
    check_order(y_prob, classes, "y_prob")
    check_same_length(len(columns), "`y_true`", len(rows), "y_prob")
    return columns, rows, check_weights(sample_weight, len(rows))


def check_class_names(classes: ArrayLike, k: int) -> list[Any]:
    """Return the names of k columns. All must differ."""
    if count_rows(classes) < 0 or np.ndim(classes) != 1:
        refuse("classes", "be a list of names", reprlib.repr(classes), TypeError)
    names: list[Any] = as_labels(classes, "classes").tolist()
    if len(names) != k or len(set(names)) != k:
        refuse("classes", f"name each of the {k} columns once", reprlib.repr(names))
    return names


def names_of_columns(table: Any) -> list[str]:
    """Return the column names of a data frame as texts, or no names for an array."""
    # `columns` of Arrow tables are the contents.
    names = getattr(table, "column_names", getattr(table, "columns", ()))
    return [str(name) for name in names]


def check_order(
    table: Any, names: Any, name: str, *, allow_others: bool = True
) -> None:
    """Refuse a data frame unless its columns have these names in this order.

    If columns have no names, they are called by their numbers.
    """
    held = names_of_columns(table)
    wanted = [str(one) for one in (range(len(held)) if names is None else names)]
    if held == wanted or (allow_others and sorted(held) != sorted(wanted)):
        return
    for place, (one, other) in enumerate(zip(held, wanted, strict=False)):
        if one != other:
            rule = f"have its columns in the order {reprlib.repr(wanted)}"
            refuse(name, rule, f"{one!r} in the place of {other!r} (column {place})")


def as_labels(labels: ArrayLike, name: str) -> NDArray[Any]:
    """Return labels in any container as an array of one kind, with none missing."""
    if np.ma.is_masked(labels):
        refuse(name, "have no masked entries", "some")
    found = np.asarray(labels)
    # If a list holds a text, numpy makes all texts: "1" from 1, "nan" from a gap.
    is_read = found.dtype.kind in "SU" and not hasattr(labels, "dtype")
    cells = np.array(labels, dtype=object) if is_read else found
    objects = cells.ravel().tolist() if cells.dtype.kind == "O" and cells.ndim else []
    one_each = dict(zip(map(type, objects), objects, strict=True))
    if any(kind.__name__ in _GAPS or issubclass(kind, _FLOATS) for kind in one_each):
        gaps = [place for place, cell in enumerate(objects) if is_gap(cell)]
    else:
        is_gappy = cells.dtype.kind in "fMm"
        gaps = np.flatnonzero(cells != cells).tolist() if is_gappy else []  # noqa: PLR0124
    if gaps:
        refuse(name, "have no gaps", f"{found.flat[gaps[0]]} at position {gaps[0]}")
    try:
        # Sort them twice, so that labels without any order are found too.
        sorted([*set(one_each.values())] * 2)
    except TypeError as error:
        got = " and ".join(map(reprlib.repr, one_each.values()))
        refuse(name, "hold labels of one kind", got, TypeError, cause=error)
    return found


def _find_names(y: ArrayLike, names: list[Any], name: str) -> Int64Array:
    """Return the place of each label among the names."""
    labels = as_labels(y, name)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or labels.size == 0:
        refuse(name, "be labels of shape (n,), n >= 1", f"shape {labels.shape}")
    held, inverse = np.unique(labels, return_inverse=True)
    places = {label: place for place, label in enumerate(names)}
    columns = np.array([places.get(label, -1) for label in held.tolist()])
    if columns.min() < 0:
        strange = held.tolist()[int(np.argmin(columns))]
        refuse(name, "hold labels that `classes` names", f"{strange!r}")
    return columns.astype(np.int64)[inverse]


def check_choice(value: Any, name: str, choices: Collection[str]) -> None:
    """Refuse a value that is not one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        refuse(name, f"be one of {listed}", f"{value!r}")


def is_auto(value: Any) -> bool:
    """Return whether a parameter is left to us. An array has no answer to ``==``."""
    return isinstance(value, str) and value == "auto"


def check_integer(value: Any, name: str, least: int) -> int:
    """Return an integer parameter that is at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        refuse(name, "be an integer", f"{value!r}", TypeError)
    if value < least:
        refuse(name, f"be at least {least}", value)
    return int(value)


def check_verbose(value: Any) -> int:
    """Return how much to report: True is 1 and False is 0, as in scikit-learn."""
    if isinstance(value, bool | np.bool_):
        return int(value)
    return check_integer(value, "verbose", 0)


def check_n_jobs(value: Any) -> None:
    """Check a number of jobs: it is None, or an integer other than 0."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral | None):
        refuse("n_jobs", "be an integer or None", f"{value!r}", TypeError)
    if value == 0:
        refuse("n_jobs", "not be 0", "0")


def check_optional_seed(value: Any) -> None:
    """Check a seed: it is None, or an integer from 0 on."""
    if value is not None:
        check_integer(value, "random_state", 0)


def make_rng(random_state: Any) -> np.random.Generator:
    """Return the generator that a seed stands for."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        rule = "be None, an integer from 0 on, or a numpy Generator"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        refuse("random_state", rule, reprlib.repr(random_state), kind, cause=error)


def check_callable(value: Any, name: str) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        refuse(name, "be a function", reprlib.repr(value), TypeError)


def check_mapping(value: Any, name: str, held: str) -> None:
    """Refuse what is no mapping of names to something."""
    if not isinstance(value, Mapping):
        refuse(name, f"be a mapping of {held}", reprlib.repr(value), TypeError)


def check_list(values: Any, name: str, held: str) -> list[Any]:
    """Return a list of the values. A text is one thing, not a list of letters."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        refuse(name, f"be a list of {held}", reprlib.repr(values), TypeError)
    return list(values)


def check_path(path: Any) -> Path:
    """Return the path that a text or a path-like names."""
    try:
        return Path(os.fsdecode(path))
    except TypeError as error:
        refuse("path", "be a path", reprlib.repr(path), TypeError, cause=error)


def check_ax(ax: Any, name: str = "ax") -> None:
    """Refuse what is neither None nor one of matplotlib's Axes."""
    if ax is not None and not hasattr(ax, "get_figure"):
        refuse(name, "be one of matplotlib's Axes", reprlib.repr(ax), TypeError)


def check_flag(value: Any, name: str, wanted: str = "True or False") -> None:
    """Refuse a value that is no truth value."""
    if not isinstance(value, bool | np.bool_):
        refuse(name, f"be {wanted}", f"{value!r}", TypeError)


def check_number(
    value: Any,
    name: str,
    low: float,
    high: float = np.inf,
    *,
    open_low: bool = False,
    open_high: bool | None = None,
) -> float:
    """Return a real parameter in [low, high], without the ends that are open.

    Few formulas allow infinity, so as an upper end it is open by default.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        refuse(name, "be a real number", f"{value!r}", TypeError)
    number = float(value)
    open_high = high == np.inf if open_high is None else open_high
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (above and below):
        left = "(" if open_low else "["
        right = ")" if open_high else "]"
        refuse(name, f"lie in {left}{low:g}, {high:g}{right}", f"{value!r}")
    return number


def check_level(value: Any, name: str) -> float:
    """Return a probability level strictly between 0 and 1."""
    return check_number(value, name, 0.0, 1.0, open_low=True, open_high=True)


@contextmanager
def setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Give a variable a value inside the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Forget an earlier fit, and restore it if the new fit fails or is stopped.

    Without this, a fit that was refused or ended by Ctrl-C would mix two fits. The
    answers would then be wrong, and nothing would say so.

    Parameters
    ----------
    estimator : object
        The block may assign new attributes to it. It must not change any in place.
    """
    before = vars(estimator).copy()
    for name in before:
        if name.endswith("_"):
            delattr(estimator, name)
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
