"""Increasing curves of a normal score z: cubics on pieces, lines beyond the ends.

A row has coefficients of B-splines in a coordinate u of y: y itself, log(y - a) above
a bound a, -log(b - y) below a bound b, and the logit between two of them. A piece of
number p is a polynomial in the share s of its width, whose coefficients are those
of the row from number first[p] on, times the matrix pieces[p].
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import fused, inner, njit
from calibration.typing import Float64Array
from localexpert._kernels.hermite import find_segment
from localexpert._kernels.normal import (
    log_normal_cdf,
    log_normal_pdf,
    safe_log,
    upper_point,
)

_MAX_STEPS = 100
# A slope of less than this share of the coordinate's size is rounding.
_LEAST_SLOPE = 2.0**-52
_TINY = 1e-300


class Pieces(NamedTuple):
    """What all rows share: breaks (P + 1,), first (P,) and pieces (P, 4, 4)."""

    breaks: Float64Array
    first: NDArray[np.int64]
    pieces: Float64Array


class Rows(NamedTuple):
    """Coefficients (n, K), slopes beyond the ends (n, 2), bounds low and high (n,)."""

    coefficients: Float64Array
    slopes: Float64Array
    low: Float64Array
    high: Float64Array


@fused
def from_coordinate(u: float, low: float, high: float) -> float:
    """Return y of a coordinate."""
    if low == -math.inf:
        return u if high == math.inf else high - math.exp(-u)
    if high == math.inf:
        return low + math.exp(u)
    # From the nearer end, whose distance keeps its digits.
    if u < 0.0:
        return low + (high - low) * (math.exp(u) / (1.0 + math.exp(u)))
    return high - (high - low) * (math.exp(-u) / (1.0 + math.exp(-u)))


@fused
def log_rate(u: float, low: float, high: float) -> float:
    """Return log dy/du."""
    if low == -math.inf:
        return 0.0 if high == math.inf else -u
    if high == math.inf:
        return u
    return math.log(high - low) - abs(u) - 2.0 * math.log1p(math.exp(-abs(u)))


@fused
def to_coordinate(y: float, low: float, high: float) -> float:
    """Return the coordinate of y, infinite at a bound and beyond."""
    if low == -math.inf:
        return y if high == math.inf else -safe_log(max(high - y, 0.0))
    if high == math.inf:
        return safe_log(max(y - low, 0.0))
    return safe_log(max(y - low, 0.0)) - safe_log(max(high - y, 0.0))


@inner
def piece_of(
    shared: Pieces, c: Float64Array, p: int
) -> tuple[float, float, float, float]:
    """Return the coefficients of a piece as a polynomial in its share."""
    k = shared.first[p]
    m = shared.pieces[p]
    c0, c1, c2, c3 = c[k], c[k + 1] - c[k], c[k + 2] - c[k], c[k + 3] - c[k]
    # The B-splines sum to 1, so differences from one coefficient keep their digits.
    return (
        c0 + m[0, 1] * c1 + m[0, 2] * c2 + m[0, 3] * c3,
        m[1, 1] * c1 + m[1, 2] * c2 + m[1, 3] * c3,
        m[2, 1] * c1 + m[2, 2] * c2 + m[2, 3] * c3,
        m[3, 1] * c1 + m[3, 2] * c2 + m[3, 3] * c3,
    )


@inner
def coordinate_at(
    shared: Pieces, c: Float64Array, slopes: Float64Array, z: float
) -> tuple[float, float]:
    """Return u and du/dz at a score."""
    last = len(shared.breaks) - 1
    if z < shared.breaks[0]:
        return c[0] + slopes[0] * (z - shared.breaks[0]), slopes[0]
    if z > shared.breaks[last]:
        end = len(c) - 1
        return c[end] + slopes[1] * (z - shared.breaks[last]), slopes[1]
    p = min(find_segment(shared.breaks, z), last - 1)
    a0, a1, a2, a3 = piece_of(shared, c, p)
    width = shared.breaks[p + 1] - shared.breaks[p]
    s = (z - shared.breaks[p]) / width
    u = a0 + s * (a1 + s * (a2 + s * a3))
    slope = (a1 + s * (2.0 * a2 + 3.0 * s * a3)) / width
    return u, max(slope, _LEAST_SLOPE * max(abs(u), _TINY))


@inner
def share_at(a1: float, a2: float, a3: float, goal: float) -> float:
    """Return the share at which an increasing piece has risen by `goal`.

    Newton steps kept inside a shrinking bracket, bisection where they leave it.
    """
    rise = a1 + a2 + a3
    if not goal > 0.0:
        return 0.0
    if goal >= rise:
        return 1.0
    low, high, s = 0.0, 1.0, goal / rise
    for _ in range(_MAX_STEPS):
        miss = s * (a1 + s * (a2 + s * a3)) - goal
        slope = a1 + s * (2.0 * a2 + 3.0 * s * a3)
        if miss > 0.0:
            high = s
        else:
            low = s
        trial = s - miss / slope if slope > 0.0 else -1.0
        # The error after a step of Newton's is of the order of its square.
        enough = 1e-9
        if not low <= trial <= high:
            trial, enough = 0.5 * (low + high), 2.0**-52
        step = abs(trial - s)
        s = trial
        if step <= enough:
            break
    return s


@inner
def score_of(shared: Pieces, c: Float64Array, slopes: Float64Array, u: float) -> float:
    """Return the z with u(z) = u."""
    last, end = len(shared.breaks) - 1, len(c) - 1
    if u <= c[0]:
        return float(shared.breaks[0] + (u - c[0]) / slopes[0])
    if u >= c[end]:
        return float(shared.breaks[last] + (u - c[end]) / slopes[1])
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) >> 1
        k = shared.first[middle]
        m = shared.pieces[middle]
        start = c[k] + (
            m[0, 1] * (c[k + 1] - c[k])
            + m[0, 2] * (c[k + 2] - c[k])
            + m[0, 3] * (c[k + 3] - c[k])
        )
        # `<` finds the first of equal values: the least z, on a flat stretch.
        if start < u:
            low = middle
        else:
            high = middle
    a0, a1, a2, a3 = piece_of(shared, c, low)
    width = shared.breaks[low + 1] - shared.breaks[low]
    return float(shared.breaks[low] + width * share_at(a1, a2, a3, u - a0))


@fused
def gap_to_bound(u: float, low: float, high: float, lower: bool) -> float:
    """Return how far the value of a coordinate is from its lower or upper bound.

    Not a difference of values, which floats may not tell apart.
    """
    if low == -math.inf or high == math.inf:
        return math.exp(u if lower else -u)
    small = math.exp(-abs(u))
    part = small / (1.0 + small)
    return (high - low) * (part if (u < 0.0) == lower else 1.0 - part)


@fused
def _toward_bound(
    y: float, gap: float, bound: float, outer: float
) -> tuple[float, float]:
    """Return score and log density of a y nearer to a bound than an end, by its gap.

    There y is uniform: its density is neither 0 nor infinite at the bound.
    """
    share = abs(y - bound) / gap
    log_share = log_normal_cdf(-abs(outer))
    z = upper_point(log_share + safe_log(share))
    return (-z if outer < 0.0 else z), log_share - safe_log(gap)


@inner
def score_at(shared: Pieces, rows: Rows, i: int, y: float) -> float:
    """Return z with Q(z) = y, infinite at and beyond a bound."""
    c = rows.coefficients[i]
    low, high = rows.low[i], rows.high[i]
    if not low < y < high:
        return -math.inf if y <= low else math.inf
    u = to_coordinate(y, low, high)
    last, end = len(shared.breaks) - 1, len(c) - 1
    if u < c[0] and low > -math.inf:
        gap = gap_to_bound(c[0], low, high, True)
        return _toward_bound(y, gap, low, shared.breaks[0])[0]
    if u > c[end] and high < math.inf:
        gap = gap_to_bound(c[end], low, high, False)
        return _toward_bound(y, gap, high, shared.breaks[last])[0]
    return score_of(shared, c, rows.slopes[i], u)


@inner
def log_density_at(shared: Pieces, rows: Rows, i: int, y: float, z: float) -> float:
    """Return the log density at y = Q(z); at a bound it is that beside it."""
    c = rows.coefficients[i]
    low, high = rows.low[i], rows.high[i]
    if not low <= y <= high or abs(y) == math.inf:
        return -math.inf
    first, last = shared.breaks[0], shared.breaks[len(shared.breaks) - 1]
    if z < first and low > -math.inf:
        gap = gap_to_bound(c[0], low, high, True)
        return _toward_bound(y, gap, low, first)[1]
    if z > last and high < math.inf:
        gap = gap_to_bound(c[len(c) - 1], low, high, False)
        return _toward_bound(y, gap, high, last)[1]
    u, slope = coordinate_at(shared, c, rows.slopes[i], z)
    return log_normal_pdf(z) - math.log(slope) - log_rate(u, low, high)


@inner
def value_at(shared: Pieces, rows: Rows, i: int, z: float) -> tuple[float, float]:
    """Return y = Q(z) and log Q'(z)."""
    low, high = rows.low[i], rows.high[i]
    at = z
    if low > -math.inf:
        at = max(at, shared.breaks[0])
    if high < math.inf:
        at = min(at, shared.breaks[len(shared.breaks) - 1])
    u, slope = coordinate_at(shared, rows.coefficients[i], rows.slopes[i], at)
    y = from_coordinate(u, low, high)
    log_slope = math.log(slope) + log_rate(u, low, high)
    if at == z:
        return y, log_slope
    bound = low if z < at else high
    log_gap = log_normal_cdf(-abs(z)) - log_normal_cdf(-abs(at))
    gap = gap_to_bound(u, low, high, z < at)
    away = gap * math.exp(log_gap)
    log_slope = safe_log(gap) + log_normal_pdf(z) - log_normal_cdf(-abs(at))
    return (bound + away if z < at else bound - away), log_slope


