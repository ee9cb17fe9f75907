"""What to do about forecasts, by the bins of their transforms since the onset."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from calibration.typing import Float64Array
from localexpert.monitor.pit_bins import N_BINS, normal_bins


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

    def loss(theta: Float64Array) -> float:
        scale = float(np.exp(theta[1])) if len(theta) > 1 else 1.0
        return -float(counts @ np.log(N_BINS * normal_bins(theta[0], scale)))

    how = {"method": "Nelder-Mead", "options": {"xatol": 1e-4, "fatol": 1e-6}}
    shift = minimize(loss, np.zeros(1), **how)
    line = minimize(loss, np.array([shift.x[0], 0.0]), **how)
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
