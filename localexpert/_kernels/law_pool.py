"""Pools of increasing curves: what members say of common values, and their inverse."""

import math

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array
from localexpert._kernels.hermite import find_segment
from localexpert._kernels.law_curve import Pieces, piece_of, share_at
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
    """Add a member's part to sums (3, n, k) at coordinates u (n, k), rising in rows.

    Of a pool of scores the first is the sum of scores and the last that of slopes
    dz/du, of one of levels sums of Phi(z), Phi(-z) and of exp(-z^2 / 2) dz/du.
    """
    for i in range(u.shape[0]):
        w = weights[i]
        if w == 0.0:
            continue
        # Places increase with u: a piece is not looked for again from the start.
        p, last = 0, len(shared.breaks) - 2
        a0, a1, a2, a3 = piece_of(shared, c[i], 0)
        for j in range(u.shape[1]):
            at = u[i, j]
            while p < last and at > a0 + a1 + a2 + a3:
                p += 1
                a0, a1, a2, a3 = piece_of(shared, c[i], p)
            width = shared.breaks[p + 1] - shared.breaks[p]
            if at < a0:
                z, rate = shared.breaks[0] + (at - a0) / slopes[i, 0], slopes[i, 0]
            elif at > a0 + a1 + a2 + a3:
                beyond = at - (a0 + a1 + a2 + a3)
                z, rate = shared.breaks[last + 1] + beyond / slopes[i, 1], slopes[i, 1]
            else:
                s = share_at(a1, a2, a3, at - a0)
                z = shared.breaks[p] + width * s
                rate = (a1 + s * (2.0 * a2 + 3.0 * s * a3)) / width
            rate = 1.0 / max(rate, 2.0**-52 * max(abs(at), 1e-300))
            if probit:
                sums[0, i, j] += w * min(max(z, -_FURTHEST), _FURTHEST)
                sums[2, i, j] += w * rate
            else:
                below = normal_cdf(-abs(z))
                above = 1.0 - below
                if z > 0.0:
                    below, above = above, below
                sums[0, i, j] += w * below
                sums[1, i, j] += w * above
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
