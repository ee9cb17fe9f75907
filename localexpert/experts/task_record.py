"""`TaskRecord`: what the experts of one forecaster said out of fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.folds import Fold, Rows, renumber_folds

# Bits of the significand that probabilities keep, besides the first.
_BITS = 11


@dataclass(frozen=True)
class TaskRecord:
    """Tasks "is it at most v_k?" with their out-of-fold answers.

    Parameters
    ----------
    thresholds : ndarray of shape (N,)
    raw, calibrated : ndarrays of shape (n, N)
        After a fit they are rounded by `round_odds`.
    below : ndarray of shape (n, N)
    folds : list of (train, test)
    weight : ndarray of shape (n,)
    """

    thresholds: Float64Array
    raw: Float64Array
    calibrated: Float64Array
    below: NDArray[np.bool_]
    folds: list[Fold]
    weight: Float64Array

    def take(self, rows: Rows) -> TaskRecord:
        """Return the answers for some rows, renumbered."""
        return TaskRecord(
            self.thresholds,
            self.raw[rows],
            self.calibrated[rows],
            self.below[rows],
            renumber_folds(self.folds, rows, len(self.weight)),
            self.weight[rows],
        )


def round_odds(p: Float64Array) -> Float64Array:
    """Round probabilities so that odds change by less than one part in 3000.

    The answers for many rows take most of the space of a saved model, and the last
    forty bits of each are noise. Order is kept, and so are 0 and 1.

    Parameters
    ----------
    p : ndarray
        Probabilities in [0, 1].

    Returns
    -------
    ndarray of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts.task_record import round_odds
    >>> round_odds(np.array([0.0, 1e-9, 0.1, 0.5, 0.9, 1.0]))
    array([0.00000000e+00, 9.99989425e-10, 1.00006104e-01, 5.00000000e-01,
           8.99993896e-01, 1.00000000e+00])
    """
    # Round relative to the smaller of p and 1 - p, so nearly certain answers stay so.
    smaller = np.minimum(p, 1.0 - p)
    bits = smaller.view(np.int64)
    dropped = 52 - _BITS
    bits += 1 << (dropped - 1)
    bits &= -(1 << dropped)
    return np.where(p < 0.5, smaller, 1.0 - smaller)
