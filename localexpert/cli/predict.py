"""`localexpert predict`: forecasts of the rows of a table."""

from __future__ import annotations

from typing import Any

from localexpert.cli.command import Command
from localexpert.cli.console import refuse
from localexpert.cli.model_files import load_table_model
from localexpert.cli.options import (
    LEVELS,
    MODEL,
    NAMES,
    VALUES,
    read_parts_with,
    read_share,
)
from localexpert.cli.out_column import OutColumn, lay_aside
from localexpert.cli.output import (
    STDOUT,
    check_table_writable,
    read_out,
    write_table,
)
from localexpert.distribution.frame import DEFAULT_LEVELS, Questions
from localexpert.distribution.predictive import PredictiveDistribution

_EPILOG = """\
A row for each of the table, in its order: mean, std, and a column for each thing
asked for: q0.05 (quantile), low_0.9 and high_0.9 (interval), p_above_100 (the
probability of a greater value). Categories not met in training count as missing.

examples:
  localexpert predict houses.zip new.csv --out forecasts.csv
  localexpert predict houses.zip new.csv --keep id --quantiles .05,.5,.95 \\
      --interval .9 --exceed 100,200 --out forecasts.csv
  localexpert predict houses.zip new.csv | head
"""


def run(options: Any) -> None:
    """Load the model, read the table, write its forecasts."""
    check_table_writable(options.out, [options.model, options.table])
    model = load_table_model(options.model)
    options.decimal = options.decimal or model.schema.decimal
    parts: dict[str, list[OutColumn]] = {name: [] for name in options.keep}
    wanted = {*parts, *model.schema.features}
    dialect = model.schema.dialect(options.decimal, options.thousands)
    tables = lay_aside(read_parts_with(options, wanted), parts, dialect)
    marks = options.decimal, parts, options.thousands
    frame = model.schema.frame(tables, *marks)
    dist = model.predict_dist(frame)
    forecasts = _forecast_columns(dist, options)
    clash = sorted(set(parts) & set(forecasts))
    if clash:
        refuse(f"--keep {clash[0]!r} has the name of a column of forecasts")
    kept = {name: OutColumn.join(columns) for name, columns in parts.items()}
    write_table(options.out, {**kept, **forecasts}, "forecast")


def _forecast_columns(
    dist: PredictiveDistribution, options: Any
) -> dict[str, OutColumn]:
    """Return the forecasts that were asked for, by their names."""
    exceed = options.exceed or None
    asked = Questions.of(options.quantiles, options.interval, exceed)
    return {name: OutColumn(values) for name, values in asked.answers(dist).items()}


COMMAND = Command(
    run,
    "forecast the rows of a table",
    "Forecast the target of every row of a table.",
    _EPILOG,
    (
        MODEL,
        ("table", "rows with the columns of the training file", {}),
        (
            "--out",
            "default: stdout",
            {"default": STDOUT, "type": read_out, "metavar": "FORECASTS.csv"},
        ),
        (
            "--quantiles",
            "levels between 0 and 1 (default, if nothing else is asked for: "
            f"{','.join(map(str, DEFAULT_LEVELS))})",
            LEVELS,
        ),
        (
            "--interval",
            "central interval of mass P",
            {"type": read_share, "metavar": "P"},
        ),
        ("--exceed", "probabilities of more than these values", VALUES),
        ("--keep", "columns to copy", NAMES),
    ),
)
