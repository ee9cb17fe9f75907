"""`PointwiseAnswers`: what laws say at values and levels, of functions and sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import (
    check_array,
    check_in_unit,
    check_level,
    check_levels,
    check_number,
    check_targets,
    check_vector,
    is_gap,
    make_rng,
)
from localexpert.law.law import Law
from localexpert.law.steps import draw_shares
from localexpert.law.totals import Correlation, total_law
from localexpert.law.transform import transform_law
from localexpert.law.value_map import ValueMap


@dataclass(frozen=True, eq=False, repr=False)
class PointwiseAnswers:
    """Answers to values and levels; what all of `PredictiveDistribution` stands on.

    All shapes are brought here, and here alone, into the (n, k) that laws know.
    """

    law: Law

    def cdf(self, y: ArrayLike) -> Float64Array:
        """Return P(Y <= y).

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return self._at(self.law.cdf, self._values(y))

    def sf(self, y: ArrayLike) -> Float64Array:
        """Return P(Y > y), accurate where it is small.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return self._at(self.law.sf, self._values(y))

    def pdf(self, y: ArrayLike) -> Float64Array:
        """Return the density at y.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return self._at(self.law.pdf, self._values(y))

    def logpdf(self, y: ArrayLike) -> Float64Array:
        """Return the log density at y, finite however far out y lies in the support.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return self._at(self.law.logpdf, self._values(y))

    def ppf(self, q: ArrayLike) -> Float64Array:
        """Return the quantile: the least y with P(Y <= y) >= q.

        Parameters
        ----------
        q : array-like that broadcasts against (n,)
            Levels in [0, 1].

        Returns
        -------
        ndarray of the broadcast shape
        """
        levels = check_targets(q, "q", len(self.law))
        if levels.size:
            check_in_unit(float(levels.min()), float(levels.max()), "q")
        return self._at(self.law.ppf, levels)

    def pit(
        self, y: ArrayLike, random_state: int | np.random.Generator | None = None
    ) -> Float64Array:
        """Return the probability integral transform, uniform for a true forecast.

        P(Y <= y) where y has no probability of its own. Where it has, the middle of
        the jump of the CDF, or a uniform draw from it if `random_state` is given:
        only the draw is uniform for a true forecast.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)
        random_state : int or Generator, optional
            Seed or source of the draws. The draws of a seed are not those of
            ``default_rng(seed)``, from which y itself may have been drawn.

        Returns
        -------
        ndarray of the broadcast shape
        """
        values = check_targets(y, "y", len(self.law))
        share: float | Float64Array = 0.5
        if random_state is not None:
            share = draw_shares(random_state, values.shape)
        upto = self._at(self.law.cdf, values)
        if not self.law.has_jumps:
            return upto
        below = self._at(self.law.cdf_left, values)
        return below + share * (upto - below)

    def covered(self, y: ArrayLike, coverage: float = 0.9) -> Float64Array:
        r"""Return how much of y the central interval covers: 1, 0, or a share.

        Where y has no probability of its own it lies inside of `interval(coverage)`
        or outside. Where it has, the interval takes some of it only if it ends there.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)
        coverage : float
            Probability of the interval, in (0, 1).

        Returns
        -------
        ndarray of the broadcast shape
            Of mean `coverage` for a true forecast of any kind.

        Notes
        -----
        The interval holds the levels from :math:`a = (1 - coverage) / 2` to 1 - a. At
        a jump of the CDF from :math:`F(y-)` to :math:`F(y)` the share is that of the
        jump's levels among them,

        .. math:: \frac{\max(0, \min(F(y), 1 - a) - \max(F(y-), a))}{F(y) - F(y-)},

        the probability that a PIT value, drawn from the jump, is one of them. Counted
        as inside, values at the ends would make true forecasts of few values cover
        far more than they should.

        Examples
        --------
        Of a fair coin the interval of 90 % is [0, 1], which holds everything:

        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.5, 0.5]]
        >>> coin = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
        >>> coin.interval(0.9), coin.covered(1.0, 0.9)
        (array([[0., 1.]]), array([0.9]))
        """
        values = check_targets(y, "y", len(self.law))
        tail = 0.5 * (1.0 - check_level(coverage, "coverage"))
        low, high = self.quantiles([tail, 1.0 - tail]).T
        inside: Float64Array = ((low <= values) & (values <= high)).astype(np.float64)
        if not self.law.has_jumps:
            return inside
        upto = self._at(self.law.cdf, values)
        below = self._at(self.law.cdf_left, values)
        held = np.minimum(upto, 1.0 - tail) - np.maximum(below, tail)
        jump = upto - below
        share = np.maximum(held, 0.0) / np.where(jump > 0.0, jump, 1.0)
        covered: Float64Array = np.where(jump > 0.0, share, inside)
        return covered

    def crps(self, y: ArrayLike) -> Float64Array:
        """Return the continuous ranked probability score, in units of y.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
            The integral of (F(x) - 1{y <= x})^2 over x.
        """
        return self._at(self.law.crps, check_targets(y, "y", len(self.law)))

    def log_score(self, y: ArrayLike) -> Float64Array:
        """Return the negative log density at y.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return -self._at(self.law.logpdf, check_targets(y, "y", len(self.law)))

    def partial_means(self, y: ArrayLike) -> tuple[Float64Array, Float64Array]:
        """Return E max(y - Y, 0) and E max(Y - y, 0), the two parts of E abs(Y - y).

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        below, above : ndarrays of the broadcast shape
        """
        values = check_targets(y, "y", len(self.law))
        below, above = self.law.partial_means(_columns(values))
        return _like(values, below), _like(values, above)

    def prob_between(self, a: ArrayLike, b: ArrayLike) -> Float64Array:
        """Return P(a <= Y <= b), 0 where a > b.

        Parameters
        ----------
        a, b : array-likes that broadcast against (n,)
            Either may be infinite.

        Returns
        -------
        ndarray of the broadcast shape
        """
        n = len(self.law)
        low, high = np.broadcast_arrays(
            check_targets(a, "a", n, finite=False),
            check_targets(b, "b", n, finite=False),
        )
        below, beyond = self.law.levels(_columns(low), left=True)
        upto, above = self.law.levels(_columns(high))
        # In the upper half from above, where a difference of values near 1 cancels.
        share = np.where(below < 0.5, upto - below, beyond - above)
        return np.where(high < low, 0.0, np.maximum(_like(low, share), 0.0))

    def pmf(self, y: ArrayLike) -> Float64Array:
        """Return P(Y = y), 0 where the distribution is smooth.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        values = check_targets(y, "y", len(self.law), finite=False)
        return self._at(self.law.mass_at, values)

    def quantiles(self, levels: ArrayLike) -> Float64Array:
        """Return the same quantiles of every row.

        Parameters
        ----------
        levels : array-like of shape (q,)
            Levels in [0, 1].

        Returns
        -------
        ndarray of shape (n, q)
        """
        shared = check_levels(levels, "levels")
        return self.law.ppf(np.tile(shared, (len(self.law), 1)))

    def cdf_at(self, grid: ArrayLike) -> Float64Array:
        """Return the CDF of every row at the same values.

        Parameters
        ----------
        grid : array-like of shape (g,)

        Returns
        -------
        ndarray of shape (n, g)
        """
        shared = check_vector(np.atleast_1d(np.asarray(grid)), "grid")
        return self.law.cdf(np.tile(shared, (len(self.law), 1)))

    def _values(self, y: ArrayLike) -> Float64Array:
        """Return values (..., n) that may be infinite."""
        return check_targets(y, "y", len(self.law), finite=False)

    @staticmethod
    def _at(
        method: Callable[[Float64Array], Float64Array], values: Float64Array
    ) -> Float64Array:
        """Return a law's method at values (..., n), in their shape."""
        return _like(values, method(_columns(values)))


