"""Curves through quantiles at given levels, which come back exactly."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from calibration.typing import Float64Array
from localexpert.law.basis import REACH, hermite_basis
from localexpert.law.chords import chords_beside
from localexpert.law.curve import Curve, to_coordinates

# Slopes of a curve through points, as multiples of the lesser chord beside: between
# such the cubic rises by more than a third of its chord everywhere.
_LEAST_SLOPE, _MOST_SLOPE = 0.3, 1.5
# At the ends, where tails go on from.
_LEAST_END = 0.5
# As shares of the mean slope: below which a chord at an end is nearly flat, and the
# least slope of a tail beyond one that is.
_FLAT, _LEAST_TAIL = 0.3, 0.25
# Widest gaps between breaks, in the middle and beyond it, and where that ends.
_NEAR, _FAR, _CENTRE = 0.2, 0.6, 3.5
# How far beyond the outermost scores a curve has the slope of its tails.
_LEAD = 0.1


def curve_through(
    scores: Float64Array,
    values: Float64Array,
    bounds: tuple[float, float],
    slopes: Float64Array | None = None,
) -> Curve:
    """Return the curves with given values at given scores, straight beyond them.

    They are natural cubic splines in the coordinate of the bounds. Where a spline falls
    or is nearly flat or steep its slopes are those nearest to it between 0.3 (0.5 at
    the ends) and 1.5 times the lesser slope of the chords beside, with which the
    coefficients increase. Tails have the slopes of the curve's ends; where its last
    chord there is below 0.3 of the mean slope, up to a quarter of that.

    Parameters
    ----------
    scores : ndarray of shape (k,)
        Strictly increasing, k >= 2.
    values : ndarray of shape (n, k)
        Strictly increasing along a row, strictly within the bounds.
    bounds : (float, float)
    slopes : ndarray of shape (n, k), optional
        Those at the scores, of curves without bounds, if they are known.

    Returns
    -------
    Curve
        On double knots at the scores: a cubic Hermite curve is a B-spline on those.
    """
    x = scores
    low, high = (np.full(len(values), end) for end in bounds)
    u = to_coordinates(values, low[:, None], high[:, None])
    # Rounding in the coordinate may not undo an order of values.
    u = np.maximum.accumulate(u, axis=1)
    beside = chords_beside(x, u)
    if slopes is None:
        spline = CubicSpline(x, np.eye(len(x)), bc_type="natural")
        # Not a product of matrices, whose rounding depends on the other rows.
        slopes = np.einsum("ik,jk->ij", u - u[:, :1], spline(x, 1))
    least = np.full(len(x), _LEAST_SLOPE)
    least[[0, -1]] = _LEAST_END
    slopes = np.clip(slopes, least * beside, _MOST_SLOPE * beside)
    # Two quantiles at an end that are nearly equal say nothing of what is beyond.
    mean = (u[:, -1:] - u[:, :1]) / (x[-1] - x[0])
    flat = np.maximum(1.0 - beside[:, [0, -1]] / np.maximum(_FLAT * mean, 1e-300), 0.0)
    tails = np.maximum(slopes[:, [0, -1]], _LEAST_TAIL * flat * mean)
    tails = np.maximum(tails, 2.0**-40 * np.abs(u[:, [0, -1]]).clip(1e-280))
    first, last = min(-REACH, x[0] - 1.0), max(REACH, x[-1] + 1.0)
    ends = x[[0, -1]] + np.array([-_LEAD, _LEAD])
    rise = 0.5 * (slopes[:, [0, -1]] + tails) * np.array([-_LEAD, _LEAD])
    near = u[:, [0, -1]] + rise
    outer = near + tails * (np.array([first, last]) - ends)
    breaks = np.concatenate([[first, ends[0]], x, [ends[1], last]])
    columns = outer[:, 0], near[:, 0], u, near[:, 1], outer[:, 1]
    heights = np.column_stack(columns)
    rates = np.column_stack([tails[:, [0, 0]], slopes, tails[:, [1, 1]]])
    breaks, heights, rates = _fill_gaps(breaks, heights, rates)
    basis, c = hermite_basis(breaks, heights, rates)
    c = np.maximum.accumulate(c, axis=1)
    return Curve(basis, c, tails, low, high)


def _fill_gaps(
    breaks: Float64Array, heights: Float64Array, rates: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the same curves on more breaks: they are read at these when mapped.

    The parts of a cubic are cubics, and where its coefficients increase so do theirs.
    """
    widest = np.where(np.abs(breaks[1:] + breaks[:-1]) < 2.0 * _CENTRE, _NEAR, _FAR)
    parts = np.ceil(np.diff(breaks) / widest).astype(np.intp)
    piece = np.repeat(np.arange(len(parts)), parts)
    start = np.concatenate([[0], np.cumsum(parts)[:-1]])
    s = (np.arange(len(piece)) - start[piece]) / parts[piece]
    width = np.diff(breaks)[piece]
    h0, h1 = heights[:, piece], heights[:, piece + 1]
    a, b = rates[:, piece] * width, rates[:, piece + 1] * width
    rise = h1 - h0
    c2, c3 = 3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise
    inner = h0 + s * (a + s * (c2 + s * c3))
    slopes = (a + s * (2.0 * c2 + 3.0 * s * c3)) / width
    return (
        np.append(breaks[piece] + s * width, breaks[-1]),
        np.column_stack([inner, heights[:, -1]]),
        np.column_stack([slopes, rates[:, -1]]),
    )
