"""`TaskRecord`: what the experts of one forecaster said out of fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.folds import Fold, Rows, renumber_folds


@dataclass(frozen=True)
class TaskRecord:
    """Tasks "is it at most v_k?" with their out-of-fold answers.

    Parameters
    ----------
    thresholds : ndarray of shape (N,)
    raw, calibrated : ndarrays of shape (n, N)
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
        """Return what was said of some rows, renumbered."""
        return TaskRecord(
            self.thresholds,
            self.raw[rows],
            self.calibrated[rows],
            self.below[rows],
            renumber_folds(self.folds, rows, len(self.weight)),
            self.weight[rows],
        )
