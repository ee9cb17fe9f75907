"""What to do about forecasts, by the bins of their transforms since the onset."""

from __future__ import annotations

import numpy as np

from calibration.typing import Float64Array
from localexpert.monitor.pit_bins import N_BINS, normal_bins

# Times that the grid of shifts and scales is laid anew, ten and five times as fine.
_ZOOMS = 4


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
    of_shift = _best_line(counts, np.zeros(1))[-1]
    offset, scale, of_line = _best_line(counts, np.linspace(-1.5, 1.5, 31))
    # Each row's bin by the others, with one row more in each bin.
    n = counts.sum()
    left_out = np.log(N_BINS * np.maximum(counts, 1.0) / max(n - 1.0 + N_BINS, 1.0))
    gains = {
        "nothing": 0.0,
        "shift": of_shift - 1.0,
        "shift and slope": of_line - 2.0,
        "recalibrate": float(counts @ left_out),
    }
    return gains, (offset, scale)


def _best_line(
    counts: Float64Array, log_scales: Float64Array
) -> tuple[float, float, float]:
    """Return the likeliest shift and scale, on grids ever finer, and what they gain."""
    shifts = np.linspace(-3.0, 3.0, 61)
    best = 0.0, 0.0, -np.inf
    for _ in range(_ZOOMS):
        for log_scale in log_scales:
            law = normal_bins(shifts[:, None], float(np.exp(log_scale)))
            gains = np.log(N_BINS * law) @ counts
            k = int(np.argmax(gains))
            if gains[k] > best[2]:
                best = float(shifts[k]), float(log_scale), float(gains[k])
        shifts = best[0] + 0.1 * (shifts - shifts.mean())
        log_scales = best[1] + 0.2 * (log_scales - log_scales.mean())
    return best[0], float(np.exp(best[1])), best[2]
