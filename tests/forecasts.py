"""Forecasts for tests to ask, models that make some, and what is told of a model."""

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin

from localexpert import Explanation, PredictiveDistribution
from localexpert.experts.report import TaskRecord


def of_values(values, rows):
    """Return forecasts of values (V,) with probabilities (n, V)."""
    return PredictiveDistribution.from_arrays(atoms=values, masses=rows)


class Coin:
    """A model of a fair coin, whatever the row."""

    def predict_dist(self, X):
        return of_values([0.0, 1.0], np.tile([0.5, 0.5], (len(X), 1)))


def normal(center, scale=1.0):
    """Return normal forecasts."""
    return PredictiveDistribution.from_scipy(stats.norm(center, scale))


class Normal(RegressorMixin, BaseEstimator):
    """Forecasts a normal law around the row's first number."""

    def __init__(self, scale=0.5):
        self.scale = scale

    def fit(self, X, y, sample_weight=None):
        del X, sample_weight
        self.y_ = np.asarray(y)
        return self

    def predict(self, X):
        return self.predict_dist(X).mean()

    def predict_dist(self, X):
        return normal(np.asarray(X, dtype=float)[:, 0], self.scale)


class Witness:
    """A model of normal laws, by functions of rows, that keeps the rows it is asked."""

    def __init__(self, center, scale=lambda _: [1.0]):
        self.center, self.scale, self.calls = center, scale, []

    def predict_dist(self, X):
        X = np.asarray(X, dtype=float)
        self.calls.append(X)
        return normal(self.center(X), self.scale(X))


def beside(smooth, atoms, masses, widths=None):
    """Return smooth forecasts with values (A,) of probabilities (n, A) beside them."""
    arrays = smooth.to_arrays() | {"atoms": atoms, "masses": masses, "widths": widths}
    arrays["moments"] = None  # those of the smooth part alone
    return PredictiveDistribution.from_arrays(**arrays)


def sixty(kind):
    """Return 60 forecasts: smooth ones, of 0, 1 and 3, or mixed ones with zeros."""
    shares = np.linspace(0.1, 0.6, 60)
    if kind == "discrete":
        masses = np.column_stack([shares, np.full(60, 0.2), 0.8 - shares])
        return of_values([0.0, 1.0, 3.0], masses)
    smooth = normal(np.linspace(0.0, 5.0, 60), np.linspace(0.5, 2.0, 60))
    if kind == "smooth":
        return smooth
    return beside(smooth, [0.0], shares[:, None], [0.01])


def explained():
    """Return what three features contribute to two forecasts."""
    values = np.array([[-1.0, 3.0, 0.5], [2.0, 0.25, -4.0]])
    errors = np.array([[0.1, 0.0, 0.2], [0.3, 0.1, 0.4]])
    inputs = np.array([["61", "2.5", "ant"], ["20", "0", "bee"]], dtype=object)
    parts = values, errors, 5.0, np.array([7.5, 3.25]), inputs
    return Explanation("mean", ("age", "dose", "town"), *parts)


def record(thresholds, n):
    """Return what experts said of n rows, out of three folds."""
    rng, rows = np.random.default_rng(0), np.arange(n)
    below = rng.normal(size=(n, 1)) <= thresholds
    p = np.clip(0.4 * below + 0.6 * rng.uniform(size=below.shape), 0.01, 0.99)
    folds = [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(3)]
    return TaskRecord(np.array(thresholds), p**2, p, below, folds, np.ones(n))
