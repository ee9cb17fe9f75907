"""`localexpert predict`: forecasts of the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from localexpert.cli.cells import as_texts
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
from localexpert.cli.output import (
    STDOUT,
    check_table_writable,
    format_numbers,
    read_out,
    write_csv,
)
from localexpert.cli.raw_table import RawTable
from localexpert.distribution.frame import DEFAULT_LEVELS, forecast_columns
from localexpert.distribution.predictive import PredictiveDistribution

_EPILOG = """\
One line per row of the table, in its order: mean, std, and a column for each thing
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
    kept: dict[str, list[str]] = {name: [] for name in options.keep}
    wanted = {*kept, *model.schema.features}
    tables = _keep_columns(read_parts_with(options, wanted), kept)
    marks = options.decimal, kept, options.thousands
    frame = model.schema.frame(tables, *marks)
    dist = model.predict_dist(frame)
    forecasts = _forecast_texts(dist, options)
    clash = sorted(set(kept) & set(forecasts))
    if clash:
        refuse(f"--keep {clash[0]!r} has the name of a column of forecasts")
    write_csv(options.out, {**kept, **forecasts}, "forecast")


def _keep_columns(
    tables: Iterable[RawTable], kept: dict[str, list[str]]
) -> Iterator[RawTable]:
    """Yield tables unchanged, and lay aside what is to be copied."""
    for table in tables:
        for name, texts in kept.items():
            texts.extend(as_texts(table.column(name, "column to keep")))
        yield table


def _forecast_texts(
    dist: PredictiveDistribution, options: Any
) -> dict[str, Sequence[str]]:
    """Return the forecasts that were asked for as texts, by their names."""
    exceed = options.exceed or None
    columns = forecast_columns(dist, options.quantiles, options.interval, exceed)
    return {name: format_numbers(values) for name, values in columns.items()}


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
