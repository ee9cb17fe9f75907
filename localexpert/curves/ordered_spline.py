"""B-splines through probits that keep order: along a row, and between rows."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BSpline
from scipy.special import log_ndtr, ndtri_exp

from calibration.typing import Float64Array
from localexpert.law.level_map import LevelMap

# Knots reach so far out in probits, and beyond the outer thresholds by so much.
_REACH, _BEYOND = 3.4, 0.3
# Narrowest and widest step between knots in the middle.
_LEAST_STEP, _MOST_STEP = 0.02, 1.0
# Beyond the last knot a curve has the slope of the marginal, or the least that moments
# allow: it is the same in all rows, for lines of different slopes cross.
_END_SLOPE = 1.0


def ordered_spline(
    z: Float64Array, t: Float64Array, step: float, least_slopes: tuple[float, float]
) -> LevelMap:
    """Smooth the broken lines through (t, z) by cubic B-splines.

    Knots lie at sinh(step j), so that steps grow outwards as thresholds become rare.
    The coefficient of a B-spline is the mean, under a hat that is two steps wide, of
    the row's broken line around the place that the B-spline stands for (the mean of
    its inner knots). All weights are positive and straight lines stay what they are;
    so where z is greater in a row the curve is greater, where z increases so does the
    curve, and two continuous derivatives are those of B-splines.

    Parameters
    ----------
    z : ndarray of shape (n, N)
        Probits, increasing along a row.
    t : ndarray of shape (N,)
        Strictly increasing.
    step : float
        At 0; at least the mean step of thresholds, and at most 1.
    least_slopes : (float, float)
        Least slopes beyond the lower and the upper end.

    Returns
    -------
    LevelMap
        A curve for each row, without curvature at its ends.
    """
    grid = _place_knots(t, step)
    gap = 0.5 * np.diff(grid).min()
    z, t = extend_tails(z, t, grid[grid < t[0] - gap], grid[grid > t[-1] + gap])
    means = _smooth(z, t, (grid[:-2] + grid[1:-1] + grid[2:]) / 3.0, grid)
    return _with_straight_ends(means, grid, least_slopes)


def extend_tails(
    z: Float64Array, t: Float64Array, below: Float64Array, above: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Continue rows beyond the outer thresholds with the marginal's shape.

    Below the first threshold t_1 a row is the marginal moved, z(t) = z_1 + t - t_1, or
    F(t | x) / F(t_1 | x) = Phi(t) / Phi(t_1), whichever is less, and likewise above
    the last. So a row with nearly all its probability beyond a threshold stays where
    rows have been, and one with hardly any is no wider than it was. Both are functions
    of z_1 alone that increase with it: the rows' order goes on.

    Parameters
    ----------
    z : ndarray of shape (n, N)
        Probits, increasing along a row.
    t : ndarray of shape (N,)
    below, above : ndarrays of shape (a,) and (b,)
        Increasing levels below and above all of t.

    Returns
    -------
    z : ndarray of shape (n, a + N + b)
    t : ndarray of shape (a + N + b,)
    """
    left = _lower_tail(z[:, :1], t[0], below)
    right = -_lower_tail(-z[:, -1:], -t[-1], -above)
    return np.hstack([left, z, right]), np.concatenate([below, t, above])


def _lower_tail(z: Float64Array, t: float, below: Float64Array) -> Float64Array:
    # By logarithms, for a threshold may lie so far out that no float is its level.
    share = log_ndtr(below) - log_ndtr(t)
    return np.asarray(np.minimum(z + (below - t), ndtri_exp(log_ndtr(z) + share)))


def _place_knots(t: Float64Array, step: float) -> Float64Array:
    """Return knots that cover the thresholds and the tails, symmetric around 0."""
    ends = np.arcsinh(t[[0, -1]])
    between = (ends[1] - ends[0]) / max(len(t) - 1, 1)
    step = float(np.clip(step, max(between, _LEAST_STEP), max(between, _MOST_STEP)))
    reach = max(_REACH, _BEYOND - t[0], _BEYOND + t[-1])
    n = int(np.ceil(np.arcsinh(reach) / step)) + 1
    return np.asarray(np.sinh(step * np.arange(-n, n + 1)))


def _smooth(
    z: Float64Array, t: Float64Array, places: Float64Array, grid: Float64Array
) -> Float64Array:
    """Return means of broken lines under the hats at the places, (n, len(places))."""
    width = 0.5 * (grid[2:] - grid[:-2])[:, None]
    away = (places[:, None] - t) / width
    # The mean of max(x - t_k, 0) under a hat; a broken line is a sum of such.
    ramps = np.maximum(away, 0.0) + np.maximum(1.0 - np.abs(away), 0.0) ** 3 / 6.0
    ramps *= width
    shares = (ramps[:, :-1] - ramps[:, 1:]) / np.diff(t)
    return np.asarray(z[:, :1] + _combine(np.diff(z), shares))


def _with_straight_ends(
    means: Float64Array, grid: Float64Array, least_slopes: tuple[float, float]
) -> LevelMap:
    """Return the spline of the coefficients, and of more of them on straight lines."""
    low, high = (max(_END_SLOPE, least) for least in least_slopes)
    more = np.arange(1.0, 4.0)
    first, last = grid[1] - grid[0], grid[-1] - grid[-2]
    knots = np.concatenate([grid[0] - first * more[::-1], grid, grid[-1] + last * more])
    places = (knots[1:-3] + knots[2:-2] + knots[3:-1]) / 3.0
    coefficients = np.hstack(
        [
            means[:, :1] + low * (places[:2] - places[2]),
            means,
            means[:, -1:] + high * (places[-2:] - places[-3]),
        ]
    )
    splines = BSpline(knots, np.eye(len(places)), 3)
    at_knots = (np.asarray(splines(grid, nu), dtype=np.float64) for nu in (0, 1))
    values, slopes = (_combine(coefficients, shares) for shares in at_knots)
    return LevelMap(grid, values, slopes)


def _combine(rows: Float64Array, shares: Float64Array) -> Float64Array:
    """Return sums of what rows (n, k) hold with the shares (m, k), shape (n, m).

    Not a product of matrices, whose rounding depends on how many rows there are.
    """
    return np.asarray(np.einsum("ik,jk->ij", rows, shares))
