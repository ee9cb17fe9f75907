"""`Plan`: which roads compete for a target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.sample import Sample
from localexpert.data.target_values import count_values, range_without_outliers
from localexpert.experts.thresholds import FEW_VALUES, find_atoms, is_discrete
from localexpert.forecasters.cells import MANY_VALUES, Cells
from localexpert.forecasters.competitors import (
    discrete_roads,
    rounded_roads,
    smooth_roads,
)
from localexpert.forecasters.fit_report import FitReport
from localexpert.forecasters.forecaster import Forecaster, RoadForecaster
from localexpert.forecasters.mixed import MixedForecaster
from localexpert.forecasters.near_atoms import NearAtoms
from localexpert.forecasters.pooled import PooledForecaster
from localexpert.forecasters.roads import DiscreteRoad, Road
from localexpert.forecasters.settings import UNBOUNDED, Settings
from localexpert.forecasters.stepped import SteppedForecaster
from localexpert.forecasters.tails import Tails
from localexpert.law.steps import cell_edges

# A smooth rest beside atoms has at least so many different values.
_LEAST_REST = 10
# A value at an end that is met so many times as often as the next three, and more often
# than so many rows, is inflated.
_INFLATED, _LEAST_INFLATED = 2.0, 20.0
# The marginal of a coordinate is told to this share of its size, or better.
_LEAST_SPAN = 1e-10


@dataclass(frozen=True)
class Plan:
    """The forecaster for a target.

    Few distinct values, most of them repeated (`is_discrete`): probabilities per
    value. Otherwise values that hold 2 % of the weight are atoms beside a smooth rest,
    or what a smooth target is rounded to, whichever forecasts better, or their pool; or
    all is discrete, if less than 10 values are left for the rest. Given `thresholds`
    or a smooth target: smooth roads alone. So it is where an order of rows is to be
    kept: two ordered parts beside ordered probabilities of atoms may cross.

    Parameters
    ----------
    target : str
    forecaster : Forecaster
        Unfitted.
    """

    target: str
    forecaster: Forecaster

    @classmethod
    def of(cls, settings: Settings, sample: Sample) -> Plan:
        """Look at the target, and choose the roads that compete for it."""
        present = sample.weight > 0.0
        held, weight = sample.y[present], sample.weight[present]
        n = len(held)
        if np.ptp(held) == 0.0:
            msg = (
                "`y` must differ in the rows that no recalibration sets aside, "
                f"got {held[0]:g} only."
            )
            raise ValueError(msg)
        placed = settings.places_thresholds
        atoms = find_atoms(held, sample_weight=weight) if placed else np.empty(0)
        smooth = held[~np.isin(held, atoms)]
        settings = settings.with_atoms(atoms)
        few = len(atoms) > 0 and len(np.unique(smooth)) < _LEAST_REST
        if few or (placed and is_discrete(held, sample_weight=weight)):
            road = _discrete(settings, held, weight)
            if len(np.unique(held)) > FEW_VALUES:
                road = SteppedForecaster(road, Tails(settings.bounds))
            return cls("discrete", road)
        _check_told_apart(held, weight)
        if settings.monotone is not None:
            atoms, smooth = atoms[:0], held
        road = _compete(smooth_roads(settings, smooth), settings, n)
        if len(atoms) == 0:
            return cls("continuous", road)
        mixed = _mix(settings, atoms, road, n)
        if not settings.chooses_roads:
            return cls("mixed", mixed)
        # Or atoms are what a smooth target was rounded to: then all rows tell of it.
        whole = _compete(smooth_roads(settings, held), settings, n)
        rounded = SteppedForecaster(whole, NearAtoms(atoms))
        pool = PooledForecaster({"mixed": mixed, "smooth": rounded}, settings.seed)
        return cls("mixed", pool)

    def report(self, forecaster: Any) -> FitReport:
        """Return what the fitted forecaster chose."""
        return FitReport(self.target, forecaster.choices())


def _mix(
    settings: Settings, atoms: Float64Array, road: RoadForecaster, n: int
) -> MixedForecaster:
    """Return atoms beside a road to the rest."""
    # Numbers of atoms, not values: there are no others.
    numbered = replace(settings, bounds=(0.0, float(len(atoms))))
    strategy = settings.strategy if settings.single else "auto"
    return MixedForecaster(atoms, DiscreteRoad(strategy).forecaster(numbered, n), road)


def _discrete(
    settings: Settings, y: Float64Array, weight: Float64Array
) -> RoadForecaster:
    """Return what competes for a discrete target."""
    made = _make(discrete_roads(settings, y), settings, len(y))
    if settings.chooses_roads and len(np.unique(y)) > 2:
        made["cells"] = _rounded(settings, y, weight)
    return _pool(made, settings)


def _rounded(
    settings: Settings, y: Float64Array, weight: Float64Array
) -> RoadForecaster:
    """Return smooth roads to a discrete target, beside inflated values at its ends.

    What is not at these is on the other side of the edge of their cells.
    """
    values, sums = count_values(y, weight)
    edges = cell_edges(values)
    # Two ordered parts beside ordered probabilities of atoms may cross.
    ends = _inflated(values, sums) if settings.monotone is None else (False, False)
    low = float(edges[1]) if ends[0] else -np.inf
    high = float(edges[-2]) if ends[1] else np.inf
    atoms = values[[0, -1]][list(ends)]
    # The cells of the outermost values reach as far as there is mass.
    smooth = replace(settings, bounds=(low, high), suspected=UNBOUNDED)
    rest = y[~np.isin(y, atoms)]
    roads = rounded_roads(rest, float(values[1] - values[0]))
    road = _compete(roads, smooth, len(rest))
    if len(atoms):
        road = _mix(settings, atoms, road, len(y))
    return SteppedForecaster(road, Cells(settings.bounds, atoms, settings.seed))


def _inflated(values: Float64Array, weight: Float64Array) -> tuple[bool, bool]:
    """Return whether the least and the greatest value are met too often to be smooth.

    That is twice as often as any of the next three.
    """
    if len(values) < MANY_VALUES:
        return False, False
    first, last = (
        bool(own[0] > max(_INFLATED * own[1:4].max(), _LEAST_INFLATED))
        for own in (weight, weight[::-1])
    )
    return first, last


def _pool(made: dict[str, RoadForecaster], settings: Settings) -> RoadForecaster:
    """Return the unfitted road, or the pool of several."""
    if len(made) == 1:
        return next(iter(made.values()))
    return PooledForecaster(made, settings.seed, exact=settings.monotone is not None)


def _compete(roads: dict[str, Road], settings: Settings, n: int) -> RoadForecaster:
    """Return the unfitted road, or the pool of several."""
    return _pool(_make(roads, settings, n), settings)


def _make(
    roads: dict[str, Road], settings: Settings, n: int
) -> dict[str, RoadForecaster]:
    """Return the unfitted stages of each road."""
    return {name: road.forecaster(settings, n) for name, road in roads.items()}


def _check_told_apart(y: Float64Array, weight: Float64Array) -> None:
    """Refuse a smooth target of which floats tell little but where it lies."""
    near = np.clip(y, *range_without_outliers(y, weight))
    size = float(np.abs(near).max())
    if np.ptp(near) < _LEAST_SPAN * size:
        msg = (
            f"`y` must differ by more than {_LEAST_SPAN:g} of its size, got values "
            f"from {near.min():.17g} to {near.max():.17g}: subtract one of them."
        )
        raise ValueError(msg)
