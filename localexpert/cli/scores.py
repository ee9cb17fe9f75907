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
from localexpert.reading.messages import load_pandas
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


def sum_losses(
    y: Float64Array,
    dist: PredictiveDistribution,
    climatology: Climatology,
    weight: Float64Array | None = None,
) -> Float64Array:
    """Return weights and losses of forecasts and of climatology, summed over rows.

    Shape (2, 1 + s) for targets and weights (n,); tables are sums of their parts.
    """
    rows = np.ones(len(y)) if weight is None else weight
    sums = np.zeros((2, 1 + len(_LABELS)))
    for start in range(0, len(y), _CHUNK):
        part = slice(start, start + _CHUNK)
        # Without rows that do not count, of which infinite losses would.
        counts = rows[part] > 0.0
        climate = climatology.dist(len(y[part]))
        for k, forecasts in enumerate((dist[part], climate)):
            losses = _losses(y[part], forecasts)[:, counts]
            sums[k] += losses @ rows[part][counts]
    return sums


def name_means(sums: Float64Array) -> ScoreTable:
    """Return the scores of all rows that were summed."""
    found: ScoreTable = {}
    for who, (weight, *losses) in zip(("model", "climatology"), sums, strict=True):
        means = dict(zip(_LABELS, (np.array(losses) / weight).tolist(), strict=True))
        found[who] = {**means, "rmse": math.sqrt(means["rmse"])}
    return found


def sum_expected(dist: PredictiveDistribution) -> Float64Array:
    """Return rows, means and variances of losses that forecasts expect, (2, 3)."""
    sums = np.zeros((len(_EXPECTED), 3))
    for start in range(0, len(dist), _CHUNK):
        law = dist[start : start + _CHUNK].law
        expected = expected_by_loss(law)
        for k, loss in enumerate(_EXPECTED.values()):
            variances = loss_variances(law, loss, expected[loss])
            sums[k] += len(law), expected[loss].sum(), variances.sum()
    return sums


def name_expected(sums: Float64Array) -> ScoreTable:
    """Return the expected scores of all rows that were summed, and 95 % intervals."""
    told = [mean_of_sums(mean, var, round(n), _COVERAGE) for n, mean, var in sums]
    return {
        name: {"mean": one.mean, "low": one.low, "high": one.high}
        for name, one in zip(_EXPECTED, told, strict=True)
    }


def lay_out(table: Any) -> str:
    """Return scores as a table for people, a line for each."""
    frame = load_pandas().DataFrame(table).rename(index=_LABELS)
    return str(frame.to_string(float_format="{:.5g}".format))


def without_infinities(tree: Any) -> Any:
    """Return nested figures as JSON can hold them: None is not finite."""
    if isinstance(tree, Mapping):
        return {str(name): without_infinities(value) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [without_infinities(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree


def _losses(y: Float64Array, dist: PredictiveDistribution) -> Float64Array:
    """Return 1 for each row, and what is averaged for each score, (1 + s, n)."""
    return np.stack(
        [
            np.ones(len(y)),
            dist.crps(y),
            -dist.logpdf(y),
            dist.covered(y, 0.5),
            dist.covered(y, 0.9),
            (y - dist.mean()) ** 2,
            np.abs(y - dist.median()),
        ]
    )
