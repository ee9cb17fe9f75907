"""Increasing rows: projections, cubics on pieces with lines beyond, and inverses."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import for_kernels, inner, njit
from calibration.typing import Float64Array, Int64Array


def increase_rows(
    values: Float64Array, weights: Float64Array, rises: Float64Array
) -> Float64Array:
    """Nearest rows whose steps are at least `rises`, shape (n, k).

    Minimises sum_j weights_j (out_ij - values_ij)^2 under out_i,j+1 - out_ij >=
    rises_j for every row i. With the cumulated rises taken off this is isotonic
    regression, by pool adjacent violators.

    Parameters
    ----------
    values : ndarray of shape (n, k)
    weights : ndarray of shape (k,)
        Positive.
    rises : ndarray of shape (k - 1,)
        Least step from one column to the next.
    """
    # Arrays are made here: each kernel that makes one compiles that, too.
    floor = np.concatenate([[0.0], np.cumsum(rises)])
    out = np.empty(values.shape)
    blocks = np.empty((2, len(floor)))
    starts = np.empty(len(floor) + 1, dtype=np.int64)
    _pool_rows(values, weights, floor, blocks, starts, out)
    return out


@njit
def _pool_rows(
    values: Float64Array,
    weights: Float64Array,
    floor: Float64Array,
    blocks: Float64Array,
    starts: Int64Array,
    out: Float64Array,
) -> None:
    """Fill in `out`; `blocks` and `starts` are room for levels, masses and places."""
    n, k = values.shape
    level, mass = blocks
    for i in range(n):
        n_blocks = 0
        for j in range(k):
            # With floor_j the sum of the rises before j, out - floor has only to
            # increase.
            mean, weight, first = values[i, j] - floor[j], weights[j], j
            # The means of blocks increase from left to right; the new one swallows
            # those that do not lie below it.
            while n_blocks > 0 and level[n_blocks - 1] >= mean:
                n_blocks -= 1
                total = mass[n_blocks] + weight
                mean = (level[n_blocks] * mass[n_blocks] + mean * weight) / total
                weight, first = total, starts[n_blocks]
            level[n_blocks], mass[n_blocks], starts[n_blocks] = mean, weight, first
            n_blocks += 1
        starts[n_blocks] = k
        for b in range(n_blocks):
            for j in range(starts[b], starts[b + 1]):
                out[i, j] = level[b] + floor[j]


_MAX_STEPS = 100
# A slope of less than this share of the value's size is rounding.
_LEAST_SLOPE, _TINY = 2.0**-52, 1e-290


class Pieces(NamedTuple):
    """What all rows share: breaks (P + 1,), first (P,) and pieces (P, 4, 3)."""

    breaks: Float64Array
    first: NDArray[np.int64]
    pieces: Float64Array


def follow_curves(
    shared: Pieces,
    c: Float64Array,
    slopes: Float64Array,
    x: Float64Array,
    *,
    inverse: bool = False,
) -> tuple[Float64Array, Float64Array]:
    """Return u(z) at scores x (n, k), or with `inverse` the z with u(z) = x; and du/dz.

    Coefficients c are (n, K), slopes beyond the ends (n, 2); one row stands for all.
    """
    # Arrays are made here: each kernel that makes one compiles that, too.
    out = np.empty((2, *x.shape))
    rows = for_kernels(c), for_kernels(slopes), for_kernels(x)
    _follow(*shared, *rows, inverse, out[0], out[1])
    return out[0], out[1]


@inner
def _share_at(a1: float, a2: float, a3: float, goal: float) -> float:
    """Return the share at which an increasing piece has risen by `goal`.

    Newton steps kept inside a shrinking bracket, bisection where they leave it.
    """
    rise = a1 + a2 + a3
    if not 0.0 < goal < rise:
        return 1.0 if goal > 0.0 else 0.0
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
def _start_of(
    first: Int64Array, pieces: Float64Array, own: Float64Array, p: int
) -> float:
    """Return the value at which a piece of a row starts."""
    k, m = first[p], pieces[p]
    start: float = own[k] + (
        m[0, 0] * (own[k + 1] - own[k])
        + m[0, 1] * (own[k + 2] - own[k])
        + m[0, 2] * (own[k + 3] - own[k])
    )
    return start


@inner
def _piece_of(
    breaks: Float64Array,
    first: Int64Array,
    pieces: Float64Array,
    own: Float64Array,
    at: float,
    inverse: bool,
    p: int,
    stop: float,
) -> int:
    """Return the piece in which a row is at a score or, with `inverse`, at a value.

    Of values that rise it is likely the one after p, which ends at `stop`.
    """
    low, high, middle = 0, len(first), len(first) >> 1
    if p < high and at > stop:
        low = min(p + 1, high - 1)
        middle = low + 1
    elif p < high:
        high = max(p, 1)
        middle = high >> 1
    while high - low > 1:
        key = breaks[middle]
        if inverse:
            key = _start_of(first, pieces, own, middle)
        # `<` finds the first of equal values: the least z, on a flat stretch.
        if key < at:
            low = middle
        else:
            high = middle
        middle = (low + high) >> 1
    return low


@njit
def _follow(
    breaks: Float64Array,
    first: Int64Array,
    pieces: Float64Array,
    c: Float64Array,
    slopes: Float64Array,
    x: Float64Array,
    inverse: bool,
    out: Float64Array,
    rate: Float64Array,
) -> None:
    last, end = len(first) - 1, c.shape[1] - 1
    for i in range(x.shape[0]):
        own, line = c[i if len(c) > 1 else 0], slopes[i if len(c) > 1 else 0]
        lowest, highest = breaks[0], breaks[last + 1]
        if inverse:
            lowest, highest = own[0], own[end]
        # Beyond the last: none yet. A number that is typed once.
        p, start, stop = last + 1, 0.0, 0.0
        a0 = a1 = a2 = a3 = width = 0.0
        for j in range(x.shape[1]):
            at = x[i, j]
            if at < lowest or at > highest or (inverse and at == highest):
                side = 0 if at < lowest else 1
                slope, run = line[side], at - (highest if side else lowest)
                if inverse:
                    value = breaks[(last + 1) * side] + run / slope
                    u = at
                else:
                    u = value = own[end * side] + run * slope
            else:
                if p > last or not start < at <= stop:
                    p = _piece_of(breaks, first, pieces, own, at, inverse, p, stop)
                    k = first[p]
                    # The B-splines sum to 1, so differences keep their digits.
                    c0, m = own[k], pieces[p]
                    c1, c2, c3 = own[k + 1] - c0, own[k + 2] - c0, own[k + 3] - c0
                    a0 = c0 + m[0, 0] * c1 + m[0, 1] * c2 + m[0, 2] * c3
                    a1 = m[1, 0] * c1 + m[1, 1] * c2 + m[1, 2] * c3
                    a2 = m[2, 0] * c1 + m[2, 1] * c2 + m[2, 2] * c3
                    a3 = m[3, 0] * c1 + m[3, 1] * c2 + m[3, 2] * c3
                    width = breaks[p + 1] - breaks[p]
                    start, stop = breaks[p], breaks[p + 1]
                    if inverse:
                        # As they are searched: a sum may round beyond the next start.
                        start, stop = _start_of(first, pieces, own, p), highest
                        if p < last:
                            stop = _start_of(first, pieces, own, p + 1)
                if inverse:
                    s = _share_at(a1, a2, a3, at - a0)
                    value = breaks[p] + width * s
                    u = at
                else:
                    s = (at - breaks[p]) / width
                    u = value = a0 + s * (a1 + s * (a2 + s * a3))
                slope = (a1 + s * (2.0 * a2 + 3.0 * s * a3)) / width
            out[i, j] = value
            rate[i, j] = max(slope, _LEAST_SLOPE * max(abs(u), _TINY))


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
            low, high = 0, last
            while high - low > 1:
                middle = (low + high) >> 1
                if z[i, middle] <= goals[j]:
                    low = middle
                else:
                    high = middle
            k = low
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
