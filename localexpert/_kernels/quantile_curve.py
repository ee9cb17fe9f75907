"""Quantile curves on normal scores: y = Q(z), a cubic Hermite curve in each row.

Beyond its end knots a curve is a straight line, a normal tail; towards a bound it is an
exponential that never reaches it, a log-normal tail.
"""

import math
from typing import TypeAlias

import numpy as np

from calibration._kernels._jit import fused, njit
from calibration.typing import Float64Array
from localexpert._kernels.hermite import curve_at, curve_inverse
from localexpert._kernels.normal import safe_log

# Knots (K,), values and slopes (n, K), slopes of the tails (n, 2), bounds (2,).
Curves: TypeAlias = tuple[
    Float64Array, Float64Array, Float64Array, Float64Array, Float64Array
]


@fused
def _tail_at(away: float, value: float, slope: float, bound: float) -> float:
    """Return Q at a score so far from the end knot, where Q is `value`."""
    if abs(bound) == math.inf:
        return value + slope * away
    gap = value - bound
    return bound + gap * math.exp(slope / gap * away)


@fused
def _tail_away(y: float, value: float, slope: float, bound: float) -> float:
    """Return how far from the end knot the score with Q = y is."""
    if abs(bound) == math.inf:
        return (y - value) / slope
    gap = value - bound
    share = (y - bound) / gap
    # At the bound, or beyond it, no score is far enough.
    return safe_log(max(share, 0.0)) * gap / slope


def curve_values(
    knots: Float64Array,
    values: Float64Array,
    slopes: Float64Array,
    tails: Float64Array,
    bounds: Float64Array,
    scores: Float64Array,
) -> tuple[Float64Array, Float64Array]:
    """Return Q(scores) and log Q'(scores), scores (n, k).

    Curves are (n, K), the slopes at which tails begin (n, 2).
    """
    # Arrays are made here: each kernel that makes one compiles that, too.
    out = np.empty((2, *scores.shape))
    _fill_values(knots, values, slopes, tails, bounds, scores, out[0], out[1])
    return out[0], out[1]


@njit
def _fill_values(
    knots: Float64Array,
    values: Float64Array,
    slopes: Float64Array,
    tails: Float64Array,
    bounds: Float64Array,
    scores: Float64Array,
    out: Float64Array,
    log_slopes: Float64Array,
) -> None:
    last = len(knots) - 1
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            z = scores[i, j]
            if knots[0] <= z <= knots[last]:
                y, slope = curve_at(knots, values[i], slopes[i], z)
                out[i, j], log_slopes[i, j] = y, safe_log(slope)
            else:
                side, end = (0, 0) if z < knots[0] else (1, last)
                away, slope, bound = z - knots[end], tails[i, side], bounds[side]
                out[i, j] = _tail_at(away, values[i, end], slope, bound)
                log_slopes[i, j] = math.log(slope)
                if abs(bound) < math.inf:
                    log_slopes[i, j] += slope / (values[i, end] - bound) * away


def curve_scores(
    knots: Float64Array,
    values: Float64Array,
    slopes: Float64Array,
    tails: Float64Array,
    bounds: Float64Array,
    y: Float64Array,
) -> Float64Array:
    """Return the z with Q(z) = y, y (n, k); infinite at and beyond a bound."""
    out = np.empty(y.shape)
    _fill_scores(knots, values, slopes, tails, bounds, y, out)
    return out


@njit
def _fill_scores(
    knots: Float64Array,
    values: Float64Array,
    slopes: Float64Array,
    tails: Float64Array,
    bounds: Float64Array,
    y: Float64Array,
    out: Float64Array,
) -> None:
    last = len(knots) - 1
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            at = y[i, j]
            if values[i, 0] <= at <= values[i, last]:
                out[i, j] = curve_inverse(knots, values[i], slopes[i], at)
            else:
                side, end = (0, 0) if at < values[i, 0] else (1, last)
                away = _tail_away(at, values[i, end], tails[i, side], bounds[side])
                out[i, j] = knots[end] + away
