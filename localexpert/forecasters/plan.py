"""`Plan`: which road a target takes, and with which stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.data.ordinary import ordinary_range
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.calibrated_experts import CalibratedExperts
from localexpert.experts.task_record import TaskRecord
from localexpert.experts.thresholds import find_atoms, is_discrete
from localexpert.forecasters.continuous import ContinuousForecaster
from localexpert.forecasters.discrete import DiscreteForecaster
from localexpert.forecasters.fit_report import FitReport
from localexpert.forecasters.mixed import MixedForecaster
from localexpert.forecasters.settings import Settings
from localexpert.laws.law import Law

# A smooth rest beside atoms has at least so many different values.
_LEAST_REST = 10
# The marginal of a coordinate is told to this share of its size, or better.
_LEAST_SPAN = 1e-10


class Forecaster(Protocol):
    """A road from rows to laws."""

    @property
    def oof_law_(self) -> Law:
        """Honest laws of training rows."""
        ...

    @property
    def judged_(self) -> Rows:
        """Rows that `oof_law_` speaks of: those that are forecast out of fold."""
        ...

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts said out of fold."""
        ...

    def fit(self, sample: Sample) -> Any:
        """Fit every stage."""
        ...

    def law(self, table: Table) -> Law:
        """Return the laws of new rows."""
        ...

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say of new rows."""
        ...


@dataclass(frozen=True)
class Plan:
    """The forecaster for a target.

    Few distinct values, most of them repeated (`is_discrete`): probabilities per
    value. Otherwise values that hold 2 % of the weight are atoms beside a smooth rest;
    or all is discrete, if less than 10 values are left for that. Given `thresholds` or
    a smooth target: the smooth road alone.

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
        """Look at the target, and choose its road."""
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
        rest = np.unique(held[~np.isin(held, atoms)])
        few = len(atoms) > 0 and len(rest) < _LEAST_REST
        if few or (placed and is_discrete(held, sample_weight=weight)):
            choice = DiscreteForecaster(_experts(settings, n), settings.bounds)
            return cls("discrete", choice)
        _check_told_apart(held, weight)
        smooth = ContinuousForecaster(
            frame=settings.make_frame(),
            thresholds=settings.thresholds,
            n_thresholds=settings.n_thresholds,
            experts=_experts(settings, n),
            builders=settings.make_builders(),
            bounds=settings.bounds,
            random_state=settings.seed,
        )
        if len(atoms) == 0:
            return cls("continuous", smooth)
        # Numbers of atoms, not values: there are no others.
        choice = DiscreteForecaster(_experts(settings, n), (0.0, float(len(atoms))))
        return cls("mixed", MixedForecaster(atoms, choice, smooth))

    def report(self, forecaster: Any) -> FitReport:
        """Return what the fitted forecaster chose."""
        return FitReport(self.target, forecaster.choices())


def _experts(settings: Settings, n: int) -> CalibratedExperts:
    return CalibratedExperts(settings.members(n), settings.make_calibration())


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
