"""Copies of rows, and leaks: both make out-of-fold forecasts look too good."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_predict

from calibration._kernels.cells import mix_bits
from calibration.typing import Float64Array
from localexpert.data.folds import Sample
from localexpert.data.table import read_codes
from localexpert.data.training_rows import bits_of

# With fewer different rows, equal rows may be part of the design.
_FEWEST = 50
# If no column tells nearly all rows apart, and a smaller share of them has copies, then
# the source repeats rows, and new rows will be copies equally often. (On records of
# wines, a quarter of them repeated, groups made forecasts of new records 10 % worse.)
_LEAST_SHARE, _LEAST_DISTINCT = 0.5, 0.9
# Rows are copies if chance explains fewer than this share of the equal pairs.
_MOST_BY_CHANCE = 0.1
# If more rows have an equal row, out of bag is not out of sample, see `many_are_equal`.
# (With a tenth, records of wines lost 4 %: there equal rows have equal targets.)
_MOST_EQUAL = 0.5
# A feature gives the target away if it leaves less than the first share of the spread,
# and the other features leave more than the second.
_MOST_LEFT, _LEAST_LEFT_BY_OTHERS = 0.02, 0.2
# The first number of rows is enough to see it. Fewer than the second are too few.
_MOST_ROWS, _FEWEST_ROWS = 4000, 30
# A feature must have at least this share of its values to be checked.
_LEAST_HELD = 0.9


def find_copies(
    X: Any, weight: Float64Array, cv: Any, seed: int
) -> NDArray[np.intp] | None:
    """Return groups of rows that belong in one fold, if we deal the folds.

    Parameters
    ----------
    X : Table, array or data frame of shape (n, p)
    weight : ndarray of shape (n,)
        Rows of weight zero are not copies of any row.
    cv : "auto", int, splitter or iterable
        If these are the user's own folds, or more folds than groups, None is returned.
    seed : int

    Returns
    -------
    ndarray of int, shape (n,), or None
    """
    held, codes = np.flatnonzero(weight), read_codes(X, weight)
    if not isinstance(cv, str | Integral) or codes is None:
        return None
    found = groups_of_copies(codes[held], np.random.default_rng(seed))
    most = cv if isinstance(cv, Integral) else 0
    if found is None or found.max() + 1 < most:
        return None
    groups = np.arange(len(weight)) + len(weight)
    groups[held] = found
    return groups


def many_are_equal(X: Any, weight: Float64Array) -> bool:
    """Return whether most rows have an equal row, by chance or by design.

    Trees cannot tell equal rows apart. So the answer of a forest for a row out of bag
    is the mean of the targets of its equals, without its own: the higher the answer,
    the lower its target. A later stage that reads these answers would learn this, and
    be wrong on new rows. A fold leaves many rows out, and its answers tell none apart.

    Parameters
    ----------
    X : Table, array or data frame of shape (n, p)
    weight : ndarray of shape (n,)
        Rows of weight zero do not count.

    Returns
    -------
    bool
    """
    codes = read_codes(X)
    if codes is None:
        return False
    _, group = _number_rows(codes[np.flatnonzero(weight)])
    return _share_of_copies(group) > _MOST_EQUAL


def groups_of_copies(
    X: Float64Array, rng: np.random.Generator
) -> NDArray[np.intp] | None:
    """Return groups of rows that are copies of each other, in any order.

    A copy in another fold tells a model the answer. Forecasts then look right out of
    fold, but are wrong on new rows. Rows that may be equal by chance (a table of few
    cells) are not copies. The target is not used: otherwise all rows with one answer
    would be kept together, and no model that saw it would be tested on it.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        NaN is missing.
    rng : Generator
        Gives the groups their numbers.

    Returns
    -------
    ndarray of int, shape (n,), or None
        None if there are no copies.

    Notes
    -----
    Let q_j be the share of pairs of different rows that are equal in all columns but j,
    and p_j the share of pairs that agree in column j. If one column is independent of
    the others, two rows are equal by chance with probability max_j q_j p_j. On a grid
    of L values p_j is at least 1 / L. Rows are copies if chance explains fewer than a
    tenth of the equal pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.honest_rows import groups_of_copies
    >>> X = np.repeat(np.random.default_rng(0).normal(size=(60, 2)), 2, axis=0)
    >>> len(np.unique(groups_of_copies(X, np.random.default_rng(1))))
    60
    """
    if X.shape[1] == 0:
        return None
    first, group = _number_rows(X)
    if len(first) == len(X) or len(first) < _FEWEST:
        return None
    least = _LEAST_DISTINCT * len(first)
    tells = any(len(np.unique(column)) >= least for column in X[first].T)
    if _share_of_copies(group) < _LEAST_SHARE and not tells:
        return None
    if _chance_of_equality(X[first]) > _MOST_BY_CHANCE * _count_pairs(group):
        return None
    return np.asarray(rng.permutation(len(first))[group])


def _number_rows(X: Float64Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where each distinct row is first, and the number of each row's own."""
    _, first, group = np.unique(
        _hash_cells(X).sum(axis=1), return_index=True, return_inverse=True
    )
    return first, group


