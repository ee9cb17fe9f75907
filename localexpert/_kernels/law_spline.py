"""Many rows' distributions F(y) = Phi(g(t(r))), r = (y - center) / scale.

g is a cubic Hermite curve on knots that all rows share, one row of values and slopes
each; it is a straight line beyond its end knots.
"""

import math
from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array
from localexpert._kernels.base_curve import BaseCurve, level_at, point_at
from localexpert._kernels.hermite import curve_at, curve_inverse
from localexpert._kernels.normal import log_normal_between, log_normal_pdf, safe_log
from localexpert._kernels.truncation import truncated_cdf, truncated_point


class SplineRows(NamedTuple):
    """The rows of a law: frame (n,), curve (K,) and (n, K), and truncation (n,).

    `low` and `high` are the ends of the support in z = g(t), `log_mass` the logarithm
    of what Phi holds between them; `bounds` are the ends in y, shape (2,).
    """

    center: Float64Array
    scale: Float64Array
    knots: Float64Array
    values: Float64Array
    slopes: Float64Array
    low: Float64Array
    high: Float64Array
    log_mass: Float64Array
    bounds: Float64Array


@inner
def score_at(curve: BaseCurve, rows: SplineRows, i: int, y: float) -> float:
    """Return z = g(t(r)) of y in row i, before truncation."""
    t = level_at(curve, (y - rows.center[i]) / rows.scale[i])[0]
    return float(curve_at(rows.knots, rows.values[i], rows.slopes[i], t)[0])


@njit
def truncate(
    curve: BaseCurve, rows: SplineRows
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return `low`, `high` and `log_mass` of rows whose bounds are known, (n,) each."""
    n = len(rows.center)
    low, high, log_mass = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        low[i] = score_at(curve, rows, i, rows.bounds[0])
        high[i] = score_at(curve, rows, i, rows.bounds[1])
        log_mass[i] = log_normal_between(low[i], high[i])
    return low, high, log_mass


@inner
def log_density_at(curve: BaseCurve, rows: SplineRows, i: int, t: float) -> float:
    """Return the logarithm of row i's density in y, at the y whose level is t."""
    z, slope = curve_at(rows.knots, rows.values[i], rows.slopes[i], t)
    rate = point_at(curve, t)[1] * rows.scale[i]
    return float(log_normal_pdf(z) - rows.log_mass[i] + safe_log(slope / rate))


@njit
def spline_cdf(
    curve: BaseCurve, rows: SplineRows, y: Float64Array, upper: bool
) -> Float64Array:
    """Return F(y), or 1 - F(y) if `upper`, to full relative accuracy; y is (n, k)."""
    n, k = y.shape
    out = np.empty((n, k))
    for i in range(n):
        low, high, log_mass = rows.low[i], rows.high[i], rows.log_mass[i]
        for j in range(k):
            z = score_at(curve, rows, i, y[i, j])
            # 1 - F(z) is F of the mirrored law, with all its digits in the upper tail.
            if upper:
                out[i, j] = truncated_cdf(-z, -high, -low, log_mass)
            else:
                out[i, j] = truncated_cdf(z, low, high, log_mass)
    return out


@njit
def spline_logpdf(curve: BaseCurve, rows: SplineRows, y: Float64Array) -> Float64Array:
    """Return the log density at y (n, k); -inf outside the bounds and at infinity."""
    n, k = y.shape
    out = np.full((n, k), -np.inf)
    for i in range(n):
        for j in range(k):
            r = (y[i, j] - rows.center[i]) / rows.scale[i]
            inside = rows.bounds[0] <= y[i, j] <= rows.bounds[1]
            if not inside or abs(r) == math.inf:
                continue
            # The chain rule: f(y) = phi(g) g'(t) t'(r) / scale / mass.
            t, rate = level_at(curve, r)
            z, slope = curve_at(rows.knots, rows.values[i], rows.slopes[i], t)
            density = log_normal_pdf(z) - rows.log_mass[i] - math.log(rows.scale[i])
            out[i, j] = density + safe_log(slope) + safe_log(rate)
    return out


@njit
def spline_quantiles(
    curve: BaseCurve, rows: SplineRows, scores: Float64Array
) -> Float64Array:
    """Return the y with F(y) = Phi(score), scores (n, k)."""
    n, k = scores.shape
    out = np.empty((n, k))
    low_y, high_y = rows.bounds[0], rows.bounds[1]
    for i in range(n):
        low, high, log_mass = rows.low[i], rows.high[i], rows.log_mass[i]
        for j in range(k):
            if abs(scores[i, j]) == math.inf:
                out[i, j] = low_y if scores[i, j] < 0.0 else high_y
                continue
            z = truncated_point(scores[i, j], low, high, log_mass)
            t = curve_inverse(rows.knots, rows.values[i], rows.slopes[i], z)
            y = rows.center[i] + rows.scale[i] * point_at(curve, t)[0]
            # y(z) rounds; a quantile must not leave the support.
            out[i, j] = min(max(y, low_y), high_y)
    return out
