"""Bins of the probability integral transform, and laws that it may have."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from calibration.typing import Float64Array

#: Bins of equal probability for a true forecast.
N_BINS = 20
#: Their inner edges as scores of the normal law.
EDGES: Float64Array = ndtri(np.arange(1, N_BINS) / N_BINS)
# So that no bin is ever impossible.
_LEAST = 1e-300


def count_bins(pit: Float64Array, weight: Float64Array) -> Float64Array:
    """Return the weight in each of the bins, shape (20,)."""
    place = np.minimum((N_BINS * pit).astype(np.int64), N_BINS - 1)
    return np.bincount(place, weights=weight, minlength=N_BINS).astype(np.float64)


def normal_bins(shift: float | Float64Array, scale: float = 1.0) -> Float64Array:
    """Return the probabilities (20,) of the bins if scores are normal.

    Of shifts (m, 1) they are (m, 20).
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
