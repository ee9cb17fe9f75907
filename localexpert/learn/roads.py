"""`Road`: a way from rows to distributions, as a record; roads compete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from calibration import QuadraticCalibrator
from calibration._validation import (
    check_choice,
    check_integer,
    check_list,
    check_number,
    check_vector,
    refuse,
)
from calibration.typing import Float64Array
from localexpert._validation import check_increasing
from localexpert.data.directions import Directions, check_directions
from localexpert.experts import Experts
from localexpert.experts.calibration import check_calibrator
from localexpert.experts.independent import check_classifier
from localexpert.learn.steps import Carry, Limits, Step
from localexpert.learn.values import Cells

_FRAMES = ("auto", "standardize", "center")
_STRATEGIES = ("auto", "shared", "joint", "deep", "independent", "marginal")
# Names of the strategies that can keep an order. A forest has no constraints.
_ORDERED = ("shared", "independent")
# Steps between knots for a grid, in probits. 0 means the mean step of the thresholds.
_GRID_SMOOTHINGS = (0.0, 0.1, 0.2)
# A grid whose few trees are worse than this, beside the first stage of a frame, got at
# most .3 of a pool. That lowered the CRPS of new rows by .1 % in the mean, and took a
# seventh of a fit.
_GRID_HOPELESS = 1.2
# A straight line needs no other step. This road is nearly the first stage of another
# one, so it only helps if the experts learn nothing.
_MARGINAL_SMOOTHINGS, _MARGINAL_HOPELESS = (0.4,), 1.02


@dataclass(frozen=True, eq=False, repr=False)
class Road:
    """A way from rows to distributions: where to ask questions, and who answers them.

    What it does not name (centre, bounds, seed) comes from the regressor.

    Parameters
    ----------
    name : str
        Name of the road in reports.
    frame : {"auto", "standardize", "center"} or None
    thresholds : {"quantile", "uniform", "values"} or array-like of shape (N,)
        "values": one threshold between each pair of neighbouring values of a discrete
        target.
    n_thresholds : int
    strategy : {"auto", "shared", "joint", "deep", "independent", "marginal"} or Experts
        "deep": a `JointForest` whose trees grow until each leaf has one row, and try
        all features at a split. "marginal": no expert. Forecasts are then the law of
        the residuals, or of y if there is no frame. The other names, and the
        parameters above, are as in `LocalExpertRegressor`.
    calibrator : str, ScoreCalibrator or None
        Used if the regressor's own calibrator is "auto".
    smoothings : tuple of float
        Steps between knots that are compared if the regressor's `smoothing` is "auto".
    steps : tuple of Step
        Steps that change the target before it is learned, and the laws afterwards. The
        first step is nearest to y.
    hopeless : float
        The road is not finished if the CRPS of its first stage alone is this many times
        the CRPS of the best road. If the first stage is a small forest (strategy
        "deep"), its CRPS is compared with that of the first stage of the first road.

    Examples
    --------
    >>> from localexpert import FrameRoad, LocalExpertRegressor, Road
    >>> coarse = Road("coarse", frame=None, n_thresholds=9, strategy="joint")
    >>> model = LocalExpertRegressor(roads=[FrameRoad(), coarse])
    """

    name: str = "own"
    frame: str | None = "auto"
    thresholds: Any = "quantile"
    n_thresholds: int = 25
    strategy: Any = "auto"
    calibrator: Any = "auto"
    smoothings: tuple[float, ...] = (0.15, 0.2, 0.3, 0.4)
    steps: tuple[Step, ...] = ()
    # Experts lower the loss of a frame by a tenth, rarely by more than a fifth.
    hopeless: float = 1.3

    def __post_init__(self) -> None:
        """Refuse values that are never valid, whatever the regressor's parameters."""
        of_values = self.asks_of_values
        if not of_values:
            check_thresholds(self.thresholds)
        for step in reversed(self.steps):
            if not isinstance(step, Step) or (step.asks_smooth and of_values):
                wanted = "probabilities of values" if of_values else "smooth laws"
                refuse("steps", f"be steps that read {wanted}", repr(step), TypeError)
            of_values |= step.makes_values
        _check_frame(self.frame, self.thresholds)
        check_integer(self.n_thresholds, "n_thresholds", 1)
        if len(check_list(self.smoothings, "smoothings", "numbers")) == 0:
            refuse("smoothings", "hold at least one number", "none")
        for one in self.smoothings:
            check_number(one, "smoothings", 0.0, 1.0)
        _check_strategy(self.strategy, None)
        check_calibrator(self.calibrator)

    def __repr__(self) -> str:
        """Show the parts that differ from the defaults."""
        parts = [f"{name}={value!r}" for name, value in self.named_parts().items()]
        return f"Road({', '.join([repr(self.name), *parts])})"

    def named_parts(self) -> dict[str, Any]:
        """Return the parts that differ from the defaults, by parameter name.

        Returns
        -------
        dict
        """
        held = {f.name: (getattr(self, f.name), f.default) for f in fields(self)[1:]}
        return {
            name: value
            for name, (value, usual) in held.items()
            if not (isinstance(value, type(usual)) and value == usual)
        }

    @property
    def asks_of_values(self) -> bool:
        """Whether thresholds lie between neighbouring values of a discrete target."""
        return isinstance(self.thresholds, str) and self.thresholds == "values"

    @property
    def to_values(self) -> bool:
        """Whether its laws are probabilities of the values of a discrete target."""
        return self.asks_of_values or any(step.makes_values for step in self.steps)

    def with_step(self, step: Step, name: str | None = None) -> Road:
        """Return the road with one more step, which is nearest to y.

        Parameters
        ----------
        step : Step
        name : str, optional
            Name of the new road.

        Returns
        -------
        Road
        """
        return replace(self, name=name or self.name, steps=(step, *self.steps))

    def bind(self, limits: Limits, seed: int) -> tuple[tuple[Step, ...], Limits]:
        """Return unfitted copies of its steps, and the limits inside all of them.

        Parameters
        ----------
        limits : Limits
            Of the target.
        seed : int

        Returns
        -------
        steps : tuple of Step
        limits : Limits
        """
        steps = []
        for step in self.steps:
            own, limits = step.bind(limits, seed)
            steps.append(own)
        return tuple(steps), limits

    def settle(self, expert: Any, calibrator: Any, monotone: Directions | None) -> Road:
        """Apply what the regressor asks of all roads. Refuse a road that cannot comply.

        Parameters
        ----------
        expert : classifier or None
            It decides the strategy if it is given.
        calibrator : str, ScoreCalibrator or None
            With "auto" the road keeps its own calibrator.
        monotone : mapping of column to {-1, 1}, optional
            If given, thresholds are in units of y and experts keep the order.

        Returns
        -------
        Road
        """
        frame = _check_frame(self.frame, self.thresholds)
        strategy = _check_strategy(self.strategy, expert)
        if monotone is None and isinstance(calibrator, str) and calibrator == "auto":
            calibrator = self.calibrator
        if monotone is not None:
            if not all(step.keeps_order for step in self.steps):
                refuse_order("roads", self, "roads whose steps have `keeps_order`")
            if frame not in (None, "auto"):
                rule = 'None or "auto", for around centres rows may cross'
                refuse_order("frame", frame, rule)
            frame, strategy = None, _order_strategy(strategy, monotone)
        return replace(self, frame=frame, strategy=strategy, calibrator=calibrator)

    def check_target(self, y: Float64Array) -> None:
        """Refuse targets that the road cannot take.

        Parameters
        ----------
        y : ndarray of shape (n,)
        """
        for step in self.steps:
            y = step.check_target(y)


