"""Scores of forecasts beside those of climatology, as figures and as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from calibration.typing import Float64Array
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.reporting.climatology import Climatology

# By who made the forecasts, and by the names of scores.
ScoreTable: TypeAlias = dict[str, dict[str, float]]

# By the names in JSON: the labels in print.
_LABELS = {
    "crps": "CRPS",
    "log_score": "log score",
    "coverage_50": "coverage of 50 %",
    "coverage_90": "coverage of 90 %",
    "rmse": "RMSE",
    "mae": "MAE",
}
# Rows whose laws are in memory at a time.
_CHUNK = 5_000


def score_both(
    y: Float64Array,
    dist: PredictiveDistribution,
    climatology: Climatology,
    weight: Float64Array | None = None,
) -> ScoreTable:
    """Score forecasts of targets (n,) and climatology, means with weights (n,)."""
    rows = np.ones(len(y)) if weight is None else weight
    parts: dict[str, list[dict[str, Float64Array]]] = {"model": [], "climatology": []}
    for start in range(0, len(y), _CHUNK):
        part = slice(start, start + _CHUNK)
        here = y[part]
        parts["model"].append(_losses(here, dist[part]))
        parts["climatology"].append(_losses(here, climatology.dist(len(here))))
    return {who: _average(told, rows) for who, told in parts.items()}


def lay_out_scores(scores: ScoreTable, title: str = "") -> str:
    """Return a table for people."""
    lines = [f"{title:18}{'model':>12}{'climatology':>14}"]
    for name, label in _LABELS.items():
        ours, theirs = scores["model"][name], scores["climatology"][name]
        lines.append(f"{label:18}{ours:>12.5g}{theirs:>14.5g}")
    return "\n".join(lines)


def expect_scores(dist: PredictiveDistribution) -> ScoreTable:
    """Return the scores that forecasts expect of themselves, with 95 % intervals."""
    expected = {}
    for name, loss in (("crps", "crps"), ("mae", "abs_error")):
        told = dist.expected_mean(loss)
        expected[name] = {"mean": told.mean, "low": told.low, "high": told.high}
    return expected


def lay_out_expected(expected: ScoreTable) -> str:
    """Return a table for people."""
    lines = [f"{'expected':18}{'mean':>12}{'95 % interval':>26}"]
    for name, told in expected.items():
        interval = f"{told['low']:.5g} to {told['high']:.5g}"
        lines.append(f"{_LABELS[name]:18}{told['mean']:>12.5g}{interval:>26}")
    return "\n".join(lines)


def without_infinities(tree: Any) -> Any:
    """Return nested figures as JSON can hold them: None is not finite."""
    if isinstance(tree, Mapping):
        return {str(name): without_infinities(value) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [without_infinities(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree


def _losses(y: Float64Array, dist: PredictiveDistribution) -> dict[str, Float64Array]:
    """Return what is averaged for each score, shape (n,) each."""
    return {
        "crps": dist.crps(y),
        "log_score": -dist.logpdf(y),
        "coverage_50": dist.covered(y, 0.5),
        "coverage_90": dist.covered(y, 0.9),
        "rmse": (y - dist.mean()) ** 2,
        "mae": np.abs(y - dist.median()),
    }


def _average(
    parts: list[dict[str, Float64Array]], weight: Float64Array
) -> dict[str, float]:
    held = weight > 0.0
    found = {}
    for name in _LABELS:
        # Without rows that do not count, of which infinite losses would.
        losses = np.concatenate([part[name] for part in parts])[held]
        found[name] = float(losses @ weight[held] / weight.sum())
    return {**found, "rmse": math.sqrt(found["rmse"])}
