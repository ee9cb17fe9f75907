"""The digamma function, which numba lacks."""

import math

from calibration._kernels._jit import njit

# From here on the asymptotic series below is exact to the last digits.
_FAR = 10.0


@njit
def digamma(x: float) -> float:
    """Derivative of log Gamma at x > 0, to about 1e-14.

    psi(x) = psi(x + 1) - 1/x carries x beyond 10; there the series
    log x - 1/(2x) - sum_k B_2k / (2k x^2k) (Abramowitz & Stegun 6.3.18) is used.
    """
    shift = 0.0
    while x < _FAR:
        shift += 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    # B_2k / 2k for k = 1, ..., 5. At x = 10 the next term is 2e-14.
    tail = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132))))
    return math.log(x) - 0.5 / x - tail - shift
