"""What a regressor learns of a target of one value."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert.data.directions import check_directions, read_directions
from localexpert.data.table import Table
from localexpert.data.table_summary import TableSummary
from localexpert.data.training_rows import TrainingSketch
from localexpert.law.law import Law
from localexpert.stacking.meta_features import MetaFeatures


def fit_constant(
    model: Any, table: Table, y: Float64Array, weight: Float64Array
) -> None:
    """Let a regressor forecast the one value there is; nothing can be learned.

    Parameters
    ----------
    model : LocalExpertRegressor
        Whose parameters have been checked.
    table : Table of shape (n, p)
    y, weight : ndarrays of shape (n,)
    """
    read_directions(check_directions(model.monotone), table.reader)
    model.reader_, model.table_summary_ = table.reader, TableSummary.of(table, weight)
    model.training_sketch_ = TrainingSketch.learn([(table, y, weight)])
    value, rows = float(y[weight > 0.0][0]), model.fitted_rows_
    msg = f"`y` is {value:g} in every row; every forecast is that value."
    warnings.warn(msg, CalibrationWarning, stacklevel=3)
    model.forecaster_ = ConstantLaws(value, len(rows))
    model.meta_features_ = MetaFeatures(np.array([value]))
    model.oof_targets_, model.oof_weights_ = np.full(len(rows), value), weight[rows]


class ConstantLaws:
    """One value for every row.

    Parameters
    ----------
    value : float
    n : int
        Number of training rows.
    """

    def __init__(self, value: float, n: int):
        self.value = value
        self.oof_law_ = self._law(n)

    def law(self, table: Table) -> Law:
        """Return the law of new rows.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        Law
        """
        return self._law(len(table))

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return the one value, which the target never passes, (n, 1) each.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        thresholds, probabilities : ndarrays of shape (n, 1)
        """
        return np.full((len(table), 1), self.value), np.ones((len(table), 1))

    def _law(self, n: int) -> Law:
        return Law.discrete(np.array([self.value]), np.ones((n, 1)))
