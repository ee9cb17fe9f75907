"""What a fit chose, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.learn.fit_report import FitReport
from localexpert.reporting.markup import enumerate_texts, show

_TARGETS = {
    "continuous": "continuous",
    "discrete": "discrete, every value is a case of its own",
}
_FRAMES = {
    "None": "on the target itself",
    "center": "around a centre that is forecast for every row",
    "standardize": "around a centre, in units of a scale, both forecast for every row",
}
# Stages that have a sentence of their own.
_TOLD = {"frame", "experts", "calibration", "spline", "atoms", "choice", "roads"}
# An area under the curve below which experts know little more than nothing.
_NEAR_NOTHING = 0.6


def describe_choices(report: FitReport, target: str) -> list[str]:
    """Return a sentence for each stage of a fit."""
    told = [f"{target}: {_say_target(report)}."]
    told += _say_roads(report.choices.get("roads"))
    told += _say_frame(report.choices.get("frame"))
    told += _say_stages(report.choices, "")
    if "choice" in report.choices:
        of = " of the values with probability of their own"
        told += _say_stages(report.choices["choice"], of)
    for stage, choices in report.choices.items():
        if stage not in _TOLD and isinstance(choices, Mapping):
            chosen = choices.get("chosen", choices.get("kind"))
            if chosen is not None:
                name = stage.replace("_", " ").capitalize()
                told.append(f"{name}: {chosen}{_beside(choices, chosen)}.")
    return told


def describe_areas(report: FitReport | None, auc: Float64Array) -> str:
    """Say why experts that tell little apart may be right to; empty if they do."""
    frame = report.choices.get("frame") if report is not None else None
    kind = frame.get("kind") if isinstance(frame, Mapping) else None
    if kind not in ("center", "standardize") or float(np.median(auc)) >= _NEAR_NOTHING:
        return ""
    taken = "centre has" if kind == "center" else "centre and scale have"
    return (
        f"Areas near 0.5 are no fault here. The {taken} taken what features tell of "
        "the outcome, so what is left to ask is whether the noise is below a "
        "threshold, and where the frame took all, nobody can know that. Areas somewhat "
        "below 0.5 are chance of the same kind: a share learned on the other folds "
        "leans against that of the fold left out."
    )


def _say_target(report: FitReport) -> str:
    """Say what kind of target it is."""
    if report.target != "mixed":
        return _TARGETS.get(report.target, report.target)
    values = [show(float(value)) for value in report.choices.get("atoms", [])]
    if len(values) == 1:
        told = f"the value {values[0]} has probability of its own"
    else:
        told = f"the values {enumerate_texts(values)} have probability of their own"
    return f"mixed, {told}, the rest is continuous"


def _say_roads(roads: Any) -> list[str]:
    """Say which ways to the distributions were tried, and how they are joined."""
    if not isinstance(roads, Mapping):
        return []
    losses, weights = roads["losses"], roads["weights"]
    tried = [n for n in losses if n not in ("linear", "probit")]
    beside = enumerate_texts([f"{name} {show(float(losses[name]))}" for name in tried])
    joined = f"{roads['kind']} pool of {_mix(weights)}"
    taken = joined if len(weights) > 1 else f"{roads['kind']} alone"
    told = f"Roads: {taken} (CRPS expected of each: {beside})."
    if len(weights) > 1:
        told += " What follows is of the heaviest."
    return [told]


def _say_frame(frame: Any) -> list[str]:
    """Say where thresholds are placed, and what the centre is made of."""
    if not isinstance(frame, Mapping) or "kind" not in frame:
        return []
    kind = str(frame["kind"])
    told = [f"Thresholds: {_FRAMES.get(kind, kind)}{_beside(frame, kind)}."]
    weights = frame.get("weights")
    if kind != "None" and isinstance(weights, Mapping) and weights:
        told.append(f"Centre: {_mix(weights)}.")
    return told


def _say_stages(choices: Mapping[str, Any], of: str) -> list[str]:
    """Say who answers, how answers are calibrated, and how the curve is drawn."""
    told = []
    weights = choices.get("experts", {}).get("weights")
    if weights:
        told.append(f"Experts{of}: {_mix(weights)}.")
    calibration = choices.get("calibration", {})
    chosen = calibration.get("chosen")
    if chosen == "identity":
        beside = _beside(calibration, chosen)
        told.append(
            f"Calibration{of}: none, for probabilities are left as they are{beside}."
        )
    elif chosen is not None:
        beside = _beside(calibration, chosen)
        told.append(f"Calibration{of}: {str(chosen).replace('_', ' ')}{beside}.")
    spline = choices.get("spline", {})
    if spline.get("chosen") is not None:
        chosen = str(spline["chosen"])
        told.append(f"Curve between thresholds{of}: {chosen}{_beside(spline, chosen)}.")
    return told


def _beside(choices: Mapping[str, Any], chosen: Any) -> str:
    """Return the loss of what was chosen, and of the best of the others."""
    losses = choices.get("losses")
    if not isinstance(losses, Mapping) or not {str(chosen)} < set(losses):
        return ""
    others = {name: loss for name, loss in losses.items() if name != str(chosen)}
    best = min(others, key=lambda name: others[name])
    name = {"None": "no frame", "identity": "none"}.get(best, best.replace("_", " "))
    ours, theirs = show(float(losses[str(chosen)])), show(float(others[best]))
    return f" (loss {ours}; the best of the others, {name}, {theirs})"


def _mix(weights: Mapping[str, float]) -> str:
    """Return parts of a mix with their shares, the greatest first."""
    order = sorted(weights, key=lambda name: -weights[name])
    if len(order) == 1:
        return order[0]
    return enumerate_texts(
        [f"{show(100 * weights[name], 2)} % {name}" for name in order]
    )
