"""`TargetCodes`: what the target was where a category was met, in place of its code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from calibration.typing import Float64Array

_N_PARTS = 5


@dataclass
class TargetCodes:
    """Means of the target by category, drawn towards the mean of all.

    A category whose rows have weight W and mean m is told as (W m + k M) / (W + k), M
    the mean of all rows and k the variance within categories over that between them.
    Rows of training are told by the means of other rows, four parts of five: their own
    would tell the answer.

    Parameters
    ----------
    n_values : mapping of int to int
        Of the columns that are told so, how many values they have.
    seed : int
        Deals the rows of training.

    References
    ----------
    Micci-Barreca (2001), A preprocessing scheme for high-cardinality categorical
    attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.target_codes import TargetCodes
    >>> codes = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> y = np.repeat([2.0, 6.0], 50) + np.tile([-0.1, 0.1], 50)
    >>> told = TargetCodes({0: 2}, 0).fit(codes, y, np.ones(100))
    >>> told.transform(np.array([[0.0], [1.0], [np.nan]])).round(3)
    array([[2.],
           [6.],
           [4.]])
    """

    n_values: Mapping[int, int]
    seed: int

    def fit(self, X: Float64Array, y: Float64Array, w: Float64Array) -> Self:
        """Learn the means from rows of codes, shape (n, p)."""
        total = w.sum() or 1.0
        mean = float(w @ y / total)
        variance = float(w @ (y - mean) ** 2 / total)
        self.means_ = {}
        for j, size in self.n_values.items():
            cell = _number(X[:, j])
            mass = np.bincount(cell, w, size + 1)
            means = np.bincount(cell, w * y, size + 1) / np.where(mass > 0.0, mass, 1.0)
            within = float(w @ (y - means[cell]) ** 2)
            # Unbiased: each mean has used up a row.
            within /= max(total - np.count_nonzero(mass), 0.5)
            strength = within / max(variance - within, 1e-3 * variance, 1e-300)
            self.means_[j] = np.where(
                mass > 0.0, (mass * means + strength * mean) / (mass + strength), mean
            )
        return self

    def transform(self, X: Float64Array) -> Float64Array:
        """Return rows with means in place of codes, shape (n, p)."""
        told = X.copy()
        for j, means in self.means_.items():
            told[:, j] = means[_number(X[:, j])]
        return told

    def fit_transform(
        self, X: Float64Array, y: Float64Array, w: Float64Array
    ) -> Float64Array:
        """Learn, and return the rows of training, each told by others."""
        told = X.copy()
        part = np.random.default_rng(self.seed).permutation(len(y)) % _N_PARTS
        for number in range(_N_PARTS):
            own, others = part == number, part != number
            told[own] = self.fit(X[others], y[others], w[others]).transform(X[own])
        self.fit(X, y, w)
        return told


def _number(codes: Float64Array) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return codes from 1 on; 0 is a missing value."""
    return np.where(np.isnan(codes), 0.0, codes + 1.0).astype(np.intp)
