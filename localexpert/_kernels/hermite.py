"""Cubic Hermite pieces: one piece, and a curve with straight lines beyond its ends."""

from calibration._kernels._jit import fused, inner
from calibration.typing import Float64Array

_MAX_STEPS = 100


@inner
def find_segment(knots: Float64Array, x: float) -> int:
    """Return k with knots[k] <= x < knots[k + 1]; -1 or the last index beyond."""
    low, high = 0, len(knots)
    while low < high:
        middle = (low + high) >> 1
        if knots[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low - 1


@inner
def piece_at(
    rise: float, slope0: float, slope1: float, width: float, share: float
) -> tuple[float, float]:
    """Return rise so far and slope at `share` in [0, 1] of a cubic piece."""
    a, b = slope0 * width, slope1 * width
    # value = share a + share^2 c2 + share^3 c3 has the slopes a and b at 0 and 1, and
    # rises by `rise`.
    c2 = 3.0 * rise - 2.0 * a - b
    c3 = a + b - 2.0 * rise
    value = share * (a + share * (c2 + share * c3))
    slope = (a + share * (2.0 * c2 + 3.0 * share * c3)) / width
    return value, slope


@fused
def piece_inverse(
    rise: float, slope0: float, slope1: float, width: float, goal: float
) -> float:
    """Return the share in [0, 1] at which an increasing piece has risen by `goal`.

    Newton steps kept inside a shrinking bracket, bisection where they leave it.
    """
    if not goal > 0.0:
        return 0.0
    if goal >= rise:
        return 1.0
    low, high = 0.0, 1.0
    # As if the piece were a line.
    share = goal / rise
    for _ in range(_MAX_STEPS):
        value, slope = piece_at(rise, slope0, slope1, width, share)
        if value > goal:
            high = share
        else:
            low = share
        # Newton's method is quick but may leave the bracket where the slope is near 0;
        # halving is slow but cannot fail.
        trial = share - (value - goal) / (slope * width) if slope > 0.0 else -1.0
        if not low <= trial <= high:
            trial = 0.5 * (low + high)
        step = abs(trial - share)
        share = trial
        # The rounding of the share itself.
        if step <= 2.0**-52:
            break
    return share


@inner
def curve_at(
    knots: Float64Array, values: Float64Array, slopes: Float64Array, x: float
) -> tuple[float, float]:
    """Return value and slope at x of the curve, a straight line beyond its knots."""
    last = len(knots) - 1
    k = find_segment(knots, x)
    if k < 0:
        return values[0] + slopes[0] * (x - knots[0]), slopes[0]
    if k == last:
        return values[last] + slopes[last] * (x - knots[last]), slopes[last]
    width = knots[k + 1] - knots[k]
    rise, slope = piece_at(
        values[k + 1] - values[k],
        slopes[k],
        slopes[k + 1],
        width,
        (x - knots[k]) / width,
    )
    return values[k] + rise, slope


@inner
def curve_inverse(
    knots: Float64Array, values: Float64Array, slopes: Float64Array, y: float
) -> float:
    """Return the least x at which a non-decreasing curve reaches y.

    The slopes at both ends must be positive.
    """
    last = len(knots) - 1
    if y <= values[0]:
        return float(knots[0] + (y - values[0]) / slopes[0])
    if y > values[last]:
        return float(knots[last] + (y - values[last]) / slopes[last])
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) >> 1
        # `<` finds the first of equal values: the least x, on a flat stretch.
        if values[middle] < y:
            low = middle
        else:
            high = middle
    width = knots[high] - knots[low]
    share = piece_inverse(
        values[high] - values[low], slopes[low], slopes[high], width, y - values[low]
    )
    return float(knots[low] + share * width)
