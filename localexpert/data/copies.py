"""`groups_of_copies`: rows that are equal in all features, and not by chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array

# Fewer different rows, or a smaller share of them with a value of their own in some
# column, may be equal by chance or by design.
_FEWEST, _LEAST_DISTINCT = 50, 0.9


def groups_of_copies(
    X: Float64Array, rng: np.random.Generator
) -> NDArray[np.intp] | None:
    """Return groups of rows that are copies of each other, in any order.

    A copy in another fold tells a model the answer: out of fold all looks right, and on
    new rows it is not. Rows that are equal where no column nearly tells them apart (a
    table of few cells) are no copies. The target has no say: rows of one answer would
    be kept together, and no model would be asked about it.

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
    # One of the bits of 0, and of NaN.
    rows = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X + 0.0))
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    if len(first) == len(X) or len(first) < _FEWEST:
        return None
    least = _LEAST_DISTINCT * len(first)
    if not any(len(np.unique(column)) >= least for column in rows[first].T):
        return None
    return np.asarray(rng.permutation(len(first))[group])
