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

# Nearer than this to an end of the support, in hazards, differences of Phi lose digits.
_NEAR = 0.05
_NODES, _SHARES = np.polynomial.legendre.leggauss(6)
_NODES, _SHARES = 0.5 * (1.0 + _NODES), 0.5 * _SHARES
_LEAST = -np.finfo(np.float64).max


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
        if is_near(low[i], high[i]):
            held = mass_between(
                curve, rows, i, rows.bounds[0], rows.bounds[1], log_mass[i]
            )
            log_mass[i] += safe_log(held)
    return low, high, log_mass


@inner
def is_near(low: float, high: float) -> bool:
    """Return whether Phi(high) - Phi(low) is a small part of a tail."""
    return (high - low) * max(1.0, min(abs(low), abs(high))) < _NEAR


@inner
def mass_between(
    curve: BaseCurve,
    rows: SplineRows,
    i: int,
    low: float,
    high: float,
    log_mass: float,
) -> float:
    """Return P(low < Y < high) of row i for values that lie near each other.

    The integral of the density, which is smooth between the knots and the points of
    the base curve, loses no digits to a difference.
    """
    center, scale = rows.center[i], rows.scale[i]
    borders = np.empty(len(rows.knots) + len(curve.points) + 2)
    borders[0], borders[1] = low, high
    place = 2
    for point in curve.points:
        borders[place] = center + scale * point
        place += 1
    for knot in rows.knots:
        borders[place] = center + scale * point_at(curve, knot)[0]
        place += 1
    borders = np.sort(np.minimum(np.maximum(borders, low), high))
    total = 0.0
    for j in range(len(borders) - 1):
        width = borders[j + 1] - borders[j]
        if width > 0.0:
            for q in range(len(_NODES)):
                r = (borders[j] + _NODES[q] * width - center) / scale
                t, rate = level_at(curve, r)
                z, slope = curve_at(rows.knots, rows.values[i], rows.slopes[i], t)
                density = math.exp(log_normal_pdf(z) - log_mass) * slope * rate / scale
                total += _SHARES[q] * width * density
    return total


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
            at = min(max(y[i, j], rows.bounds[0]), rows.bounds[1])
            z = score_at(curve, rows, i, at)
            # 1 - F(z) is F of the mirrored law, with all its digits in the upper tail.
            if upper and is_near(z, high):
                held = mass_between(curve, rows, i, at, rows.bounds[1], log_mass)
                out[i, j] = min(held, 1.0)
            elif upper:
                out[i, j] = truncated_cdf(-z, -high, -low, log_mass)
            elif is_near(low, z):
                held = mass_between(curve, rows, i, rows.bounds[0], at, log_mass)
                out[i, j] = min(held, 1.0)
            else:
                out[i, j] = truncated_cdf(z, low, high, log_mass)
    return out


def spline_logpdf(curve: BaseCurve, rows: SplineRows, y: Float64Array) -> Float64Array:
    """Return the log density at y (n, k); -inf outside the bounds and at infinity.

    Far out, where it would overflow, it is the least float.
    """
    # Arrays are made here: each kernel that makes one compiles that, too.
    out = np.empty(y.shape)
    _log_densities(curve, rows, y, out)
    return out


@njit
def _log_densities(
    curve: BaseCurve, rows: SplineRows, y: Float64Array, out: Float64Array
) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            out[i, j] = -math.inf
            r = (y[i, j] - rows.center[i]) / rows.scale[i]
            inside = rows.bounds[0] <= y[i, j] <= rows.bounds[1]
            if not inside or abs(y[i, j]) == math.inf:
                continue
            # The chain rule: f(y) = phi(g) g'(t) t'(r) / scale / mass.
            t, rate = level_at(curve, r)
            z, slope = curve_at(rows.knots, rows.values[i], rows.slopes[i], t)
            density = log_normal_pdf(z) - rows.log_mass[i] - math.log(rows.scale[i])
            density = density + safe_log(slope) + safe_log(rate)
            out[i, j] = max(density, _LEAST) if slope > 0.0 else density


def spline_quantiles(
    curve: BaseCurve, rows: SplineRows, scores: Float64Array
) -> Float64Array:
    """Return the y with F(y) = Phi(score), scores (n, k)."""
    out = np.empty(scores.shape)
    _quantiles(curve, rows, scores, out)
    return out


@njit
def _quantiles(
    curve: BaseCurve, rows: SplineRows, scores: Float64Array, out: Float64Array
) -> None:
    low_y, high_y = rows.bounds[0], rows.bounds[1]
    for i in range(scores.shape[0]):
        low, high, log_mass = rows.low[i], rows.high[i], rows.log_mass[i]
        for j in range(scores.shape[1]):
            if abs(scores[i, j]) == math.inf:
                out[i, j] = low_y if scores[i, j] < 0.0 else high_y
                continue
            z = truncated_point(scores[i, j], low, high, log_mass)
            t = curve_inverse(rows.knots, rows.values[i], rows.slopes[i], z)
            y = rows.center[i] + rows.scale[i] * point_at(curve, t)[0]
            # y(z) rounds; a quantile must not leave the support.
            out[i, j] = min(max(y, low_y), high_y)
