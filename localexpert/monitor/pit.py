"""Bins of the probability integral transform: laws of them, bets on them, advice."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import ndtr, ndtri

from calibration.drift.evidence import OnsetMixture
from calibration.typing import Float64Array

#: Bins of equal probability for a true forecast.
N_BINS = 20
#: Their inner edges as scores of the normal law.
EDGES: Float64Array = ndtri(np.arange(1, N_BINS) / N_BINS)
# Bounds of the shift and the log scale that forecasts are corrected by.
_REACH = [(-3.0, 3.0), (-1.5, 1.5)]
# So that no bin is ever impossible.
_LEAST = 1e-300
# Spreads of the scores that are bet on, each as much; the rest is on what is learned.
_SCALES = (0.75, 0.87, 1.15, 1.33)
_SHARE_LEARNED = 0.5
# Rows' worth of uniform counts that learning begins with.
_PRIOR = 200.0


def count_bins(pit: Float64Array, weight: Float64Array) -> Float64Array:
    """Return the weight in each of the bins, shape (20,)."""
    place = np.minimum((N_BINS * pit).astype(np.int64), N_BINS - 1)
    return np.bincount(place, weights=weight, minlength=N_BINS).astype(np.float64)


def normal_bins(
    shift: float | Float64Array, scale: float | Float64Array = 1.0
) -> Float64Array:
    """Return the probabilities (20,) of the bins if scores are normal.

    Of shifts or scales (m, 1) they are (m, 20).
    """
    edges = (EDGES - shift) / scale
    below = np.diff(ndtr(edges), prepend=0.0, append=1.0)
    above = -np.diff(ndtr(-edges), prepend=1.0, append=0.0)
    # Differences of small numbers, not of numbers close to 1.
    is_high = np.append(np.zeros_like(edges[..., :1]), edges, axis=-1) > 0.0
    return np.maximum(np.where(is_high, above, below), _LEAST)


def shift_likelihoods_of_bins(
    counts: Float64Array, shifts: Float64Array
) -> tuple[Float64Array, Float64Array]:
    r"""Return log-likelihood ratios (..., m) of shifts of the scores, and derivatives.

    Under the shift d the scores :math:`\Phi^{-1}(U)` are normal with mean d, and the
    chance of a bin between edges is :math:`\Phi(z_k - d) - \Phi(z_{k-1} - d)`, which is
    log-concave in d.

    Parameters
    ----------
    counts : ndarray of shape (..., 20)
    shifts : ndarray of shape (m,)
    """
    apart = EDGES - shifts[:, None]
    density = np.exp(-0.5 * apart**2) / np.sqrt(2.0 * np.pi)
    chance = normal_bins(shifts[:, None])
    # Of the outer edges the density is 0.
    change = -np.diff(density, prepend=0.0, append=0.0, axis=1)
    return counts @ np.log(N_BINS * chance).T, counts @ (change / chance).T


class BandBets(OnsetMixture):
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
    """

    def __init__(self, tolerance: float, memory: float):
        shares = np.full(len(_SCALES), (1.0 - _SHARE_LEARNED) / len(_SCALES))
        super().__init__(np.append(shares, _SHARE_LEARNED))
        self.tolerance, self.memory = tolerance, memory
        # Logarithms of the bets that are not learned, and what is learned from.
        laws = normal_bins(0.0, np.array(_SCALES)[:, None])
        self.fixed, self.counts = make_bet(laws, tolerance), np.zeros(N_BINS)

    def step(self, counts: Float64Array) -> None:
        """Bet on the counts (..., 20) of a batch, then learn from them."""
        law = self._learned()
        bet = np.sum(make_bet(law, self.tolerance) * counts, axis=-1, keepdims=True)
        n = float(counts.sum() / max(counts[..., 0].size, 1))
        self.bet(np.concatenate([counts @ self.fixed.T, bet], axis=-1), n)
        self.counts = 0.5 ** (n / self.memory) * self.counts + counts

    def _learned(self) -> Float64Array:
        learned = self.counts + _PRIOR / N_BINS
        return np.asarray(learned / learned.sum(axis=-1, keepdims=True))

    def learned_gains(self) -> Float64Array:
        """Return what the learned law gains over the uniform one in each bin."""
        return np.log(N_BINS * self._learned())


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


def gains_of_bins(
    counts: Float64Array,
) -> tuple[dict[str, float], tuple[float, float]]:
    """Return what corrections gain in log-likelihood, and the line of the best scores.

    Gains are of rows that were not learned from: a parameter costs one nat (Akaike),
    and of the histogram each row is left out in turn.

    Parameters
    ----------
    counts : ndarray of shape (20,)

    Returns
    -------
    gains : dict of str to float
    line : (shift, scale)
        Of normal scores.
    """

    def loss(line: Float64Array) -> float:
        law = normal_bins(float(line[0]), float(np.exp(line[1])))
        return -float(counts @ np.log(N_BINS * law))

    shift = minimize_scalar(lambda d: loss(np.array([d, 0.0])), bounds=_REACH[0])
    line = minimize(
        loss,
        [shift.x, 0.0],
        method="Nelder-Mead",
        bounds=_REACH,
        options={"xatol": 1e-6, "fatol": 1e-6},
    )
    # Each row's bin by the others, with one row more in each bin.
    n = counts.sum()
    left_out = np.log(N_BINS * np.maximum(counts, 1.0) / max(n - 1.0 + N_BINS, 1.0))
    gains = {
        "nothing": 0.0,
        "shift": -float(shift.fun) - 1.0,
        "shift and slope": -float(line.fun) - 2.0,
        "recalibrate": float(counts @ left_out),
    }
    return gains, (float(line.x[0]), float(np.exp(line.x[1])))