def FrameRoad(  # noqa: N802 - it makes an object, as a class does
    frame: str | None = "auto",
    *,
    thresholds: Any = "quantile",
    n_thresholds: int = 25,
    strategy: Any = "auto",
) -> Road:
    """Return a road that learns a centre first and places thresholds around it.

    Parameters
    ----------
    frame : {"auto", "standardize", "center"} or None
    thresholds : {"quantile", "uniform"} or array-like of shape (N,)
    n_thresholds : int
    strategy : {"auto", "shared", "joint", "deep", "independent"} or Experts
        All four are as in `Road`.

    Returns
    -------
    Road

    Examples
    --------
    >>> from localexpert import FrameRoad, GridRoad, LocalExpertRegressor
    >>> model = LocalExpertRegressor(roads=[FrameRoad(frame="center"), GridRoad()])
    """
    return Road("frame", frame, thresholds, n_thresholds, strategy)


def GridRoad(n_thresholds: int = 150, *, strategy: Any = "deep") -> Road:  # noqa: N802
    """Return a road with many thresholds on y itself, one forest, and little smoothing.

    It wins if many rows come from few units. It also wins if similar rows tell more
    about y than a smooth centre does.

    Parameters
    ----------
    n_thresholds : int
        Number of thresholds. They are equally probable.
    strategy : str or Experts
        As of `Road`.

    Returns
    -------
    Road

    Examples
    --------
    >>> from localexpert import GridRoad, LocalExpertRegressor
    >>> model = LocalExpertRegressor(roads=GridRoad(200))
    """
    # The mean of many trees is never sure enough. The quadratic calibrator corrects
    # this, and takes only a tenth of the forest's own time.
    return Road(
        "grid",
        None,
        n_thresholds=n_thresholds,
        strategy=strategy,
        calibrator=QuadraticCalibrator(10.0),
        smoothings=_GRID_SMOOTHINGS,
        hopeless=_GRID_HOPELESS,
    )


def DiscreteRoad(strategy: Any = "auto") -> Road:  # noqa: N802
    """Return a road that asks a question between each pair of neighbouring values.

    Parameters
    ----------
    strategy : str or Experts
        As of `Road`.

    Returns
    -------
    Road

    Examples
    --------
    >>> from localexpert import CellRoad, DiscreteRoad, LocalExpertRegressor
    >>> model = LocalExpertRegressor(roads=[DiscreteRoad("joint"), CellRoad()])
    """
    return Road("discrete", None, "values", strategy=strategy)


