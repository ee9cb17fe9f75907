"""Copies: rows that are equal in all features, and not by chance."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.table import Table

# Fewer different rows may be equal by design.
_FEWEST = 50
# Where no column tells nearly all rows apart, and a smaller share of them has copies,
# the source is one that repeats rows, and new ones will be copies as often. (On records
# of wines, a quarter of them repeated, forecasts of new records lost 10 % by groups.)
_LEAST_SHARE, _LEAST_DISTINCT = 0.5, 0.9
# Rows are copies where chance makes fewer than this share of the equal pairs.
_MOST_BY_CHANCE = 0.1


def find_copies(
    X: Any, weight: Float64Array, cv: Any, seed: int
) -> NDArray[np.intp] | None:
    """Return groups of rows that one fold should have, where folds are dealt.

    Parameters
    ----------
    X : Table, array or data frame of shape (n, p)
    weight : ndarray of shape (n,)
        Rows of weight zero are copies of none.
    cv : "auto", int, splitter or iterable
        None is returned for folds of the user's, and for more folds than groups.
    seed : int

    Returns
    -------
    ndarray of int, shape (n,), or None
    """
    if not isinstance(cv, str | Integral):
        return None
    try:
        codes = Table.of(X).codes
    except (TypeError, ValueError):  # columns that only a user's learner can read
        return None
    held = np.flatnonzero(weight)
    found = groups_of_copies(codes[held], np.random.default_rng(seed))
    most = cv if isinstance(cv, Integral) else 0
    if found is None or found.max() + 1 < most:
        return None
    groups = np.arange(len(weight)) + len(weight)
    groups[held] = found
    return groups


def groups_of_copies(
    X: Float64Array, rng: np.random.Generator
) -> NDArray[np.intp] | None:
    """Return groups of rows that are copies of each other, in any order.

    A copy in another fold tells a model the answer: out of fold all looks right, and on
    new rows it is not. Rows that may be equal by chance (a table of few cells) are no
    copies. The target has no say: rows of one answer would be kept together, and no
    model would be asked about it.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        NaN is missing.
    rng : Generator
        Numbers the groups.

    Returns
    -------
    ndarray of int, shape (n,), or None
        None where there are no copies.

    Notes
    -----
    With q_j the share of pairs of different rows that are equal in all columns but j,
    and p_j that of pairs that agree in column j, two rows are equal by chance with
    probability max_j q_j p_j if one column is independent of the others. Of a grid of
    L values p_j is 1 / L at the least. Rows are copies where pairs that chance explains
    are fewer than a tenth of those that are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.copies import groups_of_copies
    >>> X = np.repeat(np.random.default_rng(0).normal(size=(60, 2)), 2, axis=0)
    >>> len(np.unique(groups_of_copies(X, np.random.default_rng(1))))
    60
    """
    if X.shape[1] == 0:
        return None
    cells = _hash_cells(X)
    _, first, group = np.unique(
        cells.sum(axis=1), return_index=True, return_inverse=True
    )
    if len(first) == len(X) or len(first) < _FEWEST:
        return None
    least = _LEAST_DISTINCT * len(first)
    copied = np.mean(np.bincount(group)[group] > 1)
    tells = any(len(np.unique(column)) >= least for column in X[first].T)
    equal = _count_pairs(group)
    if copied < _LEAST_SHARE and not tells:
        return None
    if _chance_of_equality(X[first], cells[first]) > _MOST_BY_CHANCE * equal:
        return None
    return np.asarray(rng.permutation(len(first))[group])


def _hash_cells(X: Float64Array) -> NDArray[np.uint64]:
    """Return a number for each cell, the same for equal cells of a column.

    Sums of them tell rows apart: of 64 bits, no two of different rows are equal.
    """
    # One of the bits of 0, and of NaN.
    bits = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X + 0.0)).view(np.uint64)
    salts = np.random.default_rng(0).integers(2**64, size=X.shape[1], dtype=np.uint64)
    # The mixing of SplitMix64 (Steele et al. 2014).
    mixed = bits ^ salts
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _count_pairs(values: NDArray[Any]) -> float:
    """Return the share of pairs of values that are equal."""
    n = len(values)
    counts = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float(counts @ (counts - 1.0)) / (n * (n - 1.0))


def _chance_of_equality(X: Float64Array, cells: NDArray[np.uint64]) -> float:
    """Return the chance that two different rows had been equal, were it chance."""
    rows = cells.sum(axis=1)
    chances = []
    for column, own in zip(X.T, cells.T, strict=True):
        values = np.unique(column[~np.isnan(column)])
        agree = _count_pairs(own)
        if len(values) > 1:
            grid = (values[-1] - values[0]) / np.diff(values).min() + 1.0
            agree = max(agree, 1.0 / grid)
        chances.append(_count_pairs(rows - own) * agree)
    return max(chances)
