"""`PredictiveDistribution`: what a forecast is asked, for all rows at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import (
    check_callable,
    check_choice,
    check_integer,
    check_level,
    check_same_length,
    check_targets,
    check_vector,
    make_rng,
    show,
)
from localexpert.distribution.expected import ExpectedLosses
from localexpert.distribution.frame import Questions, forecast_frame
from localexpert.distribution.makers import ForeignForecasts, StoredForecasts
from localexpert.distribution.pointwise import DerivedForecasts
from localexpert.law.law import Law

if TYPE_CHECKING:
    import pandas as pd

# Rows whose nodes are held in memory at a time by `expect`.
_CHUNK = 2048


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveDistribution(
    StoredForecasts, ForeignForecasts, DerivedForecasts, ExpectedLosses
):
    """The distributions of n targets: an immutable container of one law per row.

    Methods that take a value or a level broadcast it against shape (n,), as frozen
    distributions of `scipy.stats` do: a number or an array (n,) gives (n,), an array
    (k, n) gives (k, n). `quantiles` and `cdf_at` take a vector that all rows share
    and give one row of answers per row of the forecast.

    Rows are picked as from an array: by a number (which gives one row), a slice,
    indices or booleans.

    The upper tail is where targets are large. The `level` of a tail is the confidence
    on either side: at 0.95 the value at risk leaves 5 % of the probability beyond it.

    Parameters
    ----------
    law : Law
        What the distributions are. It is internal: `from_arrays`, `from_quantiles`,
        `from_samples`, `from_bins` and `from_scipy` make forecasts.

    Notes
    -----
    A row is masses of values that all rows share, the `atoms`, and a curve for what is
    left: y as an increasing function of the normal score of the level, by the
    `coefficients` of cubic B-splines. `to_arrays` returns all of it.

    Models, `from_scipy`, `pool`, `transform` and recalibrations read a curve at 91
    normal scores between -8 and 8, closest in the middle. Of usual distributions
    quantiles, means and the CRPS are then right to about 1e-5 of the spread, and log
    scores to 1e-4. Next to deep gaps between peaks they are less so, as `pool` says.

    Where values have probability of their own, the density there is that
    probability over the width of the value's cell, which by default ends half-way to
    the next value.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> forecast = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> forecast
    PredictiveDistribution(n=2, 3 values)
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
        if not isinstance(rows, slice):
            rows = np.atleast_1d(np.asarray(rows))
            # An empty list is one of floats to NumPy.
            if rows.size == 0 and rows.dtype.kind == "f":
                rows = rows.astype(np.intp)
        return PredictiveDistribution(self.law.take(rows))

    def __repr__(self) -> str:
        law, kind = self.law, "smooth"
        if law.is_discrete:
            kind = f"{len(law.atoms)} values"
        elif law.step > 0.0:
            kind = f"steps of {law.step:g}"
        elif law.has_jumps:
            kind = f"smooth beside {len(self.atoms)} values"
        return f"PredictiveDistribution(n={len(self)}, {kind})"

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
        return np.where(self.var() == 0.0, 0.0, self._standardized(4) - 3.0)

    def median(self) -> Float64Array:
        """Return the medians.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.ppf(0.5)

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

    def interval(self, coverage: float = 0.9) -> Float64Array:
        """Return the interval that leaves out equal tails.

        Parameters
        ----------
        coverage : float
            Probability of the interval, in (0, 1).

        Returns
        -------
        ndarray of shape (n, 2)
        """
        tail = 0.5 * (1.0 - check_level(coverage, "coverage"))
        return self.quantiles([tail, 1.0 - tail])

    def hdi(self, coverage: float = 0.9) -> Float64Array:
        """Return the shortest interval that holds the coverage.

        Of a density with one peak this is the highest-density region.

        Parameters
        ----------
        coverage : float
            Probability of the interval, in (0, 1).

        Returns
        -------
        ndarray of shape (n, 2)
        """
        return self.law.shortest_interval(check_level(coverage, "coverage"))

    def hdi_regions(self, coverage: float = 0.9) -> list[Float64Array]:
        """Return the region where the density is highest, a union of intervals.

        Parameters
        ----------
        coverage : float
            Probability of the region, in (0, 1); met to within 0.01.

        Returns
        -------
        list of n ndarrays of shape (m, 2)
            Intervals in increasing order; a value of positive probability that
            stands alone is an interval of width 0.
        """
        level = check_level(coverage, "coverage")
        return self.law.densest_regions(np.full(len(self), level))

    def value_at_risk(
        self, level: ArrayLike, tail: Literal["upper", "lower"] = "upper"
    ) -> Float64Array:
        """Return the quantile that a share 1 - level of the probability lies beyond.

        Parameters
        ----------
        level : array-like that broadcasts against (n,)
            Confidence in (0, 1).
        tail : {"upper", "lower"}
            "upper": ppf(level); "lower": ppf(1 - level).

        Returns
        -------
        ndarray of the broadcast shape
        """
        check_choice(tail, "tail", ("upper", "lower"))
        levels = _check_confidence(level, len(self))
        return self.ppf(levels if tail == "upper" else 1.0 - levels)

    def expected_shortfall(
        self, level: ArrayLike, tail: Literal["upper", "lower"] = "upper"
    ) -> Float64Array:
        r"""Return the mean of Y beyond the value at risk v.

        Parameters
        ----------
        level : array-like that broadcasts against (n,)
            Confidence in (0, 1).
        tail : {"upper", "lower"}
            "upper": E[Y | Y >= v]; "lower": E[Y | Y <= v].

        Returns
        -------
        ndarray of the broadcast shape

        Notes
        -----
        At the level :math:`\alpha` of the upper tail it is

        .. math:: v + \frac{E \max(Y - v, 0)}{1 - \alpha},

        the mean of the quantiles beyond the level; likewise below. Of a v with
        probability of its own only as much counts as makes up the share
        :math:`1 - \alpha`, which keeps the measure coherent.

        References
        ----------
        Acerbi & Tasche (2002), On the coherence of expected shortfall.
        """
        v = self.value_at_risk(level, tail)
        beyond = 1.0 - _check_confidence(level, len(self))
        below, above = self.partial_means(v)
        return v + above / beyond if tail == "upper" else v - below / beyond

    def expect(self, func: Callable[[Float64Array], Float64Array]) -> Float64Array:
        """Return E[func(Y)] of every row.

        Parameters
        ----------
        func : callable
            Maps an array of values (m, k) to an array of the same shape, element by
            element: ``lambda y: np.maximum(y - 5.0, 0.0)``.

        Returns
        -------
        ndarray of shape (n,)
            As exact as the moments for smooth functions that grow no faster than
            the fourth power.
        """
        check_callable(func, "func")
        parts = [np.empty(0)]
        for start in range(0, len(self.law), _CHUNK):
            y, weights = self.law.take(slice(start, start + _CHUNK)).nodes()
            values = np.asarray(func(y), dtype=np.float64)
            if values.shape != y.shape:
                msg = (
                    f"`func` must return an array of the shape it is given, {y.shape}, "
                    f"got shape {values.shape}."
                )
                raise ValueError(msg)
            # What func says of values without probability may be infinite or nan.
            held = np.where(weights > 0.0, values, 0.0)
            parts.append((held * weights).sum(axis=1))
        return np.concatenate(parts)

    def to_frame(
        self,
        *,
        quantiles: ArrayLike | None = None,
        interval: ArrayLike | None = None,
        exceed: ArrayLike | None = None,
        index: Any = None,
    ) -> pd.DataFrame:
        """Return the forecasts as a pandas data frame, as `localexpert predict` does.

        Parameters
        ----------
        quantiles : float or array-like, optional
            Levels in [0, 1]; 0.05, 0.5 and 0.95 if nothing else is asked for.
        interval : float or array-like, optional
            Coverages of central intervals.
        exceed : float or array-like, optional
            Values whose chance to be passed is wanted.
        index : array-like of shape (n,), optional
            Labels of the rows.

        Returns
        -------
        pandas.DataFrame
            Columns mean, std and, as asked for, q0.05, low_0.9 and high_0.9,
            p_above_100.
        """
        asked = Questions.of(quantiles, interval, exceed)
        return forecast_frame(asked.answers(self), index)

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
        rng = make_rng(random_state)
        shape = (check_integer(size, "size", 1), len(self))
        return self._at(self.law.ppf_scores, rng.standard_normal(shape))

    @cached_property
    def _moments(self) -> Float64Array:
        return self.law.moments(2)

    def _standardized(self, order: int) -> Float64Array:
        """Return a central moment over that power of the standard deviation."""
        variance = self._moments[:, 1]
        scale = np.where(variance > 0.0, variance, 1.0) ** (0.5 * order)
        finite = np.isfinite(scale)
        ratio = self.law.moments(order)[:, order - 1] / np.where(finite, scale, 1.0)
        return np.where(finite, ratio, np.nan)


def check_distribution(dist: Any, name: str = "dist") -> PredictiveDistribution:
    """Refuse what is not a `PredictiveDistribution`."""
    if not isinstance(dist, PredictiveDistribution):
        msg = f"`{name}` must be a PredictiveDistribution, got {type(dist).__name__}."
        raise TypeError(msg)
    return dist


def check_outcomes(y: ArrayLike, dist: Any, name: str = "y") -> Float64Array:
    """Return outcomes (n,), one for each row of what must be a forecast."""
    check_distribution(dist)
    outcomes = check_vector(y, name)
    check_same_length(len(dist), "`dist`", len(outcomes), name)
    return outcomes


def _check_confidence(level: ArrayLike, n: int) -> Float64Array:
    """Return levels in (0, 1) broadcast against (n,)."""
    if not isinstance(level, np.ndarray) and np.ndim(level) == 0:
        check_level(level, "level")
    levels = check_targets(level, "level", n)
    outside = (levels <= 0.0) | (levels >= 1.0)
    if outside.any():
        msg = f"`level` must lie in (0, 1), got {show(levels[outside].flat[0])}."
        raise ValueError(msg)
    return levels
