"""`LineBets`: evidence that a line of the log-odds, learned earlier, fits better."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, log_expit

from calibration.drift.onset_mixture import OnsetMixture
from calibration.typing import Float64Array

# Information that holds the line to the log-odds themselves at first, and at least.
_FIRST, _LEAST = 25.0, 1.0
# Tolerances that a row may be off: a fit errs in its slope too, though never so much
# that sure forecasts may mean nothing.
_WIDER, _MOST_SLOPE = 2.0, 0.8
# Of the wealth, on the learned line and on forecasts that say nothing.
_SHARES = (0.9, 0.1)


@dataclass
class LineBets:
    r"""An e-process against all shifts within the tolerance, row by row.

    The line a + b f of the log-odds f is learned on earlier batches, by a Newton step
    for each, older ones counting less. A row's factor is the likelihood of the line's
    log-odds over that of the nearest in
    :math:`f \pm \max(2 \tau, \min(2 \tau, .8) |f|)`, or a wider range. Its mean is at
    most 1 whatever the row's log-odds in that range are: it is 1 at the near end, and
    less further in. A share is bet on even odds for all rows: it tells sure forecasts
    that are wrong both ways, in their first batch.

    Parameters
    ----------
    tolerance : float
    memory : float
        Rows after which a row counts half.
    mixture : OnsetMixture
    line : ndarray of shape (..., 2)
        Intercept and slope that are bet on next.
    information : ndarray of shape (..., 2, 2)
        Of the rows that it was learned from.
    """

    tolerance: float
    memory: float
    mixture: OnsetMixture = field(default_factory=lambda: OnsetMixture(np.log(_SHARES)))
    line: Float64Array = field(default_factory=lambda: np.array([0.0, 1.0]))
    information: Float64Array = field(default_factory=lambda: _FIRST * np.eye(2))

    def step(
        self,
        f: Float64Array,
        weight0: Float64Array,
        weight1: Float64Array,
        low: float | Float64Array = np.inf,
        high: float | Float64Array = -np.inf,
    ) -> None:
        """Bet on the outcomes of a batch, then learn from them.

        Parameters
        ----------
        f, weight0, weight1 : ndarrays of shape (..., n)
            Log-odds, and the weight of each class; of all histories as much.
        low, high : float or ndarray of shape (..., n)
            How far the truth may be from f, if farther than the tolerance says.
        """
        weight = weight0 + weight1
        n = float(weight.sum() / max(weight[..., 0].size, 1))
        off = _WIDER * self.tolerance
        reach = np.maximum(off, min(off, _MOST_SLOPE) * np.abs(f))
        ends = np.minimum(f - reach, low), np.maximum(f + reach, high)
        said = self.line[..., :1] + self.line[..., 1:] * f

        def gain(bet: Float64Array) -> Float64Array:
            near = np.clip(bet, *ends)
            gain1 = weight1 * (log_expit(bet) - log_expit(near))
            gain0 = weight0 * (log_expit(-bet) - log_expit(-near))
            return np.asarray(np.sum(gain1 + gain0, axis=-1))

        bets = [gain(said), gain(np.zeros_like(f))]
        self.mixture.step(np.stack(bets, axis=-1), n)
        p = expit(said)
        design = np.stack([np.ones_like(f), f], axis=-1)
        bend = (weight * p * (1.0 - p))[..., None] * design
        new = np.swapaxes(design, -1, -2) @ bend
        self.information = 0.5 ** (n / self.memory) * self.information + new
        pull = np.sum((weight1 - weight * p)[..., None] * design, axis=-2)
        held = self.information + _LEAST * np.eye(2)
        self.line = self.line + np.linalg.solve(held, pull[..., None])[..., 0]

    @property
    def log_e(self) -> Float64Array:
        """Logarithm of the e-value (...)."""
        return self.mixture.log_value
