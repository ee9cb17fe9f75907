"""`AdditiveRidge`: a sum of curves, one per feature."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from calibration.typing import Float64Array

_N_KNOTS = 10
_PENALTIES = np.logspace(-6.0, 3.0, 28)
# No more parameters than this share of the rows are spent.
_MOST_FREEDOM = 0.5
# Some rows of many say as much of so few curves.
_MOST_ROWS = 50_000


class AdditiveRidge(RegressorMixin, BaseEstimator):
    """Ridge regression on broken lines, its penalty by generalised cross-validation.

    A feature x enters as x and max(0, x - k), k its ten inner quantiles. With the
    columns standardised and G = B'WB / sum w = V D V', the penalty l minimises

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
        self.knots_ = [_place_knots(column) for column in X.T]
        total = w.sum()
        mean_y = float(w @ y / total)
        root = np.sqrt(w / total)
        bends = [
            np.maximum(x[:, None] - k, 0.0)
            for x, k in zip(X.T, self.knots_, strict=True)
        ]
        columns = np.hstack([X, *bends])
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
        ends = np.cumsum([X.shape[1], *map(len, self.knots_)])
        slopes, *bends = np.split(self.coefficients_, ends[:-1])
        total: Float64Array = self.intercept_ + X @ slopes
        for column, knots, bend in zip(X.T, self.knots_, bends, strict=True):
            total += np.maximum(column[:, None] - knots, 0.0) @ bend
        return total


def _units(spread: Float64Array, mean: Float64Array) -> Float64Array:
    """Return what makes columns of unit spread; 0 for constant ones."""
    # What varies by rounding alone is constant.
    used = spread > 1e-9 * (np.abs(mean) + spread.max(initial=0.0))
    return np.where(used, 1.0 / np.where(used, spread, 1.0), 0.0)


def _place_knots(column: Float64Array) -> Float64Array:
    """Return distinct inner quantiles of a column."""
    levels = np.arange(1, _N_KNOTS + 1) / (_N_KNOTS + 1)
    knots = np.unique(np.quantile(column, levels))
    inner: Float64Array = knots[(knots > column.min()) & (knots < column.max())]
    # An indicator is a line already.
    return inner if len(np.unique(column)) > 2 else inner[:0]


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
