"""`localexpert evaluate`: scores of forecasts beside those of climatology."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.cli.command import Command
from localexpert.cli.console import count
from localexpert.cli.model_files import TableModel, load_table_model
from localexpert.cli.options import COLUMN, FLAG, MODEL, Option, read_parts_with
from localexpert.cli.output import write_out
from localexpert.cli.read_file import name_input
from localexpert.cli.targets import with_targets
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.metrics import crps_score, interval_coverage, log_score

_EPILOG = """\
Prints scores on rows that the model has not seen, beside those of climatology: the
training target's own distribution as the forecast of every row. Smaller is better
for all but coverage, the share of targets in the central 50 and 90 % intervals.
CRPS is the error of a whole forecast in the units of the target, and the absolute
error if forecasts are single numbers. RMSE is that of the mean, MAE of the median.

examples:
  localexpert evaluate houses.zip test.csv
  localexpert evaluate houses.zip test.csv --target sold_for --json > scores.json
"""
# By the names in JSON: the labels in print, and the scores of targets and forecasts.
_SCORES: dict[
    str, tuple[str, Callable[[Float64Array, PredictiveDistribution], Any]]
] = {
    "crps": ("CRPS", crps_score),
    "log_score": ("log score", log_score),
    "coverage_50": ("coverage of 50 %", partial(interval_coverage, coverage=0.5)),
    "coverage_90": ("coverage of 90 %", partial(interval_coverage, coverage=0.9)),
    "rmse": ("RMSE", lambda y, dist: math.sqrt(np.mean((y - dist.mean()) ** 2))),
    "mae": ("MAE", lambda y, dist: float(np.mean(np.abs(y - dist.median())))),
}


#: A model and a table with known targets.
TEST_ROWS: tuple[Option, ...] = (
    MODEL,
    ("table", "rows with known targets, not used in training", {}),
    ("--target", "its name here, if not as in training", COLUMN),
)


def run(options: Any) -> None:
    """Load the model, read the table, print the scores of both forecasts."""
    model, frame, y = read_test_rows(options)
    scores = {
        "model": _score(y, model.predict_dist(frame)),
        "climatology": _score(y, model.climatology.dist(len(y))),
    }
    if options.json:
        text = json.dumps({"rows": len(y), **_without_infinities(scores)})
    else:
        title = f"{count(len(y), 'row')} of {name_input(options.table)}"
        text = f"{title}\n\n{_lay_out(scores)}"
    write_out(f"{text}\n")


def _lay_out(scores: dict[str, dict[str, float]]) -> str:
    lines = [f"{'':18}{'model':>12}{'climatology':>14}"]
    for name, (label, _) in _SCORES.items():
        ours, theirs = scores["model"][name], scores["climatology"][name]
        lines.append(f"{label:18}{ours:>12.5g}{theirs:>14.5g}")
    return "\n".join(lines)


def read_test_rows(options: Any) -> tuple[TableModel, Any, Float64Array]:
    """Return the model, features and targets of the rows that have one."""
    model = load_table_model(options.model)
    options.decimal = options.decimal or model.schema.decimal
    target = model.schema.target if options.target is None else options.target
    dialect = model.schema.dialect(options.decimal, options.thousands)
    y: list[Float64Array] = []
    parts = read_parts_with(options, {target, *model.schema.features})
    written = model.schema.target_written
    tables = with_targets(parts, target, dialect, y, written=written)
    marks = options.decimal, [target], options.thousands
    frame = model.schema.frame(tables, *marks)
    return model, frame, np.concatenate(y)


def _score(y: Float64Array, dist: PredictiveDistribution) -> dict[str, float]:
    return {name: score(y, dist) for name, (_, score) in _SCORES.items()}


def _without_infinities(
    scores: dict[str, dict[str, float]],
) -> dict[str, dict[str, float | None]]:
    """Return scores that JSON can hold."""
    return {
        who: {name: v if math.isfinite(v) else None for name, v in row.items()}
        for who, row in scores.items()
    }


COMMAND = Command(
    run,
    "score a model on rows it has not seen",
    "Score the forecasts of a model on a table with known targets.",
    _EPILOG,
    (*TEST_ROWS, ("--json", "one JSON object; null is not finite", FLAG)),
)
