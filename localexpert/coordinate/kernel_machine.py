"""Ridge regression with a kernel of all columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, RegressorMixin, clone

from calibration.typing import Float64Array
from localexpert.coordinate.families import Fitted, Trial, mass_of
from localexpert.data.folds import Fold, Sample, spread_rows

# Single precision is twice as fast, and its errors are far below the penalties.
Float32Array: TypeAlias = NDArray[np.float32]

# Steps and penalties that one fold compares. More steps, other widths and a finer list
# of penalties gained nothing on 50 tables.
_STEPS = (0, 1, 2)
_PENALTIES = {False: (0.01, 0.1, 1.0), True: (0.001, 0.01, 0.1)}
# This many rows, from all over the table, are enough to compare them, and to learn
# directions.
_ROWS_TO_COMPARE = 1_500
# The kernel's width is this many times the median distance of rows.
_WIDTH = {False: 3.0, True: 1.0}
_ROWS_OF_A_MEDIAN = 200
# The time of a step grows with the cube of the number of columns. Wider tables keep the
# plain kernel.
_MOST_COLUMNS = 1_000
# Rows nearer than this share of the width count as one. They have no direction.
_NEAR = 1e-3
# Least weight of a row. The mean weight is 1.
_LEAST_SHARE = 1e-12
# The kernel is computed for this many rows at a time.
_ROWS_AT_ONCE = 4096


@dataclass(eq=False, repr=False)
class KernelMachine(RegressorMixin, BaseEstimator):
    """Ridge regression with a kernel in coordinates that it learns.

    The kernel of two rows is K(x, z) = exp(-u), u = |R'(x - z)| / L, at first with
    R = I. If it is smooth, K = (1 + u) exp(-u), of order 3/2 (Matern). A step fits
    f(x) = sum_j a_j K(x, x_j), where (K + penalty diag(1 / w)) a = y, and takes the
    mean outer product of its gradients as the new metric,

        R R' = M / |M|,   M = sum_i grad f(x_i) grad f(x_i)' / n.

    If f hardly changes along a column, or a sum of columns, it then counts for little.

    Parameters
    ----------
    n_steps : int
    penalty : float
        Relative to K(x, x) = 1, for a target of variance 1 and weights of mean 1.
    smooth : bool

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit & Belkin (2024), Mechanism for feature learning in
    neural networks and backpropagation-free machine learning models, Science 383.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.coordinate.kernel_machine import KernelMachine
    >>> X = np.random.default_rng(0).normal(size=(300, 5))
    >>> model = KernelMachine(penalty=0.01).fit(X, np.sin(2.0 * X[:, 0]), np.ones(300))
    >>> int(np.argmax(np.diag(model.directions_ @ model.directions_.T)))
    0
    """

    n_steps: int = 1
    penalty: float = 0.1
    smooth: bool = False

    def fit(
        self, X: Float64Array, y: Float64Array, sample_weight: Float64Array
    ) -> Self:
        """Take the steps on some rows, and solve for all."""
        held = np.flatnonzero(sample_weight > 0.0)
        some = spread_rows(held, _ROWS_TO_COMPARE) if self.n_steps else held
        self.begin(X[some], y[some], sample_weight[some])
        for _ in range(self.n_steps):
            self.solve(self.penalty)
            self.step()
        if len(some) < len(held):
            self.begin(X, y, sample_weight, self.directions_)
        self.solve(self.penalty)
        # Only the fit needs these.
        for name in ("_target", "_share", "_rows", "_kernel", "_distances"):
            delattr(self, name)
        return self

    def begin(
        self,
        X: Float64Array,
        y: Float64Array,
        sample_weight: Float64Array,
        directions: Float32Array | None = None,
    ) -> None:
        """Keep the rows of positive weight. Compute their kernel along directions."""
        rows = np.flatnonzero(sample_weight > 0.0)
        y, w = y[rows], sample_weight[rows]
        w = w / w.mean()
        self.mean_ = float(np.average(y, weights=w))
        self.spread_ = float(np.sqrt(np.average((y - self.mean_) ** 2, weights=w)))
        self.spread_ = self.spread_ or 1.0
        self._target = ((y - self.mean_) / self.spread_).astype(np.float32)
        # The least weights are too small for single precision.
        self._share = np.maximum(w, _LEAST_SHARE).astype(np.float32)
        self._rows = np.asarray(X[rows], dtype=np.float32)
        if directions is None:
            directions = np.eye(X.shape[1], dtype=np.float32)
        self._use(directions)

    def solve(self, penalty: float) -> None:
        """Solve for the coefficients, shape (n,), in the present coordinates."""
        matrix = self._kernel.copy()
        matrix.flat[:: len(matrix) + 1] += np.float32(penalty) / self._share
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        self.coefficients_ = cho_solve(factor, self._target, check_finite=False)

    def step(self) -> None:
        """Make a metric of the gradients of the present fit."""
        if self._rows.shape[1] > _MOST_COLUMNS:
            return
        # grad f(x_i) = - R R' sum_j a_j K_ij (x_i - x_j) / (L d_ij). L cancels.
        near = self._distances < _NEAR * self.width_
        if self.smooth:
            # The slope of K over the distance is -exp(-u) / L^2.
            pull = np.exp(self._distances / -self.width_) * self.coefficients_
        else:
            pull = self._kernel * self.coefficients_
            pull /= np.where(near, np.float32(np.inf), self._distances)
        away = pull.sum(axis=1)[:, None] * self._rows - pull @ self._rows
        slopes = (away @ self.directions_) @ self.directions_.T
        values, vectors = np.linalg.eigh(slopes.T @ slopes)
        if values[-1] > 0.0:
            roots = np.sqrt(np.maximum(values, 0.0) / values[-1])
            self._use(vectors * roots)

    def _use(self, directions: Float32Array) -> None:
        """Measure distances along directions."""
        self.directions_ = directions
        self.places_ = self._rows @ directions
        self._distances = _distances(self.places_, self.places_)
        median = float(np.median(self._distances[:_ROWS_OF_A_MEDIAN]))
        self.width_ = np.float32(_WIDTH[self.smooth] * median or 1.0)
        self._kernel = self._kernel_at(self._distances)

    def _kernel_at(self, distances: Float32Array) -> Float32Array:
        u = distances / self.width_
        kernel = np.exp(-u)
        return np.asarray((1.0 + u) * kernel if self.smooth else kernel)

    def predict(self, X: Float64Array) -> Float64Array:
        """Return the predictions, shape (n,)."""
        sums = np.empty(len(X))
        for start in range(0, len(X), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            places = np.asarray(X[rows], dtype=np.float32) @ self.directions_
            kernel = self._kernel_at(_distances(places, self.places_))
            sums[rows] = kernel @ self.coefficients_
        return self.mean_ + self.spread_ * sums


@dataclass(eq=False)
class KernelMachines(Fitted):
    """A `KernelMachine` for every fold. The first fold chooses steps and penalty."""

    regressor: Any = field(default_factory=KernelMachine)

    def attempt(self, X: Any, sample: Sample, fold: Fold) -> Trial:
        """Compare steps and penalties on some rows, and fit the fold with the best."""
        train, test = fold
        smooth: bool = self.regressor.smooth
        model = KernelMachine(smooth=smooth)
        some = spread_rows(train, _ROWS_TO_COMPARE)
        model.begin(X[some], sample.y[some], sample.weight[some])
        mass = mass_of(sample.weight[test])
        least = np.inf
        for n_steps in _STEPS:
            within = np.inf
            for penalty in _PENALTIES[smooth]:
                model.solve(penalty)
                loss = float(mass @ (model.predict(X[test]) - sample.y[test]) ** 2)
                if loss < within:
                    within, best, found = loss, penalty, model.coefficients_
            if within < least:
                least, chosen = within, KernelMachine(n_steps, best, smooth)
            if n_steps < _STEPS[-1]:
                model.coefficients_ = found
                model.step()
        return Fitted.attempt(replace(self, regressor=chosen), X, sample, fold)

    def fit(self, X: Any, sample: Sample, first: Trial | None = None) -> Self:
        """Fit with the choice of the first fold, which may be from another process."""
        if first is not None:
            self.regressor = clone(first.model)
        return super().fit(X, sample, first)


def _distances(x: Float32Array, z: Float32Array) -> Float32Array:
    """Return the distances of rows from rows, shape (len(x), len(z))."""
    squares = x @ z.T
    squares *= -2.0
    squares += (x**2).sum(axis=1)[:, None]
    squares += (z**2).sum(axis=1)
    np.maximum(squares, 0.0, out=squares)
    return np.asarray(np.sqrt(squares, out=squares))
