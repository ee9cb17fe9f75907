"""Pools of increasing curves: what members say of common values, and their inverse."""

import math

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array
from localexpert._kernels.hermite import find_segment
from localexpert._kernels.law_curve import Pieces, coordinate_at, score_of
from localexpert._kernels.normal import normal_cdf

# Scores beyond which a member says no more, in pools of scores.
_FURTHEST = 37.0


@njit
def member_sums(
    shared: Pieces,
    c: Float64Array,
    slopes: Float64Array,
    weights: Float64Array,
    u: Float64Array,
    probit: bool,
    sums: Float64Array,
) -> None:
    """Add a member's part to sums (3, n, k) at coordinates u (n, k).

    Of a pool of scores the first is the sum of scores and the last that of slopes
    dz/du, of one of levels sums of Phi(z), Phi(-z) and of exp(-z^2 / 2) dz/du.
    """
    for i in range(u.shape[0]):
        w = weights[i]
        if w == 0.0:
            continue
        for j in range(u.shape[1]):
            z = score_of(shared, c[i], slopes[i], u[i, j])
            rate = 1.0 / coordinate_at(shared, c[i], slopes[i], z)[1]
            if probit:
                sums[0, i, j] += w * min(max(z, -_FURTHEST), _FURTHEST)
                sums[2, i, j] += w * rate
            else:
                sums[0, i, j] += w * normal_cdf(z)
                sums[1, i, j] += w * normal_cdf(-z)
                sums[2, i, j] += w * rate * math.exp(-0.5 * z * z)


def invert_rows(
    z: Float64Array, u: Float64Array, rate: Float64Array, goals: Float64Array
) -> Float64Array:
    """Return u (n, K) at scores goals (K,), given z(u) with slopes rate, (n, k) all.

    Both increase along rows. Between two points u is a cubic of z whose end slopes are
    at most three times the chord, so that it increases (Fritsch & Carlson, 1980).
    """
    out = np.empty((len(z), len(goals)))
    _invert(z, u, rate, goals, out)
    return out


@njit
def _invert(
    z: Float64Array,
    u: Float64Array,
    rate: Float64Array,
    goals: Float64Array,
    out: Float64Array,
) -> None:
    last = z.shape[1] - 1
    for i in range(z.shape[0]):
        for j in range(len(goals)):
            k = min(max(find_segment(z[i], goals[j]), 0), last - 1)
            width, rise = z[i, k + 1] - z[i, k], u[i, k + 1] - u[i, k]
            if width <= 0.0 or goals[j] <= z[i, k]:
                out[i, j] = u[i, k]
                continue
            s = min((goals[j] - z[i, k]) / width, 1.0)
            most = 3.0 * rise
            # Slopes over the width, as far as they are known.
            a = min(width / rate[i, k], most) if rate[i, k] > 0.0 else most
            b = min(width / rate[i, k + 1], most) if rate[i, k + 1] > 0.0 else most
            c2, c3 = 3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise
            out[i, j] = u[i, k] + s * (a + s * (c2 + s * c3))
