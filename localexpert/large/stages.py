"""What the experts of every road say of new rows, before they are calibrated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.experts.calibration import ExpertCalibration
from localexpert.forecasters.around import ForecasterAround
from localexpert.forecasters.constant import ConstantForecaster
from localexpert.forecasters.continuous import ContinuousForecaster
from localexpert.forecasters.discrete import DiscreteForecaster
from localexpert.forecasters.mixed import MixedForecaster
from localexpert.forecasters.pooled import PooledForecaster
from localexpert.forecasters.transformed import TransformedForecaster


@dataclass(frozen=True, eq=False)
class Answers:
    """What experts say of rows, and what was true.

    Parameters
    ----------
    calibration : ExpertCalibration
        Theirs.
    probabilities : ndarray of shape (m, N)
        Not calibrated.
    below : ndarray of bool, shape (m, N)
    rows : ndarray of int, shape (m,)
        Of all rows, those that they are asked about.
    """

    calibration: ExpertCalibration
    probabilities: Float64Array
    below: NDArray[np.bool_]
    rows: NDArray[np.intp]


@singledispatch
def ask_stages(road: Any, table: Table, y: Float64Array) -> Iterator[Answers]:
    """Yield what the experts of each road say of new rows, always in one order.

    Parameters
    ----------
    road : Forecaster
    table : Table of shape (n, p)
    y : ndarray of shape (n,)
        What came of them.

    Yields
    ------
    Answers
    """
    del table, y
    msg = f"`model` must have roads whose experts are known, got {type(road).__name__}."
    raise TypeError(msg)


@ask_stages.register
def _constant(
    road: ConstantForecaster, table: Table, y: Float64Array
) -> Iterator[Answers]:
    """Nobody is asked."""
    del road, table, y
    yield from ()


@ask_stages.register
def _continuous(
    road: ContinuousForecaster, table: Table, y: Float64Array
) -> Iterator[Answers]:
    """Ask at thresholds in each row's coordinate."""
    center, scale = road.frame.locate(table)
    located = road.frame.add_features(table, center, scale)
    below = (y - center)[:, None] <= scale[:, None] * road.thresholds_
    yield _answers(road, located, below)


@ask_stages.register
def _discrete(
    road: DiscreteForecaster, table: Table, y: Float64Array
) -> Iterator[Answers]:
    """Ask between the values."""
    yield _answers(road, table, y[:, None] <= road.thresholds_)


@ask_stages.register
def _mixed(road: MixedForecaster, table: Table, y: Float64Array) -> Iterator[Answers]:
    """Ask which atom, and of the rows at none where they are."""
    number = (y[:, None] == road.atoms) @ np.arange(1.0, len(road.atoms) + 1.0)
    yield from ask_stages(road.choice, table, number)
    rest = np.flatnonzero(number == 0.0)
    yield from _of_rows(road.continuous, table, y, rest)


@ask_stages.register
def _pooled(road: PooledForecaster, table: Table, y: Float64Array) -> Iterator[Answers]:
    """Ask each road of the pool."""
    for one in road.fitted_.values():
        yield from ask_stages(one, table, y)


@ask_stages.register
def _around(road: ForecasterAround, table: Table, y: Float64Array) -> Iterator[Answers]:
    """Ask the inner road."""
    yield from ask_stages(road.forecaster, table, y)


@ask_stages.register
def _transformed(
    road: TransformedForecaster, table: Table, y: Float64Array
) -> Iterator[Answers]:
    """Ask the road to z, of the rows whose target has one."""
    with np.errstate(all="ignore"):
        z = road.values.inverse(y)
    yield from _of_rows(road.forecaster, table, z, np.flatnonzero(np.isfinite(z)))


def _of_rows(
    road: Any, table: Table, y: Float64Array, rows: NDArray[np.intp]
) -> Iterator[Answers]:
    """Ask about some of the rows."""
    if len(rows) == 0:
        return
    for told in ask_stages(road, table.take(rows), y[rows]):
        yield Answers(told.calibration, told.probabilities, told.below, rows[told.rows])


def _answers(road: Any, table: Table, below: NDArray[np.bool_]) -> Answers:
    p = road.experts.pool_.predict(table)
    return Answers(road.experts.calibration, p, below, np.arange(len(p)))


def calibrations_of(road: Any) -> list[ExpertCalibration]:
    """Return the calibrations of all roads in the order of `ask_stages`.

    Parameters
    ----------
    road : Forecaster

    Returns
    -------
    list of ExpertCalibration
    """
    if isinstance(road, PooledForecaster):
        roads = list(road.fitted_.values())
    elif isinstance(road, MixedForecaster):
        roads = [road.choice, road.continuous]
    elif isinstance(road, ForecasterAround):
        roads = [road.forecaster]
    elif isinstance(road, ConstantForecaster):
        return []
    else:
        return [road.experts.calibration]
    return [one for inner in roads for one in calibrations_of(inner)]
