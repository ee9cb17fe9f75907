"""What keeps the order of rows, and refusals of what does not."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from localexpert.data.directions import Directions, check_directions
from localexpert.experts import Experts
from localexpert.recalibration.conformal import ConformalRecalibration
from localexpert.recalibration.pit import PitRecalibration

# Of the names of strategies: a forest has no constraints.
_CONSTRAINED = ("shared", "independent")
_ROW_BY_ROW = ("pchip", "smoothing_spline")


def check_order(model: Any) -> None:
    """Refuse parameters of a regressor with `monotone` that cannot keep the order.

    Parameters
    ----------
    model : LocalExpertRegressor
    """
    if model.expert is not None:
        refuse_order("expert", model.expert, "None, for its answers have no order")
    if not isinstance(model.center, str):
        refuse_order("center", model.center, '"stack", for there is no centre')
    if model.stacker is not None:
        refuse_order("stacker", model.stacker, "None, for it may move any row")
    if isinstance(model.smoothing, str) and model.smoothing in _ROW_BY_ROW:
        rule = '"auto" or a number, for this one bends each row in its own way'
        refuse_order("smoothing", model.smoothing, rule)
    ours = PitRecalibration, ConformalRecalibration
    given = model.recalibrate
    if not (given is None or isinstance(given, str | ours[0] | ours[1])):
        rule = 'None, "pit" or "conformal", which have one increasing map for all rows'
        refuse_order("recalibrate", given, rule)


def check_order_of_frame(kind: Any) -> None:
    """Refuse a frame around a centre; "auto" is the one that all rows share, y itself.

    Parameters
    ----------
    kind : {"auto", "standardize", "center"} or None
    """
    if kind not in (None, "auto"):
        refuse_order("frame", kind, 'None or "auto", for around centres rows may cross')


def order_strategy(strategy: str | Experts, monotone: Directions) -> str | Experts:
    """Return the strategy that keeps the order.

    Parameters
    ----------
    strategy : str or Experts
    monotone : mapping of column to {-1, 1}

    Returns
    -------
    str or Experts
        One that has a parameter `monotone` is given the directions.
    """
    if strategy == "auto":
        return "shared"
    if isinstance(strategy, str):
        if strategy not in _CONSTRAINED:
            refuse_order("strategy", strategy, '"auto", "shared" or "independent"')
        return strategy
    own = strategy.get_params(deep=False).get("monotone", strategy)
    if own is strategy:
        refuse_order("strategy", strategy, "experts with a parameter `monotone`")
    if check_directions(own) not in (None, monotone):
        refuse_order("strategy", strategy, "experts with the same `monotone`, or none")
    told: Experts = clone(strategy).set_params(monotone=monotone)
    told.check_parameters()
    return told


def refuse_order(name: str, value: Any, rule: str) -> None:
    """Refuse a value by which the order of `monotone` may be lost.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
    rule : str
        What it must be.
    """
    msg = (
        f"`{name}` must be {rule}, to keep the order of `monotone`, got {value!r:.80}."
    )
    raise ValueError(msg)