def _share_of_copies(group: NDArray[np.intp]) -> float:
    """Return the share of rows that are equal to another row."""
    return float(np.mean(np.bincount(group)[group] > 1))


def _hash_cells(X: Float64Array) -> NDArray[np.uint64]:
    """Return a number for each cell, the same for equal cells of a column.

    Their sums tell rows apart: with 64 bits, different rows have different sums.
    """
    salts = np.random.default_rng(0).integers(2**64, size=X.shape[1], dtype=np.uint64)
    return mix_bits(bits_of(X) ^ salts)


def _count_pairs(values: NDArray[Any]) -> float:
    """Return the share of pairs of values that are equal."""
    n = len(values)
    counts = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float(counts @ (counts - 1.0)) / (n * (n - 1.0))


def _chance_of_equality(X: Float64Array) -> float:
    """Return the probability that chance alone makes two different rows equal."""
    cells = _hash_cells(X)
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


def describe_leak(sample: Sample, seed: int) -> dict[str, Any] | None:
    """Describe a feature that may be the target, for a report; None if there is none.

    Parameters
    ----------
    sample : Sample
    seed : int

    Returns
    -------
    dict or None
        Ready for JSON.
    """
    held, codes, found = sample.weight > 0.0, read_codes(sample.table), None
    if codes is not None:
        found = find_leak(codes[held], sample.y[held], np.random.default_rng(seed))
    if found is None:
        return None
    place, own, others = found
    names = sample.table.reader.features.names
    name = str(place if names is None else names[place])
    text = (
        f"column {name!r} alone tells y (it leaves {100 * own:.2g} % of the spread, "
        f"all others {100 * others:.2g} %): is it known before y is?"
    )
    return {"chosen": text, "feature": name, "left": own, "left by others": others}


def find_leak(
    X: Float64Array, y: Float64Array, rng: np.random.Generator
) -> tuple[int, float, float] | None:
    """Return the feature that may be the target in another form, if there is one.

    Examples are a price in another currency, or a value that is only known after the
    outcome.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        NaN is missing.
    y : ndarray of shape (n,)
    rng : Generator
        Draws the rows to check if there are many.

    Returns
    -------
    (int, float, float) or None
        The number of the feature, the mean absolute error that it leaves, and the one
        that all others together leave. Both are shares of the error around the median.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.honest_rows import find_leak
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = np.exp(X[:, 1])
    >>> find_leak(X, y, rng)[0]
    1
    >>> find_leak(X[:, [0, 2]], y, rng)
    """
    rows = rng.permutation(len(y))[:_MOST_ROWS]
    X, y = X[rows], y[rows]
    spread = float(np.abs(y - np.median(y)).mean())
    if len(y) < _FEWEST_ROWS or spread == 0.0:
        return None
    left = [_error_of_one(column, y) / spread for column in X.T]
    best = int(np.argmin(left)) if left else 0
    if not left or left[best] > _MOST_LEFT:
        return None
    others = _error_of_trees(np.delete(X, best, axis=1), y) / spread
    return (best, left[best], others) if others > _LEAST_LEFT_BY_OTHERS else None


def _error_of_one(x: Float64Array, y: Float64Array) -> float:
    """Return the mean absolute error of predicting y from one column.

    The prediction for a row is the mean y of the other rows with its x. If there are
    none, it lies on the line between the means of the next x below and above.
    """
    held = ~np.isnan(x)
    x, y = x[held], y[held]
    values, cell, counts = np.unique(x, return_inverse=True, return_counts=True)
    if held.mean() < _LEAST_HELD or len(values) < 3:
        return np.inf
    sums = np.bincount(cell, y)
    inner = np.clip(cell, 1, len(values) - 2)
    below, above = inner - 1, inner + 1
    share = (values[inner] - values[below]) / (values[above] - values[below])
    means = sums / counts
    between = means[below] + share * (means[above] - means[below])
    many = counts[cell] > 1
    others = (sums[cell] - y) / np.maximum(counts[cell] - 1, 1)
    known = many | (cell == inner)
    error = np.abs(np.where(many, others, between) - y)[known]
    return float(error.mean()) if len(error) else np.inf


def _error_of_trees(X: Float64Array, y: Float64Array) -> float:
    """Return the mean absolute error of boosted trees on the half they did not see."""
    if X.shape[1] == 0:
        return float(np.abs(y - np.median(y)).mean())
    trees = HistGradientBoostingRegressor(min_samples_leaf=3, random_state=0)
    # The rows were drawn in random order, so two plain halves are enough.
    return float(np.abs(cross_val_predict(trees, X, y, cv=2) - y).mean())