def marginal_road(name: str, frame: str | None, thresholds: str) -> Road:
    """Return a road without experts: the law of the residuals, or climatology.

    Parameters
    ----------
    name : str
    frame : {"auto"} or None
    thresholds : {"quantile", "values"}

    Returns
    -------
    Road
    """
    return Road(
        name,
        frame,
        thresholds,
        strategy="marginal",
        calibrator=None,
        smoothings=_MARGINAL_SMOOTHINGS,
        hopeless=_MARGINAL_HOPELESS,
    )


def CellRoad(road: Road | None = None) -> Road:  # noqa: N802
    """Return a smooth road to a discrete target. A value gets the mass nearest to it.

    Parameters
    ----------
    road : Road, optional
        None: ``FrameRoad()``.

    Returns
    -------
    Road

    Examples
    --------
    >>> from localexpert import CellRoad, FrameRoad, LocalExpertRegressor
    >>> model = LocalExpertRegressor(roads=CellRoad(FrameRoad("center")))
    """
    return _check_road(road).with_step(Cells(), "cells")


def Transformed(  # noqa: N802
    road: Road | None = None,
    func: Callable[..., Any] = np.log,
    inverse: Callable[..., Any] = np.exp,
) -> Road:
    """Return a smooth road to an increasing function of y.

    Parameters
    ----------
    road : Road, optional
        None: ``FrameRoad()``.
    func, inverse : callable
        An increasing function and its inverse. Both map an array of values to an
        array of the same shape.

    Returns
    -------
    Road

    Notes
    -----
    The tails of func(y) are no heavier than normal ones. So all moments of y are finite
    if func grows no slower than the logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import FrameRoad, LocalExpertRegressor, Transformed
    >>> roads = [FrameRoad(), Transformed(FrameRoad(), np.sqrt, np.square)]
    >>> model = LocalExpertRegressor(roads=roads)
    """
    return _check_road(road).with_step(Carry(func, inverse), "transformed")


def _check_road(road: Road | None) -> Road:
    if road is None:
        return FrameRoad()
    if not isinstance(road, Road) or road.to_values:
        refuse("road", "be a road to smooth distributions", repr(road), TypeError)
    return road


def check_thresholds(thresholds: Any) -> str | Float64Array:
    """Check and return thresholds of any kind but "values".

    Parameters
    ----------
    thresholds : {"quantile", "uniform"} or array-like of shape (N,)

    Returns
    -------
    str or ndarray of shape (N,)
    """
    if isinstance(thresholds, str):
        check_choice(thresholds, "thresholds", ("quantile", "uniform"))
        return thresholds
    numbers = check_vector(thresholds, "thresholds")
    if np.asarray(thresholds).dtype.kind == "b":
        refuse("thresholds", "be numbers", repr(thresholds), TypeError)
    check_increasing(numbers, "thresholds")
    return numbers


def _check_frame(kind: Any, thresholds: Any) -> str | None:
    """Return the kind of frame. Thresholds given as numbers are in units of y."""
    if kind is not None and not (isinstance(kind, str) and kind in _FRAMES):
        refuse("frame", f"be None or one of {', '.join(_FRAMES)}", repr(kind))
    if isinstance(thresholds, str) and thresholds != "values":
        return kind
    if kind not in (None, "auto"):
        rule = "be None where `thresholds` are given in units of y"
        refuse("frame", rule, repr(kind))
    return None


def _check_strategy(strategy: Any, expert: Any) -> str | Experts:
    """Return the strategy. If the user gives an expert, it decides the strategy."""
    if expert is not None:
        check_classifier(expert, "expert")
    if isinstance(strategy, Experts):
        strategy.check_parameters()
        return strategy
    check_choice(strategy, "strategy", _STRATEGIES)
    if expert is None or strategy == "independent":
        return str(strategy)
    if strategy != "auto":
        rule = 'be "independent" or "auto" with an `expert`'
        refuse("strategy", rule, repr(strategy))
    return "independent"


def _order_strategy(strategy: str | Experts, monotone: Directions) -> str | Experts:
    """Return a strategy that keeps the order. Experts get the directions."""
    if strategy == "auto":
        return "shared"
    if isinstance(strategy, str):
        if strategy not in _ORDERED:
            refuse_order("strategy", strategy, '"auto", "shared" or "independent"')
        return strategy
    given = strategy.get_params(deep=False).get("monotone", strategy)
    if given is strategy:
        refuse_order("strategy", strategy, "experts with a parameter `monotone`")
    if check_directions(given) not in (None, monotone):
        refuse_order("strategy", strategy, "experts with the same `monotone`, or none")
    ordered: Experts = clone(strategy).set_params(monotone=monotone)
    ordered.check_parameters()
    return ordered


def refuse_order(name: str, value: Any, rule: str) -> None:
    """Refuse a parameter's value that may lose the order of `monotone`.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
    rule : str
        What the parameter must be.
    """
    refuse(name, f"be {rule}, to keep the order of `monotone`", f"{value!r:.80}")
