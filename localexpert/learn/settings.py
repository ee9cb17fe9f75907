"""`Settings`: what a user asked of a fit, checked once and typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.base import clone

from calibration.typing import Float64Array
from localexpert._validation import (
    check_bounds,
    check_choice,
    check_increasing,
    check_integer,
    check_n_jobs,
    check_vector,
    show,
)
from localexpert.coordinate import Frame
from localexpert.coordinate.families import predicts_numbers
from localexpert.curves.spline import CurveBuilder, ProbitSpline, RawSpline
from localexpert.data.directions import Directions, check_directions
from localexpert.experts import (
    Experts,
    IndependentExperts,
    JointForest,
    SharedBoosting,
)
from localexpert.experts.calibration import ExpertCalibration, check_calibrator
from localexpert.experts.classifiers import check_classifier
from localexpert.learn.base_rates import BaseRates
from localexpert.learn.effort import DEFAULT_EFFORT, Effort
from localexpert.learn.order import (
    check_order,
    check_order_of_frame,
    order_strategy,
)

FrameKind: TypeAlias = Literal["auto", "standardize", "center"] | None
Bounds: TypeAlias = tuple[float, float]

UNBOUNDED: Bounds = (-np.inf, np.inf)
_FRAMES = ("auto", "standardize", "center")
_STRATEGIES = ("auto", "shared", "joint", "deep", "independent", "marginal")
# What a road is left to choose.
_USUAL = {
    "frame": "auto",
    "strategy": "auto",
    "thresholds": "quantile",
    "n_thresholds": 25,
}
# Above this many rows the forest of "auto" costs more time than it gains score.
_MOST_ROWS_FOR_FOREST = 200_000
# Trees of a forest that is one member of a pool: with twice as many a pool scores the
# same.
_DEEP_TREES = 100


@dataclass(frozen=True)
class Settings:
    """The regressor's parameters as the stages read them.

    Parameters
    ----------
    expert : classifier or None
    thresholds : {"quantile", "uniform"} or ndarray of shape (N,)
    n_thresholds : int
    frame : {"auto", "standardize", "center"} or None
    center : "stack", regressor or list of regressors
    strategy : {"auto", "shared", "joint", "independent"} or Experts
    calibrator : str, ScoreCalibrator or None
    smoothing : "auto", float, "pchip" or "smoothing_spline"
    bounds : (float, float)
        Infinite where there is none.
    suspected : (float, float)
        Ends that are bounds if forecasts without them say so.
    out_of_bag : bool
        Whether a stage may predict a row by trees that did not draw it. Not where
        rows depend on each other within folds of the user's.
    n_jobs : int or None
    seed : int
        Of every stage of the fit.
    roads : "auto", Road or list of Road
    single : bool
        Whether the parameters describe one road.
    max_shape : float
        Greatest shape of the tails of marginals.
    smoothings : tuple of float
        Steps between knots to choose from, where `smoothing` is "auto".
    monotone : dict, list or None
        Directions of columns, which all that is chosen must keep.
    effort : Effort
    cv : int, "auto" or splitter
    """

    expert: Any
    thresholds: str | Float64Array
    n_thresholds: int
    frame: FrameKind
    center: Any
    strategy: str | Experts
    calibrator: Any
    smoothing: float | str
    bounds: Bounds
    out_of_bag: bool
    n_jobs: int | None
    seed: int
    roads: Any = "auto"
    single: bool = False
    max_shape: float = 0.2
    smoothings: tuple[float, ...] = ()
    suspected: Bounds = UNBOUNDED
    monotone: Directions | None = None
    effort: Effort = DEFAULT_EFFORT
    cv: Any = "auto"

    @classmethod
    def check(
        cls, model: Any, y: Float64Array, *, out_of_bag: bool, seed: int
    ) -> Settings:
        """Read the parameters of a regressor, and refuse what cannot be fitted to y."""
        thresholds = _check_thresholds(model.thresholds)
        check_calibrator(model.calibrator)
        check_n_jobs(model.n_jobs)
        monotone = check_directions(model.monotone)
        if monotone is not None:
            check_order(model)
        settings = cls(
            expert=model.expert,
            thresholds=thresholds,
            n_thresholds=check_integer(model.n_thresholds, "n_thresholds", 1),
            frame=check_frame(model.frame, thresholds),
            center=_check_center(model.center),
            strategy=check_strategy(model.strategy, model.expert),
            calibrator=model.calibrator,
            smoothing=_check_smoothing(model.smoothing),
            bounds=_check_bounds(model.bounds, y),
            suspected=_suspect(y) if model.bounds == "auto" else UNBOUNDED,
            out_of_bag=out_of_bag,
            n_jobs=model.n_jobs,
            seed=seed,
            roads=model.roads,
            single=bool(_named_parts(model)),
            monotone=monotone,
            effort=Effort.of(model.effort),
            cv=model.cv,
        )
        return settings.in_order()

    def in_order(self) -> Settings:
        """Return the settings that keep the order of `monotone`; refuse others."""
        if self.monotone is None:
            return self
        ExpertCalibration(self.calibrator, increasing=True).kinds()
        check_order_of_frame(self.frame)
        strategy = order_strategy(self.strategy, self.monotone)
        return replace(self, frame=None, strategy=strategy)

    def with_atoms(self, atoms: Float64Array) -> Settings:
        """Return the settings of a target with atoms: one at an end is a bound."""
        low, high = self.suspected
        held = tuple(
            end if end in atoms else given
            for end, given in zip((low, high), self.bounds, strict=True)
        )
        return replace(self, bounds=(held[0], held[1]))

    def for_road(self, road: Any) -> Settings:
        """Return the settings with what a `Road` names, checked."""
        own = replace(
            self,
            thresholds=check_road_thresholds(road.thresholds),
            n_thresholds=road.n_thresholds,
            frame=check_frame(road.frame, road.thresholds),
            strategy=check_strategy(road.strategy, self.expert),
            smoothings=road.smoothings,
        ).in_order()
        if _is_auto(own.calibrator) and own.monotone is None:
            check_calibrator(road.calibrator)
            own = replace(own, calibrator=road.calibrator)
        return own

    @property
    def chooses_roads(self) -> bool:
        """Whether the user named no roads, and described none."""
        return not self.single and isinstance(self.roads, str)

    def quick(self) -> Settings:
        """Return the settings of a fit that is quick: boosted trees are its centre."""
        stack = isinstance(self.center, str)
        center = "boosting" if stack else self.center
        return replace(self, effort=Effort("quick"), center=center)

    @property
    def is_quick(self) -> bool:
        """Whether the law of the residuals has to do, without experts."""
        return self.effort.level == "quick" and self.monotone is None

    @property
    def places_thresholds(self) -> bool:
        """Whether thresholds are placed by the target, not given in units of y."""
        return isinstance(self.thresholds, str)

    def members(self, n: int) -> dict[str, Experts]:
        """Return the unfitted strategies for `n` rows, by name."""
        made = self._make_members(n)
        if self.out_of_bag:
            return made
        return {name: _out_of_fold(experts) for name, experts in made.items()}

    def _make_members(self, n: int) -> dict[str, Experts]:
        if isinstance(self.strategy, Experts):
            return {type(self.strategy).__name__: self.strategy}
        common: dict[str, Any] = {"n_jobs": self.n_jobs, "random_state": self.seed}
        if self.strategy == "independent":
            one = IndependentExperts(self.expert, monotone=self.monotone, **common)
            return {"independent": one}
        if self.strategy == "marginal":
            return {"marginal": BaseRates()}
        if self.strategy == "deep":
            return {"deep": self.deep_forest()}
        # Unlike in kind, they err on different rows, so a pool of both is better than
        # either on most sets; weights of the pool drop the one that is not.
        both: dict[str, Experts] = {
            "shared": SharedBoosting(monotone=self.monotone, **common),
            "joint": JointForest(**common),
        }
        if self.strategy != "auto":
            return {self.strategy: both[self.strategy]}
        return both if n <= _MOST_ROWS_FOR_FOREST else {"shared": both["shared"]}

    def deep_forest(self, n_trees: int = _DEEP_TREES) -> JointForest:
        """Return the unfitted forest whose trees grow until rows are alone."""
        return JointForest(
            n_trees,
            min_samples_leaf=1,
            max_features=1.0,
            out_of_bag=self.out_of_bag,
            n_jobs=self.n_jobs,
            random_state=self.seed,
        )

    def make_frame(self) -> Frame:
        """Return the unfitted frame."""
        return Frame(
            self.frame,
            self.center,
            out_of_bag=self.out_of_bag,
            n_jobs=self.n_jobs,
            random_state=self.seed,
        )

    def make_calibration(self) -> ExpertCalibration:
        """Return the unfitted calibration of the experts."""
        return ExpertCalibration(
            self.calibrator,
            increasing=self.monotone is not None,
            random_state=self.seed,
        )

    def make_builders(self) -> Sequence[CurveBuilder]:
        """Return the splines to choose from."""
        if self.smoothing == "auto":
            return [ProbitSpline(s) for s in self.smoothings]
        if isinstance(self.smoothing, str):
            return [RawSpline(self.smoothing)]  # type: ignore[arg-type]
        return [ProbitSpline(float(self.smoothing))]


def _out_of_fold(experts: Experts) -> Experts:
    """Return experts whose forests predict no row out of bag.

    A tree that did not draw a row may have drawn another of its group, or a copy.
    """
    bags = {
        name: False
        for name, value in experts.get_params().items()
        if name.split("__")[-1] in ("out_of_bag", "oob_score") and value
    }
    return clone(experts).set_params(**bags) if bags else experts


def _named_parts(model: Any) -> list[str]:
    """Return the parameters by which a user asked for one road."""
    parts = ("frame", "strategy", "thresholds", "n_thresholds")
    named = []
    for part in parts:
        given, usual = getattr(model, part), _USUAL[part]
        if not (isinstance(given, type(usual)) and given == usual):
            named.append(part)
    return named + ["expert"] * (model.expert is not None)


def _is_auto(given: Any) -> bool:
    return isinstance(given, str) and given == "auto"


def _check_thresholds(thresholds: Any) -> str | Float64Array:
    if isinstance(thresholds, str):
        check_choice(thresholds, "thresholds", ("quantile", "uniform"))
        return thresholds
    numbers = check_vector(thresholds, "thresholds")
    if np.asarray(thresholds).dtype.kind == "b":
        msg = f"`thresholds` must be numbers, got {thresholds!r}."
        raise TypeError(msg)
    check_increasing(numbers, "thresholds")
    return numbers


def check_road_thresholds(thresholds: Any) -> str | Float64Array:
    """Return the thresholds of a road, which may also lie between values."""
    if isinstance(thresholds, str) and thresholds == "values":
        return thresholds
    return _check_thresholds(thresholds)


def check_frame(kind: Any, thresholds: Any) -> FrameKind:
    """Return the kind of frame; thresholds that are no kind are in units of y."""
    named = isinstance(thresholds, str) and thresholds != "values"
    if kind is not None and not (isinstance(kind, str) and kind in _FRAMES):
        msg = f"`frame` must be None or one of {', '.join(_FRAMES)}, got {kind!r}."
        raise ValueError(msg)
    if named:
        return kind  # type: ignore[return-value]
    if kind not in (None, "auto"):
        msg = (
            "`frame` must be None where `thresholds` are given in units of y, "
            f"got {kind!r}."
        )
        raise ValueError(msg)
    return None


def _check_center(center: Any) -> Any:
    """Refuse what cannot predict a centre."""
    if isinstance(center, str) and center == "stack":
        return center
    given = center if isinstance(center, list | tuple) and center else [center]
    for one in given:
        if not predicts_numbers(one):
            msg = (
                '`center` must be "stack", a regressor or a list of them, '
                f"got {one!r}; without a centre take frame=None."
            )
            raise (ValueError if isinstance(one, str) else TypeError)(msg)
    return center


def check_strategy(strategy: Any, expert: Any) -> str | Experts:
    """Return the strategy, which an expert of the user's decides."""
    if expert is not None:
        check_classifier(expert, "expert")
    if isinstance(strategy, Experts):
        strategy.check_parameters()
        return strategy
    check_choice(strategy, "strategy", _STRATEGIES)
    if expert is None or strategy == "independent":
        return str(strategy)
    if strategy == "auto":
        return "independent"
    msg = (
        '`strategy` must be "independent" or "auto" with an `expert`, '
        f"got {strategy!r}."
    )
    raise ValueError(msg)


