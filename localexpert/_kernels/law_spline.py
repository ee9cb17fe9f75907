"""Many rows' distributions F(y) = Phi(g(t(r))), r = (y - center) / scale.

g is a cubic Hermite curve on knots that all rows share, one row of values and slopes
each; it is a straight line beyond its end knots.
"""

import math
from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import for_kernels, inner, njit
from calibration.typing import Float64Array
from localexpert._kernels.base_curve import (
    BaseCurve,
    level_at,
    levels_at,
    point_at,
    points_at,
)
from localexpert._kernels.hermite import curve_at, find_segment
from localexpert._kernels.normal import (
    LOG_SQRT_TWO_PI,
    log_normal_between,
    log_normal_pdf,
    safe_log,
)
from localexpert._kernels.quantile_curve import Curves, curve_scores, curve_values
from localexpert._kernels.truncation import truncated_cdf, truncated_point

# Nearer than this to an end of the support, in hazards, differences of Phi lose digits.
_NEAR = 0.05
_NODES, _SHARES = np.polynomial.legendre.leggauss(6)
_NODES, _SHARES = 0.5 * (1.0 + _NODES), 0.5 * _SHARES
_LEAST = -np.finfo(np.float64).max
_UNBOUNDED = for_kernels(np.array([-np.inf, np.inf]))


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
    p = find_segment(curve.points, (low - center) / scale) + 1
    k = find_segment(rows.knots, level_at(curve, (low - center) / scale)[0]) + 1
    left, total = low, 0.0
    while left < high:
        # Both kinds of borders are met in order: to sort them would take two seconds
        # to compile.
        point, knot = math.inf, math.inf
        if p < len(curve.points):
            point = center + scale * curve.points[p]
        if k < len(rows.knots):
            knot = center + scale * point_at(curve, rows.knots[k])[0]
        right = min(point, knot, high)
        p += point <= right
        k += knot <= right
        width = max(right - left, 0.0)
        for q in range(len(_NODES)):
            r = (left + _NODES[q] * width - center) / scale
            t, rate = level_at(curve, r)
            z, slope = curve_at(rows.knots, rows.values[i], rows.slopes[i], t)
            density = math.exp(log_normal_pdf(z) - log_mass) * slope * rate / scale
            total += _SHARES[q] * width * density
        left = max(left, right)
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
    inside = (rows.bounds[0] <= y) & (y <= rows.bounds[1]) & np.isfinite(y)
    # Where there is no density any point will do.
    points = np.where(inside, y, rows.center[:, None])
    r = (points - rows.center[:, None]) / rows.scale[:, None]
    t, rates = levels_at(curve, r.ravel())
    z, log_slopes = curve_values(*_curves_of(rows), for_kernels(t.reshape(y.shape)))
    with np.errstate(divide="ignore"):
        log_rates = np.log(rates.reshape(y.shape))
    # The chain rule: f(y) = phi(g) g'(t) t'(r) / scale / mass.
    density = -0.5 * z * z - LOG_SQRT_TWO_PI - rows.log_mass[:, None]
    density = density - np.log(rows.scale)[:, None] + log_slopes + log_rates
    density = np.where(log_slopes > -np.inf, np.fmax(density, _LEAST), density)
    return np.where(inside, density, -np.inf)


def spline_quantiles(
    curve: BaseCurve, rows: SplineRows, scores: Float64Array
) -> Float64Array:
    """Return the y with F(y) = Phi(score), scores (n, k)."""
    finite = np.isfinite(scores)
    z = np.where(finite, scores, 0.0)
    if np.isfinite(rows.bounds).any():
        _truncate_scores(rows.low, rows.high, rows.log_mass, z)
    t = curve_scores(*_curves_of(rows), for_kernels(z))
    r = points_at(curve, t.ravel())[0].reshape(z.shape)
    y = rows.center[:, None] + rows.scale[:, None] * r
    ends = np.where(scores < 0.0, rows.bounds[0], rows.bounds[1])
    # y(z) rounds; a quantile must not leave the support.
    return np.where(finite, np.clip(y, *rows.bounds), ends)


def _curves_of(rows: SplineRows) -> Curves:
    """Return g of all rows as curves that are straight beyond their ends."""
    tails = for_kernels(rows.slopes[:, [0, -1]])
    return rows.knots, rows.values, rows.slopes, tails, _UNBOUNDED


@njit
def _truncate_scores(
    low: Float64Array, high: Float64Array, log_mass: Float64Array, scores: Float64Array
) -> None:
    """Replace scores of the truncated laws by those of the laws before, in place."""
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            scores[i, j] = truncated_point(scores[i, j], low[i], high[i], log_mass[i])
