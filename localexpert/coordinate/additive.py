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
_CHUNK = 16_384


class AdditiveRidge(RegressorMixin, BaseEstimator):
    """Ridge regression on broken lines, its penalty by generalised cross-validation.

    A feature x enters as x and max(0, x - k), k its ten inner quantiles. With the
    columns standardised and G = B'WB / sum w = V D V', the penalty l minimises

        GCV(l) = RSS(l) / (1 - df(l) / n)^2,   df(l) = 1 + sum d / (d + l).

    Only sums over rows are held: memory does not grow with their number. Of fewer
    rows than columns the decomposition is that of the rows.

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
        self.knots_ = [_place_knots(column) for column in X.T]
        total = w.sum()
        mean_y = float(w @ y / total)
        size = X.shape[1] + sum(map(len, self.knots_))
        if size > len(X):
            columns = self._expand(X)
            mean = w @ columns / total
            columns = np.sqrt(w / total)[:, None] * (columns - mean)
            unit = _units(np.sqrt((columns**2).sum(axis=0)), mean)
            # Fewer rows than columns: other directions than these have no variance.
            _, roots, rows = np.linalg.svd(columns * unit, full_matrices=False)
            values, vectors = roots**2, rows.T
            cross = columns.T @ (np.sqrt(w / total) * (y - mean_y))
        else:
            gram, cross, mean = self._sum_up(X, y - mean_y, w)
            unit = _units(np.sqrt(np.maximum(np.diag(gram), 0.0)), mean)
            values, vectors = np.linalg.eigh(gram * unit * unit[:, None])
            values = np.maximum(values, 0.0)
        along = vectors.T @ (cross * unit)
        variance = float(w @ (y - mean_y) ** 2 / total)
        effective = total**2 / (w @ w)
        penalty = _choose_penalty(values, along, variance, effective)
        self.coefficients_ = unit * (vectors @ (along / (values + penalty)))
        self.intercept_ = mean_y - float(mean @ self.coefficients_)
        return self

    def predict(self, X: Float64Array) -> Float64Array:
        """Return the sums of the curves, shape (n,)."""
        parts = [
            self._expand(X[start : start + _CHUNK]) @ self.coefficients_
            for start in range(0, len(X), _CHUNK)
        ]
        return self.intercept_ + np.concatenate([np.empty(0), *parts])

    def _expand(self, X: Float64Array) -> Float64Array:
        """Return the columns of the broken lines, shape (n, q)."""
        bends = [
            np.maximum(column[:, None] - knots, 0.0)
            for column, knots in zip(X.T, self.knots_, strict=True)
        ]
        return np.hstack([X, *bends])

    def _sum_up(
        self, X: Float64Array, y: Float64Array, w: Float64Array
    ) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return covariances of the columns, with `y`, and the columns' means."""
        size = X.shape[1] + sum(map(len, self.knots_))
        # Sums of squares of deviations from some rows' mean cancel less.
        near = self._expand(X[: min(len(X), _CHUNK)]).mean(axis=0)
        gram, cross, mean = np.zeros((size, size)), np.zeros(size), np.zeros(size)
        for start in range(0, len(X), _CHUNK):
            part = slice(start, start + _CHUNK)
            columns = self._expand(X[part]) - near
            weighted = w[part, None] * columns
            gram += columns.T @ weighted
            cross += weighted.T @ y[part]
            mean += weighted.sum(axis=0)
        total = w.sum()
        mean /= total
        return gram / total - np.outer(mean, mean), cross / total, mean + near


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
