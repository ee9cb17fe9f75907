"""A confidence sequence for a shift that all rows share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibration.typing import Float64Array

# Standard deviation of the shifts weighed in the numerator.
_SPREAD = 0.5
_HALVINGS = 60


def shift_interval(
    likelihood: Callable[[Float64Array], Float64Array], alpha: float, reach: float
) -> tuple[float, float]:
    r"""Return the shifts d whose likelihood is not beaten 1 / alpha to 1.

    .. math:: \{d : L(d) \ge \alpha \int L(s) \, \phi(s / 0.5) / 0.5 \, ds\}

    By Ville's inequality the true d lies in all of these sets at once, however often
    one looks, with probability 1 - alpha at least.

    Parameters
    ----------
    likelihood : callable
        Log-likelihood ratios of shifts (m,).
    alpha : float
    reach : float
        Greatest shift either way that is looked at.

    Returns
    -------
    low, high : float
        Infinite where nothing speaks against any shift that way.
    """
    coarse = np.linspace(-reach, reach, 601)
    peak = float(coarse[np.argmax(likelihood(coarse))])
    # The likelihood may be as narrow as one over the root of its rows.
    fine = peak + 0.2 * np.sinh(np.linspace(-8.0, 8.0, 801)) / np.sinh(8.0)
    points = np.union1d(coarse, fine)
    logs = likelihood(points)
    prior = -0.5 * (points / _SPREAD) ** 2 - np.log(_SPREAD * np.sqrt(2.0 * np.pi))
    width = np.gradient(points)
    least = np.log(alpha) + np.logaddexp.reduce(logs + prior + np.log(width))
    peak = float(points[np.argmax(logs)])
    ends = []
    for end in (-reach, reach):
        inside, outside = peak, end
        if likelihood(np.array([end]))[0] >= least:
            ends.append(float(np.sign(end) * np.inf))
            continue
        for _ in range(_HALVINGS):
            middle = 0.5 * (inside + outside)
            if likelihood(np.array([middle]))[0] >= least:
                inside = middle
            else:
                outside = middle
        ends.append(outside)
    return ends[0], ends[1]
