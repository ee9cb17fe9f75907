"""`ShiftProcess`: evidence that one shift of all rows is not what it may be."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibration.drift.onset_mixture import OnsetMixture
from calibration.typing import Float64Array

# Points of the null at which the likelihood is kept; between them it is bounded.
_N_NULL = 25
# Batches that are remembered, to say when a change began.
_KEPT = 2000


@dataclass
class ShiftProcess:
    r"""An e-process against all constant shifts in [-tolerance, tolerance].

    Where :math:`L_t(d)` is the likelihood of the rows so far under the shift d,

    .. math:: E_t = \frac{\sum_j w_j \; P_j \sum_k v_k L_t(d_k) / L_j(d_k)}
       {\max_{|d| \le \tau} L_t(d)}, \qquad P_j = \sum_i u_i L_j(d_i),

    the numerator being a law of all rows: within the null, weighted by u, up to an
    unknown batch j, and shifted by an unknown :math:`d_k` from there on. Over the
    likelihood of the true d it is a test martingale and not less than :math:`E_t`; so
    by Ville's inequality the chance that :math:`E_t` ever reaches
    :math:`1/\alpha` is at most :math:`\alpha`, for each shift of the null
    (universal inference). The maximum is bounded from above by tangents, of which the
    logarithm of L, being concave, has no point above it.

    Parameters
    ----------
    null : ndarray of shape (m,)
        Increasing shifts that are no change.
    alternatives : ndarray of shape (k,)
        Shifts that are one.
    mixture : OnsetMixture
        Of the alternatives.
    log_prior : ndarray of shape (m,)
        Logarithms of u.
    log_null, slope_null : ndarrays of shape (m,)
        Logarithm of the likelihood over that without a shift, and its derivative.
    batches : ndarray of shape (t, m + k)
        Logarithms of the likelihoods of each batch, of the last 2000.
    """

    null: Float64Array
    alternatives: Float64Array
    mixture: OnsetMixture
    log_prior: Float64Array
    log_null: Float64Array
    slope_null: Float64Array
    batches: Float64Array = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def of(
        cls, tolerance: float, sizes: Float64Array, shares: Float64Array
    ) -> ShiftProcess:
        """Begin one; sizes (k,) of shifts either way have shares that sum to 1."""
        null = np.linspace(-tolerance, tolerance, _N_NULL if tolerance > 0.0 else 1)
        # However wide the null, none of them lies in it.
        sizes = np.hypot(sizes, tolerance)
        log_shares = np.log(0.5 * np.tile(shares, 2))
        prior = -0.5 * (1.25 * null / (tolerance or 1.0)) ** 2
        zero = np.zeros(len(null))
        return cls(
            null,
            np.concatenate([sizes, -sizes]),
            OnsetMixture(log_shares),
            prior - np.logaddexp.reduce(prior),
            zero,
            zero,
            np.empty((0, len(null) + 2 * len(sizes))),
        )

    @property
    def shifts(self) -> Float64Array:
        """All shifts (m + k,) whose likelihoods a batch has to tell."""
        return np.concatenate([self.null, self.alternatives])

    def step(self, log_ratios: Float64Array, slopes: Float64Array, n: float) -> None:
        """Go on by a batch of n rows.

        Parameters
        ----------
        log_ratios, slopes : ndarrays of shape (m + k,)
            Its log-likelihood at `shifts` less that without one, and the derivatives.
        n : float
        """
        m = len(self.null)
        before = np.logaddexp.reduce(self.log_prior + self.log_null)
        self.log_null = self.log_null + log_ratios[:m]
        self.slope_null = self.slope_null + slopes[:m]
        after = np.logaddexp.reduce(self.log_prior + self.log_null)
        # Relative to the law within the null, which the mixture takes for 1.
        self.mixture.step(log_ratios[m:] - (after - before), n)
        self.batches = np.vstack([self.batches[1 - _KEPT :], log_ratios])

    @property
    def log_e(self) -> float:
        """Logarithm of the e-value."""
        within = np.logaddexp.reduce(self.log_prior + self.log_null)
        bound = bound_concave(self.null, self.log_null, self.slope_null)
        return float(within - bound + self.mixture.log_value)

    def find_onset(self) -> int:
        """Return how many batches from the last the likeliest change began.

        All that are remembered if the first one is the likeliest.
        """
        m = len(self.null)
        total = np.cumsum(self.batches, axis=0)
        upto = np.vstack([np.zeros(total.shape[1]), total[:-1]])
        fit = upto[:, :m].max(axis=1) + (total[-1] - upto)[:, m:].max(axis=1)
        return len(fit) - int(np.argmax(fit))


def bound_concave(
    points: Float64Array, values: Float64Array, slopes: Float64Array
) -> float:
    """Return an upper bound of a concave function between the first and last point."""
    left = int(np.count_nonzero(slopes > 0.0)) - 1
    if left < 0:
        return float(values[0])
    if left == len(points) - 1:
        return float(values[-1])
    # Where the tangents at the two points around its peak meet.
    width = points[left + 1] - points[left]
    rise, fall = slopes[left], slopes[left + 1]
    way = (values[left + 1] - values[left] - fall * width) / (rise - fall)
    return float(values[left] + rise * np.clip(way, 0.0, width))
