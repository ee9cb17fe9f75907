"""`Questions`: what users ask of forecasts, answered as columns of a table."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import (
    check_choice,
    check_level,
    check_levels,
    check_vector,
    count_rows,
    refuse,
)

if TYPE_CHECKING:
    import pandas as pd

# The quantiles of a table if the user asks for nothing.
DEFAULT_LEVELS = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Questions:
    """Questions besides mean and deviation, checked once for all rows.

    Parameters
    ----------
    levels : tuple of float
        Levels of quantiles.
    coverages : tuple of float
        Coverages of central intervals.
    values : tuple of float
        Values that a target may exceed.
    risks : tuple of float
        Confidences of values at risk and expected shortfalls.
    tail : {"upper", "lower"}
        The tail of these risks.
    """

    levels: tuple[float, ...]
    coverages: tuple[float, ...]
    values: tuple[float, ...]
    risks: tuple[float, ...] = ()
    tail: str = "upper"

    @classmethod
    def of(
        cls,
        quantiles: ArrayLike | None = None,
        interval: ArrayLike | None = None,
        exceed: ArrayLike | None = None,
        risk: ArrayLike | None = None,
        tail: str = "upper",
    ) -> Questions:
        """Check what a user asks; a user who asks nothing gets three quantiles.

        Parameters
        ----------
        quantiles, interval, exceed, risk : number or sequence, optional
            Levels, coverages, values and confidences; see
            `PredictiveDistribution.to_frame`.
        tail : {"upper", "lower"}
        """
        check_choice(tail, "tail", ("upper", "lower"))
        if all(asked is None for asked in (quantiles, interval, exceed, risk)):
            quantiles = DEFAULT_LEVELS
        levels, values = [], []
        if quantiles is not None and np.size(quantiles) > 0:
            levels = check_levels(quantiles, "quantiles").tolist()
        inside = []
        for asked, name in ((interval, "interval"), (risk, "risk")):
            given = np.ravel([] if asked is None else asked).tolist()
            inside.append(tuple(check_level(level, name) for level in given))
        if exceed is not None and np.size(exceed) > 0:
            vector = check_vector(np.atleast_1d(np.asarray(exceed)), "exceed")
            values = vector.tolist()
        return cls(tuple(levels), inside[0], tuple(values), inside[1], tail)

    @property
    def names(self) -> list[str]:
        """Names of the columns of the answers, in order, each once."""
        return list(dict.fromkeys(self._all_names()))

    def _all_names(self) -> list[str]:
        """Return a name for each answer; a question asked twice has its name twice."""
        names = ["mean", "std", *(f"q{_name(level)}" for level in self.levels)]
        for coverage in self.coverages:
            names += [f"low_{_name(coverage)}", f"high_{_name(coverage)}"]
        names += [f"p_above_{_name(value)}" for value in self.values]
        for level in self.risks:
            names += [f"var_{_name(level)}", f"es_{_name(level)}"]
        return names

    def answers(self, dist: Any) -> dict[str, Float64Array]:
        """Return the columns (n,) of forecasts of n rows, by their names.

        Parameters
        ----------
        dist : PredictiveDistribution
            Forecasts of n rows.

        Returns
        -------
        dict of str to ndarray of shape (n,)
            Such as mean, std, q0.05, low_0.9, high_0.9, p_above_100, var_0.95, es_0.95.
        """
        columns = [dist.mean(), dist.std()]
        if self.levels:
            columns += [*dist.quantiles(self.levels).T]
        for coverage in self.coverages:
            columns += [*dist.interval(coverage).T]
        columns += [dist.sf(value) for value in self.values]
        for level in self.risks:
            columns += [
                dist.value_at_risk(level, self.tail),
                dist.expected_shortfall(level, self.tail),
            ]
        return dict(zip(self._all_names(), columns, strict=True))


def forecast_frame(columns: dict[str, Float64Array], index: Any) -> pd.DataFrame:
    """Return columns as a pandas data frame with the labels of an index."""
    pandas = import_pandas("to_frame")
    n = len(columns["mean"])
    if index is not None and count_rows(index) != n:
        got = count_rows(index) if count_rows(index) >= 0 else reprlib.repr(index)
        refuse("index", f"have a label for each of the {n} rows", got)
    frame: pd.DataFrame = pandas.DataFrame(columns, index=index)
    return frame


def import_pandas(asker: str) -> Any:
    """Return pandas, or say who needs it and how to get it."""
    try:
        import pandas
    except ImportError as error:
        msg = f"`{asker}` needs pandas: pip install localexpert[io]."
        raise ImportError(msg) from error
    return pandas


def _name(value: float) -> str:
    """Return the shortest text of a number; two numbers never have the same text."""
    short = f"{value:.10g}"
    return short if float(short) == value else repr(float(value))
