"""Scores of forecasts beside those of climatology, as figures and as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from calibration.typing import Float64Array
from localexpert.distribution.answers import (
    expected_by_loss,
    loss_variances,
    mean_of_sums,
)
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
# Of these forecasts tell how large they will be, by what the law calls them.
_EXPECTED = {"crps": "crps", "mae": "abs_error"}
_COVERAGE = 0.95
# Rows whose laws are in memory at a time.
_CHUNK = 5_000


class ScoreSums:
    """Losses of forecasts and of climatology, summed over rows as they come.

    Parameters
    ----------
    climatology : Climatology
    """

    def __init__(self, climatology: Climatology) -> None:
        self.climatology = climatology
        self.n_rows, self._weight = 0, 0.0
        self._sums = {who: np.zeros(len(_LABELS)) for who in ("model", "climatology")}

    def add(
        self,
        y: Float64Array,
        dist: PredictiveDistribution,
        weight: Float64Array | None = None,
    ) -> None:
        """Add targets (n,) and forecasts of them, with weights (n,)."""
        rows = np.ones(len(y)) if weight is None else weight
        self.n_rows += len(y)
        self._weight += float(rows.sum())
        for start in range(0, len(y), _CHUNK):
            part = slice(start, start + _CHUNK)
            climate = self.climatology.dist(len(y[part]))
            for who, forecasts in (("model", dist[part]), ("climatology", climate)):
                # Without rows that do not count, of which infinite losses would.
                counts = rows[part] > 0.0
                losses = _losses(y[part], forecasts)[:, counts]
                self._sums[who] += losses @ rows[part][counts]

    def means(self) -> ScoreTable:
        """Return the scores of all rows so far."""
        found: ScoreTable = {}
        for who, sums in self._sums.items():
            means = dict(zip(_LABELS, (sums / self._weight).tolist(), strict=True))
            found[who] = {**means, "rmse": math.sqrt(means["rmse"])}
        return found


class ExpectedSums:
    """Losses that forecasts expect of themselves, summed over rows as they come."""

    def __init__(self) -> None:
        self.n_rows = 0
        # Of each loss those of means and of variances.
        self._sums = {name: np.zeros(2) for name in _EXPECTED}

    def add(self, dist: PredictiveDistribution) -> None:
        """Add forecasts."""
        self.n_rows += len(dist)
        for start in range(0, len(dist), _CHUNK):
            law = dist[start : start + _CHUNK].law
            expected = expected_by_loss(law)
            for name, loss in _EXPECTED.items():
                variances = loss_variances(law, loss, expected[loss])
                self._sums[name] += expected[loss].sum(), variances.sum()

    def means(self) -> ScoreTable:
        """Return the expected scores of all rows so far, with 95 % intervals."""
        expected = {}
        for name, (total, variance) in self._sums.items():
            told = mean_of_sums(total, variance, self.n_rows, _COVERAGE)
            expected[name] = {"mean": told.mean, "low": told.low, "high": told.high}
        return expected


def score_both(
    y: Float64Array,
    dist: PredictiveDistribution,
    climatology: Climatology,
    weight: Float64Array | None = None,
) -> ScoreTable:
    """Score forecasts of targets (n,) and climatology, means with weights (n,)."""
    sums = ScoreSums(climatology)
    sums.add(y, dist, weight)
    return sums.means()


def lay_out_scores(scores: ScoreTable, title: str = "") -> str:
    """Return a table for people."""
    lines = [f"{title:18}{'model':>12}{'climatology':>14}"]
    for name, label in _LABELS.items():
        ours, theirs = scores["model"][name], scores["climatology"][name]
        lines.append(f"{label:18}{ours:>12.5g}{theirs:>14.5g}")
    return "\n".join(lines)


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


def _losses(y: Float64Array, dist: PredictiveDistribution) -> Float64Array:
    """Return what is averaged for each score, shape (s, n)."""
    losses = {
        "crps": dist.crps(y),
        "log_score": -dist.logpdf(y),
        "coverage_50": dist.covered(y, 0.5),
        "coverage_90": dist.covered(y, 0.9),
        "rmse": (y - dist.mean()) ** 2,
        "mae": np.abs(y - dist.median()),
    }
    return np.stack([losses[name] for name in _LABELS])
