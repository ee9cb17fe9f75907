"""`Ramps`: a number as the intervals between quantiles that lie below it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array

# All columns together have no more ramps: each is an input of every net.
_MOST_RAMPS = 600


@dataclass(frozen=True)
class Ramps:
    """Piecewise linear encoding of columns.

    Between the knots k_0 < ... < k_m of a column, its quantiles, x enters as itself and
    as min(1, max(0, (x - k_j) / (k_j+1 - k_j))) for each j. A net of few steps learns
    what bends within a narrow range of x only if it is shown this range.

    Parameters
    ----------
    knots : tuple of ndarrays
        For each column; empty where it has two values, which are a line already.

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

    knots: tuple[Float64Array, ...]

    @classmethod
    def learn(cls, X: Float64Array, n: int) -> Ramps:
        """Place the knots of at most `n` ramps a column, shape of `X` (n_rows, p)."""
        n = min(n, _MOST_RAMPS // max(X.shape[1], 1))
        levels = np.linspace(0.0, 1.0, n + 1)
        return cls(tuple(_place_knots(column, levels) for column in X.T))

    def spread(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the columns and, after all of them, the ramps of each."""
        ramps = [
            np.clip((x[:, None] - knots[:-1]) / np.diff(knots), 0.0, 1.0)
            for x, knots in zip(X.T, self.knots, strict=True)
            if len(knots)
        ]
        return np.hstack([X, *ramps])


def _place_knots(column: Float64Array, levels: Float64Array) -> Float64Array:
    """Return the distinct quantiles of a column of more than two values."""
    knots: Float64Array = np.unique(np.quantile(column, levels))
    return knots if len(np.unique(column)) > 2 else knots[:0]
