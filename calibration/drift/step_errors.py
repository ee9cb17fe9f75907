"""`StepErrors`: how far forecasts that repeat may be off."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from calibration.drift.base import ERRORS
from calibration.typing import Float64Array

# Values that a map of steps has at most.
_MOST_STEPS = 500
# A tolerance of 0 is that of so good a fit.
_LEAST_TOLERANCE = 1e-9


@dataclass
class StepErrors:
    r"""Bounds on the log-odds of forecasts that repeat, as those of steps do.

    A step of isotonic regression, or a bin, is a rate among m rows of the fit, and off
    by more than a shift of all rows is. Where it says 0 or 1 it is off to one side: of
    14 rows without an event one in 14 may still be. The rows m are those of the whole
    fit times the step's share of the rows so far, and with p its forecast the truth
    may be as near to even odds as

    .. math:: \log\frac{m p + 1}{m (1 - p) + 1} \pm
        1.25 \sqrt{\frac{1}{m p + 1} + \frac{1}{m (1 - p) + 1}}.

    The rows of the fit are those of which the tolerance is 1.25 standard errors. More
    than 500 values are no steps. Bounds depend on forecasts alone, not on outcomes: a
    null within them is one that outcomes can be bet against.

    Parameters
    ----------
    tolerance : float
    values : ndarray of shape (m,)
        Log-odds so far, sorted.
    weight : ndarray of shape (m,)
        Of the rows with each.
    is_smooth : bool
        Whether there were too many.
    """

    tolerance: float
    values: Float64Array = field(default_factory=lambda: np.empty(0))
    weight: Float64Array = field(default_factory=lambda: np.empty(0))
    is_smooth: bool = False

    def step(
        self, f: Float64Array, weight: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Count the forecasts of a batch; return how far the truth may be from them.

        Parameters
        ----------
        f, weight : ndarrays of shape (n,)
            Log-odds, and weights of the rows.

        Returns
        -------
        low, high : ndarrays of shape (n,)
            Infinite ends bound nothing more than others do.
        """
        low, high = np.full(len(f), np.inf), np.full(len(f), -np.inf)
        if self.is_smooth:
            return low, high
        both = np.concatenate([self.values, f])
        self.values, place = np.unique(both, return_inverse=True)
        rows = np.concatenate([self.weight, weight])
        self.weight = np.bincount(place.ravel(), weights=rows).astype(np.float64)
        if len(self.values) > _MOST_STEPS:
            self.values, self.weight = np.empty(0), np.empty(0)
            self.is_smooth = True
            return low, high
        at = place.ravel()[-len(f) :]
        even, error = (part[at] for part in self._rates())
        repeats = self.weight[at] > 1.0
        high = np.where(repeats & (f < 0.0), even + error, high)
        return np.where(repeats & (f >= 0.0), even - error, low), high

    def _rates(self) -> tuple[Float64Array, Float64Array]:
        """Return log-odds (m,) of the steps' rates with a row more each, and errors."""
        p = expit(self.values)
        spread = float(self.weight @ (p * (1.0 - p)))
        rows = self.weight * (ERRORS / max(self.tolerance, _LEAST_TOLERANCE)) ** 2
        rows /= spread
        ones, zeros = rows * p + 1.0, rows * (1.0 - p) + 1.0
        return np.log(ones / zeros), ERRORS * np.sqrt(1.0 / ones + 1.0 / zeros)
