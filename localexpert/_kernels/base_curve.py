"""The curve t(r) of a smooth marginal distribution, and its inverse.

Between the first and the last point t is a cubic Hermite curve of r. Beyond them the
survival function in x, the distance from the end point, is share * exp(-H(x)) with

    H(x) = log(1 + shape x / scale) / shape           shape > 0 (generalised Pareto)
    H(x) = x / scale - shape (x / scale)^2 / 2        shape <= 0

The second line is the first to second order in x. A generalised Pareto law of negative
shape would end at a finite point; this one goes on, with the tail of a normal law.
"""

import math
from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import fused, inner, njit
from calibration.typing import Float64Array
from localexpert._kernels.hermite import curve_at, curve_inverse
from localexpert._kernels.normal import log_normal_cdf, normal_hazard, upper_point

# exp of more overflows; a point that far out is as good as infinite.
_MAX_EXPONENT = 700.0


class BaseCurve(NamedTuple):
    """Points (m,), levels (m,) and slopes (m,) of the curve; tails by side (2,)."""

    points: Float64Array
    levels: Float64Array
    slopes: Float64Array
    scales: Float64Array
    shapes: Float64Array
    log_shares: Float64Array


@fused
def cumulative_hazard(x: float, scale: float, shape: float) -> float:
    """Return H(x)."""
    v = x / scale
    if shape > 0.0:
        # log1p: for small shapes this goes over into v, the exponential tail.
        return math.log1p(shape * v) / shape
    return v * (1.0 - 0.5 * shape * v)


@fused
def hazard(x: float, scale: float, shape: float) -> float:
    """Return H'(x)."""
    if shape > 0.0:
        return 1.0 / (scale + shape * x)
    return (1.0 - shape * x / scale) / scale


@fused
def hazard_inverse(h: float, scale: float, shape: float) -> float:
    """Return x with H(x) = h."""
    if shape > 0.0:
        return scale * math.expm1(min(shape * h, _MAX_EXPONENT)) / shape
    # The root of the quadratic that does not subtract numbers of one size.
    return scale * 2.0 * h / (1.0 + math.sqrt(1.0 - 2.0 * shape * h))


@inner
def level_at(curve: BaseCurve, r: float) -> tuple[float, float]:
    """Return t(r) and its derivative."""
    last = len(curve.points) - 1
    if curve.points[0] <= r < curve.points[last]:
        return curve_at(curve.points, curve.levels, curve.slopes, r)
    side = 0 if r < curve.points[0] else 1
    # Both tails are read as upper ones: the lower one with its signs turned.
    x = curve.points[0] - r if side == 0 else r - curve.points[last]
    if x == math.inf:
        return (-math.inf if side == 0 else math.inf), 0.0
    scale, shape = curve.scales[side], curve.shapes[side]
    # In logarithms, so that a point a hundred deviations out still has a level.
    t = upper_point(curve.log_shares[side] - cumulative_hazard(x, scale, shape))
    # t' from S(r) = Phi(-t): the two hazards are equal up to t'.
    slope = hazard(x, scale, shape) / normal_hazard(t)
    return (-t if side == 0 else t), slope


@inner
def point_at(curve: BaseCurve, t: float) -> float:
    """Return r(t), the inverse of t(r)."""
    last = len(curve.levels) - 1
    if curve.levels[0] <= t <= curve.levels[last]:
        return curve_inverse(curve.points, curve.levels, curve.slopes, t)
    if abs(t) == math.inf:
        return t
    side = 0 if t < 0.0 else 1
    # Rounding at the end point itself must not lead back inside.
    h = curve.log_shares[side] - log_normal_cdf(-abs(t))
    x = hazard_inverse(max(h, 0.0), curve.scales[side], curve.shapes[side])
    return float(curve.points[0] - x if side == 0 else curve.points[last] + x)


def follow_curve(curve: BaseCurve, x: Float64Array, *, inverse: bool) -> Float64Array:
    """Return t(r) and its derivative, (2, n), or of the inverse r(t) alone."""
    out = np.empty((2, len(x)))
    _follow(curve, x, inverse, out)
    return out


@njit
def _follow(
    curve: BaseCurve, x: Float64Array, inverse: bool, out: Float64Array
) -> None:
    for i in range(len(x)):
        if inverse:
            out[0, i] = point_at(curve, x[i])
        else:
            out[0, i], out[1, i] = level_at(curve, x[i])
