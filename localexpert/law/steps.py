"""Levels and scores, values that are near, and laws that are all in values."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri, xlogy

from calibration._validation import check_integer, make_rng
from calibration.typing import Float64Array

# Sums in another order, or a cumulated sum, miss each other by less than this share.
_NEAR = 1e-12
# Numbers of single precision miss values by less than this share.
_SINGLE = 1e-7
_FEW_ULPS = 2.0
# A run of near values that is wider than some such steps is a sample, not rounding.
_WIDEST_RUN = 10.0
# A number counts as a value if it lies within this share of the value's cell, and of
# the way to the next value. So values that differ by a few roundings only stay apart.
# A number that is the value in single precision may be farther away.
_CELL_SHARE, OF_SINGLE = 1e-6, 0.1


def merge_near_values(y: Float64Array, weight: Float64Array) -> Float64Array:
    """Return targets where those that differ by rounding only are made equal.

    Parameters
    ----------
    y, weight : ndarrays of shape (n,)
        Rows of weight zero stay as they are, and move no other.

    Returns
    -------
    ndarray of shape (n,)
        Each near value replaced by the heaviest one that it is near to.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.law.steps import merge_near_values
    >>> y = np.array([0.3, 0.1 + 0.2, 0.3, 0.7])
    >>> print(merge_near_values(y, np.ones(4)))
    [0.3 0.3 0.3 0.7]
    """
    held = weight > 0.0
    values, place = np.unique(y[held], return_inverse=True)
    run = near_runs(values)
    if run[-1] == len(values) - 1:
        return y
    mass = np.bincount(place, weight[held])
    # Run by run, the heaviest first.
    order = np.lexsort((-mass, run))
    heaviest = values[order[np.flatnonzero(np.diff(run, prepend=-1))]]
    merged = y.copy()
    merged[held] = heaviest[run[place]]
    return merged


def near_runs(values: Float64Array) -> NDArray[np.intp]:
    """Return the number of the run of near values that each value is in.

    Two neighbours are near if they differ by 1e-12 of their size or less. A size is at
    least the median's, because 0 and .1 + .2 - .3 are near among tenths. It is at most
    the range of all, because seconds since 1970 may differ by milliseconds. Floats that
    are next to each other are near, but a long row of them is not.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Strictly increasing.

    Returns
    -------
    ndarray of shape (m,)
        From 0, not decreasing.
    """
    if len(values) < 2:
        return np.zeros(len(values), dtype=np.intp)
    size = np.abs(values)
    size = np.maximum(size, np.median(size))
    step = _NEAR * np.minimum(size, np.ptp(values))
    step = np.maximum(step, _FEW_ULPS * np.spacing(size))
    near = np.diff(values) <= np.maximum(step[:-1], step[1:])
    if near.any():
        run = np.cumsum(np.concatenate([[True], ~near]))
        starts = np.flatnonzero(np.diff(run, prepend=0))
        ends = np.append(starts[1:], len(values)) - 1
        widest = _WIDEST_RUN * np.maximum(step[starts], step[ends])
        wide = values[ends] - values[starts] > widest
        near &= ~wide[run[1:] - 1]
    return np.cumsum(np.concatenate([[0], ~near]))


def distinct_values(values: Float64Array) -> Float64Array:
    """Return values in order, near ones once."""
    every = np.unique(values)
    return every[np.flatnonzero(np.diff(near_runs(every), prepend=-1))]


def reach_of_values(
    values: Float64Array, widths: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return how far from each value numbers count as it: any, and of single precision.

    Parameters
    ----------
    values : ndarray of shape (m,)
    widths : ndarray of shape (m,)
        Of their cells.

    Returns
    -------
    reach, single : ndarrays of shape (m,)
        The latter for a number that is the value in single precision.
    """
    gaps = np.concatenate([[np.inf], np.diff(values), [np.inf]])
    room = np.minimum(np.minimum(gaps[:-1], gaps[1:]), widths)
    far = np.maximum(_SINGLE * np.abs(values), _NEAR * widths)
    return np.minimum(far, _CELL_SHARE * room), OF_SINGLE * room


