"""Moments, entropy and mode of the rows of a spline law, on panels."""

import math

import numpy as np

from calibration._kernels._jit import fused, inner, njit
from calibration.typing import Float64Array, Int64Array
from localexpert._kernels.base_curve import BaseCurve, point_at
from localexpert._kernels.law_panels import (
    DR,
    DZ,
    FINITE,
    Panels,
    R,
    T,
    Z,
    fill_nodes,
    row_panels,
)
from localexpert._kernels.law_spline import SplineRows, log_density_at
from localexpert._kernels.normal import log_normal_pdf, safe_log
from localexpert._kernels.truncation import truncated_cdf

_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_GOLDEN_STEPS = 45


def tail_indices(curve: BaseCurve, rows: SplineRows) -> tuple[Float64Array, ...]:
    """Return the orders up to which moments of the lower and upper tails are finite.

    Shapes (n,) both.
    """
    indices = []
    for side, end in ((0, rows.low), (-1, rows.high)):
        slope, shape = rows.slopes[:, side], curve.shapes[side]
        # The tail of Y: P(Y > y) falls as y^(-slope^2 / shape) up to a slowly varying
        # factor.
        with np.errstate(over="ignore"):
            index = FINITE * slope * slope / shape if shape > 0.0 else math.inf
        indices.append(np.where(np.isinf(end), index, math.inf))
    return tuple(indices)


def finite_orders(lower: Float64Array, upper: Float64Array) -> Int64Array:
    """Return the order, 4 at most, of the last finite moment of every row."""
    least = np.minimum(lower, upper)
    return np.asarray((np.arange(1, 5) < least[:, None]).sum(axis=1), dtype=np.int64)


def mark_infinite(
    lower: Float64Array, upper: Float64Array, moments: Float64Array
) -> Float64Array:
    """Say of moments (n, 4) which do not exist, from the tails' indices; in place.

    They are inf (the mean with the sign of its tail) or nan.
    """
    orders = finite_orders(lower, upper)
    if (orders == 4).all():
        return moments
    # inf - inf is nan; with one heavy tail the mean goes where that tail points.
    mean = np.where(lower < upper, -math.inf, math.inf)
    mean[np.maximum(lower, upper) <= 1.0] = math.nan
    moments[:, 0] = np.where(orders < 1, mean, moments[:, 0])
    moments[orders < 2, 1] = math.nan
    moments[orders == 1, 1] = math.inf
    moments[orders < 3, 2] = math.nan
    moments[orders < 4, 3] = math.nan
    moments[(orders > 1) & (orders < 4), 3] = math.inf
    return moments


@fused
def _sum_powers(
    at: Float64Array, origin: float, log_mass: float, order: int
) -> tuple[float, float, float, float]:
    """Return the first four moments about `origin`, of a law of scale 1.

    Those beyond `order` are not computed: the sums would overflow.
    """
    s0, s1, s2, s3, s4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for q in range(at.shape[1]):
        mass = math.exp(log_normal_pdf(at[Z, q]) - log_mass) * at[DZ, q]
        x = at[R, q] - origin
        s0 += mass
        if order > 0:
            mass *= x
            s1 += mass
        if order > 1:
            mass *= x
            s2 += mass
        if order > 2:
            mass *= x
            s3 += mass
        if order > 3:
            mass *= x
            s4 += mass
    # The weights add up to 1 but for the error of the rules, which cancels so.
    return s1 / s0, s2 / s0, s3 / s0, s4 / s0


def spline_moments(curve: BaseCurve, rows: SplineRows, panels: Panels) -> Float64Array:
    """Return mean and second to fourth central moment of the rows, shape (n, 4).

    A moment that does not exist is inf or nan.
    """
    lower, upper = tail_indices(curve, rows)
    out = np.empty((len(rows.center), 4))
    _spline_moments(curve, rows, panels, finite_orders(lower, upper), out)
    return mark_infinite(lower, upper, out)


@njit
def _spline_moments(
    curve: BaseCurve,
    rows: SplineRows,
    panels: Panels,
    orders: Int64Array,
    out: Float64Array,
) -> None:
    """Fill in moments up to the order of each row; the others mean nothing."""
    for i in range(len(out)):
        order = orders[i]
        borders, which = row_panels(curve, rows, panels, i, float(order))
        at = fill_nodes(curve, rows, panels, i, borders, which)
        # Moments about the middle lose no digits to a far origin.
        place = 0
        while at[Z, place] < 0.0 and place < at.shape[1] - 1:
            place += 1
        origin = at[R, place]
        m1, m2, m3, m4 = _sum_powers(at, origin, rows.log_mass[i], order)
        # From moments about the origin to central ones.
        scale = rows.scale[i]
        square = scale * scale
        out[i, 0] = rows.center[i] + scale * (origin + m1)
        out[i, 1] = square * (m2 - m1 * m1)
        out[i, 2] = square * scale * (m3 - m1 * (3.0 * m2 - 2.0 * m1 * m1))
        m4 -= m1 * (4.0 * m3 - 3.0 * m1 * (2.0 * m2 - m1 * m1))
        out[i, 3] = square * square * m4


