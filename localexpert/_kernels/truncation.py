"""The standard normal distribution between two points, in logarithms.

`low` and `high` are the ends in z (-inf and inf: none) and `log_mass` is
log(Phi(high) - Phi(low)). The ends may lie far out on the same side.
"""

import math

from calibration._kernels._jit import fused, inner
from localexpert._kernels.normal import (
    log_normal_between,
    log_normal_cdf,
    log_sum,
    normal_cdf,
    upper_point,
)

# exp of minus half of it is less than the rounding of 1.
_LEAST_GAP = 80.0


@fused
def is_nothing_beside(low: float, z: float) -> bool:
    """Return whether Phi(low), which rounds away beside 1, does so beside Phi(z)."""
    # Phi(low) / Phi(z) < exp((z^2 - low^2) / 2) for low < z < 0.
    return z >= 0.0 or low * low - z * z > _LEAST_GAP


@inner
def truncated_cdf(z: float, low: float, high: float, log_mass: float) -> float:
    """Return (Phi(z) - Phi(low)) / (Phi(high) - Phi(low)), clipped to [0, 1]."""
    if z <= low:
        return 0.0
    if z >= high:
        return 1.0
    if log_mass == 0.0 and is_nothing_beside(low, z):
        return normal_cdf(z)
    # Far out on one side both are tiny, and their logarithms are not.
    return min(math.exp(log_normal_between(low, z) - log_mass), 1.0)


@inner
def truncated_point(score: float, low: float, high: float, log_mass: float) -> float:
    """Return the point between the ends with Phi(score) of the mass below it."""
    if (
        log_mass == 0.0
        and is_nothing_beside(low, score)
        and is_nothing_beside(-high, -score)
    ):
        return score
    # The mass below the point, from -inf on, and that above it; whichever is smaller is
    # exact.
    below = log_sum(log_normal_cdf(low), log_normal_cdf(score) + log_mass)
    above = log_sum(log_normal_cdf(-high), log_normal_cdf(-score) + log_mass)
    point = -upper_point(below) if below < above else upper_point(above)
    return min(max(point, low), high)