def nearest_places(values: Float64Array, at: Float64Array) -> NDArray[np.intp]:
    """Return the positions of the values that are nearest to `at`, of its shape.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Increasing.
    at : ndarray of any shape

    Returns
    -------
    ndarray of the same shape
    """
    above = np.minimum(np.searchsorted(values, at), len(values) - 1)
    below = np.maximum(above - 1, 0)
    return np.where(at - values[below] < values[above] - at, below, above)


LOG_SQRT_TWO_PI = 0.5 * np.log(2.0 * np.pi)
# Beyond such scores levels are 0 or 1, and no two scores differ.
_FURTHEST = 37.0
# A little slack, so that rounding of a sum does not miss a coverage.
_SLACK = 1.0 - 1e-14


def cell_edges(values: Float64Array) -> Float64Array:
    """Return the edges (V + 1,) of cells that are nearer to a value than to others.

    The outermost cells are symmetric about their value; a single value has width 1.
    """
    if len(values) == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    low, high = values[:-1], values[1:]
    # An edge belongs to the upper cell, so it is no lower value, whatever is rounded.
    middles = 0.5 * low + 0.5 * high
    middles = np.where(middles > low, middles, high)
    first = 2.0 * values[0] - middles[0]
    return np.concatenate([[first], middles, [2.0 * values[-1] - middles[-1]]])


def cell_widths(values: Float64Array) -> Float64Array:
    """Return the widths (V,) of the cells of values."""
    # Of values that are neighbouring floats an edge may coincide with one.
    return np.maximum(np.diff(cell_edges(values)), np.spacing(np.abs(values)))


def as_shares(parts: Float64Array) -> Float64Array:
    """Return rows (n, k) scaled to sum 1; a row of zeros gets equal shares."""
    total = parts.sum(axis=1, keepdims=True)
    equal = np.full(parts.shape, 1.0 / max(parts.shape[1], 1))
    return np.where(total > 0.0, parts / np.where(total > 0.0, total, 1.0), equal)


def step_entropy(masses: Float64Array, widths: Float64Array) -> Float64Array:
    """Return -E log(mass / width), (n,)."""
    # A density may underflow where log p - log width does not.
    terms = xlogy(masses, masses) - masses * np.log(widths)
    return np.asarray(-terms.sum(axis=1))


def densest_values(
    masses: Float64Array, density: Float64Array, coverage: Float64Array
) -> NDArray[np.bool_]:
    """Return which values hold `coverage` (n,) together, the densest first."""
    order = np.argsort(-density, axis=1, kind="stable")
    ranked = np.take_along_axis(masses, order, 1)
    # A value is needed while those before it hold less than the coverage.
    goal = coverage[:, None] * _SLACK
    needed = (np.cumsum(ranked, axis=1) - ranked < goal) & (ranked > 0.0)
    kept = np.zeros(needed.shape, dtype=np.bool_)
    np.put_along_axis(kept, order, needed, 1)
    return kept


def densest_runs(
    values: Float64Array,
    masses: Float64Array,
    density: Float64Array,
    coverage: Float64Array,
) -> list[Float64Array]:
    """Return runs of the densest values, intervals (m, 2) for each row."""
    kept = densest_values(masses, density, coverage)
    row_values = np.broadcast_to(values, masses.shape)
    # A value that comes twice has all its mass at first.
    kept[:, 1:] |= kept[:, :-1] & (row_values[:, 1:] == row_values[:, :-1])
    edges = np.diff(kept.astype(np.int8), axis=1, prepend=0, append=0)
    # A run of kept values starts where the edge is 1, and ends before one of -1.
    return [
        np.column_stack([row[edge[:-1] == 1], row[edge[1:] == -1]])
        for row, edge in zip(row_values, edges, strict=True)
    ]


