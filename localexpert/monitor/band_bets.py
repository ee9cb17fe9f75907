"""`BandBets`: evidence that the transform's whole CDF has left a band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from calibration.drift.onset_mixture import OnsetMixture
from calibration.typing import Float64Array
from localexpert.monitor.pit_bins import EDGES, N_BINS, normal_bins

# Spreads of the scores that are bet on, each as much; the rest is on what is learned.
_SCALES = (0.75, 0.87, 1.15, 1.33)
_SHARE_LEARNED = 0.5
# Rows' worth of uniform counts that learning begins with.
_PRIOR = 200.0


@dataclass
class BandBets:
    r"""A betting martingale on the probability integral transform.

    The null is a band, whatever the law within it: given all before, each transform U
    has :math:`\Phi(\Phi^{-1}(u) - \tau) \le P(U \le u) \le \Phi(\Phi^{-1}(u) + \tau)`.
    A bet is the chance of the bin that U falls into, under another law, over that
    under the law of the band that is nearest (its CDF clipped), over the
    greatest mean that this may have in the band. Laws are normal scores that are spread
    too little or too much, and the histogram of earlier batches, older ones counting
    less.

    Parameters
    ----------
    tolerance, memory : float
    mixture : OnsetMixture
    fixed : ndarray of shape (4, 20)
        Logarithms of the bets that are not learned.
    counts : ndarray of shape (..., 20)
        What is learned from.
    """

    tolerance: float
    memory: float
    mixture: OnsetMixture
    fixed: Float64Array
    counts: Float64Array

    @classmethod
    def of(cls, tolerance: float, memory: float) -> BandBets:
        """Begin one."""
        laws = [normal_bins(0.0, scale) for scale in _SCALES]
        shares = np.full(len(laws), (1.0 - _SHARE_LEARNED) / len(laws))
        mixture = OnsetMixture(np.log(np.append(shares, _SHARE_LEARNED)))
        fixed = np.array([make_bet(law, tolerance) for law in laws])
        return cls(tolerance, memory, mixture, fixed, np.zeros(N_BINS))

    def step(self, counts: Float64Array) -> None:
        """Bet on the counts (..., 20) of a batch, then learn from them."""
        law = self._learned()
        bet = np.sum(make_bet(law, self.tolerance) * counts, axis=-1, keepdims=True)
        n = float(counts.sum() / max(counts[..., 0].size, 1))
        self.mixture.step(np.concatenate([counts @ self.fixed.T, bet], axis=-1), n)
        self.counts = 0.5 ** (n / self.memory) * self.counts + counts

    def _learned(self) -> Float64Array:
        learned = self.counts + _PRIOR / N_BINS
        return np.asarray(learned / learned.sum(axis=-1, keepdims=True))

    def learned_gains(self) -> Float64Array:
        """Return what the learned law gains over the uniform one in each bin."""
        return np.log(N_BINS * self._learned())

    @property
    def log_e(self) -> Float64Array:
        """Logarithm of the e-value."""
        return self.mixture.log_value


def make_bet(law: Float64Array, tolerance: float) -> Float64Array:
    """Return the logarithm of what a bin (..., 20) pays if one bets on a law (..., 20).

    Its mean is at most 1 under every law of the band.
    """
    low, high = ndtr(EDGES - tolerance), ndtr(EDGES + tolerance)
    nearest = np.clip(np.cumsum(law, axis=-1)[..., :-1], low, high)
    pays = law / np.diff(nearest, prepend=0.0, append=1.0)
    most = greatest_mean(pays, low, high)
    return np.asarray(np.log(pays / most[..., None]))


def greatest_mean(
    pays: Float64Array, low: Float64Array, high: Float64Array
) -> Float64Array:
    r"""Return the greatest mean (...) that pays of bins can have under a law of a band.

    The mean is linear in the CDF at the inner edges, which increases and lies between
    `low` and `high`. In a vertex of such CDFs each value is one of these bounds, of
    this edge or another, so that the greatest of all is found edge by edge.

    Parameters
    ----------
    pays : ndarray of shape (..., k)
    low, high : ndarrays of shape (k - 1,)
    """
    values = np.unique(np.concatenate([low, high]))
    best = np.zeros((*pays.shape[:-1], len(values)))
    for k in range(len(low)):
        inside = (values >= low[k]) & (values <= high[k])
        drop = (pays[..., k] - pays[..., k + 1])[..., None]
        reached = drop * values + np.maximum.accumulate(best, axis=-1)
        best = np.where(inside, reached, -np.inf)
    return np.asarray(pays[..., -1] + best.max(axis=-1))
