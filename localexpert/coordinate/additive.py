"""`AdditiveRidge`: a sum of curves, one per feature."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from calibration.typing import Float64Array
from localexpert.coordinate.ramps import Ramps

_N_RAMPS = 10
_PENALTIES = np.logspace(-6.0, 3.0, 28)
# No more parameters than this share of the rows are spent.
_MOST_FREEDOM = 0.5
# Some rows of many say as much of so few curves.
_MOST_ROWS = 50_000


class AdditiveRidge(RegressorMixin, BaseEstimator):
    """Ridge regression on broken lines, its penalty by generalised cross-validation.

    A feature enters by its `Ramps`. With the columns standardised and
    G = B'WB / sum w = V D V', the penalty l minimises

        GCV(l) = RSS(l) / (1 - df(l) / n)^2,   df(l) = 1 + sum d / (d + l).

    Of more than 50 000 rows some are taken, spread over all of them.

    References
    ----------
    Golub, Heath & Wahba (1979), Generalized cross-validation.
    """

    def fit(
        self,
        X: Float64Array,
        y: Float64Array,
        sample_weight: Float64Array | None = None,
    ) -> Self:
        """Choose the penalty and solve."""
        w = np.ones(len(y)) if sample_weight is None else sample_weight
        rows = slice(None, None, -(-len(y) // _MOST_ROWS))
        X, y, w = X[rows], y[rows], w[rows]
        self.ramps_ = Ramps.learn(X, _N_RAMPS)
        total = w.sum()
        mean_y = float(w @ y / total)
        root = np.sqrt(w / total)
        columns = self.ramps_.spread(X)
        mean = w @ columns / total
        columns = root[:, None] * (columns - mean)
        unit = _units(np.sqrt((columns**2).sum(axis=0)), mean)
        columns *= unit
        if columns.shape[1] > len(columns):
            # Fewer rows than columns: other directions than these have no variance.
            _, roots, directions = np.linalg.svd(columns, full_matrices=False)
            values, vectors = roots**2, directions.T
        else:
            values, vectors = np.linalg.eigh(columns.T @ columns)
            values = np.maximum(values, 0.0)
        along = vectors.T @ (columns.T @ (root * (y - mean_y)))
        variance = float(w @ (y - mean_y) ** 2 / total)
        penalty = _choose_penalty(values, along, variance, total**2 / (w @ w))
        self.coefficients_ = unit * (vectors @ (along / (values + penalty)))
        self.intercept_ = mean_y - float(mean @ self.coefficients_)
        return self

    def predict(self, X: Float64Array) -> Float64Array:
        """Return the sums of the curves, shape (n,)."""
        curves = np.empty(len(X))
        for rows, columns in self.ramps_.spread_blocks(X):
            curves[rows] = columns @ self.coefficients_
        return self.intercept_ + curves


def _units(spread: Float64Array, mean: Float64Array) -> Float64Array:
    """Return what makes columns of unit spread; 0 for constant ones."""
    # What varies by rounding alone is constant.
    used = spread > 1e-9 * (np.abs(mean) + spread.max(initial=0.0))
    return np.where(used, 1.0 / np.where(used, spread, 1.0), 0.0)


def _choose_penalty(
    values: Float64Array, along: Float64Array, variance: float, n: float
) -> float:
    """Return the penalty with the least generalised cross-validation score."""
    penalties = _PENALTIES[:, None]
    shrunk = values + penalties
    # Directions without variance explain nothing.
    fit = np.where(values > 0.0, along**2 / shrunk**2 * (values + 2.0 * penalties), 0.0)
    error = np.maximum(variance - fit.sum(axis=1), 0.0)
    freedom = 1.0 + (values / shrunk).sum(axis=1)
    share = freedom / n
    score = np.where(
        share < _MOST_FREEDOM, error / (1.0 - np.minimum(share, 0.99)) ** 2, np.inf
    )
    if not np.isfinite(score).any():
        return float(_PENALTIES[-1])
    return float(_PENALTIES[np.argmin(score)])
