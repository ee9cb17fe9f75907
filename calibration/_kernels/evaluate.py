"""Evaluate piecewise maps (knots with left, at and right values) at many points."""

import numpy as np

from calibration._kernels._jit import fused, njit
from calibration.typing import Float64Array, Int64Array


@fused
def _buckets(knots: Float64Array, n_buckets: int, inverse_width: float) -> Int64Array:
    """Number of knots that lie in buckets before each one, shape (n_buckets + 1,)."""
    first = np.zeros(n_buckets + 1, dtype=np.int64)
    if n_buckets == 0:
        return first
    for knot in knots:
        bucket = min(int((knot - knots[0]) * inverse_width), n_buckets - 1)
        first[bucket + 1] += 1
    for bucket in range(n_buckets):
        first[bucket + 1] += first[bucket]
    return first


@njit
def count_below(knots: Float64Array, points: Float64Array) -> Int64Array:
    """Number of knots <= each point (`searchsorted` side="right"), shape (n,).

    A table of equal-width buckets narrows the binary search: for unsorted points it
    is several times faster than a search over all knots, and never worse by much.
    """
    k, n = len(knots), len(points)
    out = np.empty(n, dtype=np.int64)
    span = knots[-1] - knots[0]
    # Two a knot: evenly spaced knots leave a bucket one knot or none.
    n_buckets = 2 * k
    inverse_width = n_buckets / span if span > 0.0 else 0.0
    # A table costs O(k); it does not pay for fewer points than knots, and there is none
    # where the knots' range overflows or vanishes.
    direct = not (0.0 < inverse_width < np.inf) or n < k
    n_buckets = 0 if direct else n_buckets
    first = _buckets(knots, n_buckets, inverse_width)
    for i in range(n):
        point = points[i]
        if point < knots[0]:
            out[i] = 0
            continue
        if point >= knots[-1]:
            out[i] = k
            continue
        low, high = 0, k
        if not direct:
            # The same rounding as in `_buckets`, so that a point and a knot of one
            # value are never in different buckets.
            bucket = min(int((point - knots[0]) * inverse_width), n_buckets - 1)
            low, high = first[bucket], first[bucket + 1]
        while low < high:
            middle = (low + high) >> 1
            if knots[middle] <= point:
                low = middle + 1
            else:
                high = middle
        out[i] = low
    return out


@njit
def evaluate_map(
    points: Float64Array,
    knots: Float64Array,
    left: Float64Array,
    at: Float64Array,
    right: Float64Array,
    linear: bool,
) -> Float64Array:
    """Values of the map at `points`, shape (n,).

    Below the first knot the value is left[0], above the last right[-1]; on a knot
    at[k]; between knots right[k] (step) or the line from right[k] to left[k + 1].
    """
    below = count_below(knots, points)
    out = np.empty(len(points))
    last = len(knots) - 1
    for i in range(len(points)):
        k = below[i] - 1
        if k < 0:
            out[i] = left[0]
        elif points[i] == knots[k]:
            out[i] = at[k]
        # Equal ends are left out of the interpolation: it would round, and infinite
        # ones (log-likelihood ratios) would give nan.
        elif not linear or k == last or right[k] == left[k + 1]:
            out[i] = right[k]
        else:
            share = (points[i] - knots[k]) / (knots[k + 1] - knots[k])
            out[i] = right[k] + share * (left[k + 1] - right[k])
    return out