def _columns(values: Float64Array) -> Float64Array:
    """Return values (..., n), whose rows come last, as a contiguous (n, k)."""
    *leading, n = values.shape
    return np.ascontiguousarray(values.reshape(math.prod(leading), n).T)


def _like(values: Float64Array, answers: Float64Array) -> Float64Array:
    """Return answers (n, k) in the shape (..., n) that was asked in."""
    return answers.T.reshape(values.shape)


# How far the eigenvalues of a correlation matrix may be below 0 by rounding.
_ROUNDING = 1e-8


class DerivedForecasts(PointwiseAnswers):
    """Ways from a distribution to others; a base of `PredictiveDistribution`."""

    def transform(
        self,
        func: Callable[[Float64Array], Float64Array],
        inverse: Callable[[Float64Array], Float64Array],
    ) -> Self:
        """Return the distributions of func(Y) for an increasing function.

        Of a model of log prices it gives that of prices:
        ``dist.transform(np.exp, np.log)``.

        Parameters
        ----------
        func, inverse : callable
            An increasing function and its inverse; both map an array of values to an
            array of the same shape, element by element. They are tried at quantiles,
            and refused where func does not increase or inverse does not undo it.

        Returns
        -------
        PredictiveDistribution
            Values of positive probability are mapped, and probabilities kept. An
            affine func is exact. Of any other one curves are read anew, at 91 normal
            scores: there quantiles are exact. Between these, quantiles, moments and
            the CRPS are right to about 1e-5 of the spread for a smooth func, and log
            scores to 1e-4. Neither function is kept, so the result can always be
            pickled. Moments that do not exist, as those of exp(Y) where Y has tails
            heavier than normal ones, come out huge, infinite or nan, for curves are
            lines beyond 8 deviations: quantiles are as good as before.

        Examples
        --------
        >>> import numpy as np
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.5, 0.5]]
        >>> logs = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
        >>> logs.transform(np.exp, np.log).mean().round(3)
        array([1.859])
        """
        values = ValueMap(func, inverse)
        return type(self)(transform_law(self.law, values))

    def total(
        self,
        weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        correlation: ArrayLike = 0.0,
        random_state: int | np.random.Generator | None = None,
    ) -> Self:
        r"""Return the distribution of the sum over the rows, or over groups of them.

        Parameters
        ----------
        weights : array-like of shape (n,), optional
            What each row counts: positions in a portfolio, which may be negative.
        groups : array-like of shape (n,), optional
            A label for each row: one total for each label, in the order of
            ``np.unique(groups)``. None sums all rows.
        correlation : float or array-like of shape (n, n)
            Of the rows' normal scores: one for all pairs, or a matrix. 0 is
            independence.
        random_state : int or Generator, optional
            Seed or source of the draws for correlated rows; None draws a seed.

        Returns
        -------
        PredictiveDistribution
            One row for each total.

        Notes
        -----
        Means are exact, and so are variances of independent rows, as well as third and
        fourth moments. Where all rows are discrete on a lattice, counts for instance,
        probabilities of independent sums are exact to 1e-14 or so, products in
        frequencies. Other laws are laid on a grid of a fortieth of the sum's
        deviation or less, multiplied in frequencies, and told by the quantiles at 97
        levels between 1e-9 and 1 - 1e-9: CDFs are right to about 1e-4, beyond these
        levels tails are normal ones. Values that a sum takes with probability of its
        own, as 0 where no row has any rain, keep it.

        Correlated rows have a Gaussian copula: row i is the quantile of
        :math:`Z_i` where the normal :math:`Z` have the given correlation, which is
        that of the rows themselves only if these are normal. The law is that of
        16 384 antithetic draws, and 4 096 from 10 000 rows on: CDFs are right to about
        0.005. Variances are sums by
        Mehler's formula, right to 1e-4 for smooth laws, and 1e-2 for others; where all
        rows are discrete, mean and variance are those of the draws. Values that more
        than a thousandth of the draws take have probability of their own.

        References
        ----------
        McNeil, Frey & Embrechts (2015), Quantitative Risk Management.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.5, 0.5]] * 3
        >>> coins = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
        >>> coins.total().pmf([[0], [1], [2], [3]]).ravel()
        array([0.125, 0.375, 0.375, 0.125])
        >>> coins.total(groups=["a", "b", "a"]).mean()
        array([1. , 0.5])
        """
        n = len(self.law)
        if n == 0:
            msg = "`total` needs at least one row, got none."
            raise ValueError(msg)
        w = np.ones(n) if weights is None else check_vector(weights, "weights")
        if len(w) != n:
            msg = f"`weights` must have one for each of the {n} rows, got {len(w)}."
            raise ValueError(msg)
        rows = _rows_of(groups, n)
        most = max(len(each) for each in rows)
        bond = _read_correlation(correlation, n, most, make_rng(random_state))
        return type(self)(total_law(self.law, w, rows, bond))


