"""Sums over columns: curves, lines, few lines, and products of two columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from calibration.typing import Float64Array
from localexpert._kernels.lasso import lasso_path
from localexpert.coordinate.small_nets import Ramps

_N_RAMPS = 10
_RIDGE_PENALTIES = np.logspace(-9.0, 3.0, 37)
# As shares of the least penalty that leaves no line.
_LASSO_PENALTIES = np.logspace(0.0, -3.5, 30)
# Directions with less variance, as a share of the greatest, are rounding.
_LEAST_VARIANCE = 1e-12
# Most degrees of freedom, as a share of the rows.
_MOST_FREEDOM = 0.5
# Sums need no more rows than this.
_MOST_ROWS = 50_000
# New rows are answered this many at a time.
_ROWS_AT_ONCE = 4096


class Sum(RegressorMixin, BaseEstimator, ABC):
    """Ridge regression on columns. Generalised cross-validation gives the penalty.

    Let the columns be standardised, and G = B'WB / sum w = V D V'. The penalty l
    minimises

        GCV(l) = RSS(l) / (1 - df(l) / n)^2,   df(l) = 1 + sum d / (d + l).

    If there are more than 50 000 rows with weight, so many of them are drawn.

    References
    ----------
    Golub, Heath & Wahba (1979), Generalized cross-validation.
    """

    def fit(
        self, X: Float64Array, y: Float64Array, sample_weight: Float64Array
    ) -> Self:
        """Choose the penalty and solve."""
        rows = np.flatnonzero(sample_weight > 0.0)
        if len(rows) > _MOST_ROWS:
            # Not every k-th row: a table may have a period.
            rows = np.sort(np.random.default_rng(0).permutation(rows)[:_MOST_ROWS])
        X, y, w = X[rows], y[rows], sample_weight[rows]
        self._learn(X, w)
        scaled = _Scaled.of(self._spread(X), y, w)
        self.coefficients_, self.intercept_ = scaled.back(self._solve(scaled))
        return self

    def predict(self, X: Float64Array) -> Float64Array:
        """Return the sums, shape (n,)."""
        sums = np.empty(len(X))
        for start in range(0, len(X), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            spread = np.ascontiguousarray(self._spread(X[rows]))
            # Not a product of matrices, whose rounding depends on the other rows.
            sums[rows] = (spread * self.coefficients_).sum(axis=1)
        return self.intercept_ + sums

    @abstractmethod
    def _learn(self, X: Float64Array, w: Float64Array) -> None:
        """Learn from rows with weight what `_spread` needs."""

    @abstractmethod
    def _spread(self, X: Float64Array) -> NDArray[Any]:
        """Return the columns that are summed."""

    def _solve(self, scaled: _Scaled) -> Float64Array:
        columns = scaled.columns
        if columns.shape[1] > len(columns):
            # There are fewer rows than columns. Other directions have no variance.
            values, places = np.linalg.eigh(columns @ columns.T)
            kept = values > _LEAST_VARIANCE * values[-1]
            values, places = values[kept], places[:, kept]
            vectors = columns.T @ places / np.sqrt(values)
        else:
            values, vectors = np.linalg.eigh(columns.T @ columns)
            values = np.maximum(values, 0.0)
        along = vectors.T @ (columns.T @ scaled.target)
        penalties = _RIDGE_PENALTIES[:, None]
        shrunk = values + penalties
        # Directions without variance explain nothing.
        fit = np.where(
            values > 0.0, along**2 / shrunk**2 * (values + 2.0 * penalties), 0.0
        )
        left = scaled.target @ scaled.target - fit.sum(axis=1)
        best = _least_gcv(left, (values / shrunk).sum(axis=1), scaled.n)
        penalty = _RIDGE_PENALTIES[-1 if best is None else best]
        return np.asarray(vectors @ (along / (values + penalty)))


class AdditiveRidge(Sum):
    """A sum of broken lines. A column enters by its `Ramps`."""

    def _learn(self, X: Float64Array, w: Float64Array) -> None:
        del w
        self.ramps_ = Ramps.learn(X, _N_RAMPS)

    def _spread(self, X: Float64Array) -> NDArray[Any]:
        return self.ramps_.spread(X)


class Lines(Sum):
    """A sum of lines.

    New numbers count at most one range beyond those of training, so that an outlier
    cannot throw the sum.
    """

    def _learn(self, X: Float64Array, w: Float64Array) -> None:
        del w
        low, high = X.min(axis=0), X.max(axis=0)
        self.ends_ = low - (high - low), high + (high - low)

    def _spread(self, X: Float64Array) -> NDArray[Any]:
        return np.clip(X, *self.ends_)


class FewLines(Lines):
    """A sum of lines, of which most are zero (lasso).

    It minimises RSS / 2 + l |b|_1. Here df(l) is one more than the number of lines.

    References
    ----------
    Zou, Hastie & Tibshirani (2007), On the degrees of freedom of the lasso.
    """

    def _solve(self, scaled: _Scaled) -> Float64Array:
        columns, target = scaled.columns, scaled.target
        gram, along = columns.T @ columns, columns.T @ target
        penalties = np.abs(along).max() * _LASSO_PENALTIES
        paths = lasso_path(gram, along, penalties, _MOST_FREEDOM * scaled.n)
        left = target @ target - 2.0 * paths @ along
        left += ((paths @ gram) * paths).sum(axis=1)
        best = _least_gcv(left, np.count_nonzero(paths, axis=1), scaled.n)
        return np.asarray(paths[0 if best is None else best])


class Products(Sum):
    """A sum of straight columns, their squares and all products of two.

    New numbers beyond those of training count as the last of these.
    """

    def _learn(self, X: Float64Array, w: Float64Array) -> None:
        share = w / w.sum()
        self.ends_ = X.min(axis=0), X.max(axis=0)
        self.mean_ = share @ X
        spread = np.sqrt(share @ (X - self.mean_) ** 2)
        self.spread_ = np.where(spread > 0.0, spread, 1.0)

    def _spread(self, X: Float64Array) -> NDArray[Any]:
        z = (np.clip(X, *self.ends_) - self.mean_) / self.spread_
        first, second = np.triu_indices(X.shape[1])
        return np.hstack([z, z[:, first] * z[:, second]])


class _Scaled(NamedTuple):
    """Columns of mean 0 and variance 1, and a target of mean 0. Rows carry weights."""

    columns: NDArray[Any]
    target: Float64Array
    unit: Float64Array
    mean: Float64Array
    mean_y: float
    n: float

    @classmethod
    def of(cls, columns: NDArray[Any], y: Float64Array, w: Float64Array) -> Self:
        total = w.sum()
        mean_y = float(w @ y / total)
        root = np.sqrt(w / total)
        mean = w @ columns / total
        columns = root[:, None] * (columns - mean)
        spread = np.sqrt((columns**2).sum(axis=0))
        # A column that only varies by rounding is constant.
        used = spread > 1e-9 * (np.abs(mean) + spread.max(initial=0.0))
        unit = np.where(used, 1.0 / np.where(used, spread, 1.0), 0.0)
        n = float(total**2 / (w @ w))
        return cls(columns * unit, root * (y - mean_y), unit, mean, mean_y, n)

    def back(self, coefficients: Float64Array) -> tuple[Float64Array, float]:
        """Return coefficients of the columns as they were, and the intercept."""
        coefficients = self.unit * coefficients
        return coefficients, self.mean_y - float(self.mean @ coefficients)


def _least_gcv(left: Float64Array, freedom: NDArray[Any], n: float) -> int | None:
    """Return the place of the least GCV, or None if all have too much freedom."""
    share = (1.0 + freedom) / n
    score = np.maximum(left, 0.0) / (1.0 - np.minimum(share, 0.99)) ** 2
    score = np.where(share < _MOST_FREEDOM, score, np.inf)
    return int(np.argmin(score)) if np.isfinite(score).any() else None
