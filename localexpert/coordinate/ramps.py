"""`Ramps`: a number as the intervals between quantiles that lie below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array

# All columns together have no more ramps: each is an input of every net.
_MOST_RAMPS = 600
# Some ten times as wide as the columns: only so many rows are spread at a time.
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class Ramps:
    """Piecewise linear encoding of columns.

    Between the knots k_0 < ... < k_m of a column, its quantiles, x enters as itself and
    as min(1, max(0, (x - k_j) / (k_j+1 - k_j))) for each j. A net of few steps learns
    what bends within a narrow range of x only if it is shown this range.

    Parameters
    ----------
    n_columns : int
    column : ndarray of int, shape (n_ramps,)
        Which one each ramp is of. One of two values has none: it is a line already.
    low, size : ndarrays of shape (n_ramps,)
        Where each begins, and how far it goes.

    References
    ----------
    Gorishniy, Rubachev & Babenko (2022), On embeddings for numerical features in
    tabular deep learning, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.coordinate.ramps import Ramps
    >>> x = np.array([[0.0], [1.0], [4.0]])
    >>> Ramps.learn(x, 2).spread(np.array([[0.5], [2.5]]))
    array([[0.5, 0.5, 0. ],
           [2.5, 1. , 0.5]])
    """

    n_columns: int
    column: NDArray[np.intp]
    low: Float64Array
    size: Float64Array

    @classmethod
    def learn(cls, X: Float64Array, n: int) -> Ramps:
        """Place the knots of at most `n` ramps a column, shape of `X` (n_rows, p)."""
        p = X.shape[1]
        n = min(n, _MOST_RAMPS // max(p, 1))
        levels = np.linspace(0.0, 1.0, n + 1)
        knots = [_place_knots(column, levels) for column in X.T] if n else []
        column = np.repeat(np.arange(p), [len(k) - 1 for k in knots] if n else 0)
        low = np.concatenate([np.empty(0), *(k[:-1] for k in knots)])
        size = np.concatenate([np.empty(0), *map(np.diff, knots)])
        return cls(p, column, low, size)

    @property
    def width(self) -> int:
        """Columns that `spread` returns."""
        return self.n_columns + len(self.low)

    def spread(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the columns and, after all of them, the ramps of each."""
        passed = (X[:, self.column] - self.low) / self.size
        return np.hstack([X, np.clip(passed, 0.0, 1.0)])

    def spread_blocks(
        self, X: NDArray[np.floating]
    ) -> Iterator[tuple[slice, NDArray[np.floating]]]:
        """Yield some rows at a time: which, and what `spread` makes of them."""
        for start in range(0, len(X), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            yield rows, self.spread(X[rows])


def _place_knots(column: Float64Array, levels: Float64Array) -> Float64Array:
    """Return the distinct quantiles of a column, one where it has two values."""
    knots: Float64Array = np.unique(np.quantile(column, levels))
    return knots if len(np.unique(column)) > 2 else knots[:1]
