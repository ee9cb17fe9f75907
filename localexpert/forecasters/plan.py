"""`Plan`: which road a target takes, and with which stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import (
    check_bounds,
    check_choice,
    check_increasing,
    check_integer,
    check_vector,
)
from localexpert.coordinate import Frame
from localexpert.curves.spline import CurveBuilder, ProbitSpline, RawSpline
from localexpert.data.folds import Fold
from localexpert.experts import (
    Experts,
    IndependentExperts,
    JointForest,
    SharedBoosting,
)
from localexpert.experts.calibration import ExpertCalibration
from localexpert.experts.classifiers import check_classifier
from localexpert.experts.task_record import TaskRecord
from localexpert.experts.thresholds import find_atoms, is_discrete
from localexpert.forecasters.continuous import ContinuousForecaster
from localexpert.forecasters.discrete import DiscreteForecaster
from localexpert.forecasters.fit_report import FitReport
from localexpert.forecasters.mixed import MixedForecaster
from localexpert.laws.law import Law

FRAMES = ("auto", "standardize", "center")
# Curvature weights to choose from: none to nearly a straight line.
SMOOTHINGS = (0.01, 0.1, 1.0, 10.0)
# Above this many rows the forest of "auto" costs more time than it gains score.
MOST_ROWS_FOR_FOREST = 200_000


class Forecaster(Protocol):
    """A road from rows to laws."""

    @property
    def oof_law_(self) -> Law:
        """Honest laws of the training rows."""
        ...

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts said out of fold."""
        ...

    def fit(
        self, X: Any, y: Float64Array, folds: list[Fold], weight: Float64Array
    ) -> Any:
        """Fit every stage."""
        ...

    def law(self, X: Any) -> Law:
        """Return the laws of new rows."""
        ...

    def points(self, X: Any) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say of new rows."""
        ...


@dataclass(frozen=True)
class Plan:
    """The forecaster for a target.

    Few distinct values, all repeated (`is_discrete`): probabilities per value.
    Otherwise values that hold 2 % of the weight are atoms beside a smooth rest. A
    given `thresholds` or a smooth target: the smooth road alone.

    Parameters
    ----------
    target : str
    forecaster : Forecaster
        Unfitted.
    """

    target: str
    forecaster: Forecaster

    @classmethod
    def of(
        cls, model: Any, y: Float64Array, weight: Float64Array, *, own_folds: bool
    ) -> Plan:
        """Read the regressor's parameters and look at the target.

        With `own_folds` (groups, or a splitter of the user's) rows may depend on each
        other within a fold: no stage may predict a row out of bag instead.
        """
        held = y[weight > 0.0]
        named = isinstance(model.thresholds, str)
        if named:
            check_choice(model.thresholds, "thresholds", ("quantile", "uniform"))
        else:
            check_increasing(check_vector(model.thresholds, "thresholds"), "thresholds")
        members = _members(model, len(held), out_of_bag=not own_folds)
        if named and is_discrete(held):
            return cls("discrete", _discrete(model, members))
        smooth = ContinuousForecaster(
            frame=_frame(model, named=named, out_of_bag=not own_folds),
            thresholds=model.thresholds,
            n_thresholds=check_integer(model.n_thresholds, "n_thresholds", 1),
            members=members,
            calibration=_calibration(model),
            builders=_builders(model.smoothing),
            bounds=_bounds(model.bounds, held),
            random_state=_seed(model),
        )
        atoms = find_atoms(held, sample_weight=weight[weight > 0.0])
        rest = ~np.isin(held, atoms)
        if not named or len(atoms) == 0 or len(np.unique(held[rest])) < 10:
            return cls("continuous", smooth)
        choice = _discrete(model, members)
        return cls("mixed", MixedForecaster(atoms, choice, smooth))

    def report(self, forecaster: Any) -> FitReport:
        """Return what the fitted forecaster chose."""
        return FitReport(self.target, forecaster.choices())


def _discrete(model: Any, members: dict[str, Experts]) -> DiscreteForecaster:
    return DiscreteForecaster(members, _calibration(model))


def _calibration(model: Any) -> ExpertCalibration:
    return ExpertCalibration(model.calibrator, random_state=_seed(model))


def _seed(model: Any) -> int:
    """Return one seed for all stages of a fit."""
    if model.random_state is None:
        return int(np.random.default_rng().integers(2**31))
    return int(model.random_state)


def _members(model: Any, n: int, *, out_of_bag: bool) -> dict[str, Experts]:
    """Return the strategies by name."""
    common = {"n_jobs": model.n_jobs, "random_state": _seed(model)}
    strategy = model.strategy
    if model.expert is not None:
        check_classifier(model.expert, "expert")
    if isinstance(strategy, Experts):
        return {type(strategy).__name__: strategy}
    check_choice(strategy, "strategy", ("auto", "shared", "joint", "independent"))
    if strategy == "auto":
        strategy = "independent" if model.expert is not None else strategy
    elif model.expert is not None and strategy != "independent":
        msg = (
            '`strategy` must be "independent" or "auto" with an `expert`, '
            f"got {strategy!r}."
        )
        raise ValueError(msg)
    if strategy == "independent":
        return {"independent": IndependentExperts(model.expert, **common)}
    shared = {"shared": SharedBoosting(**common)}
    joint: dict[str, Experts] = {"joint": JointForest(out_of_bag=out_of_bag, **common)}
    if strategy == "auto":
        return shared | joint if n <= MOST_ROWS_FOR_FOREST else {**shared}
    return {**shared} if strategy == "shared" else joint


def _frame(model: Any, *, named: bool, out_of_bag: bool) -> Frame:
    """Return the frame; thresholds given as numbers are in units of y."""
    kind = model.frame
    if kind is not None and kind not in FRAMES:
        msg = f"`frame` must be None or one of {', '.join(FRAMES)}, got {kind!r}."
        raise ValueError(msg)
    _check_center(model.center)
    if not named:
        if kind not in (None, "auto"):
            msg = (
                "`frame` must be None where `thresholds` are given in units of y, "
                f"got {kind!r}."
            )
            raise ValueError(msg)
        kind = None
    return Frame(
        kind,
        model.center,
        out_of_bag=out_of_bag,
        n_jobs=model.n_jobs,
        random_state=_seed(model),
    )


def _check_center(center: Any) -> None:
    """Refuse what cannot predict a centre."""
    if isinstance(center, str) and center == "stack":
        return
    given = center if isinstance(center, list | tuple) and center else [center]
    for one in given:
        fits = hasattr(one, "fit") and hasattr(one, "predict")
        if isinstance(one, str | type) or not fits:
            msg = (
                '`center` must be "stack", a regressor or a list of them, '
                f"got {one!r}; without a centre take frame=None."
            )
            raise (ValueError if isinstance(one, str) else TypeError)(msg)


def _builders(smoothing: Any) -> Sequence[CurveBuilder]:
    """Return the splines to choose from."""
    if smoothing == "auto":
        return [ProbitSpline(s) for s in SMOOTHINGS]
    if isinstance(smoothing, str):
        check_choice(smoothing, "smoothing", ("auto", "pchip", "smoothing_spline"))
        return [RawSpline(smoothing)]  # type: ignore[arg-type]
    if isinstance(smoothing, bool) or not smoothing >= 0.0:
        msg = (
            '`smoothing` must be "auto", "pchip", "smoothing_spline" or a number of '
            f"at least 0, got {smoothing!r}."
        )
        raise ValueError(msg)
    return [ProbitSpline(float(smoothing))]


def _bounds(bounds: Any, y: Float64Array) -> tuple[float, float]:
    """Return bounds that hold every target."""
    if bounds is None:
        return -np.inf, np.inf
    low, high = check_bounds(bounds)
    outside = y[(y < low) | (y > high)]
    if len(outside):
        msg = f"`bounds` must hold every y, got {bounds} and y = {outside[0]:g}."
        raise ValueError(msg)
    return low, high
