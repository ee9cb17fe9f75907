"""Laws with given quantiles, and with given probabilities of bins."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert._validation import (
    as_numbers,
    check_array,
    check_bounds,
    check_finite,
    check_increasing,
    check_probability_rows,
    check_vector,
)
from localexpert.law.hermite_curve import curve_through
from localexpert.law.law import Law

# Equal quantiles are drawn apart by this share of the range around them (of the row's
# where there is none), a row without range by its square. What is out of order by less
# than the latter is so by rounding.
_APART = 1e-6
# How far "around" reaches in normal scores: heavy tails are no measure of the middle.
_AROUND = 0.5
_FEW_ULPS = 8.0
# Scores of the quantiles that stand for a histogram.
_BIN_SCORES = np.linspace(-3.0, 3.0, 161)


def law_of_quantiles(values: ArrayLike, levels: ArrayLike, bounds: Any) -> Law:
    """Return the law with given quantiles, put in order and within bounds.

    Parameters
    ----------
    values : array-like of shape (n, k)
    levels : array-like of shape (k,)
        Strictly increasing in (0, 1), k >= 2.
    bounds : (float, float) or None

    Returns
    -------
    Law
    """
    knots = ndtri(_check_levels(levels))
    rows = read_rows(values, "values", "a row for each forecast, a column for a level")
    if rows.shape[1] != len(knots):
        msg = (
            f"`values` must have a column for each of the {len(knots)} levels, "
            f"got shape {rows.shape}."
        )
        raise ValueError(msg)
    ends = check_bounds((None, None) if bounds is None else bounds)
    return Law.smooth(curve_through(knots, increase_rows(rows, knots, ends), ends))


def read_rows(values: ArrayLike, name: str, wanted: str) -> Float64Array:
    """Return finite numbers in two dimensions; refuse others by their row.

    Parameters
    ----------
    values : array-like of shape (n, k)
    name : str
    wanted : str
        What rows and columns are, for a message.

    Returns
    -------
    ndarray of shape (n, k)
    """
    rows = as_numbers(values, name)
    if rows.ndim != 2:
        msg = f"`{name}` must have two dimensions, {wanted}, got shape {rows.shape}."
        raise ValueError(msg)
    check_finite(rows, name)
    return rows


def increase_rows(
    rows: Float64Array, knots: Float64Array, bounds: tuple[float, float]
) -> Float64Array:
    """Return quantiles that increase strictly, strictly within the bounds.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
    knots : ndarray of shape (k,)
        Normal scores of their levels.
    bounds : (float, float)

    Returns
    -------
    ndarray of shape (n, k)
        Those of rows that increase well within the bounds already, as they are.
    """
    size = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    tiny = _APART**2 * size
    fell = (np.diff(rows, axis=1) < -tiny).any(axis=1)
    outside = ((rows < bounds[0] - tiny) | (rows > bounds[1] + tiny)).any(axis=1)
    _warn(fell, "fall along a row", "they are put in order")
    _warn(outside, "lie beyond `bounds`", "they are put on the bound")
    out = np.clip(np.sort(rows, axis=1), *bounds)
    around = _range_around(out, knots)
    spread = np.where(around > 0.0, around, np.ptp(out, axis=1, keepdims=True))
    spread = np.where(spread > 0.0, spread, _APART * np.where(size > 0.0, size, 1.0))
    gaps = np.diff(knots, prepend=knots[0] - 1.0, append=knots[-1] + 1.0)
    share = _APART * gaps / (knots[-1] - knots[0])
    below, above = share[:-1] * spread, share[1:] * spread
    # Upwards from the lower bound, and then down from the upper one.
    last = np.full(len(out), bounds[0])
    for k in range(out.shape[1]):
        last = out[:, k] = np.maximum(out[:, k], last + _as_floats(below[:, k], last))
    last = np.full(len(out), bounds[1])
    for k in range(out.shape[1] - 1, -1, -1):
        step = _as_floats(above[:, k], out[:, k])
        last = out[:, k] = np.minimum(out[:, k], last - step)
    return out


def _range_around(rows: Float64Array, knots: Float64Array) -> Float64Array:
    """Return the range between the knots around each, its neighbours at least."""
    places = np.arange(len(knots))
    first = np.searchsorted(knots, knots - _AROUND)
    last = np.searchsorted(knots, knots + _AROUND, side="right") - 1
    first = np.minimum(first, np.maximum(places - 1, 0))
    last = np.maximum(last, np.minimum(places + 1, len(knots) - 1))
    return rows[:, last] - rows[:, first]


def _as_floats(step: Float64Array, value: Float64Array) -> Float64Array:
    """Return steps that floats of the size of a value can tell."""
    finite = np.where(np.isfinite(value), value, 0.0)
    return np.maximum(step, _FEW_ULPS * np.spacing(np.abs(finite)))


def law_of_bins(edges: ArrayLike, probabilities: ArrayLike) -> Law:
    """Return a smooth law with the quantiles of histograms.

    Parameters
    ----------
    edges : array-like of shape (B + 1,)
    probabilities : array-like of shape (n, B)

    Returns
    -------
    Law
    """
    borders = check_vector(edges, "edges")
    check_increasing(borders, "edges")
    if len(borders) < 2:
        msg = f"`edges` must be two or more, got {len(borders)}."
        raise ValueError(msg)
    read_rows(probabilities, "probabilities", "a row for each forecast")
    shares = check_probability_rows(probabilities, "probabilities", len(borders) - 1)
    upto = np.minimum(np.cumsum(shares, axis=1), 1.0)
    upto[:, -1] = 1.0
    earlier = np.pad(upto, ((0, 0), (1, 0)))
    quantiles = np.empty((len(shares), len(_BIN_SCORES)))
    for k, level in enumerate(ndtr(_BIN_SCORES)):
        # The first bin that reaches the level has some probability.
        count = (upto < level).sum(axis=1)
        at = count[:, None]
        before, held = (np.take_along_axis(part, at, 1) for part in (earlier, shares))
        share = np.clip((level - before) / held, 0.0, 1.0)[:, 0]
        low, high = borders[count], borders[count + 1]
        quantiles[:, k] = low + share * (high - low)
    ends = float(borders[0]), float(borders[-1])
    rows = increase_rows(quantiles, _BIN_SCORES, ends)
    return Law.smooth(curve_through(_BIN_SCORES, rows, ends))


def _check_levels(levels: ArrayLike) -> Float64Array:
    """Return levels strictly between 0 and 1, strictly increasing, two or more."""
    found = check_array(np.atleast_1d(as_numbers(levels, "levels")), "levels", (None,))
    check_increasing(found, "levels")
    if len(found) < 2:
        msg = (
            "`levels` must be two or more, for one quantile does not say how wide a "
            f"distribution is, got {found[0]:g} alone."
        )
        raise ValueError(msg)
    outside = (found <= 0.0) | (found >= 1.0)
    if outside.any():
        msg = f"`levels` must lie in (0, 1), got {found[outside][0]:g}."
        raise ValueError(msg)
    return found


def _warn(wrong: Any, what: str, cure: str) -> None:
    if wrong.any():
        msg = (
            f"`values` {what} in {wrong.sum()} of {len(wrong)} rows, the first of them "
            f"row {int(np.argmax(wrong))}; {cure}."
        )
        warnings.warn(msg, CalibrationWarning, stacklevel=5)
