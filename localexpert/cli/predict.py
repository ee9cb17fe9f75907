"""`localexpert predict`: forecasts of the rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from localexpert.cli.cells import Dialect
from localexpert.cli.command import Command
from localexpert.cli.console import refuse
from localexpert.cli.model_files import load_table_model
from localexpert.cli.options import (
    MODEL,
    NAMES,
    read_finite,
    read_levels,
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
from localexpert.distribution.predictive import PredictiveDistribution

_EPILOG = """\
A row for each of the table, in its order: mean, std, and a column for each thing
asked for: q0.05 (quantile), low_0.9 and high_0.9 (interval), p_above_100 (the
probability of a greater value). Categories not met in training count as missing.

examples:
  localexpert predict houses.zip new.csv --out forecasts.csv
  localexpert predict houses.zip new.csv --keep id --quantiles .05,.5,.95 \\
      --interval .9 --exceed 100 200 --out forecasts.csv
  localexpert predict houses.zip new.csv | head
"""
_DEFAULT_LEVELS = (0.05, 0.5, 0.95)


def run(options: Any) -> None:
    """Load the model, read the table, write its forecasts."""
    check_table_writable(options.out, [options.model, options.table])
    model = load_table_model(options.model)
    options.decimal = options.decimal or model.schema.decimal
    parts: dict[str, list[OutColumn]] = {name: [] for name in options.keep}
    wanted = {*parts, *model.schema.features}
    dialect = Dialect(options.decimal, model.schema.missing)
    tables = lay_aside(read_parts_with(options, wanted), parts, dialect)
    frame = model.schema.frame(tables, options.decimal, known=parts)
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
    columns = {"mean": dist.mean(), "std": dist.std()}
    levels = options.quantiles
    if levels is None and options.interval is None and not options.exceed:
        levels = _DEFAULT_LEVELS
    if levels:
        quantiles = dist.quantiles(np.array(levels))
        for j, level in enumerate(levels):
            columns[f"q{_name(level)}"] = quantiles[:, j]
    if options.interval is not None:
        ends = dist.interval(options.interval)
        columns[f"low_{_name(options.interval)}"] = ends[:, 0]
        columns[f"high_{_name(options.interval)}"] = ends[:, 1]
    for value in options.exceed:
        columns[f"p_above_{_name(value)}"] = dist.sf(value)
    return {name: OutColumn(values) for name, values in columns.items()}


def _name(value: float) -> str:
    """Return a number as short as it can be; no two have one name."""
    short = f"{value:.10g}"
    return short if float(short) == value else repr(value)


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
            f"{','.join(map(str, _DEFAULT_LEVELS))})",
            {"type": read_levels, "metavar": "P,P"},
        ),
        (
            "--interval",
            "central interval of mass P",
            {"type": read_share, "metavar": "P"},
        ),
        (
            "--exceed",
            "probabilities of more than these values",
            {"type": read_finite, "nargs": "+", "default": [], "metavar": "V"},
        ),
        ("--keep", "columns to copy", NAMES),
    ),
)
