"""Thresholds: the cut points. An expert predicts whether the target is below one."""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    check_choice,
    check_integer,
    check_number,
    check_vector,
    check_weights,
    refuse,
    show,
)
from calibration.typing import Float64Array
from localexpert._validation import check_increasing
from localexpert.data.target_values import count_values, range_without_outliers

ThresholdMethod: TypeAlias = Literal["quantile", "uniform"]

# Shares of the weight up to the first and the last of evenly spaced thresholds.
_ENDS = np.array([0.02, 0.98])
# A value that is far out counts as if it were this share of the others' range outside.
_MARGIN = 0.05
# An atom has at least this weight. A value that repeats by rounding is not an atom.
_LEAST_ATOM_WEIGHT = 5.0
# A lighter atom repeats at least this often, and this many times as often as the usual
# value among this many neighbours on either side. More such values than the last number
# are a sign of rounding.
_LEAST_REPEATS, _TIMES_USUAL, _NEIGHBOURS, _MOST_REPEATS = 10.0, 10.0, 25, 5
# Up to this many values, a discrete target needs only few rows for each value.
FEW_VALUES = 50
# Steps between values may differ by this share of a step. Rounding prices to single
# precision changes them less.
_UNEVEN = 1e-3
# A little slack, so that rounding does not lose an exact share.
_SLACK = 1.0 - 1e-9


class _Values(NamedTuple):
    """Distinct values, their weights, and cumulative shares of the weight."""

    distinct: Float64Array
    weight: Float64Array
    cumulative: Float64Array


def place_thresholds(
    r: ArrayLike,
    n_thresholds: int = 25,
    method: ThresholdMethod | ArrayLike = "quantile",
    sample_weight: ArrayLike | None = None,
) -> Float64Array:
    """Return cut points whose tasks `r <= threshold` are all different.

    Parameters
    ----------
    r : array-like of shape (n,)
        Finite targets, or residuals in the frame; at least two distinct values.
    n_thresholds : int
        Wanted number of thresholds. Ties may leave fewer. Not used with numbers.
    method : {"quantile", "uniform"} or array-like of shape (N,)
        "quantile": equally probable, at the levels k / (n_thresholds + 1).
        "uniform": equally spaced from the 2 % to the 98 % quantile, both included (a
        single threshold lies in the middle): an outlier moves none of them far.
        Numbers: strictly increasing, inside the range of `r`. If several cut the rows
        in the same way, only the first stays, and there is a warning.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights; a row of weight zero is absent.

    Returns
    -------
    ndarray of shape (N,)
        Strictly increasing. Every threshold has a row on both sides, and no two of
        them cut the rows alike.

    Notes
    -----
    A quantile threshold is the midpoint between two neighbouring distinct values. The
    share of the weight below it is the nearest to the level. It is never equal to a
    value, so rounding cannot change a label. For a discrete target the thresholds lie
    between its values.

    Examples
    --------
    >>> from localexpert.experts.thresholds import place_thresholds
    >>> place_thresholds([3.0, 1.0, 2.0, 4.0], 3)
    array([1.5, 2.5, 3.5])
    >>> place_thresholds([0, 0, 0, 1, 2], 3)
    array([0.5, 1.5])
    """
    values = _summarise(r, sample_weight)
    if len(values.distinct) < 2:
        rule = "hold at least two distinct values to be cut"
        refuse("r", rule, f"{values.distinct[0]:g} only")
    if not isinstance(method, str):
        return _check_numbers(check_vector(method, "method"), values)
    check_choice(method, "method", ("quantile", "uniform"))
    values = _draw_near(values)
    n_thresholds = check_integer(n_thresholds, "n_thresholds", 1)
    if method == "uniform":
        # The least values with at least these shares of the weight up to them.
        place = np.searchsorted(values.cumulative, _ENDS * (1.0 - 1e-12))
        low, high = values.distinct[np.minimum(place, len(values.distinct) - 1)]
        share = np.linspace(0.0, 1.0, n_thresholds) if n_thresholds > 1 else 0.5
        spaced = np.atleast_1d(low * (1.0 - share) + high * share)
        return np.asarray(spaced[_first_of_each_cut(spaced, values)])
    levels = np.arange(1, n_thresholds + 1) / (n_thresholds + 1)
    # Of the gaps between values, those with shares below nearest to the levels.
    shares = values.cumulative[:-1]
    above = np.minimum(np.searchsorted(shares, levels), len(shares) - 1)
    below = np.maximum(above - 1, 0)
    nearer_below = levels - shares[below] < shares[above] - levels
    gaps = np.unique(np.where(nearer_below, below, above))
    return np.asarray(cuts_between(values.distinct)[gaps])


