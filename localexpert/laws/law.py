"""`Law`: what n conditional distributions must offer to be forecasts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from calibration.typing import Float64Array
from localexpert._validation import check_integer, make_rng

# Marks the stream of PIT draws as another one than that of the same seed elsewhere.
_PIT_STREAM = 54_881
# Searches of the shortest interval: starting probabilities, golden sections.
_N_STARTS = 65
_GOLDEN_STEPS = 32
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


class Law(ABC):
    """A set of n conditional distributions, immutable, asked about all rows at once.

    The contract of all laws, stated here once; subclasses do not say it again:

    - An argument `y`, `q` or `scores` is a float64 array of shape (n, k): column by
      column what is asked of each row. The answer has the same shape. Other shapes
      are the business of `PredictiveDistribution`, and so are checks of arguments.
    - Answers about a row as a whole have shape (n,), or a row each.
    - The density of a value of positive probability is that probability over the
      width of the value's cell, so that no spike earns an unbounded score.
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

    @abstractmethod
    def take(self, rows: slice | NDArray[Any]) -> Self:
        """Return the law of some rows, of the same class.

        Parameters
        ----------
        rows : slice, or ndarray of indices or booleans

        Returns
        -------
        Law
        """

    @abstractmethod
    def cdf(self, y: Float64Array) -> Float64Array:
        """Return P(Y <= y).

        Parameters
        ----------
        y : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """

    def cdf_left(self, y: Float64Array) -> Float64Array:
        """Return P(Y < y).

        Parameters
        ----------
        y : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self.cdf(y)

    @abstractmethod
    def sf(self, y: Float64Array) -> Float64Array:
        """Return P(Y > y), accurate where it is small.

        Parameters
        ----------
        y : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """

    @abstractmethod
    def logpdf(self, y: Float64Array) -> Float64Array:
        """Return the log density at y.

        Parameters
        ----------
        y : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """

    def pdf(self, y: Float64Array) -> Float64Array:
        """Return the density at y.

        Parameters
        ----------
        y : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """
        return cast(Float64Array, np.exp(self.logpdf(y)))

    def ppf(self, q: Float64Array) -> Float64Array:
        """Return the least y with P(Y <= y) >= q.

        Parameters
        ----------
        q : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self.ppf_scores(ndtri(q))

    @abstractmethod
    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        """Return the least y with P(Y <= y) >= Phi(score), for far tails on both sides.

        Parameters
        ----------
        scores : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """

    @abstractmethod
    def crps(self, y: Float64Array) -> Float64Array:
        """Return the integral of (F(x) - 1{y <= x})^2 over x.

        Parameters
        ----------
        y : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """

    @abstractmethod
    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return E max(y - Y, 0) and E max(Y - y, 0).

        Parameters
        ----------
        y : ndarray of shape (n, k)

        Returns
        -------
        below, above : ndarrays of shape (n, k)
        """

    @abstractmethod
    def moments(self) -> Float64Array:
        """Return the mean and the second to fourth central moment.

        Returns
        -------
        ndarray of shape (n, 4)
        """

    @abstractmethod
    def entropy(self) -> Float64Array:
        """Return -E logpdf(Y).

        Returns
        -------
        ndarray of shape (n,)
        """

    @abstractmethod
    def mode(self) -> Float64Array:
        """Return the y of greatest density.

        Returns
        -------
        ndarray of shape (n,)
        """

    @abstractmethod
    def nodes(self) -> tuple[Float64Array, Float64Array]:
        """Return values and weights whose weighted sum of f is E f(Y).

        Returns
        -------
        y, weights : ndarrays of shape (n, m)
        """

    def kinks(self) -> Float64Array:
        """Return values of y between which the density is smooth.

        Returns
        -------
        ndarray of shape (n, c)
        """
        return np.empty((len(self), 0))

    @abstractmethod
    def densest_regions(self, coverage: Float64Array) -> list[Float64Array]:
        """Return the highest-density set of each row.

        Parameters
        ----------
        coverage : ndarray of shape (n,)

        Returns
        -------
        list of n ndarrays of shape (m, 2)
            Intervals in increasing order.
        """

    def shortest_interval(self, coverage: float) -> Float64Array:
        """Return the shortest interval that holds the coverage.

        Parameters
        ----------
        coverage : float

        Returns
        -------
        ndarray of shape (n, 2)
        """

        def width(starts: Float64Array) -> Float64Array:
            ends = self.ppf(np.hstack([starts, np.minimum(starts + coverage, 1.0)]))
            return ends[:, starts.shape[1] :] - ends[:, : starts.shape[1]]

        # Between the quantiles at p and p + coverage, p on a grid that is dense where
        # tails may be long, and then between the neighbours of the best.
        room = 1.0 - coverage
        starts = 0.5 * room * (1.0 - np.cos(np.linspace(0.0, np.pi, _N_STARTS)))
        best = np.argmin(width(np.tile(starts, (len(self), 1))), axis=1)
        low = starts[np.maximum(best - 1, 0)]
        high = starts[np.minimum(best + 1, _N_STARTS - 1)]
        p = golden_section(width, low[:, None], high[:, None], _GOLDEN_STEPS)
        return self.ppf(np.hstack([p, np.minimum(p + coverage, 1.0)]))


def golden_section(
    function: Callable[[Float64Array], Float64Array],
    low: Float64Array,
    high: Float64Array,
    n_steps: int,
) -> Float64Array:
    """Return where in each [low, high] (n, k) a function is least, of one valley.

    Each step keeps a share of 0.618 of the interval (Kiefer, 1953). It asks for both
    of its points, though one is known from the step before in each row: in which
    place it stands differs between rows. It is asked for (n, 2 k) points at a time.
    """
    k = low.shape[1]
    for _ in range(n_steps):
        gap = _GOLDEN * (high - low)
        values = function(np.hstack([high - gap, low + gap]))
        left = values[:, :k] <= values[:, k:]
        low, high = np.where(left, low, high - gap), np.where(left, low + gap, high)
    return np.asarray(0.5 * (low + high))


def draw_shares(
    random_state: int | np.random.Generator | None, shape: tuple[int, ...]
) -> Float64Array:
    """Return uniform draws: how far up in the jumps of CDFs PIT values lie.

    The draws of a seed are not those of ``default_rng(seed)``, from which y itself
    may have been drawn: PIT values of the same draws would not be uniform.
    """
    if not isinstance(random_state, np.random.Generator | None):
        seed = check_integer(random_state, "random_state", 0)
        random_state = np.random.default_rng([seed, _PIT_STREAM])
    return make_rng(random_state).uniform(size=shape)


def freeze_fields(owner: Any, **arrays: Float64Array) -> None:
    """Set the fields of a frozen dataclass to arrays that none can write to."""
    for name, array in arrays.items():
        array.setflags(write=False)
        object.__setattr__(owner, name, array)


def central_moments_about(
    moments: tuple[Float64Array, Float64Array, Float64Array], shift: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return E(X - c)^k, k = 2 to 4, from central moments and shift = E X - c.

    The binomial theorem, with E(X - E X) = 0, in Horner's form.
    """
    c2, c3, c4 = moments
    # 0 times an infinite moment, and infinities apart, are nan: not defined.
    with np.errstate(invalid="ignore"):
        return (
            c2 + shift**2,
            c3 + shift * (3.0 * c2 + shift**2),
            c4 + shift * (4.0 * c3 + shift * (6.0 * c2 + shift**2)),
        )


def pick_counts(rows: Float64Array, count: NDArray[np.integer]) -> Float64Array:
    """Return rows[i, count - 1] for counts (n, k), and 0 where the count is 0."""
    padded = np.concatenate([np.zeros((len(rows), 1)), rows], axis=1)
    return cast(Float64Array, np.take_along_axis(padded, count, axis=1))


def log_or_minus_inf(x: Float64Array) -> Float64Array:
    """Return log x, -inf at 0, without a warning."""
    out = np.full(np.shape(x), -np.inf)
    np.log(x, out=out, where=x > 0.0)
    return out