@njit
def spline_nodes(
    curve: BaseCurve, rows: SplineRows, panels: Panels
) -> tuple[Float64Array, Float64Array]:
    """Return values and weights that integrate over each row's law, (n, m) both.

    Rows with fewer panels than others end in weights of 0.
    """
    n = len(rows.center)
    most = 0
    for i in range(n):
        most = max(most, len(row_panels(curve, rows, panels, i, 4.0)[1]))
    y = np.empty((n, most * len(panels.nodes)))
    weights = np.zeros(y.shape)
    for i in range(n):
        borders, which = row_panels(curve, rows, panels, i, 4.0)
        at = fill_nodes(curve, rows, panels, i, borders, which)
        y[i] = rows.center[i] + rows.scale[i] * at[R, -1]
        total = 0.0
        for q in range(at.shape[1]):
            y[i, q] = rows.center[i] + rows.scale[i] * at[R, q]
            mass = math.exp(log_normal_pdf(at[Z, q]) - rows.log_mass[i]) * at[DZ, q]
            weights[i, q] = mass
            total += mass
        weights[i] /= total
    return y, weights


@njit
def spline_scan(
    curve: BaseCurve, rows: SplineRows, panels: Panels
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return y, log density and CDF at the nodes of each row, (n, m) all three.

    Rows with fewer nodes than others repeat their last one.
    """
    n = len(rows.center)
    most = 0
    for i in range(n):
        most = max(most, len(row_panels(curve, rows, panels, i, 1.0)[1]))
    out = np.empty((3, n, most * len(panels.nodes)))
    for i in range(n):
        borders, which = row_panels(curve, rows, panels, i, 1.0)
        at = fill_nodes(curve, rows, panels, i, borders, which)
        low, high, log_mass = rows.low[i], rows.high[i], rows.log_mass[i]
        m = at.shape[1]
        for k in range(out.shape[2]):
            q = min(k, m - 1)
            z = at[Z, q]
            rate = safe_log(at[DZ, q] / at[DR, q] / rows.scale[i])
            out[0, i, k] = rows.center[i] + rows.scale[i] * at[R, q]
            out[1, i, k] = log_normal_pdf(z) - log_mass + rate
            out[2, i, k] = truncated_cdf(z, low, high, log_mass)
    return out[0], out[1], out[2]


@njit
def spline_entropy(curve: BaseCurve, rows: SplineRows, panels: Panels) -> Float64Array:
    """Return the differential entropy -E log f(Y) of the rows, shape (n,)."""
    n = len(rows.center)
    out = np.zeros(n)
    for i in range(n):
        borders, which = row_panels(curve, rows, panels, i, 1.0)
        at = fill_nodes(curve, rows, panels, i, borders, which)
        log_mass, scale = rows.log_mass[i], rows.scale[i]
        for q in range(at.shape[1]):
            log_phi = log_normal_pdf(at[Z, q]) - log_mass
            mass = math.exp(log_phi) * at[DZ, q]
            # p log p is 0 at p = 0.
            if mass > 0.0:
                # The weights' ratio is dz/dr.
                out[i] -= mass * (log_phi + math.log(at[DZ, q] / at[DR, q] / scale))
    return out


@inner
def _golden_maximum(
    curve: BaseCurve, rows: SplineRows, i: int, low: float, high: float
) -> float:
    """Return the t of [low, high] with the greatest density, by golden section."""
    a = high - _GOLDEN * (high - low)
    b = low + _GOLDEN * (high - low)
    at_a, at_b = log_density_at(curve, rows, i, a), log_density_at(curve, rows, i, b)
    for _ in range(_GOLDEN_STEPS):
        if at_a >= at_b:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = log_density_at(curve, rows, i, a)
        else:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = log_density_at(curve, rows, i, b)
    return 0.5 * (low + high)


@njit
def spline_mode(curve: BaseCurve, rows: SplineRows, panels: Panels) -> Float64Array:
    """Return the y of greatest density in every row, shape (n,)."""
    n = len(rows.center)
    out = np.empty(n)
    for i in range(n):
        borders, which = row_panels(curve, rows, panels, i, 1.0)
        at = fill_nodes(curve, rows, panels, i, borders, which)
        path = at[T]
        best, k = -math.inf, 0
        for q in range(len(path)):
            # The weights' ratio is dz/dr; the density lacks a constant of the row.
            log_density = log_normal_pdf(at[Z, q]) + safe_log(at[DZ, q] / at[DR, q])
            if log_density > best:
                best, k = log_density, q
        # The greatest of a fine scan is next to the mode, which lies between its
        # neighbours.
        low = path[k - 1] if k > 0 else borders[0]
        high = path[k + 1] if k < len(path) - 1 else borders[-1]
        t = _golden_maximum(curve, rows, i, low, high)
        # The greatest density may be at an end of the support.
        best = log_density_at(curve, rows, i, t)
        for end in (low, high):
            if log_density_at(curve, rows, i, end) > best:
                best, t = log_density_at(curve, rows, i, end), end
        y = rows.center[i] + rows.scale[i] * point_at(curve, t)[0]
        out[i] = min(max(y, rows.bounds[0]), rows.bounds[1])
    return out
