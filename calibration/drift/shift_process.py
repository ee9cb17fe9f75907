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
    log_null, slope_null : ndarrays of shape (..., m)
        Logarithm of the likelihood over that without a shift, and its derivative.
    batches : ndarray of shape (t, ..., m + k)
        Logarithms of the likelihoods of each batch, of the last 2000.
    """

    null: Float64Array
    alternatives: Float64Array
    mixture: OnsetMixture
    log_prior: Float64Array
    log_null: Float64Array
    slope_null: Float64Array
    batches: Float64Array = field(default_factory=lambda: np.empty(0))

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
            np.empty(0),
        )

    @property
    def shifts(self) -> Float64Array:
        """All shifts (m + k,) whose likelihoods a batch has to tell."""
        return np.concatenate([self.null, self.alternatives])

    def step(self, log_ratios: Float64Array, slopes: Float64Array, n: float) -> None:
        """Go on by a batch of n rows.

        Parameters
        ----------
        log_ratios, slopes : ndarrays of shape (..., m + k)
            Its log-likelihood at `shifts` less that without one, and the derivatives.
        n : float
        """
        m = len(self.null)
        before = np.logaddexp.reduce(self.log_prior + self.log_null, axis=-1)
        self.log_null = self.log_null + log_ratios[..., :m]
        self.slope_null = self.slope_null + slopes[..., :m]
        after = np.logaddexp.reduce(self.log_prior + self.log_null, axis=-1)
        # Relative to the law within the null, which the mixture takes for 1.
        gained = np.asarray(after - before)[..., None]
        self.mixture.step(log_ratios[..., m:] - gained, n)
        kept = self.batches[1 - _KEPT :]
        self.batches = np.concatenate(
            [kept.reshape(-1, *log_ratios.shape), [log_ratios]]
        )

    @property
    def log_e(self) -> Float64Array:
        """Logarithm of the e-value (...)."""
        within = np.logaddexp.reduce(self.log_prior + self.log_null, axis=-1)
        bound = bound_concave(self.null, self.log_null, self.slope_null)
        return np.asarray(within - bound + self.mixture.log_value)

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
) -> Float64Array:
    """Return upper bounds (...) of concave functions between the first and last point.

    Parameters
    ----------
    points : ndarray of shape (m,)
    values, slopes : ndarrays of shape (..., m)
    """
    if len(points) == 1:
        return np.asarray(values[..., 0])
    rises = np.count_nonzero(slopes > 0.0, axis=-1)
    left = np.clip(rises - 1, 0, len(points) - 2)[..., None]

    def pair(table: Float64Array) -> tuple[Float64Array, Float64Array]:
        two = [np.take_along_axis(table, left + side, -1)[..., 0] for side in (0, 1)]
        return two[0], two[1]

    (low, high), (rise, fall) = pair(values), pair(slopes)
    width = points[1] - points[0]
    # Where the tangents at the two points around its peak meet, or at an end.
    bend = rise - fall
    way = (high - low - fall * width) / np.where(bend > 0.0, bend, 1.0)
    peak = low + rise * np.clip(way, 0.0, width)
    ends = np.where(rises == 0, values[..., 0], values[..., -1])
    inside = (rises > 0) & (rises < len(points)) & (bend > 0.0)
    return np.asarray(np.where(inside, peak, np.maximum(ends, np.max(values, axis=-1))))