def curve_values(
    shared: Pieces, rows: Rows, z: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return y = Q(z) and log Q'(z), z (n, k)."""
    # Arrays are made here: each kernel that makes one compiles that, too.
    out = np.empty((2, *z.shape))
    _fill_values(shared, rows, z, out[0], out[1])
    return out[0], out[1]


@njit
def _fill_values(
    shared: Pieces,
    rows: Rows,
    z: Float64Array,
    out: Float64Array,
    log_slopes: Float64Array,
) -> None:
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            out[i, j], log_slopes[i, j] = value_at(shared, rows, i, z[i, j])


def curve_densities(
    shared: Pieces, rows: Rows, y: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the z with Q(z) = y and the log density there, y (n, k)."""
    out = np.empty((2, *y.shape))
    _fill_scores(shared, rows, y, out[0])
    _fill_densities(shared, rows, y, out[0], out[1])
    return out[0], out[1]


def curve_scores(shared: Pieces, rows: Rows, y: Float64Array) -> Float64Array:
    """Return the z with Q(z) = y, y (n, k)."""
    out = np.empty(y.shape)
    _fill_scores(shared, rows, y, out)
    return out


@njit
def _fill_scores(
    shared: Pieces, rows: Rows, y: Float64Array, out: Float64Array
) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            out[i, j] = score_at(shared, rows, i, y[i, j])


@njit
def _fill_densities(
    shared: Pieces,
    rows: Rows,
    y: Float64Array,
    z: Float64Array,
    out: Float64Array,
) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            out[i, j] = log_density_at(shared, rows, i, y[i, j], z[i, j])