def join_points(intervals: Float64Array, points: Float64Array) -> Float64Array:
    """Return intervals and the points outside of them, in order."""
    inside = (points >= intervals[:, :1]) & (points <= intervals[:, 1:])
    outside = points[~inside.any(axis=0)]
    union = np.vstack([intervals, np.column_stack([outside, outside])])
    return np.asarray(union[np.argsort(union[:, 0], kind="stable")])


def log_between(low: Float64Array, high: Float64Array) -> Float64Array:
    """Return log(Phi(high) - Phi(low)), -inf where low is not below high."""
    # Use the tail that both are in, so that nothing cancels far out.
    turned = low > 0.0
    a, b = np.where(turned, -high, low), np.where(turned, -low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        upper = log_ndtr(b)
        out = upper + np.log(-np.expm1(log_ndtr(a) - upper))
    return np.where(low < high, out, -np.inf)


def scores_of(below: Float64Array, above: Float64Array) -> Float64Array:
    """Return the s with Phi(s) = below and Phi(-s) = above, from the smaller one."""
    score = ndtri(np.minimum(below, above))
    return np.where(below < above, score, -score)


def clip_scores(scores: Float64Array) -> Float64Array:
    """Return normal scores, finite ones for levels of 0 and 1."""
    return np.asarray(np.clip(scores, -_FURTHEST, _FURTHEST))


# Marks the stream of PIT draws as another one than that of the same seed elsewhere.
_PIT_STREAM = 54_881


def draw_shares(
    random_state: int | np.random.Generator | None, shape: tuple[int, ...]
) -> Float64Array:
    """Return uniform draws.

    A seed does not give the draws of ``default_rng(seed)``, because y itself may come
    from those: PIT values from the same draws would not be uniform.
    """
    if not isinstance(random_state, np.random.Generator | None):
        seed = check_integer(random_state, "random_state", 0)
        random_state = np.random.default_rng([seed, _PIT_STREAM])
    return make_rng(random_state).uniform(size=shape)


def step_integrals(
    values: Float64Array, masses: Float64Array, y: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return integrals (4, n, k) cut at y (n, k), and that of F (1 - F), (n,).

    The four are those of F and of its square below y, of 1 - F and of its square above.
    """
    # Levels up to the next value, and what is summed up to each value, (V, 4, n).
    level = np.stack([*accumulate(masses.T)])
    level = np.minimum(level / np.where(level[-1] > 0.0, level[-1], 1.0), 1.0)
    level[-1] = 1.0
    parts = level, level**2, 1.0 - level, (1.0 - level) ** 2
    powers, gaps = np.stack(parts, axis=1), np.diff(values).T[:, None]
    none = np.zeros(powers.shape[1:])
    sums = np.stack([*accumulate(powers[:-1] * gaps, initial=none)])
    if len(values) == 1:
        count = np.searchsorted(values[0], y, "right")
    else:
        pairs = zip(values, y, strict=True)
        count = np.stack([np.searchsorted(own, at, "right") for own, at in pairs])
    place, row = np.maximum(count - 1, 0), np.arange(len(y))[:, None]
    run = y - np.broadcast_to(values, masses.shape)[row, place]
    at = (place, slice(None), row)
    out = np.moveaxis(sums[at] + np.maximum(run, 0.0)[..., None] * powers[at], 2, 0)
    out[2:] = sums[-1, 2:, :, None] - out[2:] + np.maximum(-run, 0.0)
    return out, sums[-1, 0] - sums[-1, 1]


def step_shortest(
    values: Float64Array, masses: Float64Array, coverage: float
) -> Float64Array:
    """Return the shortest interval between values that holds `coverage`, (n, 2).

    The first of several.
    """
    out = np.empty((len(masses), 2))
    for i, mass in enumerate(masses):
        own, upto = values[i % len(values)], np.minimum(np.cumsum(mass), 1.0)
        upto[-1] = 1.0
        goal = np.append(0.0, upto[:-1]) + coverage * _SLACK
        # From some value on too little is left on the right.
        last = np.searchsorted(upto, goal[goal <= 1.0])
        first = int(np.argmin(own[last] - own[: len(last)]))
        out[i] = own[first], own[last[first]]
    return out