def is_discrete(
    y: ArrayLike, max_values: int = 100, sample_weight: ArrayLike | None = None
) -> bool:
    """Say whether a target takes so few values that each is a case of its own.

    Parameters
    ----------
    y : array-like of shape (n,)
    max_values : int
        Most distinct values of a discrete target.
    sample_weight : array-like of shape (n,), optional
        Non-negative numbers of repetitions.

    Returns
    -------
    bool
        True if three things hold. There are at most `max_values` distinct values. Each
        occurs at least twice on average, and 20 times if there are more than 50 values:
        every value costs a task, which needs its own rows. And the values are evenly
        spaced with few gaps, or half of them occur twice. So 40 rows that all differ
        are few, not discrete, and so are 40 different amounts among 500 zeros.

    Examples
    --------
    >>> from localexpert.experts.thresholds import is_discrete
    >>> is_discrete([1, 2, 2, 3, 3, 1]), is_discrete([0.3, 1.4, 0.1])
    (True, False)
    >>> is_discrete([0.0] * 9 + [0.3, 1.4, 2.1]), is_discrete([0] * 9 + [1, 2, 3])
    (False, True)
    """
    limit = check_integer(max_values, "max_values", 1)
    values = _summarise(y, sample_weight, "y")
    n_distinct = len(values.distinct)
    repeats = 2 if n_distinct <= FEW_VALUES else 20
    total = float(values.weight.sum())
    if n_distinct > limit or total < repeats * n_distinct * _SLACK:
        return False
    n_repeated = int((values.weight >= 2.0 * _SLACK).sum())
    return 2 * n_repeated >= n_distinct or lattice_step(values.distinct) is not None


