"""Information criteria, by which fitted models are weighed against each other."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array

Criterion: TypeAlias = Literal["aic", "aicc", "bic"]


def criterion_logs(
    criterion: Criterion, log_likelihood: Float64Array, df: NDArray[np.int64], n: float
) -> Float64Array:
    r"""Return the logarithms of the models' weights, minus half of the criterion.

    Parameters
    ----------
    criterion : {"aic", "aicc", "bic"}
    log_likelihood : ndarray of shape (k,)
    df : ndarray of shape (k,)
        Free parameters.
    n : float
        Weight of all rows.

    Returns
    -------
    ndarray of shape (k,)
        :math:`\log L - d` for AIC, :math:`\log L - \frac{d}{2} \log n` for BIC, and
        :math:`\log L - d - d (d + 1) / (n - d - 1)` for AICc, which is minus infinity
        from d = n - 1 on. If that is all there is, the first model has 0.
    """
    if criterion == "bic":
        # Less than one row does not make a parameter a gain.
        return np.asarray(log_likelihood - 0.5 * df * max(np.log(n), 0.0))
    if criterion == "aic":
        return log_likelihood - df
    room = n - df - 1.0
    known = room > 0.0
    logs = np.full(len(df), -np.inf)
    logs[known] = (log_likelihood - df)[known]
    logs[known] -= (df * (df + 1.0))[known] / room[known]
    if not known.any():
        logs[0] = 0.0
    return logs
