"""Targets that are known only in part: a lower and an upper end for every row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import (
    as_numbers,
    check_labels,
    check_same_length,
    check_vector,
    refuse,
    show,
)
from calibration.typing import Float64Array

_CURE = "; `censored(time, event)` reads times with events"


def is_partial(y: Any) -> bool:
    """Say whether targets have two ends each, or a time and an event.

    Parameters
    ----------
    y : array-like, data frame or structured array

    Returns
    -------
    bool
        True for two columns and for structured arrays. Whether the ends are sound is
        for `read_ends` to say.
    """
    if getattr(getattr(y, "dtype", None), "names", None) is not None:
        return True
    try:
        shape = np.asarray(y).shape
    except ValueError:
        # Rows of different lengths have no shape.
        return False
    return len(shape) == 2 and shape[1] == 2


def read_ends(y: Any, name: str = "y") -> tuple[Float64Array, Float64Array]:
    """Return the lower and the upper end of every target.

    Parameters
    ----------
    y : array-like or data frame of shape (n, 2), or structured array of shape (n,)
        Two columns: lower and upper end. Equal ends are a known value, (c, inf) is
        right-censored at c, (-inf, c) left-censored, and (-inf, inf) tells nothing. A
        structured array has the fields of scikit-survival, first whether the event was
        seen and then its time.
    name : str
        Name of the parameter in errors.

    Returns
    -------
    lower, upper : ndarrays of shape (n,)

    Examples
    --------
    >>> from localexpert.partial.outcomes import read_ends
    >>> lower, upper = read_ends([[3, 3], [5, float("inf")]])
    >>> lower, upper
    (array([3., 5.]), array([ 3., inf]))
    """
    fields = getattr(getattr(y, "dtype", None), "names", None)
    if fields is not None:
        return _read_fields(y, fields, name)
    _refuse_events(y, name)
    ends = as_numbers(y, name)
    if ends.ndim != 2 or ends.shape[1] != 2:
        refuse(name, "have shape (n, 2), lower and upper ends", f"shape {ends.shape}")
    if len(ends) == 0:
        refuse(name, "hold at least one row", "none")
    lower, upper = np.ascontiguousarray(ends.T)
    gaps = np.isnan(lower) | np.isnan(upper)
    nowhere = (lower == np.inf) | (upper == -np.inf)
    for wrong, rule, cure in (
        (gaps, "have no gaps", "; write -inf or inf for an end that is not known"),
        (lower > upper, "have no lower end above the upper one", _CURE),
        (nowhere, "have lower ends below inf and upper ends above -inf", ""),
    ):
        if wrong.any():
            place = int(np.argmax(wrong))
            got = f"({show(lower[place])}, {show(upper[place])}) at position {place}"
            refuse(name, rule, f"{got} and {wrong.sum()} such rows{cure}")
    if not (np.isfinite(lower) | np.isfinite(upper)).any():
        refuse(name, "have a finite end in some row", "(-inf, inf) in every row")
    return lower, upper


def nearest_ends(lower: Float64Array, upper: Float64Array) -> Float64Array:
    """Return a finite number for each row: an end, or any end if none is known."""
    near = np.where(np.isfinite(lower), lower, upper)
    finite = np.isfinite(near)
    return np.where(finite, near, near[np.argmax(finite)])


def censored(time: ArrayLike, event: ArrayLike) -> Float64Array:
    """Return targets for `fit` from times, and whether the event was seen then.

    Parameters
    ----------
    time : array-like of shape (n,)
        Time of the event, or the time until which none was seen. It need not be a
        time: sales until the stock ran out are alike.
    event : array-like of shape (n,)
        True or 1: the event came at this time. False or 0: it has not come until then,
        and the target is right-censored.

    Returns
    -------
    ndarray of shape (n, 2)
        Lower and upper ends: (time, time), or (time, inf) where the row is censored.

    Examples
    --------
    >>> from localexpert import censored
    >>> censored([400, 120], event=[False, True])
    array([[400.,  inf],
           [120., 120.]])
    """
    known = check_vector(time, "time")
    seen = check_labels(event, "event")
    check_same_length(len(known), "`time`", len(seen), "event")
    return np.column_stack([known, np.where(seen, known, np.inf)])


def _read_fields(
    y: Any, fields: tuple[str, ...], name: str
) -> tuple[Float64Array, Float64Array]:
    """Return the ends of a structured array of scikit-survival."""
    kinds = "".join(y.dtype[field].kind for field in fields)
    if len(kinds) != 2 or kinds[0] != "b" or kinds[1] not in "iuf" or y.ndim != 1:
        rule = "have two fields, events of booleans and times of numbers, in this order"
        refuse(name, rule, f"dtype {y.dtype} of shape {y.shape}")
    time = check_vector(y[fields[1]], f"{name}[{fields[1]!r}]")
    return time, np.where(y[fields[0]], time, np.inf)


def _refuse_events(y: Any, name: str) -> None:
    """Refuse a table of events and times: their order is not known."""
    kinds = getattr(y, "dtypes", getattr(y, "dtype", ""))
    kinds = kinds if isinstance(kinds, list) else np.ravel(np.asarray(kinds, object))
    if any(str(kind).lower().startswith("bool") for kind in kinds):
        rule = "have two columns of ends"
        refuse(name, rule, f"booleans{_CURE}")