def _check_bounds(bounds: Any, y: Float64Array) -> Bounds:
    """Return least and greatest possible y, which hold all of them."""
    if bounds is None:
        return -np.inf, np.inf
    if isinstance(bounds, str):
        check_choice(bounds, "bounds", ("auto",))
        return UNBOUNDED
    low, high = check_bounds(bounds)
    outside = y[(y < low) | (y > high)]
    if len(outside):
        msg = (
            f"`bounds` must hold every y, got ({show(low)}, {show(high)}) and "
            f"y = {show(outside[0])}."
        )
        raise ValueError(msg)
    return low, high


def _suspect(y: Float64Array) -> Bounds:
    """Return the ends, 0 and 1, that no target passed."""
    low, high = float(y.min()), float(y.max())
    share = low >= 0.0 and high <= 1.0
    upper = 1.0 if share else 0.0 if high <= 0.0 else np.inf
    return (0.0 if low >= 0.0 else -np.inf), upper


def _check_smoothing(smoothing: Any) -> float | str:
    if isinstance(smoothing, str):
        check_choice(smoothing, "smoothing", ("auto", "pchip", "smoothing_spline"))
    elif (
        isinstance(smoothing, bool)
        or not isinstance(smoothing, Real)
        or not float(smoothing) >= 0.0
    ):
        msg = (
            '`smoothing` must be "auto", "pchip", "smoothing_spline" or a number of '
            f"at least 0, got {smoothing!r}."
        )
        raise ValueError(msg)
    return smoothing  # type: ignore[no-any-return]
