"""The inverse temperature of least cross-entropy: the root of one slope."""

from __future__ import annotations

import numpy as np

from calibration.base.log_odds import WEAK_RIDGE, limit_pull
from calibration.multiclass.log_probabilities import column_blocks
from calibration.typing import Float64Array, Int64Array

# The logarithm of the inverse temperature is sought in between, of log-probabilities
# that differ by much further down.
_LOW, _HIGH = -16.0, 16.0
_MAX_STEPS = 80
# Change of the logarithm at which it stands still.
_LAST_CHANGE = 1e-12


def find_inverse_temperature(
    z: Float64Array, labels: Int64Array, weight: Float64Array
) -> float:
    r"""Return the b > 0 of least mean cross-entropy of S(b z), with a weak ridge.

    The loss is convex in b, its slope
    mean_i [sum_j z_ij S(b z_i)_j - z_(i, y_i)]. To it comes the slope of
    min(r s^2, 4) (b - 1)^2 / (2 n), r being 0.001 and s^2 twice the mean of
    sum_j (z_ij - mean_j z_ij)^2: of two classes that is the mean square of the
    log-odds, and the whole the objective of `TemperatureCalibrator`.

    With u = log b the slope's root is bracketed in [-16, 16], less the logarithm of
    an s > 1 at the lower end, and the bracket cut at
    Newton's step where that lies inside, else in the middle: bisection, but of fewer
    passes over the data. Without a root the end of the bracket is the answer.

    Parameters
    ----------
    z : ndarray of shape (k, n)
        Log-probabilities, a column for each row of the data.
    labels : ndarray of shape (n,)
        Column numbers.
    weight : ndarray of shape (n,)
        Positive numbers of repetitions.

    Returns
    -------
    float
    """
    share = weight / weight.sum()
    square = _mean_square(z, share)
    ridge = float(limit_pull(WEAK_RIDGE, np.sqrt(square))) * square / weight.sum()
    low, high, u = _LOW - 0.5 * np.log(max(square, 1.0)), _HIGH, 0.0
    for _ in range(_MAX_STEPS):
        slope, bend = _slope(z, labels, share, np.exp(u))
        slope, bend = slope + ridge * (np.exp(u) - 1.0), bend + ridge
        if slope > 0.0:
            high = u
        else:
            low = u
        # Newton's step in u, whose derivative of the slope is b times that in b.
        change = -slope / (bend * np.exp(u)) if bend > 0.0 else np.inf
        if abs(change) < _LAST_CHANGE or high - low < _LAST_CHANGE:
            break
        inside = low < u + change < high
        u = u + change if inside else 0.5 * (low + high)
    return float(np.exp(u))


def _mean_square(z: Float64Array, share: Float64Array) -> float:
    """Return twice the mean squared deviation of columns from their means, summed."""
    total = 0.0
    for block in column_blocks(z):
        part = z[:, block]
        part = part - part.mean(axis=0)
        squares = np.einsum("ki,ki->i", part, part)
        total += 2.0 * float(share[block] @ squares)
    return total


def _slope(
    z: Float64Array, labels: Int64Array, share: Float64Array, b: float
) -> tuple[float, float]:
    """Return the first and second derivative of the mean cross-entropy in b."""
    slope = bend = 0.0
    for block in column_blocks(z):
        part = z[:, block]
        # Of S only differences count: with the largest at 0 nothing overflows.
        part = part - part.max(axis=0)
        mass = part * b
        np.exp(mass, out=mass)
        total = mass.sum(axis=0)
        mean = np.einsum("ki,ki->i", mass, part) / total
        square = np.einsum("ki,ki,ki->i", mass, part, part) / total
        here = labels[block]
        own = part[here, np.arange(len(here))]
        slope += float(share[block] @ (mean - own))
        bend += float(share[block] @ (square - mean**2))
    return slope, bend
