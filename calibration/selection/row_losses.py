"""Losses of rows, and how sure they are to tell one forecast from another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from calibration.typing import Float64Array

# Of the best's lead, in standard errors, that a simpler candidate may be behind.
_NEAR = 0.25


@dataclass(frozen=True, eq=False)
class RowLosses:
    """Held-out log losses of one candidate.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Of each row.
    weight : ndarray of shape (n,)
        Numbers of repetitions.
    """

    losses: Float64Array
    weight: Float64Array

    @property
    def mean(self) -> float:
        """Mean loss of a row."""
        return float(self.weight @ self.losses / self.weight.sum())

    @property
    def error(self) -> float:
        """Standard error of the mean; weights count independent rows."""
        n = float(self.weight.sum())
        spread = float(self.weight @ (self.losses - self.mean) ** 2)
        # n - 1: the mean is taken from the same rows.
        return float(np.sqrt(spread / n / (n - 1.0))) if n > 1.0 else np.inf

    def less(self, other: RowLosses) -> RowLosses:
        """Return the paired differences to another candidate."""
        return RowLosses(self.losses - other.losses, self.weight)

    def harm(self, reference: RowLosses) -> float:
        """Probability of being worse than the reference.

        The smaller of two: the normal approximation to the mean of paired
        differences, and one over the likelihood ratio, which bounds the chance of
        such a ratio if the reference were right (Markov's inequality). The second
        speaks where a few rows that the reference holds to be impossible make both
        the mean difference and its error. 0 where nothing differs.
        """
        gap = self.less(reference)
        mean, error = gap.mean, gap.error
        if error == 0.0:
            return float(mean > 0.0)
        n = float(self.weight.sum())
        return float(min(ndtr(mean / error), np.exp(min(n * mean, 0.0))))


def simplest_of_best(candidates: Sequence[RowLosses], near: float = _NEAR) -> int:
    """Return the place of the first candidate that is about as good as the best.

    Parameters
    ----------
    candidates : sequence of RowLosses
        Of the same rows, the simplest candidate first.
    near : float
        Standard errors, of the paired difference, that it may be behind.

    Returns
    -------
    int
    """
    best = int(np.argmin([one.mean for one in candidates]))
    for place, one in enumerate(candidates[:best]):
        gap = one.less(candidates[best])
        if gap.mean <= near * gap.error:
            return place
    return best
