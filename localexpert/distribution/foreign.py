"""`ForeignForecasts`: distributions made of what other libraries forecast."""

from __future__ import annotations

from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from localexpert.distribution.pointwise import PointwiseAnswers
from localexpert.law.from_draws import law_of_samples
from localexpert.law.from_quantiles import law_of_bins, law_of_quantiles
from localexpert.law.from_scipy import law_of_frozen


class ForeignForecasts(PointwiseAnswers):
    """Ways to a distribution from quantiles, draws, bins and laws of scipy."""

    @classmethod
    def from_quantiles(
        cls,
        values: ArrayLike,
        levels: ArrayLike,
        *,
        bounds: tuple[float | None, float | None] | None = None,
    ) -> Self:
        """Return the smooth distributions with given quantiles.

        Parameters
        ----------
        values : array-like of shape (n, k)
            Quantiles, a row for each forecast.
        levels : array-like of shape (k,)
            Their levels in (0, 1), strictly increasing, k >= 2.
        bounds : (float, float), optional
            Least and greatest possible value; None is no bound.

        Returns
        -------
        PredictiveDistribution

        Warns
        -----
        CalibrationWarning
            Where quantiles cross, or lie beyond the bounds: they are put in order, and
            on the bound.

        Notes
        -----
        The quantiles come back exactly. On normal scores z of the levels the curve is a
        natural cubic spline in y. Above a finite bound it is one in log(y - low),
        below one in -log(high - y), and between two in the sum of both. Its slopes at
        the levels lie between 0.3 (0.5 at the outermost) and 1.5 times the lesser slope
        of the chords beside, so that it increases everywhere. Beyond the outermost
        levels it is straight, with the slope that it has there; if the two outermost
        quantiles are all but equal, with a quarter of its mean slope. So tails are
        normal, and log-normal towards a bound. With two levels and no bounds it is a
        normal law.

        Quantiles that are equal are drawn apart by about 1e-6 of the range of those
        around them: a steep part, not a value with probability of its own. An outcome
        that hits it has a great density, so of forecasts with many ties compare the
        CRPS, not log scores.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[8.0, 10.0, 12.0], [1.0, 2.0, 4.0]]
        >>> dist = PredictiveDistribution.from_quantiles(rows, [0.1, 0.5, 0.9])
        >>> dist.quantiles([0.1, 0.5, 0.9])
        array([[ 8., 10., 12.],
               [ 1.,  2.,  4.]])
        >>> dist.std().round(2)
        array([1.56, 1.21])
        """
        return cls(law_of_quantiles(values, levels, bounds))

    @classmethod
    def from_samples(
        cls,
        samples: ArrayLike,
        *,
        kind: Literal["auto", "smooth", "discrete"] = "auto",
        bounds: tuple[float | None, float | None] | None = None,
    ) -> Self:
        """Return the distributions of draws of equal weight.

        Parameters
        ----------
        samples : array-like of shape (n, m)
            m draws for each of n forecasts; of an array (m, n) give its transpose.
        kind : {"auto", "smooth", "discrete"}
            "smooth": a smooth curve through the draws, of which there must be 10 at
            least. "discrete": each value met has its share of the row's draws. "auto":
            discrete where all draws together have 100 distinct values at most.
        bounds : (float, float), optional
            Least and greatest possible value, of smooth distributions.

        Returns
        -------
        PredictiveDistribution

        Notes
        -----
        "discrete" is the empirical law: its CRPS is that of the ensemble. It takes
        memory for n times the number of distinct values in all rows. The smooth law is
        the sorted draws at their normal scores, as straight lines, smoothed by a
        Gaussian window of width 0.7 m^(-1/5); its tails are those of `from_quantiles`.

        Examples
        --------
        >>> import numpy as np
        >>> from localexpert import PredictiveDistribution
        >>> draws = np.random.default_rng(0).normal([[0.0], [5.0]], 1.0, (2, 1000))
        >>> PredictiveDistribution.from_samples(draws).mean().round(1)
        array([-0.,  5.])
        >>> PredictiveDistribution.from_samples([[1, 1, 2, 4]]).pmf(1.0)
        array([0.5])
        """
        return cls(law_of_samples(samples, kind, bounds))

    @classmethod
    def from_bins(cls, edges: ArrayLike, probabilities: ArrayLike) -> Self:
        """Return the smooth distributions of probabilities of bins.

        Parameters
        ----------
        edges : array-like of shape (B + 1,)
            Finite and strictly increasing, the same for all rows.
        probabilities : array-like of shape (n, B)
            Of the bins between them; rows sum to 1.

        Returns
        -------
        PredictiveDistribution
            With the histogram's quantiles at 161 levels from Phi(-3) to Phi(3), joined
            as in `from_quantiles`, between the outermost edges. The CDF is that of the
            histogram within about 0.01.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> dist = PredictiveDistribution.from_bins([0, 1, 2, 4], [[0.2, 0.5, 0.3]])
        >>> dist.cdf([[1.0], [2.0], [4.0]]).ravel().round(2)
        array([0.2, 0.7, 1. ])
        """
        return cls(law_of_bins(edges, probabilities))

    @classmethod
    def from_scipy(cls, frozen: Any, n: int | None = None) -> Self:
        """Return the distributions of a frozen law of `scipy.stats`.

        Parameters
        ----------
        frozen : frozen continuous or discrete distribution
            As ``scipy.stats.norm(loc, scale)`` with arrays (n,) or numbers.
        n : int, optional
            Number of rows, for parameters that are numbers only; one by default.

        Returns
        -------
        PredictiveDistribution
            A continuous law has scipy's quantiles at 91 levels, or at 161 if some of
            its moments do not exist, and scipy's moments: those that do not exist are
            infinite or nan. Between the levels quantiles are right to about 1e-5 of
            the spread, and log densities to 1e-4; next to a kink of the density, as in
            the middle of a Laplace law, to 1e-2. A discrete law has its values but for
            1e-12 of the probability in each tail, 10 000 values at most in all rows
            together.

        Examples
        --------
        >>> from scipy import stats
        >>> from localexpert import PredictiveDistribution
        >>> dist = PredictiveDistribution.from_scipy(stats.norm([0.0, 5.0], [1.0, 2.0]))
        >>> dist.quantiles([0.5, 0.975]).round(2)
        array([[0.  , 1.96],
               [5.  , 8.92]])
        >>> counts = PredictiveDistribution.from_scipy(stats.poisson([1.0, 4.0]))
        >>> counts.pmf(0).round(3)
        array([0.368, 0.018])
        """
        return cls(law_of_frozen(frozen, n))
