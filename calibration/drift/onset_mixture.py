"""`OnsetMixture`: bets that may begin at any batch, each with its own share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibration.typing import Float64Array

# Rows within which a change is as likely as ever after.
_ROWS = 4000.0


@dataclass
class OnsetMixture:
    r"""Wealth that is bet on several alternatives from every batch on.

    Before a batch of the rows from a to b the share :math:`c/(a+c) - c/(b+c)` of what
    was there at first is put on the alternatives, and from then on multiplied by their
    factors; shares of all batches sum to 1 at most, however rows are parted. A mixture
    of test martingales is one, so no change is looked for in vain: before it hardly
    anything has been bet.

    Parameters
    ----------
    log_shares : ndarray of shape (k,)
        Logarithms of the shares of the alternatives, which sum to 1.
    rows : float
        Rows so far.
    log_started : ndarray of shape (..., k)
        Logarithm of what has been bet on each, times its factors since. Many histories
        that are looked at together stand in further axes.
    """

    log_shares: Float64Array
    rows: float = 0.0
    log_started: Float64Array = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if not len(self.log_started):
            self.log_started = np.full(len(self.log_shares), -np.inf)

    def step(self, log_factors: Float64Array, n: float) -> None:
        """Go on by a batch of n rows with a factor (..., k) for each alternative."""
        begun = _ROWS * n / ((self.rows + _ROWS) * (self.rows + n + _ROWS))
        self.log_started = np.logaddexp(self.log_started, np.log(begun)) + log_factors
        self.rows += n

    @property
    def log_value(self) -> Float64Array:
        """Logarithm of the whole (...): what is bet, and what still waits."""
        bet = np.logaddexp.reduce(self.log_shares + self.log_started, axis=-1)
        return np.asarray(np.logaddexp(bet, np.log(_ROWS / (self.rows + _ROWS))))
