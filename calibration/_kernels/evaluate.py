"""Evaluate piecewise maps (knots with left, at and right values) at many points."""

import numpy as np

from calibration._kernels._jit import for_kernels, njit
from calibration.typing import Float64Array, Int64Array

# Of fewer points no table is made.
_MANY = 10_000


def count_below(knots: Float64Array, points: Float64Array) -> Int64Array:
    """Number of knots <= each point (`searchsorted` side="right"), shape (n,).

    For many points a table of equal-width buckets narrows the binary search: unsorted
    ones are several times faster than by a search over all knots.
    """
    n = len(points)
    if n < max(_MANY, len(knots)):
        return np.searchsorted(knots, points, "right")
    # Two buckets a knot: evenly spaced knots leave a bucket one knot or none.
    n_buckets = 2 * len(knots)
    with np.errstate(over="ignore", divide="ignore"):
        per_bucket = float(n_buckets / (knots[-1] - knots[0]))
    # There is no table where the knots' range overflows or vanishes.
    if not 0.0 < per_bucket < np.inf:
        return np.searchsorted(knots, points, "right")
    bucket = ((knots - knots[0]) * per_bucket).astype(np.int64)
    counts = np.bincount(np.minimum(bucket, n_buckets - 1), minlength=n_buckets)
    first = np.append(0, np.cumsum(counts))
    out = np.empty(n, dtype=np.int64)
    _search_buckets(for_kernels(knots), for_kernels(points), first, per_bucket, out)
    return out


@njit
def _search_buckets(
    knots: Float64Array,
    points: Float64Array,
    first: Int64Array,
    per_bucket: float,
    out: Int64Array,
) -> None:
    k, n_buckets = len(knots), len(first) - 1
    for i in range(len(points)):
        point = points[i]
        if point < knots[0]:
            out[i] = 0
            continue
        if point >= knots[-1]:
            out[i] = k
            continue
        # The same rounding as for knots, so that a point and a knot of one value are
        # never in different buckets.
        bucket = min(int((point - knots[0]) * per_bucket), n_buckets - 1)
        low, high = first[bucket], first[bucket + 1]
        while low < high:
            middle = (low + high) >> 1
            if knots[middle] <= point:
                low = middle + 1
            else:
                high = middle
        out[i] = low


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
    out = np.empty(len(points))
    points, knots = for_kernels(points), for_kernels(knots)
    values = for_kernels(left), for_kernels(at), for_kernels(right)
    _follow(points, knots, *values, linear, count_below(knots, points), out)
    return out


@njit
def _follow(
    points: Float64Array,
    knots: Float64Array,
    left: Float64Array,
    at: Float64Array,
    right: Float64Array,
    linear: bool,
    below: Int64Array,
    out: Float64Array,
) -> None:
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