def _rows_of(groups: ArrayLike | None, n: int) -> list[NDArray[np.intp]]:
    """Return the rows of each group, in the order of the sorted labels."""
    if groups is None:
        return [np.arange(n)]
    labels: NDArray[Any] = np.asarray(groups)
    if labels.shape != (n,):
        msg = (
            f"`groups` must have a label for each of the {n} rows, shape ({n},), got "
            f"shape {labels.shape}."
        )
        raise ValueError(msg)
    missing = [is_gap(label) for label in labels.tolist()]
    if any(missing):
        msg = f"`groups` must not be missing, got {labels[missing.index(True)]!r}."
        raise ValueError(msg)
    try:
        _, number = np.unique(labels, return_inverse=True)
    except TypeError as error:
        msg = "`groups` must be labels of one kind, got some that do not compare."
        raise TypeError(msg) from error
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)


def _read_correlation(
    correlation: ArrayLike, n: int, most: int, rng: np.random.Generator
) -> Correlation | None:
    """Return the correlation of n rows, of which `most` are summed; None if it is 0."""
    if np.ndim(correlation) == 0:
        rho = check_number(correlation, "correlation", -1.0, 1.0)
        if most > 1 and rho < -1.0 / (most - 1) - _ROUNDING:
            msg = (
                f"`correlation` of {most} rows must be at least -1 / {most - 1}, got "
                f"{rho:g}: no rows can differ so from all others."
            )
            raise ValueError(msg)
        return None if rho == 0.0 else Correlation(rng, rho)
    matrix = check_array(correlation, "correlation", (n, n))
    if not np.allclose(np.diag(matrix), 1.0, rtol=0.0, atol=_ROUNDING):
        msg = "`correlation` must be 1 on its diagonal, got others."
        raise ValueError(msg)
    if not np.allclose(matrix, matrix.T, rtol=0.0, atol=_ROUNDING):
        msg = "`correlation` must be symmetric, got a matrix that is not."
        raise ValueError(msg)
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < -_ROUNDING * n:
        msg = (
            "`correlation` must have no negative eigenvalue, got "
            f"{least:g}: no rows can be correlated so."
        )
        raise ValueError(msg)
    return None if not (matrix - np.eye(n)).any() else Correlation(rng, 0.0, matrix)
