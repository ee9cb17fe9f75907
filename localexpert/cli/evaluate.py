"""`localexpert evaluate`: scores of forecasts beside those of climatology."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.cli.command import Command
from localexpert.cli.console import count
from localexpert.cli.model_files import TableModel, load_table_model
from localexpert.cli.options import COLUMN, FLAG, MODEL, Option, read_parts_with
from localexpert.cli.out_column import OutColumn, lay_aside
from localexpert.cli.output import write_out
from localexpert.cli.read_file import name_input
from localexpert.cli.schema import Schema
from localexpert.cli.scores import (
    expect_scores,
    lay_out_expected,
    lay_out_scores,
    score_both,
    without_infinities,
)
from localexpert.cli.targets import with_targets

_EPILOG = """\
Prints scores on rows that the model has not seen, beside those of climatology: the
training target's own distribution as the forecast of every row. Smaller is better
for all but coverage, the share of targets in the central 50 and 90 % intervals (of
a value with probability of its own, the share of it that the interval takes).
CRPS is the error of a whole forecast in the units of the target, and the absolute
error if forecasts are single numbers. RMSE is that of the mean, MAE of the median.
Below stand the CRPS and MAE that the forecasts expected of themselves, without the
targets, and the range of 95 % of such means: chance does not explain what is beyond.

examples:
  localexpert evaluate houses.zip test.csv
  localexpert evaluate houses.zip test.csv --target sold_for --json > scores.json
"""

#: A model and a table with known targets.
TEST_ROWS: tuple[Option, ...] = (
    MODEL,
    ("table", "rows with known targets, not used in training", {}),
    ("--target", "its name here, if not as in training", COLUMN),
)


def run(options: Any) -> None:
    """Load the model, read the table, print the scores of both forecasts."""
    model, frame, y = read_test_rows(options)
    dist = model.predict_dist(frame)
    scores = score_both(y, dist, model.climatology)
    expected = expect_scores(dist)
    if options.json:
        told = {"rows": len(y), **scores, "expected": expected}
        text = json.dumps(without_infinities(told))
    else:
        title = f"{count(len(y), 'row')} of {name_input(options.table)}"
        text = f"{title}\n\n{lay_out_scores(scores)}\n\n{lay_out_expected(expected)}"
    write_out(f"{text}\n")


def read_test_rows(
    options: Any, kept: dict[str, list[OutColumn]] | None = None
) -> tuple[TableModel, Any, Float64Array]:
    """Return the model, features and targets of the rows that have one.

    Further columns of these rows are appended to those kept.
    """
    model = load_table_model(options.model)
    options.decimal = options.decimal or model.schema.decimal
    target = model.schema.target if options.target is None else options.target
    return model, *read_rows(options, model.schema, options.table, target, kept or {})


def read_rows(
    options: Any,
    schema: Schema,
    path: str,
    target: str,
    kept: dict[str, list[OutColumn]],
) -> tuple[Any, Float64Array]:
    """Return features and targets of the rows of a file that have one."""
    dialect = schema.dialect(options.decimal, options.thousands)
    y: list[Float64Array] = []
    parts = read_parts_with(options, {target, *kept, *schema.features}, path)
    written = schema.target_written
    tables = with_targets(parts, target, dialect, y, written=written)
    tables = lay_aside(tables, kept, dialect, "column")
    marks = options.decimal, [target, *kept], options.thousands
    return schema.frame(tables, *marks), np.concatenate(y)


COMMAND = Command(
    run,
    "score a model on rows it has not seen",
    "Score the forecasts of a model on a table with known targets.",
    _EPILOG,
    (*TEST_ROWS, ("--json", "one JSON object; null is not finite", FLAG)),
)
