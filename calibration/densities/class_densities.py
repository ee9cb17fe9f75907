"""Calibrators that learn the score's density in each class and apply Bayes' rule."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, logit

from calibration.base.log_odds import LogOddsCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# Densities need no more cells than this to be balanced against each other.
_BALANCE_CELLS = 8192


class DensityCalibrator(LogOddsCalibrator):
    """Base of calibrators that are a ratio of class densities times the prior odds.

    The prior odds are those with which the mean prediction over the rows is their
    share of class 1. With exact densities that is n1 / n0; a density that is
    smoothed, or a little wrong, would move the mean. Beyond the range of scores seen
    in training, where densities are tails that nothing supports, the log-odds hold
    their value at its end.

    A subclass writes `_fit_densities`, `_log_ratio` and `_densities`.
    """

    prior_log_odds_: float
    x_range_: tuple[float, float]

    def densities(self, scores: ArrayLike) -> Float64Array:
        """Return the density of the scores in each class.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)

        Returns
        -------
        ndarray of shape (n, 2)
            Density in class 0 and in class 1, per unit of the coordinate in which
            they are estimated (log-odds for probabilities).
        """
        values = self._read_scores(scores)
        if self.constant_ is not None:
            msg = (
                "`densities` needs a fit on two classes and two distinct scores, "
                "got one on degenerate data."
            )
            raise ValueError(msg)
        return self._densities(self.scale_(values))

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        # Rounding of the logit can put neighbours the wrong way round by a last digit.
        x = np.maximum.accumulate(x)
        self.x_range_ = float(x[0]), float(x[-1])
        self.prior_log_odds_ = float(np.log((summary.n1 + 1.0) / (summary.n0 + 1.0)))
        if x[0] == x[-1]:
            # Different scores may share one x (they are clipped before the logit).
            self.constant_ = self.prior_log_odds_
            return
        self._fit_densities(summary, x)
        # The mean of a smooth function: groups of neighbours have it to many digits.
        cells = summary.condense(_BALANCE_CELLS)
        ratio = self._log_ratio(self.scale_(cells.scores))
        self.prior_log_odds_ = _balance(ratio, cells.weight, summary.base_rate)

    def _log_odds(self, x: Float64Array) -> Float64Array:
        return self.prior_log_odds_ + self._log_ratio(np.clip(x, *self.x_range_))

    @abstractmethod
    def _fit_densities(self, summary: ScoreSummary, x: Float64Array) -> None:
        """Learn from a summary whose cells lie at `x`, which has two values or more."""

    @abstractmethod
    def _log_ratio(self, x: Float64Array) -> Float64Array:
        """Return the log of the density in class 1 over that in class 0 at `x`."""

    @abstractmethod
    def _densities(self, x: Float64Array) -> Float64Array:
        """Return the densities at `x`, shape (n, 2)."""


def _balance(ratio: Float64Array, weight: Float64Array, rate: float) -> float:
    """Return the prior log-odds with which the mean prediction is `rate`."""
    target, total = float(logit(rate)), weight.sum()

    def excess(prior: float) -> float:
        return float(weight @ expit(ratio + prior) / total - rate)

    # With the first all predictions are at most the rate, with the second at least.
    low, high = target - ratio.max(), target - ratio.min()
    if not excess(low) < 0.0 < excess(high):
        return float(low if excess(low) >= 0.0 else high)
    # The mean prediction increases with the prior, so there is one root.
    return float(brentq(excess, low, high, xtol=1e-13, rtol=1e-15))


def robust_spread(x: Float64Array, weight: Float64Array) -> float:
    """Return min(sd, IQR / 1.349), or the sd where the middle half of rows is tied.

    Parameters
    ----------
    x, weight : ndarrays of shape (n,)
        Sorted places and how many rows each has.

    Returns
    -------
    float
    """
    n = weight.sum()
    spread = float(np.sqrt(weight @ (x - weight @ x / n) ** 2 / n))
    cumulative = np.cumsum(weight)
    # A touch of slack, so that a quarter of n is not missed by rounding.
    goals = np.array([0.25, 0.75]) * cumulative[-1] * (1.0 - 1e-14)
    low, high = x[np.searchsorted(cumulative, goals)]
    # 1.349: what the IQR of a normal law is in deviations (Silverman 1986, section
    # 3.4). The lesser of the two is not misled by far outliers.
    return min(spread, float(high - low) / 1.349) if high > low else spread
