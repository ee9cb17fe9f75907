"""What the experts of every road say of new rows, before they are calibrated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.experts.calibration import ExpertCalibration
from localexpert.learn.fitted_road import FittedRoad


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
    road : FittedRoad
    table : Table of shape (m, p)
    y : ndarray of shape (m,)
        What came of them, as the road sees it.
    rows : ndarray of int, shape (m,)
        Where they are among all rows.
    """

    road: FittedRoad
    table: Table
    y: Float64Array
    rows: NDArray[np.intp]

    def locate(self) -> tuple[Float64Array, Float64Array]:
        """Return centre and scale of the rows, (m,) each; 0 and 1 without a frame."""
        return self.road.frame.locate(self.table)

    def ask(self) -> Answers:
        """Return what the experts say of the rows."""
        center, scale = self.locate()
        table = self.road.frame.add_features(self.table, center, scale)
        below = (self.y - center)[:, None] <= scale[:, None] * self.road.thresholds_
        p = self.road.experts.predict_raw(table)
        return Answers(self.road.experts.calibration, p, below, self.rows)


def ask_stages(road: Any, table: Table, y: Float64Array) -> Iterator[Answers]:
    """Yield what the experts of each road say of new rows, always in one order.

    Parameters
    ----------
    road : Learner
    table : Table of shape (n, p)
    y : ndarray of shape (n,)
        What came of them.

    Yields
    ------
    Answers
    """
    for leaf in walk_leaves(road, table, y):
        yield leaf.ask()


def walk_leaves(road: Any, table: Table, y: Float64Array) -> Iterator[Leaf]:
    """Yield the roads that ask experts, with the rows of each, if there are any.

    Parameters
    ----------
    road : Learner
    table : Table of shape (n, p)
    y : ndarray of shape (n,)

    Yields
    ------
    Leaf
    """
    for leaf, own, rows in road.leaves(y):
        if len(rows):
            yield Leaf(leaf, table.take(rows), own, rows)


def leaves_of(road: Any) -> list[FittedRoad]:
    """Return the roads that ask experts themselves, in the order of `walk_leaves`.

    Parameters
    ----------
    road : Learner

    Returns
    -------
    list of FittedRoad
    """
    return [leaf for leaf, _, _ in road.leaves(np.empty(0))]


def calibrations_of(road: Any) -> list[ExpertCalibration]:
    """Return the calibrations of all roads in the order of `ask_stages`.

    Parameters
    ----------
    road : Learner

    Returns
    -------
    list of ExpertCalibration
    """
    return [leaf.experts.calibration for leaf in leaves_of(road)]
