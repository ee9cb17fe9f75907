"""The standard normal distribution, accurate in both far tails."""

import math

from calibration._kernels._jit import fused, inner, njit

_SQRT_HALF = math.sqrt(0.5)
LOG_SQRT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_LOG_TWO = math.log(2.0)
# erfc underflows beyond 37; from here on the asymptotic series is exact to 1e-15.
_FAR = 36.0
_MAX_STEPS = 50


@fused
def safe_log(x: float) -> float:
    """Return log x, -inf at 0 also where kernels run as plain Python."""
    return math.log(x) if x > 0.0 else -math.inf


@inner
def normal_cdf(z: float) -> float:
    """Return Phi(z); the survival function is Phi(-z)."""
    return 0.5 * math.erfc(-z * _SQRT_HALF)


@fused
def log_normal_pdf(z: float) -> float:
    """Return log phi(z)."""
    return -0.5 * z * z - LOG_SQRT_TWO_PI


@fused
def _mills_series(z: float) -> float:
    """Return z Phi(-z) / phi(z) for z >= 36 by its asymptotic series in 1 / z^2."""
    # Abramowitz & Stegun 26.2.12.
    v = 1.0 / (z * z)
    return 1.0 - v * (1.0 - 3.0 * v * (1.0 - 5.0 * v * (1.0 - 7.0 * v * (1.0 - 9 * v))))


@njit
def log_normal_cdf(z: float) -> float:
    """Return log Phi(z) to full relative accuracy for any z."""
    if z > 0.0:
        # Close to 0, where log of 1 - small would lose the small.
        return math.log1p(-0.5 * math.erfc(z * _SQRT_HALF))
    if z > -_FAR:
        return math.log(0.5 * math.erfc(-z * _SQRT_HALF))
    if z == -math.inf:
        return -math.inf
    # Phi(z) = phi(z) / |z| times the series; erfc underflows from here on.
    return log_normal_pdf(z) - math.log(-z) + math.log(_mills_series(-z))


@njit
def normal_hazard(z: float) -> float:
    """Return phi(z) / Phi(-z), the slope of -log Phi(-z)."""
    if z < _FAR:
        return math.exp(log_normal_pdf(z)) / (0.5 * math.erfc(z * _SQRT_HALF))
    return z / _mills_series(z)


@inner
def upper_point(log_sf: float) -> float:
    """Return z >= 0 with log Phi(-z) = log_sf, for log_sf <= log(1/2).

    Newton on the concave function log Phi(-z), from the right of the root (Phi(-z) <=
    exp(-z^2 / 2) / 2), so the steps descend to it without any safeguard.
    """
    if log_sf == -math.inf:
        return math.inf
    z = math.sqrt(max(-2.0 * (log_sf + _LOG_TWO), 0.0))
    for _ in range(_MAX_STEPS):
        step = (log_normal_cdf(-z) - log_sf) / normal_hazard(z)
        z += step
        # The error after a step is of the order of its square.
        if abs(step) < 1e-8:
            break
    return z
