"""Increasing maps of normal scores: cubic Hermite curves, one a row or one for all.

Beyond its end knots a curve goes on so that Phi(h(s)) is proportional to Phi(s) in the
lower tail, and Phi(-h(s)) to Phi(-s) in the upper one.
"""

import math

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array
from localexpert._kernels.hermite import curve_at, curve_inverse
from localexpert._kernels.normal import (
    log_normal_cdf,
    normal_cdf,
    normal_hazard,
    safe_log,
    upper_point,
)

_LOG_HALF = math.log(0.5)


@njit
def tail_score(score: float, log_factor: float) -> float:
    """Return the h with Phi(h) = factor Phi(score), which must be below 1."""
    level = log_normal_cdf(score) + log_factor
    if level <= _LOG_HALF:
        return -upper_point(level)
    # Phi(h) above 1/2: from the upper tail 1 - Phi(h), without cancellation.
    return float(upper_point(safe_log(-math.expm1(min(level, 0.0)))))


@inner
def _tail_at(score: float, knot: float, value: float, side: float) -> float:
    """Return h beyond an end knot; side is -1 below, 1 above."""
    # A factor of 1: the tail is the normal one, and no digit is lost on the way.
    if value == knot:
        return score
    factor = log_normal_cdf(-side * value) - log_normal_cdf(-side * knot)
    return -side * tail_score(-side * score, factor)


@njit
def tail_slope(score: float, mapped: float, side: float) -> float:
    """Return h' at a score beyond an end knot, where h is `mapped`.

    Of log Phi(h) = log Phi(s) + constant, and the same from above.
    """
    if abs(score) == math.inf:
        return 1.0
    return float(normal_hazard(side * score) / normal_hazard(side * mapped))


@njit
def map_scores(
    knots: Float64Array,
    values: Float64Array,
    slopes: Float64Array,
    scores: Float64Array,
) -> tuple[Float64Array, Float64Array]:
    """Return h(scores) and log h'(scores), scores (n, k).

    Curves are (n, K), or (1, K) for all rows. h(-inf) = -inf and h(inf) = inf.
    """
    n, k = scores.shape
    last = len(knots) - 1
    out, log_slopes = np.empty((n, k)), np.empty((n, k))
    for i in range(n):
        row = i if len(values) > 1 else 0
        for j in range(k):
            score = scores[i, j]
            if knots[0] <= score <= knots[last]:
                h, slope = curve_at(knots, values[row], slopes[row], score)
            else:
                end, side = (0, -1.0) if score < knots[0] else (last, 1.0)
                h = _tail_at(score, knots[end], values[row, end], side)
                slope = tail_slope(score, h, side)
            out[i, j], log_slopes[i, j] = h, safe_log(slope)
    return out, log_slopes


@njit
def map_levels(
    knots: Float64Array,
    values: Float64Array,
    slopes: Float64Array,
    scores: Float64Array,
) -> tuple[Float64Array, Float64Array]:
    """Return Phi(h(scores)) and Phi(-h(scores)), (n, k) both; see `map_scores`.

    The smaller one keeps its digits.
    """
    n, k = scores.shape
    last = len(knots) - 1
    below, above = np.empty((n, k)), np.empty((n, k))
    for i in range(n):
        row = i if len(values) > 1 else 0
        value = values[row]
        # Proportional tails: one factor each, found where the tail meets the curve.
        lower = normal_cdf(value[0]) / normal_cdf(knots[0])
        upper = normal_cdf(-value[last]) / normal_cdf(-knots[last])
        for j in range(k):
            score = scores[i, j]
            if score < knots[0]:
                below[i, j] = lower * normal_cdf(score)
                above[i, j] = 1.0 - below[i, j]
            elif score > knots[last]:
                above[i, j] = upper * normal_cdf(-score)
                below[i, j] = 1.0 - above[i, j]
            else:
                h = curve_at(knots, value, slopes[row], score)[0]
                small = normal_cdf(-abs(h))
                below[i, j] = small if h < 0.0 else 1.0 - small
                above[i, j] = 1.0 - small if h < 0.0 else small
    return below, above


@njit
def unmap_scores(
    knots: Float64Array,
    values: Float64Array,
    slopes: Float64Array,
    scores: Float64Array,
) -> Float64Array:
    """Return the least s with h(s) = score, scores (n, k); see `map_scores`."""
    n, k = scores.shape
    last = len(knots) - 1
    out = np.empty((n, k))
    for i in range(n):
        row = i if len(values) > 1 else 0
        for j in range(k):
            score = scores[i, j]
            if values[row, 0] <= score <= values[row, last]:
                out[i, j] = curve_inverse(knots, values[row], slopes[row], score)
            else:
                end, side = (0, -1.0) if score < values[row, 0] else (last, 1.0)
                out[i, j] = _tail_at(score, values[row, end], knots[end], side)
    return out
