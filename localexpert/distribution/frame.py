"""Forecasts as columns of a table: `forecast_columns`, of a data frame too."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import (
    check_level,
    check_levels,
    check_vector,
    count_rows,
)

if TYPE_CHECKING:
    import pandas as pd

# Quantiles that are told where nothing else is asked for.
DEFAULT_LEVELS = (0.05, 0.5, 0.95)


def forecast_columns(
    dist: Any,
    quantiles: ArrayLike | None = None,
    interval: ArrayLike | None = None,
    exceed: ArrayLike | None = None,
) -> dict[str, Float64Array]:
    """Return what forecasts say as columns (n,), by their names.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    quantiles, interval, exceed : number or sequence, optional
        Levels, coverages and values; see `PredictiveDistribution.to_frame`.

    Returns
    -------
    dict of str to ndarray of shape (n,)
        mean, std, q0.05, low_0.9, high_0.9, p_above_100.
    """
    if quantiles is None and interval is None and exceed is None:
        quantiles = DEFAULT_LEVELS
    columns = {"mean": dist.mean(), "std": dist.std()}
    if quantiles is not None and np.size(quantiles) > 0:
        levels = check_levels(quantiles, "quantiles")
        for level, values in zip(levels, dist.quantiles(levels).T, strict=True):
            columns[f"q{_name(level)}"] = values
    for coverage in np.ravel([] if interval is None else interval).tolist():
        low, high = dist.interval(check_level(coverage, "interval")).T
        columns[f"low_{_name(coverage)}"] = low
        columns[f"high_{_name(coverage)}"] = high
    if exceed is not None and np.size(exceed) > 0:
        for value in check_vector(np.atleast_1d(np.asarray(exceed)), "exceed"):
            columns[f"p_above_{_name(value)}"] = dist.sf(value)
    return columns


def forecast_frame(
    columns: dict[str, Float64Array], index: Sequence[Any] | None
) -> pd.DataFrame:
    """Return columns as a pandas data frame with the labels of an index."""
    try:
        import pandas
    except ImportError as error:
        msg = "`to_frame` needs pandas: pip install localexpert[io]."
        raise ImportError(msg) from error
    n = len(columns["mean"])
    if index is not None and count_rows(index) != n:
        got = count_rows(index) if count_rows(index) >= 0 else reprlib.repr(index)
        msg = f"`index` must have a label for each of the {n} rows, got {got}."
        raise ValueError(msg)
    return pandas.DataFrame(columns, index=index)


def _name(value: float) -> str:
    """Return a number as short as it can be; no two have one name."""
    short = f"{value:.10g}"
    return short if float(short) == value else repr(float(value))
