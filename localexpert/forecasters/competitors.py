"""Which roads compete: the user's, or those that suit a target."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.target_values import range_without_outliers
from localexpert.forecasters.cells import MANY_VALUES
from localexpert.forecasters.roads import (
    CellRoad,
    DiscreteRoad,
    FrameRoad,
    GridRoad,
    Road,
    Transformed,
    check_road,
)
from localexpert.forecasters.settings import Settings
from localexpert.law.value_map import ExpLess, LogOf

_NAMES = {
    FrameRoad: "frame",
    GridRoad: "grid",
    DiscreteRoad: "discrete",
    CellRoad: "cells",
    Transformed: "transformed",
}
# With more rows its hundreds of answers a row cost more time, and more of a saved
# model, than they gain.
_MOST_ROWS_FOR_GRID = 50_000
# A target with a longer upper tail than that, in skewness, may be simpler in its
# logarithm: that of an exponential law is 2, that of a normal one 0.
_SKEWED = 1.0


def check_roads(settings: Settings) -> None:
    """Refuse roads that cannot be taken, before anything is learned."""
    roads = settings.roads
    if isinstance(roads, str):
        if roads != "auto":
            msg = f'`roads` must be "auto", a Road or a list of them, got {roads!r}.'
            raise ValueError(msg)
        return
    if settings.single:
        msg = (
            '`roads` must be "auto" where `expert`, `frame`, `strategy`, `thresholds` '
            "or `n_thresholds` describe one road: name them in a FrameRoad."
        )
        raise ValueError(msg)
    given = _listed(roads)
    if len(given) == 0:
        msg = "`roads` must hold at least one road, got none."
        raise ValueError(msg)
    for road in given:
        if not isinstance(road, Road):
            msg = f"`roads` must hold roads such as FrameRoad(), got {road!r:.80}."
            raise TypeError(msg)
        check_road(road, settings)


def smooth_roads(settings: Settings, y: Float64Array) -> dict[str, Road]:
    """Return the roads to a smooth target, or to the smooth part of one, by name.

    Parameters
    ----------
    settings : Settings
    y : ndarray of shape (m,)
        Without values that have probability of their own.
    """
    if settings.single:
        return {"frame": _described(settings)}
    if settings.roads != "auto":
        roads = _named(_listed(settings.roads))
        for name, road in roads.items():
            if road.discrete:
                msg = (
                    "`roads` must fit the target, got a road to few values "
                    f"({type(road).__name__}, {name!r}) for a continuous one."
                )
                raise ValueError(msg)
            road.check_target(y)
        return roads
    found: dict[str, Road] = {"frame": FrameRoad()}
    # The forest of the grid keeps no order.
    if len(y) <= _MOST_ROWS_FOR_GRID and settings.monotone is None:
        found["grid"] = GridRoad()
    shift = _log_shift(y)
    if shift is not None:
        found["log"] = _log_road(y, shift)
    return found


def discrete_roads(settings: Settings, y: Float64Array) -> dict[str, Road]:
    """Return the roads to a discrete target by name.

    A smooth road of the user's answers by cells around the values.

    Parameters
    ----------
    settings : Settings
    y : ndarray of shape (n,)
    """
    if settings.single:
        return {"discrete": DiscreteRoad(settings.strategy)}
    if settings.roads != "auto":
        roads = _named(_listed(settings.roads))
        for road in roads.values():
            road.check_target(y)
        return {n: r if r.discrete else CellRoad(r) for n, r in roads.items()}
    return {"discrete": DiscreteRoad()}


def rounded_roads(y: Float64Array, cell: float) -> dict[str, Road]:
    """Return the smooth roads to a target that is anywhere in its cell, by name.

    Parameters
    ----------
    y : ndarray of shape (m,)
        As it was rounded.
    cell : float
        Width of the cell of the least value.
    """
    found: dict[str, Road] = {"frame": FrameRoad()}
    if len(np.unique(y)) < MANY_VALUES:
        return found
    shift = _log_shift(y, max(cell - float(y.min()), 0.0))
    if shift is not None:
        found["log"] = _log_road(y, shift)
    return found


def _log_road(y: Float64Array, shift: float) -> Transformed:
    """Return the road to log(y + shift)."""
    most = min(float(y.max()), range_without_outliers(y, np.ones(len(y)))[1])
    return Transformed(FrameRoad(), LogOf(shift, most), ExpLess(shift, most))


def _described(settings: Settings) -> FrameRoad:
    """Return the road that the regressor's own parameters describe."""
    return FrameRoad(
        settings.frame,
        thresholds=settings.thresholds,
        n_thresholds=settings.n_thresholds,
        strategy=settings.strategy,
    )


def _listed(roads: Any) -> list[Any]:
    return list(roads) if isinstance(roads, list | tuple) else [roads]


def _named(roads: list[Road]) -> dict[str, Road]:
    """Return roads by name; of several of a kind the later ones have a number."""
    found: dict[str, Road] = {}
    for road in roads:
        name = _NAMES.get(type(road), type(road).__name__)
        same = sum(key.split(" ")[0] == name for key in found)
        found[f"{name} {same + 1}" if same else name] = road
    return found


def _log_shift(y: Float64Array, shift: float | None = None) -> float | None:
    """Return the c of log(y + c) if that may suit the target, else None.

    It is `shift`, or by default 0, and half of the least y above 0 where some are 0.
    """
    if y.min() < 0.0 or np.ptp(y) == 0.0:
        return None
    deviation = y - y.mean()
    if np.mean(deviation**3) <= _SKEWED * np.std(y) ** 3:
        return None
    if shift is not None:
        return shift
    return 0.0 if y.min() > 0.0 else 0.5 * float(y[y > 0.0].min())
