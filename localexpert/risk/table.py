"""`risk_table`: what forecasts say of risk, a row for each, for reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from localexpert._validation import check_array, check_choice, check_level
from localexpert.distribution.frame import import_pandas
from localexpert.distribution.predictive import (
    PredictiveDistribution,
    check_distribution,
)

if TYPE_CHECKING:
    import pandas as pd


def risk_table(
    dist: PredictiveDistribution,
    *,
    levels: ArrayLike = (0.95,),
    thresholds: ArrayLike = (),
    tail: Literal["upper", "lower"] = "upper",
    coverage: float = 0.9,
    index: Any = None,
) -> pd.DataFrame:
    """Return the risk measures of every forecast as a table.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    levels : float or array-like of shape (q,)
        Confidences of value at risk (VaR) and expected shortfall (ES), in (0, 1).
    thresholds : float or array-like of shape (t,)
        Values whose chance to be passed is wanted.
    tail : {"upper", "lower"}
        Where the bad outcomes are. "upper" gives P(Y > threshold), "lower"
        P(Y <= threshold).
    coverage : float
        Of the interval with equal tails, in (0, 1).
    index : array-like of shape (n,), optional
        Labels of the rows.

    Returns
    -------
    pandas.DataFrame
        One row per forecast. Columns: mean, std, median, both ends of the interval,
        VaR and ES of each level, the probability of each threshold.

    Raises
    ------
    ImportError
        If pandas is not installed (``pip install localexpert[io]``).

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.risk import risk_table
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> demand = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> table = risk_table(demand, thresholds=1, index=["Monday", "Tuesday"])
    >>> print(table[["mean", "90% low", "90% high", "P(Y > 1)"]])
             mean  90% low  90% high  P(Y > 1)
    Monday    1.1      0.0       2.0       0.3
    Tuesday   1.9      1.0       2.0       0.9
    """
    pandas = import_pandas("risk_table")
    check_distribution(dist)
    check_choice(tail, "tail", ("upper", "lower"))
    coverage = check_level(coverage, "coverage")
    risks = _labelled(levels, "levels", _percent)
    passed = _labelled(thresholds, "thresholds", _plain)
    low, high = dist.interval(coverage).T
    columns = {
        "mean": dist.mean(),
        "std": dist.std(),
        "median": dist.median(),
        f"{_percent(coverage)} low": low,
        f"{_percent(coverage)} high": high,
    }
    side = "" if tail == "upper" else "lower "
    for label, level in risks.items():
        check_level(level, "levels")
        columns[f"{side}VaR {label}"] = dist.value_at_risk(level, tail)
        columns[f"{side}ES {label}"] = dist.expected_shortfall(level, tail)
    for label, threshold in passed.items():
        if tail == "upper":
            columns[f"P(Y > {label})"] = dist.sf(threshold)
        else:
            columns[f"P(Y <= {label})"] = dist.cdf(threshold)
    return pandas.DataFrame(columns, index=_check_index(index, len(dist)))


def _labelled(
    values: ArrayLike, name: str, show: Callable[[float], str]
) -> dict[str, float]:
    """Return distinct numbers by what a reader is shown of them."""
    numbers = check_array(np.atleast_1d(np.asarray(values)), name, (None,)).tolist()
    labelled = {show(number): number for number in numbers}
    if len(labelled) < len(numbers):
        msg = f"`{name}` must be distinct, got {numbers}."
        raise ValueError(msg)
    return labelled


def _percent(share: float) -> str:
    """Return a share as a percentage without the digits of rounding."""
    return f"{100.0 * share:.12g}%"


def _plain(number: float) -> str:
    """Return all digits of a number, and no more."""
    return repr(number).removesuffix(".0")


def _check_index(index: Any, n: int) -> Any:
    """Refuse labels of another length than the table."""
    if index is not None and not hasattr(index, "__len__"):
        msg = f"`index` must be a list of labels, got {index!r}."
        raise TypeError(msg)
    if index is not None and len(index) != n:
        msg = f"`index` must have a label for each of the {n} rows, got {len(index)}."
        raise ValueError(msg)
    return index
