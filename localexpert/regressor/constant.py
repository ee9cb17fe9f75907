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
from localexpert.forecasters.constant import ConstantForecaster
from localexpert.stacking.meta_features import MetaFeatures


def fit_constant(model: Any, X: Any, y: Float64Array, weight: Float64Array) -> None:
    """Let a regressor forecast the one value there is; nothing can be learned.

    Parameters
    ----------
    model : LocalExpertRegressor
        Whose parameters have been checked.
    X : array or data frame of shape (n, p)
    y, weight : ndarrays of shape (n,)
    """
    table = Table.of(X)
    read_directions(check_directions(model.monotone), table.reader)
    model.reader_, model.table_summary_ = table.reader, TableSummary.of(table, weight)
    value = float(y[weight > 0.0][0])
    msg = f"`y` is {value:g} in every row; every forecast is that value."
    warnings.warn(msg, CalibrationWarning, stacklevel=3)
    model.forecaster_ = ConstantForecaster(value, len(model.fitted_rows_))
    model.meta_features_ = MetaFeatures(np.array([value]))
    model._use(None)
