"""Targets that are known only in part: a lower and an upper end for every row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    as_numbers,
    check_labels,
    check_same_length,
    check_vector,
    check_weights,
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


def kaplan_meier(
    y: Any, sample_weight: ArrayLike | None = None
) -> tuple[Float64Array, Float64Array]:
    r"""Return Kaplan and Meier's estimate of the survival function.

    Parameters
    ----------
    y : array-like of shape (n, 2) or structured array of shape (n,)
        Targets as `fit` takes them, known or right-censored; `censored` makes them from
        times and events.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.

    Returns
    -------
    values : ndarray of shape (m,)
        All values at which a target is known or censored, increasing.
    survival : ndarray of shape (m,)
        Estimates of P(Y > value).

    Notes
    -----
    With :math:`d_v` known targets at v and :math:`n_v` rows whose target or limit is at
    least v,

    .. math:: S(t) = \prod_{v \le t} (1 - d_v / n_v).

    A row that is censored at a value counts among those at risk there, as is usual. The
    estimate does not reach 0 if the greatest value is censored: nothing is known beyond
    it. Censoring must not depend on the target.

    References
    ----------
    Kaplan & Meier (1958), Nonparametric estimation from incomplete observations.

    Examples
    --------
    >>> from localexpert import censored, kaplan_meier
    >>> kaplan_meier(censored([1, 2, 3, 4], event=[1, 0, 1, 1]))
    (array([1., 2., 3., 4.]), array([0.75 , 0.75 , 0.375, 0.   ]))
    """
    time, event = read_right(y)
    return product_limit(time, event, check_weights(sample_weight, len(time)))


def read_right(y: Any, name: str = "y") -> tuple[Float64Array, NDArray[np.bool_]]:
    """Return times (n,) and which of them are known; refuse targets cut elsewhere.

    Parameters
    ----------
    y : array-like of shape (n, 2) or structured array of shape (n,)
    name : str
        Name of the parameter in errors.

    Returns
    -------
    time, event : ndarrays of shape (n,)
    """
    lower, upper = read_ends(y, name)
    event = lower == upper
    wrong = ~event & ((upper < np.inf) | (lower == -np.inf))
    if wrong.any():
        i = int(np.argmax(wrong))
        got = f"({show(lower[i])}, {show(upper[i])}) at position {i}"
        refuse(name, "be known or right-censored, (c, inf), in every row", got)
    return lower, event


def product_limit(
    time: Float64Array,
    event: NDArray[np.bool_],
    weight: Float64Array,
    *,
    limits: bool = False,
) -> tuple[Float64Array, Float64Array]:
    """Return the different times (m,) and the share without an event until then.

    Parameters
    ----------
    time : ndarray of shape (n,)
    event : ndarray of shape (n,)
        Whether the event comes at this time. Otherwise this is a limit, and the event
        comes later, even if another row has its event at the same time.
    weight : ndarray of shape (n,)
    limits : bool
        Wait for limits, of which those of rows with an event come later.

    Returns
    -------
    times, share : ndarrays of shape (m,)
    """
    times, place = np.unique(time, return_inverse=True)
    events, ends = (np.bincount(place, weight * part) for part in (event, ~event))
    # Those who go on after a time; if there are none, exactly 0 are left.
    later = np.append(np.cumsum((events + ends)[:0:-1])[::-1], 0.0)
    # Events come before limits. So a row with an event has no part in limits then.
    later, hits = (later, ends) if limits else (later + ends, events)
    at_risk = later + hits
    left = np.divide(later, at_risk, out=np.ones(len(times)), where=at_risk > 0.0)
    return times, np.cumprod(left)
