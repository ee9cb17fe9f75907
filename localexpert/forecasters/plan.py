"""`Plan`: which roads compete for a target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.ordinary import ordinary_range
from localexpert.data.sample import Sample
from localexpert.experts.thresholds import FEW_VALUES, find_atoms, is_discrete
from localexpert.forecasters.competitors import discrete_roads, smooth_roads
from localexpert.forecasters.fit_report import FitReport
from localexpert.forecasters.forecaster import Forecaster, RoadForecaster
from localexpert.forecasters.mixed import MixedForecaster
from localexpert.forecasters.near_atoms import NearAtoms
from localexpert.forecasters.pooled import PooledForecaster
from localexpert.forecasters.roads import DiscreteRoad, Road
from localexpert.forecasters.settings import Settings
from localexpert.forecasters.stepped import SteppedForecaster
from localexpert.forecasters.tails import Tails

# A smooth rest beside atoms has at least so many different values.
_LEAST_REST = 10
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
            road = _compete(discrete_roads(settings, held), settings, n)
            if len(np.unique(held)) > FEW_VALUES:
                road = SteppedForecaster(road, Tails(settings.bounds))
            return cls("discrete", road)
        _check_told_apart(held, weight)
        if settings.monotone is not None:
            atoms, smooth = atoms[:0], held
        road = _compete(smooth_roads(settings, smooth), settings, n)
        if len(atoms) == 0:
            return cls("continuous", road)
        # Numbers of atoms, not values: there are no others.
        numbered = replace(settings, bounds=(0.0, float(len(atoms))))
        strategy = settings.strategy if settings.single else "auto"
        choice = DiscreteRoad(strategy).forecaster(numbered, n)
        mixed = MixedForecaster(atoms, choice, road)
        if settings.single or settings.roads != "auto":
            return cls("mixed", mixed)
        # Or atoms are what a smooth target was rounded to: then all rows tell of it.
        whole = _compete(smooth_roads(settings, held), settings, n)
        rounded = SteppedForecaster(whole, NearAtoms(atoms))
        pool = PooledForecaster({"mixed": mixed, "smooth": rounded}, settings.seed)
        return cls("mixed", pool)

    def report(self, forecaster: Any) -> FitReport:
        """Return what the fitted forecaster chose."""
        return FitReport(self.target, forecaster.choices())


def _compete(roads: dict[str, Road], settings: Settings, n: int) -> RoadForecaster:
    """Return the unfitted road, or the pool of several."""
    made = {name: road.forecaster(settings, n) for name, road in roads.items()}
    if len(made) == 1:
        return next(iter(made.values()))
    return PooledForecaster(made, settings.seed, exact=settings.monotone is not None)


def _check_told_apart(y: Float64Array, weight: Float64Array) -> None:
    """Refuse a smooth target of which floats tell little but where it lies."""
    near = np.clip(y, *ordinary_range(y, weight))
    size = float(np.abs(near).max())
    if np.ptp(near) < _LEAST_SPAN * size:
        msg = (
            f"`y` must differ by more than {_LEAST_SPAN:g} of its size, got values "
            f"from {near.min():.17g} to {near.max():.17g}: subtract one of them."
        )
        raise ValueError(msg)
