"""Turnbull's estimate: the law of all targets together, known in part or truncated."""

from __future__ import annotations

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.folds import Rows

# The estimate stops when no mass moves by more than the second number.
_MOST_STEPS, _STILL = 2000, 1e-9
_TINIEST = 1e-300


def turnbull(
    lower: Float64Array,
    upper: Float64Array,
    weight: Float64Array,
    entry: Float64Array,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    r"""Return the law that makes targets most probable: intervals and their masses.

    Parameters
    ----------
    lower, upper : ndarrays of shape (n,)
        Closed intervals that hold the targets. Equal ends are known values.
    weight : ndarray of shape (n,)
        Positive.
    entry : ndarray of shape (n,)
        A row is only seen if its target lies above this value. -inf: always.

    Returns
    -------
    low, high : ndarrays of shape (m,)
        Increasing intervals. How the mass lies within an interval is not known.
    mass : ndarray of shape (m,)
        Probabilities, of sum 1.

    Notes
    -----
    All mass lies in the m innermost intervals: a lower end followed by an upper end,
    with no other end between. Masses p are found by self-consistency. Row i shares its
    weight between the innermost intervals of its own interval :math:`A_i`, in
    proportion to p. It also stands for rows that are not seen, because their targets
    lie outside of :math:`B_i = (e_i, \infty)`:

    .. math::
        p_j \propto p_j \sum_i w_i \left(\frac{[j \in A_i]}{P(A_i)}
        + \frac{[j \notin B_i]}{P(B_i)}\right).

    If all rows are known or right-censored this is Kaplan and Meier's estimate.

    References
    ----------
    Turnbull (1976), The empirical distribution function with arbitrarily grouped,
    censored and truncated data. Frydman (1994), A note on nonparametric estimation of
    the distribution function from interval-censored and truncated observations.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.partial.turnbull import turnbull
    >>> lower, upper = np.array([[0.0, 2.0], [1.0, 3.0], [4.0, 4.0]]).T
    >>> turnbull(lower, upper, np.ones(3), np.full(3, -np.inf))
    (array([1., 4.]), array([2., 4.]), array([0.66666667, 0.33333333]))
    """
    low, high = _innermost(lower, np.concatenate([upper, entry[entry > -np.inf]]))
    first, end = np.searchsorted(low, lower), np.searchsorted(high, upper, "right")
    begin = np.searchsorted(high, entry, "right")
    start, m = np.zeros_like(begin), len(low)
    mass = np.full(m, 1.0 / m)
    for _ in range(_MOST_STEPS):
        upto = np.concatenate([[0.0], np.cumsum(mass)])
        own = weight / np.maximum(upto[end] - upto[first], _TINIEST)
        unseen = weight / np.maximum(1.0 - upto[begin], _TINIEST)
        new = mass * (_spread(first, end, own, m) + _spread(start, begin, unseen, m))
        new /= new.sum()
        moved = float(np.abs(new - mass).max())
        mass = new
        if moved < _STILL:
            break
    return low, high, mass


def _innermost(
    lower: Float64Array, upper: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the intervals from a lower end to an upper one, with no end between."""
    parts = np.unique(lower), np.unique(upper)
    ends, is_upper = np.concatenate(parts), np.repeat([False, True], [*map(len, parts)])
    # Of equal ends the lower one comes first, since intervals are closed.
    order = np.lexsort((is_upper, ends))
    ends, is_upper = ends[order], is_upper[order]
    places = np.flatnonzero(~is_upper[:-1] & is_upper[1:])
    return ends[places], ends[places + 1]


def _spread(first: Rows, end: Rows, amount: Float64Array, m: int) -> Float64Array:
    """Return sums (m,) of amounts, each at all places from its first to before its end.

    Parameters
    ----------
    first, end : ndarrays of int, shape (n,)
    amount : ndarray of shape (n,)
    m : int
    """
    change = np.bincount(first, amount, m + 1) - np.bincount(end, amount, m + 1)
    return np.cumsum(change)[:m]
