"""`PredictiveDistribution`: what a forecast is asked, for all rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import (
    check_in_unit,
    check_integer,
    check_levels,
    check_targets,
    check_vector,
)
from localexpert.distribution.risk_measures import RiskMeasures
from localexpert.laws.law import Law, over_rows

# Marks the stream of PIT draws as another one than that of the same seed elsewhere.
_PIT_STREAM = 54_881


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveDistribution(RiskMeasures):
    """The distributions of n targets: an immutable container of one law per row.

    Methods that take a value or a level broadcast it against shape (n,), as frozen
    distributions of `scipy.stats` do: a number or an array (n,) gives (n,), an array
    (k, n) gives (k, n). `quantiles` and `cdf_at` take a vector that all rows share
    and give one row of answers per row of the forecast.

    Rows are picked as from an array: by a number (which gives one row), a slice,
    indices or booleans.

    Parameters
    ----------
    law : Law
        What the distributions are: smooth, discrete or both.

    Notes
    -----
    Where values have probability of their own, the density there is that
    probability over the width of the value's cell; see the laws.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.distribution.predictive import PredictiveDistribution
    >>> from localexpert.laws.discrete import DiscreteLaw
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> forecast = PredictiveDistribution(DiscreteLaw([0.0, 1.0, 2.0], rows))
    >>> forecast
    PredictiveDistribution(n=2, law=DiscreteLaw)
    >>> forecast.mean(), forecast.cdf(1.0)
    (array([1.1, 1.9]), array([0.7, 0.1]))
    >>> forecast.quantiles([0.1, 0.9])
    array([[0., 2.],
           [1., 2.]])
    """

    law: Law

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law):
            msg = f"`law` must be a Law, got {type(self.law).__name__}."
            raise TypeError(msg)

    def __len__(self) -> int:
        return len(self.law)

    def __getitem__(self, rows: Any) -> PredictiveDistribution:
        return PredictiveDistribution(self.law.take(rows))

    def __repr__(self) -> str:
        return f"PredictiveDistribution(n={len(self)}, law={type(self.law).__name__})"

    def cdf(self, y: ArrayLike) -> Float64Array:
        """Return P(Y <= y).

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return over_rows(self.law.cdf, check_targets(y, "y", len(self), finite=False))

    def sf(self, y: ArrayLike) -> Float64Array:
        """Return P(Y > y), accurate where it is small.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return over_rows(self.law.sf, check_targets(y, "y", len(self), finite=False))

    def pdf(self, y: ArrayLike) -> Float64Array:
        """Return the density at y.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return over_rows(self.law.pdf, check_targets(y, "y", len(self), finite=False))

    def logpdf(self, y: ArrayLike) -> Float64Array:
        """Return the log density at y, finite however far out y lies in the support.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return over_rows(
            self.law.logpdf, check_targets(y, "y", len(self), finite=False)
        )

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
        levels = check_targets(q, "q", len(self))
        if levels.size:
            check_in_unit(float(levels.min()), float(levels.max()), "q")
        return over_rows(self.law.ppf, levels)

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
        values = check_targets(y, "y", len(self))
        if not isinstance(random_state, np.random.Generator | None):
            seed = check_integer(random_state, "random_state", 0)
            random_state = np.random.default_rng([seed, _PIT_STREAM])
        upto = over_rows(self.law.cdf, values)
        if not self.law.has_jumps:
            return upto
        below = over_rows(self.law.cdf_left, values)
        if random_state is None:
            return 0.5 * (below + upto)
        share = random_state.uniform(size=upto.shape)
        return below + share * (upto - below)

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
        return over_rows(self.law.crps, check_targets(y, "y", len(self)))

    def log_score(self, y: ArrayLike) -> Float64Array:
        """Return the negative log density at y.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return -over_rows(self.law.logpdf, check_targets(y, "y", len(self)))

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
        return self.law.ppf(np.broadcast_to(shared, (len(self), len(shared))))

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
        return self.law.cdf(np.broadcast_to(shared, (len(self), len(shared))))

    def mean(self) -> Float64Array:
        """Return the means.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._moments[:, 0].copy()

    def var(self) -> Float64Array:
        """Return the variances.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._moments[:, 1].copy()

    def std(self) -> Float64Array:
        """Return the standard deviations.

        Returns
        -------
        ndarray of shape (n,)
        """
        return np.sqrt(self._moments[:, 1])

    def skew(self) -> Float64Array:
        """Return the skewnesses, 0 where the variance is 0.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._standardized(3)

    def kurtosis(self) -> Float64Array:
        """Return the excess kurtoses, 0 where the variance is 0.

        Returns
        -------
        ndarray of shape (n,)
        """
        return np.where(self.var() > 0.0, self._standardized(4) - 3.0, 0.0)

    def median(self) -> Float64Array:
        """Return the medians.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.law.ppf(np.full(len(self), 0.5))

    def mode(self) -> Float64Array:
        """Return the values of greatest density.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.law.mode()

    def entropy(self) -> Float64Array:
        """Return the expected log scores, E[-logpdf(Y)].

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.law.entropy()

    def rvs(
        self, size: int = 1, random_state: int | np.random.Generator | None = None
    ) -> Float64Array:
        """Draw values, independent between rows.

        Parameters
        ----------
        size : int
            Draws per row.
        random_state : int or Generator, optional
            Seed or source of the draws; None draws a seed.

        Returns
        -------
        ndarray of shape (size, n)
        """
        rng = np.random.default_rng(random_state)
        shape = (check_integer(size, "size", 1), len(self))
        return over_rows(self.law.ppf_scores, rng.standard_normal(shape))

    @cached_property
    def _moments(self) -> Float64Array:
        return self.law.moments()

    def _standardized(self, order: int) -> Float64Array:
        """Return a central moment over that power of the standard deviation."""
        variance = self._moments[:, 1]
        scale = np.where(variance > 0.0, variance, 1.0) ** (0.5 * order)
        finite = np.isfinite(scale)
        ratio = self._moments[:, order - 1] / np.where(finite, scale, 1.0)
        return np.where(finite, ratio, np.nan)
