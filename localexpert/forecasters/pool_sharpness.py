"""How much sharper a pool is to be than its members' mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert.forecasters.continuous import WEIGHT_OF_CRPS
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap
from localexpert.law.steps import clip_scores

# A pool is never made wider, and hardly ever needs more than this.
_MOST = 1.5
# So many rows speak for leaving the pool as it is.
_ROWS_BEFORE = 100.0
# Scores of rows count up to this, and what the mean square of normal ones then is.
_FARTHEST, _MEAN_SQUARE = 3.0, 0.995
_LEAST_MASS = 1e-12


def learn_sharpness(
    law: Law, y: Float64Array, weight: Float64Array, crps: Callable[[float], float]
) -> float:
    r"""Return the k >= 1 for the scores of a pool, Phi(k Phi^-1(F)).

    A pool of calibrated forecasts that differ is too wide (Gneiting & Ranjan 2013,
    theorem 3.1). The loss is that of curves: the mean log score and ten times the
    logarithm of the mean CRPS. Of a smooth F the log score of z = Phi^-1(F(y)) is
    log k - (k^2 - 1) z^2 / 2 and a part without k; where F jumps it is that of the
    mass between two scores. As many as 100 rows speak for k = 1.

    Parameters
    ----------
    law : Law
        The pool, of n rows, none of which it was learned from.
    y, weight : ndarrays of shape (n,)
    crps : function of k
        The mean CRPS.

    Returns
    -------
    float

    References
    ----------
    Gneiting & Ranjan (2013), Combining predictive distributions, Electronic Journal of
    Statistics 7.
    """
    share = weight / weight.sum()
    at = y[:, None]
    under, upto = clip_scores(law.scores(at, np.array([[0.0, 1.0]])).T)
    jumps = np.isin(y, law.atoms) | law.all_jumps
    is_last = y >= law.support[1]
    smooth, apart = share[~jumps].sum(), share[jumps]
    squares = np.minimum(upto[~jumps] ** 2, _FARTHEST**2) / _MEAN_SQUARE
    square = float(share[~jumps] @ squares)
    before = _ROWS_BEFORE / len(y)

    def loss(k: float) -> float:
        missed = 0.5 * k**2 * square - smooth * np.log(k)
        masses = np.where(is_last, 1.0, ndtr(k * upto)) - ndtr(k * under)
        missed -= apart @ np.log(np.maximum(masses[jumps], _LEAST_MASS))
        missed += before * (0.5 * k**2 - np.log(k))
        return float(missed + WEIGHT_OF_CRPS * np.log(max(crps(k), _LEAST_MASS)))

    return float(minimize_scalar(loss, bounds=(1.0, _MOST), method="bounded").x)


def multiply_scores(factor: float) -> LevelMap:
    """Return the map of a CDF F to Phi(factor Phi^-1(F))."""
    return LevelMap.line(0.0, factor)