def lattice_step(values: Float64Array) -> float | None:
    """Return the step of values that are evenly spaced but for few gaps.

    Parameters
    ----------
    values : ndarray of shape (V,)
        Strictly increasing.

    Returns
    -------
    float or None
        None if steps are uneven, or if the lattice has more than three times as many
        points as there are values. With ten gaps or more, the outermost twentieth at
        either end may be wide.
    """
    if len(values) < 2:
        return None
    gaps = np.diff(values)
    steps = gaps / gaps.min()
    whole = np.round(steps)
    even = bool((np.abs(steps - whole) <= _UNEVEN).all())
    ends = -(-len(whole) // 20) if len(whole) >= 10 else 0
    inner = whole[ends : len(whole) - ends]
    filled = inner.sum() <= 3.0 * (len(inner) + 1)
    return float(np.ptp(values) / whole.sum()) if even and filled else None


def find_atoms(
    y: ArrayLike, share: float = 0.02, sample_weight: ArrayLike | None = None
) -> Float64Array:
    """Return the values that hold a notable share of the weight, or repeat too often.

    A smooth target does not repeat one value ten times as often as those around it. So
    a tenth of the share at 0 is an atom if other values occur once. There may be more
    than 5 such values below the share, for example if prices are rounded. Then only
    those at the ends count.

    Parameters
    ----------
    y : array-like of shape (n,)
    share : float
        Least share of the weight, in (0, 1].
    sample_weight : array-like of shape (n,), optional
        Non-negative numbers of repetitions.

    Returns
    -------
    ndarray of shape (n_atoms,)
        Increasing. Values that occur less than 5 times are left out. Below the share,
        values that occur less than 10 times are left out.

    Examples
    --------
    >>> from localexpert.experts.thresholds import find_atoms
    >>> find_atoms([0.0] * 8 + [0.3, 1.2, 4.5])
    array([0.])
    """
    share = check_number(share, "share", 0.0, 1.0, open_low=True)
    values = _summarise(y, sample_weight, "y")
    least = max(share * float(values.weight.sum()), _LEAST_ATOM_WEIGHT)
    heavy = values.weight >= least * _SLACK
    return values.distinct[heavy | _find_repeats(values, heavy)]


def _find_repeats(values: _Values, heavy: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which other values repeat more often than a smooth law would allow."""
    weight = values.weight
    found = (weight >= _LEAST_REPEATS) & ~heavy
    for k in np.flatnonzero(found):
        around = weight[max(k - _NEIGHBOURS, 0) : k + _NEIGHBOURS + 1]
        found[k] = weight[k] > _TIMES_USUAL * np.median(around)
    if found.sum() > _MOST_REPEATS:
        found[1:-1] = False
    return found


def cuts_between(values: Float64Array) -> Float64Array:
    """Return the midpoints of neighbouring values, as cuts `y <= cut`, shape (V - 1,).

    Parameters
    ----------
    values : ndarray of shape (V,)
        Strictly increasing.

    Returns
    -------
    ndarray of shape (V - 1,)
        Each at least the lower value, and less than the upper one.
    """
    low, high = values[:-1], values[1:]
    # Add the halves, because the sum may overflow. If two values are neighbouring
    # floats, the cut is the lower one, and `y <= low` still separates them.
    middle = 0.5 * low + 0.5 * high
    return np.asarray(np.where((middle > low) & (middle < high), middle, low))


def threshold_widths(
    thresholds: Float64Array, r: Float64Array, weight: Float64Array
) -> Float64Array:
    """Return the width that each threshold stands for in a sum over them, shape (N,).

    It is half of the way to either neighbour. An end stands for as much outside as
    inside. The way to values of `r` that are far out does not count.
    """
    if len(thresholds) == 1:
        return np.ones(1)
    return np.gradient(np.clip(thresholds, *range_without_outliers(r, weight)))


def _summarise(
    r: ArrayLike, sample_weight: ArrayLike | None, name: str = "r"
) -> _Values:
    vector = check_vector(r, name)
    weights = check_weights(sample_weight, len(vector))
    distinct, weight = count_values(vector, weights)
    cumulative = np.cumsum(weight)
    return _Values(distinct, weight, cumulative / cumulative[-1])


def _draw_near(values: _Values) -> _Values:
    """Return the values, but move all that are far out to one place near the others.

    A cut half-way to far values would lie where there are no rows.
    """
    shares = np.diff(values.cumulative, prepend=0.0)
    low, high = range_without_outliers(values.distinct, shares)
    if np.isinf(high):
        return values
    margin = _MARGIN * (high - low)
    near = np.clip(values.distinct, low - margin, high + margin)
    last = np.flatnonzero(np.diff(near, append=np.inf))
    weight = np.diff(np.cumsum(values.weight)[last], prepend=0.0)
    return _Values(near[last], weight, values.cumulative[last])


def _first_of_each_cut(thresholds: Float64Array, values: _Values) -> NDArray[np.intp]:
    """Return the positions of thresholds that cut off a part, each part once."""
    below = np.searchsorted(values.distinct, thresholds, side="right")
    parts, first = np.unique(below, return_index=True)
    return np.asarray(first[(parts > 0) & (parts < len(values.distinct))])


def _check_numbers(numbers: Float64Array, values: _Values) -> Float64Array:
    """Return explicit thresholds that are in order and inside the range."""
    check_increasing(numbers, "method")
    low, high = values.distinct[[0, -1]]
    outside = numbers[(numbers < low) | (numbers >= high)]
    if len(outside):
        rule = f"lie in the range of the targets, [{show(low)}, {show(high)})"
        refuse("thresholds", rule, ", ".join(map(show, outside)))
    kept = _first_of_each_cut(numbers, values)
    if len(kept) < len(numbers):
        left_out = np.delete(numbers, kept)
        msg = (
            "`thresholds` that cut the rows like the one before them are left out: "
            f"{', '.join(f'{v:g}' for v in left_out)}."
        )
        warnings.warn(msg, UserWarning, stacklevel=3)
    return np.asarray(numbers[kept])
