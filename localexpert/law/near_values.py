"""Near values: numbers that are one value but for rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array

# Sums in another order, or a cumulated sum, miss each other by less than this share.
_NEAR = 1e-12
_FEW_ULPS = 2.0
# A run of near values that is wider than some such steps is a sample, not rounding.
_WIDEST_RUN = 10.0
# What is taken for a value lies within this share of its cell, and of the way to the
# next one, so that values which differ by a few roundings only are still told apart.
_CELL_SHARE = 1e-6


def merge_near_values(y: Float64Array, weight: Float64Array) -> Float64Array:
    """Return targets of which those that differ by rounding only are equal.

    Parameters
    ----------
    y, weight : ndarrays of shape (n,)
        Rows of weight zero stay as they are, and move no other.

    Returns
    -------
    ndarray of shape (n,)
        Each near value replaced by the heaviest one that it is near to.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.law.near_values import merge_near_values
    >>> y = np.array([0.3, 0.1 + 0.2, 0.3, 0.7])
    >>> print(merge_near_values(y, np.ones(4)))
    [0.3 0.3 0.3 0.7]
    """
    held = weight > 0.0
    values, place = np.unique(y[held], return_inverse=True)
    run = near_runs(values)
    if run[-1] == len(values) - 1:
        return y
    mass = np.bincount(place, weight[held])
    # Run by run, the heaviest first.
    order = np.lexsort((-mass, run))
    heaviest = values[order[np.flatnonzero(np.diff(run, prepend=-1))]]
    merged = y.copy()
    merged[held] = heaviest[run[place]]
    return merged


def near_runs(values: Float64Array) -> NDArray[np.intp]:
    """Return the number of the run of near values that each value is in.

    Two neighbours are near that differ by 1e-12 of their size or less. The size of a
    small one is the median's, for 0 and .1 + .2 - .3 are near among tenths; none
    exceeds the range of all, for seconds since 1970 may differ by milliseconds. Floats
    that are next to each other are near, but not a long row of them.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Strictly increasing.

    Returns
    -------
    ndarray of shape (m,)
        From 0, not decreasing.
    """
    if len(values) < 2:
        return np.zeros(len(values), dtype=np.intp)
    size = np.abs(values)
    size = np.maximum(size, np.median(size))
    step = _NEAR * np.minimum(size, np.ptp(values))
    step = np.maximum(step, _FEW_ULPS * np.spacing(size))
    near = np.diff(values) <= np.maximum(step[:-1], step[1:])
    if near.any():
        run = np.cumsum(np.concatenate([[True], ~near]))
        starts = np.flatnonzero(np.diff(run, prepend=0))
        ends = np.append(starts[1:], len(values)) - 1
        widest = _WIDEST_RUN * np.maximum(step[starts], step[ends])
        wide = values[ends] - values[starts] > widest
        near &= ~wide[run[1:] - 1]
    return np.cumsum(np.concatenate([[0], ~near]))


def reach_of_values(values: Float64Array, widths: Float64Array) -> Float64Array:
    """Return how far from each value a number is still taken for it, shape (m,).

    Parameters
    ----------
    values : ndarray of shape (m,)
    widths : ndarray of shape (m,)
        Of their cells.

    Returns
    -------
    ndarray of shape (m,)
    """
    size = np.maximum(np.abs(values), widths)
    gaps = np.concatenate([[np.inf], np.diff(values), [np.inf]])
    room = np.minimum(np.minimum(gaps[:-1], gaps[1:]), widths)
    reach: Float64Array = np.minimum(_NEAR * size, _CELL_SHARE * room)
    return reach


def count_upto(
    values: Float64Array, reach: Float64Array, y: Float64Array
) -> NDArray[np.intp]:
    """Return how many values are at most y, or are y but for rounding.

    Parameters
    ----------
    values, reach : ndarrays of shape (m,)
        Increasing, and what `reach_of_values` says of them.
    y : ndarray of any shape

    Returns
    -------
    ndarray of the shape of y
    """
    return np.searchsorted(values - reach, y, "right")


def count_below(
    values: Float64Array, reach: Float64Array, y: Float64Array
) -> NDArray[np.intp]:
    """Return how many values are below y by more than rounding; see `count_upto`."""
    return np.searchsorted(values + reach, y, "left")


def nearest_places(values: Float64Array, at: Float64Array) -> NDArray[np.intp]:
    """Return the positions of the values that are nearest to `at`, of its shape.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Increasing.
    at : ndarray of any shape

    Returns
    -------
    ndarray of the same shape
    """
    above = np.minimum(np.searchsorted(values, at), len(values) - 1)
    below = np.maximum(above - 1, 0)
    return np.where(at - values[below] < values[above] - at, below, above)
