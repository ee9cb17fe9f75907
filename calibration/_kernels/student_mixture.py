"""Log density of a mixture of Student t laws."""

import math

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array


@njit
def log_student_mixture(
    x: Float64Array,
    weights: Float64Array,
    means: Float64Array,
    scales: Float64Array,
    freedoms: Float64Array,
) -> Float64Array:
    """Return log sum_t weights_t St(x | means_t, scales_t, freedoms_t), shape (n,)."""
    n_components = len(weights)
    level, power = np.empty(n_components), np.empty(n_components)
    for t in range(n_components):
        half = 0.5 * freedoms[t]
        power[t] = half + 0.5
        level[t] = math.lgamma(half + 0.5) - math.lgamma(half) + math.log(weights[t])
        level[t] -= 0.5 * math.log(math.pi * freedoms[t]) + math.log(scales[t])
    out, terms = np.empty(len(x)), np.empty(n_components)
    for i in range(len(x)):
        # Log-sum-exp: far out all terms underflow, their logarithms do not.
        peak = -np.inf
        for t in range(n_components):
            u = (x[i] - means[t]) / scales[t]
            # log1p keeps the digits near the mode, where u^2 is small.
            terms[t] = level[t] - power[t] * math.log1p(u * u / freedoms[t])
            peak = max(peak, terms[t])
        total = 0.0
        for t in range(n_components):
            total += math.exp(terms[t] - peak)
        out[i] = peak + math.log(total)
    return out
