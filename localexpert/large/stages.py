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
from localexpert.forecasters.constant import ConstantForecaster
from localexpert.forecasters.continuous import ContinuousForecaster
from localexpert.forecasters.discrete import DiscreteForecaster
from localexpert.forecasters.mixed import MixedForecaster
from localexpert.forecasters.pooled import PooledForecaster
from localexpert.forecasters.stepped import SteppedForecaster


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


@dataclass(frozen=True, eq=False)
class Leaf:
    """A road that asks experts itself, and the rows that it is asked about.

    Parameters
    ----------
    road : ContinuousForecaster or DiscreteForecaster
    table : Table of shape (m, p)
    y : ndarray of shape (m,)
        What came of them, as the road sees it.
    rows : ndarray of int, shape (m,)
        Where they are among all rows.
    """

    road: Any
    table: Table
    y: Float64Array
    rows: NDArray[np.intp]

    def locate(self) -> tuple[Float64Array, Float64Array]:
        """Return centre and scale of the rows, (m,) each; 0 and 1 without a frame."""
        if isinstance(self.road, ContinuousForecaster):
            return self.road.frame.locate(self.table)
        return np.zeros(len(self.y)), np.ones(len(self.y))

    def ask(self) -> Answers:
        """Return what the experts say of the rows."""
        center, scale = self.locate()
        table = self.table
        if isinstance(self.road, ContinuousForecaster):
            table = self.road.frame.add_features(table, center, scale)
        below = (self.y - center)[:, None] <= scale[:, None] * self.road.thresholds_
        p = self.road.experts.pool_.predict(table)
        return Answers(self.road.experts.calibration, p, below, self.rows)


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
    for leaf in walk_leaves(road, table, y):
        yield leaf.ask()


@singledispatch
def walk_leaves(road: Any, table: Table, y: Float64Array) -> Iterator[Leaf]:
    """Yield the roads that ask experts, with the rows of each; some may have none.

    Parameters
    ----------
    road : Forecaster
    table : Table of shape (n, p)
    y : ndarray of shape (n,)

    Yields
    ------
    Leaf
    """
    del table, y
    msg = f"`model` must have roads whose experts are known, got {type(road).__name__}."
    raise TypeError(msg)


@walk_leaves.register
def _constant(
    road: ConstantForecaster, table: Table, y: Float64Array
) -> Iterator[Leaf]:
    """Nobody is asked."""
    del road, table, y
    yield from ()


@walk_leaves.register(ContinuousForecaster)
@walk_leaves.register(DiscreteForecaster)
def _alone(road: Any, table: Table, y: Float64Array) -> Iterator[Leaf]:
    """Ask at thresholds in each row's coordinate, or between the values."""
    yield Leaf(road, table, y, np.arange(len(y)))


@walk_leaves.register
def _mixed(road: MixedForecaster, table: Table, y: Float64Array) -> Iterator[Leaf]:
    """Ask which atom, and of the rows at none where they are."""
    number = (y[:, None] == road.atoms) @ np.arange(1.0, len(road.atoms) + 1.0)
    yield from walk_leaves(road.choice, table, number)
    rest = np.flatnonzero(number == 0.0)
    yield from _of_rows(road.continuous, table, y, rest)


@walk_leaves.register
def _pooled(road: PooledForecaster, table: Table, y: Float64Array) -> Iterator[Leaf]:
    """Ask each road of the pool."""
    for one in road.fitted_.values():
        yield from walk_leaves(one, table, y)


@walk_leaves.register
def _stepped(road: SteppedForecaster, table: Table, y: Float64Array) -> Iterator[Leaf]:
    """Ask the inner road, of the rows whose target is one for it."""
    with np.errstate(all="ignore"):
        z = road.step.there(y)
    yield from _of_rows(road.forecaster, table, z, np.flatnonzero(np.isfinite(z)))


def _of_rows(
    road: Any, table: Table, y: Float64Array, rows: NDArray[np.intp]
) -> Iterator[Leaf]:
    """Ask about some of the rows."""
    if len(rows) == 0:
        return
    for leaf in walk_leaves(road, table.take(rows), y[rows]):
        yield Leaf(leaf.road, leaf.table, leaf.y, rows[leaf.rows])


def leaves_of(road: Any) -> list[Any]:
    """Return the roads that ask experts themselves, in the order of `walk_leaves`.

    Parameters
    ----------
    road : Forecaster

    Returns
    -------
    list of ContinuousForecaster or DiscreteForecaster
    """
    if isinstance(road, PooledForecaster):
        roads = list(road.fitted_.values())
    elif isinstance(road, MixedForecaster):
        roads = [road.choice, road.continuous]
    elif isinstance(road, SteppedForecaster):
        roads = [road.forecaster]
    elif isinstance(road, ConstantForecaster):
        return []
    else:
        return [road]
    return [one for inner in roads for one in leaves_of(inner)]


def calibrations_of(road: Any) -> list[ExpertCalibration]:
    """Return the calibrations of all roads in the order of `ask_stages`.

    Parameters
    ----------
    road : Forecaster

    Returns
    -------
    list of ExpertCalibration
    """
    return [leaf.experts.calibration for leaf in leaves_of(road)]
