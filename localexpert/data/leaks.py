"""Leaks: a feature that all but restates the target where no other does."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_predict

from calibration.typing import Float64Array
from localexpert.data.sample import Sample

# A feature that leaves less than this share of the spread tells the target; the others
# do not if they leave more than that.
_MOST_LEFT, _LEAST_LEFT_BY_OTHERS = 0.02, 0.2
# A part of so many rows is enough to see it, and fewer than those are not.
_MOST_ROWS, _FEWEST_ROWS = 4000, 30
# A feature that lacks more of its values is looked at no further.
_LEAST_HELD = 0.9


def describe_leak(sample: Sample, seed: int) -> dict[str, Any] | None:
    """Return what a report tells of a feature that may be the target, if there is one.

    Parameters
    ----------
    sample : Sample
    seed : int

    Returns
    -------
    dict or None
        Ready for JSON.
    """
    held = sample.weight > 0.0
    try:
        codes = sample.table.codes[held]
    except (TypeError, ValueError):  # columns that only a user's learner can read
        return None
    found = find_leak(codes, sample.y[held], np.random.default_rng(seed))
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
    """Return the feature that may be the target in another guise, if there is one.

    Such as a price in another currency, or what is known only after the outcome.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        NaN is missing.
    y : ndarray of shape (n,)
    rng : Generator
        Draws the rows that are looked at where there are many.

    Returns
    -------
    (int, float, float) or None
        The number of the feature, and the mean absolute errors that it and all others
        together leave, as shares of that around the median.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.leaks import find_leak
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
    """Return the mean absolute error of reading y off one column.

    A row's y is the mean of the other rows of its x; where there are none, it lies on
    the line between the means of the next x below and above.
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
    """Return the mean absolute error of boosted trees on the half not learned from."""
    if X.shape[1] == 0:
        return float(np.abs(y - np.median(y)).mean())
    trees = HistGradientBoostingRegressor(min_samples_leaf=3, random_state=0)
    # The rows were drawn in no order.
    return float(np.abs(cross_val_predict(trees, X, y, cv=2) - y).mean())
