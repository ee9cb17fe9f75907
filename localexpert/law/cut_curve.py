"""Curves in the coordinates of other bounds, and cut off at bounds."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert.law.basis import STANDARD, Basis
from localexpert.law.curve import (
    Curve,
    coordinates_of_gaps,
    read_curve,
    to_coordinates,
)
from localexpert.law.steps import log_between, scores_of

# A bound that is so many widths of a row away from it is none: floats could not tell
# in its coordinate where in the row a value is.
_FARTHEST = 1e5
# Levels so near to that of a bound are told by the density there, in deviations.
_NEAR = 1e-6
_LEAST_GAP = 1e-300


def rebound(
    curve: Curve, low: Float64Array, high: Float64Array, basis: Basis = STANDARD
) -> Curve:
    """Return the same curves in the coordinates of other, wider bounds (n,)."""
    same = np.array_equal(curve.low, low) and np.array_equal(curve.high, high)
    if same and curve.basis == basis:
        return curve
    g = np.broadcast_to(basis.greville, (len(curve), basis.size))
    if same:
        return read_curve(curve.coordinates(g)[0], low, high, basis=basis)
    y = curve.values(g)
    u = to_coordinates(y, low[:, None], high[:, None])
    return read_curve(np.maximum.accumulate(u, axis=1), low, high, basis=basis)


def cut_curve(curve: Curve, low: float, high: float) -> tuple[Curve, Float64Array]:
    """Return the curves between bounds, made whole, and what was there, (n,)."""
    n, basis = len(curve), curve.basis
    ends = np.column_stack([np.full(n, low), np.full(n, high)])
    z, log_density = curve.densities(ends)
    outside = np.column_stack([ndtr(z[:, 0]), ndtr(-z[:, 1])])
    # A difference of levels has no digits where nearly all lies beyond a bound.
    mass = np.exp(log_between(z[:, 0], z[:, 1]))
    if not (mass > 0.0).all():
        i = int(np.argmin(mass))
        msg = (
            "`bounds` must hold some of the probability of every row, "
            f"got ({low:g}, {high:g}) and none of row {i}."
        )
        raise ValueError(msg)
    middle = curve.values(np.tile([-1.0, 0.0, 1.0], (n, 1)))
    farthest = _FARTHEST * (middle[:, 2] - middle[:, 0])
    new_low = np.where(middle[:, 1] - low < farthest, low, -np.inf)
    new_high = np.where(high - middle[:, 1] < farthest, high, np.inf)
    new_low = np.maximum(new_low, curve.low)
    new_high = np.minimum(new_high, curve.high)
    g = basis.greville
    own = [mass[:, None] * ndtr(side * g) for side in (1.0, -1.0)]
    at = scores_of(outside[:, :1] + own[0], outside[:, 1:] + own[1])
    y = curve.values(at)
    gaps = [y - new_low[:, None], new_high[:, None] - y]
    for side in range(2):
        # Beside a bound a difference of values has no digits left.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            steps = own[side] / np.exp(log_density[:, side, None])
            beside = own[side] < _NEAR * np.minimum(ndtr(z), ndtr(-z))[:, side, None]
        gaps[side] = np.where(beside & (outside[:, side, None] > 0), steps, gaps[side])
    # A gap of 0 has no logarithm.
    below, above = (np.maximum(gap, _LEAST_GAP) for gap in gaps)
    u = coordinates_of_gaps(y, (below, above), new_low[:, None], new_high[:, None])
    u = np.maximum.accumulate(u, axis=1)
    return read_curve(u, new_low, new_high, basis=basis), mass
