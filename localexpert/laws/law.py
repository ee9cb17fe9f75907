"""`Law`: what n conditional distributions must offer to be forecasts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from calibration.typing import Float64Array

# Searches of the shortest interval: starting probabilities, golden sections.
_N_STARTS = 65
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
_GOLDEN_STEPS = 32


class Law(ABC):
    """A set of n conditional distributions, immutable, asked about all rows at once.

    Conventions, stated once for all laws:

    - An argument `y` or `q` is a float64 array of shape (n,), one value a row, or
      (n, k), k values a row; the answer has the same shape.
    - Methods do not check their arguments: `PredictiveDistribution` does.
    - The density of a value of positive probability is that probability over the
      width of the value's cell, so that no spike earns an unbounded score.

    A subclass writes the methods that begin with an underscore; those that take
    values get them as contiguous (n, k).
    """

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Least and greatest value that any row can take."""

    @property
    def has_jumps(self) -> bool:
        """Whether values of positive probability are possible."""
        return False

    def take(self, rows: Any) -> Self:
        """Return the law of some rows.

        Parameters
        ----------
        rows : slice, int, or array-like of indices or booleans

        Returns
        -------
        Law
            Of the same class; of one row where `rows` is a number.
        """
        index = rows if isinstance(rows, slice) else np.atleast_1d(np.asarray(rows))
        return self._take(index)

    def cdf(self, y: Float64Array) -> Float64Array:
        """Return P(Y <= y).

        Parameters
        ----------
        y : ndarray of shape (n,) or (n, k)

        Returns
        -------
        ndarray of the same shape
        """
        return self._shaped(self._cdf, y)

    def cdf_left(self, y: Float64Array) -> Float64Array:
        """Return P(Y < y).

        Parameters
        ----------
        y : ndarray of shape (n,) or (n, k)

        Returns
        -------
        ndarray of the same shape
        """
        return self._shaped(self._cdf_left, y)

    def sf(self, y: Float64Array) -> Float64Array:
        """Return P(Y > y), accurate where it is small.

        Parameters
        ----------
        y : ndarray of shape (n,) or (n, k)

        Returns
        -------
        ndarray of the same shape
        """
        return self._shaped(self._sf, y)

    def logpdf(self, y: Float64Array) -> Float64Array:
        """Return the log density at y.

        Parameters
        ----------
        y : ndarray of shape (n,) or (n, k)

        Returns
        -------
        ndarray of the same shape
        """
        return self._shaped(self._logpdf, y)

    def pdf(self, y: Float64Array) -> Float64Array:
        """Return the density at y.

        Parameters
        ----------
        y : ndarray of shape (n,) or (n, k)

        Returns
        -------
        ndarray of the same shape
        """
        return cast(Float64Array, np.exp(self.logpdf(y)))

    def ppf(self, q: Float64Array) -> Float64Array:
        """Return the least y with P(Y <= y) >= q.

        Parameters
        ----------
        q : ndarray of shape (n,) or (n, k)

        Returns
        -------
        ndarray of the same shape
        """
        return self._shaped(self._ppf, q)

    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        """Return the least y with P(Y <= y) >= Phi(score), for far tails on both sides.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, k)

        Returns
        -------
        ndarray of the same shape
        """
        return self._shaped(self._ppf_scores, scores)

    def crps(self, y: Float64Array) -> Float64Array:
        """Return the integral of (F(x) - 1{y <= x})^2 over x.

        Parameters
        ----------
        y : ndarray of shape (n,) or (n, k)

        Returns
        -------
        ndarray of the same shape
        """
        return self._shaped(self._crps, y)

    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return E max(y - Y, 0) and E max(Y - y, 0).

        Parameters
        ----------
        y : ndarray of shape (n,) or (n, k)

        Returns
        -------
        below, above : ndarrays of the same shape
        """
        below, above = self._partial_means(_columns(y))
        return below.reshape(np.shape(y)), above.reshape(np.shape(y))

    def moments(self) -> Float64Array:
        """Return the mean and the second to fourth central moment.

        Returns
        -------
        ndarray of shape (n, 4)
        """
        return self._moments()

    def entropy(self) -> Float64Array:
        """Return -E logpdf(Y).

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._entropy()

    def mode(self) -> Float64Array:
        """Return the y of greatest density.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._mode()

    def nodes(self) -> tuple[Float64Array, Float64Array]:
        """Return values and weights whose weighted sum of f is E f(Y).

        Returns
        -------
        y, weights : ndarrays of shape (n, m)
        """
        return self._nodes()

    def shortest_interval(self, coverage: float) -> Float64Array:
        """Return the shortest interval that holds the coverage.

        Parameters
        ----------
        coverage : float

        Returns
        -------
        ndarray of shape (n, 2)
        """
        return self._shortest_interval(coverage)

    def densest_regions(self, coverage: float | Float64Array) -> list[Float64Array]:
        """Return the highest-density set of each row.

        Parameters
        ----------
        coverage : float or ndarray of shape (n,)

        Returns
        -------
        list of n ndarrays of shape (m, 2)
            Intervals in increasing order.
        """
        return self._densest_regions(np.broadcast_to(coverage, len(self)))

    @abstractmethod
    def _take(self, index: slice | NDArray[Any]) -> Self: ...

    @abstractmethod
    def _cdf(self, y: Float64Array) -> Float64Array: ...

    def _cdf_left(self, y: Float64Array) -> Float64Array:
        return self._cdf(y)

    @abstractmethod
    def _sf(self, y: Float64Array) -> Float64Array: ...

    @abstractmethod
    def _logpdf(self, y: Float64Array) -> Float64Array: ...

    def _ppf(self, q: Float64Array) -> Float64Array:
        return self._ppf_scores(ndtri(q))

    @abstractmethod
    def _ppf_scores(self, scores: Float64Array) -> Float64Array: ...

    @abstractmethod
    def _crps(self, y: Float64Array) -> Float64Array: ...

    @abstractmethod
    def _partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]: ...

    @abstractmethod
    def _moments(self) -> Float64Array: ...

    @abstractmethod
    def _entropy(self) -> Float64Array: ...

    @abstractmethod
    def _mode(self) -> Float64Array: ...

    @abstractmethod
    def _nodes(self) -> tuple[Float64Array, Float64Array]: ...

    @abstractmethod
    def _densest_regions(self, coverage: Float64Array) -> list[Float64Array]: ...

    def _shortest_interval(self, coverage: float) -> Float64Array:
        """Search p for the shortest interval between the quantiles at p, p + coverage.

        On a grid and then by golden section, all rows at once.
        """
        room = 1.0 - coverage
        starts = 0.5 * room * (1.0 - np.cos(np.linspace(0.0, np.pi, _N_STARTS)))
        best = np.argmin(self._widths(np.tile(starts, (len(self), 1)), coverage), 1)
        low = starts[np.maximum(best - 1, 0)]
        high = starts[np.minimum(best + 1, _N_STARTS - 1)]
        for _ in range(_GOLDEN_STEPS):
            gap = _GOLDEN * (high - low)
            widths = self._widths(np.column_stack([high - gap, low + gap]), coverage)
            left = widths[:, 0] <= widths[:, 1]
            low, high = np.where(left, low, high - gap), np.where(left, low + gap, high)
        p = 0.5 * (low + high)
        return self._ppf(np.column_stack([p, np.minimum(p + coverage, 1.0)]))

    def _widths(self, starts: Float64Array, coverage: float) -> Float64Array:
        """Return the widths of the intervals from p to p + coverage, p is (n, k)."""
        ends = np.minimum(starts + coverage, 1.0)
        return self._ppf(ends) - self._ppf(starts)

    def _shaped(
        self, method: Callable[[Float64Array], Float64Array], values: Float64Array
    ) -> Float64Array:
        """Return a method's answer to values (n,) or (n, k) in their shape."""
        return method(_columns(values)).reshape(np.shape(values))


def over_rows(
    method: Callable[[Float64Array], Float64Array], values: Float64Array
) -> Float64Array:
    """Return a law's method at values of shape (..., n): the rows come last."""
    if values.ndim == 1:
        return method(values)
    n = values.shape[-1]
    leading = values.shape[:-1]
    rows = np.moveaxis(values, -1, 0).reshape(n, int(np.prod(leading)))
    return np.moveaxis(method(rows).reshape(n, *leading), 0, -1)


def pick_counts(rows: Float64Array, count: NDArray[np.integer]) -> Float64Array:
    """Return rows[i, count - 1] for counts (n, k), and 0 where the count is 0."""
    padded = np.concatenate([np.zeros((len(rows), 1)), rows], axis=1)
    return cast(Float64Array, np.take_along_axis(padded, count, axis=1))


def log_or_minus_inf(x: Float64Array) -> Float64Array:
    """Return log x, -inf at 0, without a warning."""
    out = np.full(np.shape(x), -np.inf)
    np.log(x, out=out, where=x > 0.0)
    return out


def _columns(values: Float64Array) -> Float64Array:
    """Return values (n,) or (n, k) as a contiguous (n, k)."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    return array if array.ndim == 2 else array[:, None]
