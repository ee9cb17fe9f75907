"""The evidence of a bin: its labels' probability with the event rate integrated out."""

import math

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array

# A bin's prior mean is the mean of the rates at its two edges, held within these.
# The prior is worth two rows, so either class has at least .01 of a row in it, and no
# label is impossible beforehand.
_LEAST_RATE, _GREATEST_RATE = 0.005, 0.995


@njit
def bin_rate(low: float, high: float) -> float:
    """Prior mean p_b of the event rate of a bin whose edges have these rates."""
    return min(max(0.5 * (low + high), _LEAST_RATE), _GREATEST_RATE)


@njit
def log_bin_evidence(n0: float, n1: float, rate: float) -> float:
    """Log probability of a bin's labels, in one order, under Beta(2 rate, 2 - 2 rate).

    The factor of eq. 3.12's marginal likelihood (003) with N' = 2 B; rate = 1/2 gives
    n0! n1! / (n + 1)! (K2, eq. 3.6). By reflection the prior's constant
    1 / (Gamma(2 p) Gamma(2 - 2 p)) is sin(pi u) / (pi u) with u = 1 - 2 p.
    """
    prior1 = 2.0 * rate
    evidence = math.lgamma(n1 + prior1) + math.lgamma(n0 + (2.0 - prior1))
    evidence -= math.lgamma(n0 + n1 + 2.0)
    angle = math.pi * (1.0 - prior1)
    # At rate 1/2 the quotient is 1, and its logarithm 0.
    if angle != 0.0:
        evidence += math.log(math.sin(angle) / angle)
    return evidence


@njit
def all_bin_evidences(
    sum0: Float64Array, sum1: Float64Array, edge_rates: Float64Array
) -> Float64Array:
    """Log evidence of every bin of neighbouring cells, O(m^2).

    Parameters
    ----------
    sum0, sum1, edge_rates : ndarrays of shape (m + 1,)
        Weight of each class below every edge of the m cells, and the rate there.

    Returns
    -------
    ndarray of shape (m (m + 1) / 2,)
        The bin of cells first..last stands at last (last + 1) / 2 + first.
    """
    m = len(sum0) - 1
    evidences = np.empty(m * (m + 1) // 2)
    # Packed by last cell, since the recursions take all bins that end at one together.
    place = 0
    for last in range(m):
        for first in range(last + 1):
            # Differences of running sums of real weights may fall short of zero.
            n0 = max(sum0[last + 1] - sum0[first], 0.0)
            n1 = max(sum1[last + 1] - sum1[first], 0.0)
            rate = bin_rate(edge_rates[first], edge_rates[last + 1])
            evidences[place] = log_bin_evidence(n0, n1, rate)
            place += 1
    return evidences
