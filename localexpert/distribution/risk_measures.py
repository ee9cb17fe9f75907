"""`RiskMeasures`: intervals, exceedances and expectations of predictive laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import check_choice, check_level, check_targets
from localexpert.laws.law import Law, over_rows

# Rows whose nodes are held in memory at a time by `expect`.
_CHUNK = 2048


class RiskMeasures:
    """What a decision asks of n distributions; the base of `PredictiveDistribution`.

    The upper tail is where targets are large. `level` is the confidence on either
    side: at 0.95 the value at risk leaves 5 % of the probability beyond it.
    """

    law: Law

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
        shape = (len(self.law), 2)
        return self.law.ppf(np.broadcast_to([tail, 1.0 - tail], shape))

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
        return self.law.densest_regions(check_level(coverage, "coverage"))

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
        below = over_rows(self.law.cdf_left, low)
        lower = over_rows(self.law.cdf, high) - below
        # In the upper half from above, where a difference of values near 1 cancels.
        at_low = over_rows(self.law.cdf, low) - below
        upper = over_rows(self.law.sf, low) + at_low - over_rows(self.law.sf, high)
        return np.where(
            high < low, 0.0, np.maximum(np.where(below < 0.5, lower, upper), 0.0)
        )

    def pmf(self, y: ArrayLike) -> Float64Array:
        """Return P(Y = y), 0 where the distribution is smooth.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return self.prob_between(y, y)

    def value_at_risk(
        self, level: float, tail: Literal["upper", "lower"] = "upper"
    ) -> Float64Array:
        """Return the quantile that a share 1 - level of the probability lies beyond.

        Parameters
        ----------
        level : float
            Confidence in (0, 1).
        tail : {"upper", "lower"}
            "upper": ppf(level); "lower": ppf(1 - level).

        Returns
        -------
        ndarray of shape (n,)
        """
        level = check_level(level, "level")
        check_choice(tail, "tail", ("upper", "lower"))
        q = level if tail == "upper" else 1.0 - level
        return self.law.ppf(np.full(len(self.law), q))

    def expected_shortfall(
        self, level: float, tail: Literal["upper", "lower"] = "upper"
    ) -> Float64Array:
        """Return the mean of Y beyond the value at risk v.

        Parameters
        ----------
        level : float
            Confidence in (0, 1).
        tail : {"upper", "lower"}
            "upper": E[Y | Y >= v]; "lower": E[Y | Y <= v].

        Returns
        -------
        ndarray of shape (n,)

        Notes
        -----
        v + E max(Y - v, 0) / (1 - level), the mean of the quantiles beyond the level.
        Where v has probability of its own, the part of it that makes up the share
        1 - level is counted, which keeps the measure coherent.

        References
        ----------
        Acerbi & Tasche (2002), On the coherence of expected shortfall.
        """
        v = self.value_at_risk(level, tail)
        below, above = self.law.partial_means(v)
        if tail == "upper":
            return v + above / (1.0 - level)
        return v - below / (1.0 - level)

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
            held = np.where(weights > 0.0, values, 0.0)
            parts.append((held * weights).sum(axis=1))
        return np.concatenate(parts)
