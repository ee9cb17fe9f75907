"""`Settings`: the parameters of a fit, checked once and shared by all roads."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from calibration._validation import check_choice, check_n_jobs, is_auto, refuse, show
from calibration.typing import Float64Array
from localexpert._validation import check_bounds
from localexpert.coordinate.families import predicts_numbers
from localexpert.curves.spline import CurveBuilder, ProbitSpline, RawSpline
from localexpert.data.directions import Directions, check_directions
from localexpert.experts.calibration import ExpertCalibration, check_calibrator
from localexpert.learn.roads import FrameRoad, Road, check_thresholds, refuse_order
from localexpert.learn.steps import UNBOUNDED, Bounds, Limits
from localexpert.recalibration.conformal import ConformalRecalibration
from localexpert.recalibration.pit import PitRecalibration

_LEVELS = ("quick", "default", "best")
# Share of the seconds that is kept for the work after the roads: their pool, its
# recalibration and its check.
_LEFT = 0.15
_ROW_BY_ROW = ("pchip", "smoothing_spline")


@dataclass(frozen=True)
class Effort:
    """How much time a fit may take.

    Parameters
    ----------
    level : {"quick", "residuals", "default", "best", "timed"}
        "residuals" is as quick, but around the centre of the default.
    end : float
        When the time of "timed" ends, as a value of `time.perf_counter`.
    """

    level: str = "default"
    end: float = np.inf

    @classmethod
    def of(cls, given: Any) -> Effort:
        """Read the parameter of a regressor. Its seconds start to run now."""
        if isinstance(given, Effort):
            return given
        if isinstance(given, str) and given in _LEVELS:
            return cls(given)
        number = isinstance(given, Real) and not isinstance(given, bool | np.bool_)
        if not number or not 0.0 < float(given) < np.inf:
            levels = ", ".join(map(repr, _LEVELS))
            rule = f"be one of {levels} or a positive number of seconds"
            refuse("effort", rule, repr(given))
        return cls("timed", time.perf_counter() + (1.0 - _LEFT) * float(given))

    def allows(self, seconds: float) -> bool:
        """Return whether there is time for work that takes this long.

        Parameters
        ----------
        seconds : float

        Returns
        -------
        bool
        """
        return time.perf_counter() + seconds <= self.end


@dataclass(frozen=True, eq=False)
class Settings:
    """The regressor's parameters as all roads read them.

    Parameters
    ----------
    described : Road
        The road that `frame`, `thresholds`, `n_thresholds` and `strategy` describe.
    single : bool
        Whether the user asked for that road.
    roads : tuple of Road
        The roads that the user named. Empty if the fit chooses them.
    expert, center, calibrator, n_jobs, cv
        As the user gave them.
    builder : ProbitSpline or RawSpline, optional
        The spline that the user asked for. By default a road compares several.
    limits : Limits
    out_of_bag : bool
        Whether a stage may predict a row by trees that did not draw it. This is False
        if the user gives folds, because rows may depend on each other within a fold.
    seed : int
        Seed of every stage of the fit.
    monotone : mapping of column to {-1, 1}, optional
        Directions of columns. Everything that the fit chooses must keep them.
    effort : Effort
    """

    described: Road
    single: bool
    roads: tuple[Road, ...]
    expert: Any
    center: Any
    calibrator: Any
    builder: CurveBuilder | None
    limits: Limits
    out_of_bag: bool
    n_jobs: int | None
    seed: int
    monotone: Directions | None
    effort: Effort
    cv: Any

    @classmethod
    def check(
        cls, model: Any, y: Float64Array, *, out_of_bag: bool, seed: int
    ) -> Settings:
        """Read the parameters of a regressor. Refuse those that do not suit y."""
        check_calibrator(model.calibrator)
        check_n_jobs(model.n_jobs)
        monotone = check_directions(model.monotone)
        if monotone is not None:
            _check_order(model)
        described = FrameRoad(
            model.frame,
            thresholds=check_thresholds(model.thresholds),
            n_thresholds=model.n_thresholds,
            strategy=model.strategy,
        )
        described.settle(model.expert, model.calibrator, monotone)
        single = model.expert is not None or bool(described.named_parts())
        _check_center(model.center)
        same = ("expert", "center", "calibrator", "n_jobs", "cv")
        settings = cls(
            described=described,
            single=single,
            roads=_read_roads(model.roads, single),
            builder=_read_smoothing(model.smoothing),
            limits=_read_limits(model.bounds, y),
            out_of_bag=out_of_bag,
            seed=seed,
            monotone=monotone,
            effort=Effort.of(model.effort),
            **{name: getattr(model, name) for name in same},
        )
        for road in settings.roads:
            settings.settle(road)
        return settings

    def settle(self, road: Road) -> Road:
        """Apply to a road what the user asked of all roads, and check it."""
        return road.settle(self.expert, self.calibrator, self.monotone)

    def within(self, bounds: Bounds) -> Settings:
        """Return the settings for a target with other bounds."""
        return replace(self, limits=replace(self.limits, bounds=bounds))

    @property
    def common(self) -> dict[str, Any]:
        """What all learners of a fit are told: number of jobs, and seed."""
        return {"n_jobs": self.n_jobs, "random_state": self.seed}

    @property
    def chooses_roads(self) -> bool:
        """Whether the fit chooses the roads: the user named and described none."""
        return not self.single and not self.roads

    def quick(self) -> Settings:
        """Return the settings of a quick fit, whose centre is boosted trees."""
        center = "boosting" if isinstance(self.center, str) else self.center
        return replace(self, effort=Effort("quick"), center=center)

    @property
    def is_quick(self) -> bool:
        """Whether the law of the residuals must be enough, without experts."""
        level = self.effort.level
        return level in ("quick", "residuals") and self.monotone is None


def _read_roads(roads: Any, single: bool) -> tuple[Road, ...]:
    """Return the roads that the user named. "auto" gives none."""
    if isinstance(roads, str):
        if roads != "auto":
            refuse("roads", 'be "auto", a Road or a list of them', repr(roads))
        return ()
    if single:
        msg = (
            '`roads` must be "auto" where `expert`, `frame`, `strategy`, `thresholds` '
            "or `n_thresholds` describe one road: name them in a FrameRoad."
        )
        raise ValueError(msg)
    given = tuple(roads) if isinstance(roads, list | tuple) else (roads,)
    if len(given) == 0:
        refuse("roads", "hold at least one road", "none")
    for road in given:
        if not isinstance(road, Road):
            rule = "hold roads such as FrameRoad()"
            refuse("roads", rule, f"{road!r:.80}", TypeError)
    return given


def _check_order(model: Any) -> None:
    """Refuse parameters of a regressor with `monotone` that cannot keep the order."""
    ExpertCalibration(model.calibrator, increasing=True).kinds()
    smoothing, given = model.smoothing, model.recalibrate
    row_by_row = smoothing in _ROW_BY_ROW or isinstance(smoothing, RawSpline)
    ours = str | PitRecalibration | ConformalRecalibration | None
    rules = {
        "expert": (model.expert is None, "None, for its answers have no order"),
        "center": (isinstance(model.center, str), '"stack", for there is no centre'),
        "stacker": (model.stacker is None, "None, for it may move any row"),
        "smoothing": (
            not row_by_row,
            '"auto" or a number, for this one bends each row in its own way',
        ),
        "recalibrate": (
            isinstance(given, ours),
            'None, "pit" or "conformal", which have one increasing map for all rows',
        ),
    }
    for name, (keeps_order, rule) in rules.items():
        if not keeps_order:
            refuse_order(name, getattr(model, name), rule)


def _check_center(center: Any) -> None:
    """Refuse anything that cannot predict a centre."""
    if isinstance(center, str) and center == "stack":
        return
    given = center if isinstance(center, list | tuple) and center else [center]
    for one in given:
        if not predicts_numbers(one):
            rule = 'be "stack", a regressor or a list of them'
            got = f"{one!r}; without a centre take frame=None"
            kind = ValueError if isinstance(one, str) else TypeError
            refuse("center", rule, got, kind)


def _read_limits(bounds: Any, y: Float64Array) -> Limits:
    """Return bounds that hold every y. "auto" gives ends that y suggests: 0, and 1."""
    if bounds is None:
        return Limits()
    if isinstance(bounds, str):
        check_choice(bounds, "bounds", ("auto",))
        least, most = float(y.min()), float(y.max())
        share = least >= 0.0 and most <= 1.0
        upper = 1.0 if share else 0.0 if most <= 0.0 else np.inf
        return Limits(UNBOUNDED, (0.0 if least >= 0.0 else -np.inf, upper))
    low, high = check_bounds(bounds)
    outside = y[(y < low) | (y > high)]
    if len(outside):
        got = f"({show(low)}, {show(high)}) and y = {show(outside[0])}"
        refuse("bounds", "hold every y", got)
    return Limits((low, high))


def _read_smoothing(smoothing: Any) -> CurveBuilder | None:
    """Return the spline that the user asked for, or None if a road may choose."""
    if is_auto(smoothing):
        return None
    if isinstance(smoothing, RawSpline):
        return smoothing
    if isinstance(smoothing, str) and smoothing in _ROW_BY_ROW:
        return RawSpline(smoothing)  # type: ignore[arg-type]
    number = isinstance(smoothing, Real) and not isinstance(smoothing, bool)
    if not number or not float(smoothing) >= 0.0:
        names = '"auto", "pchip", "smoothing_spline"'
        rule = f"be {names}, a RawSpline or a number of at least 0"
        refuse("smoothing", rule, repr(smoothing))
    return ProbitSpline(float(smoothing))
