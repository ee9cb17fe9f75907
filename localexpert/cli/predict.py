"""`localexpert predict`: forecasts of the rows of a table."""

from __future__ import annotations

from typing import Any

from localexpert.cli.command import Command
from localexpert.cli.console import refuse
from localexpert.cli.model_files import load_table_model
from localexpert.cli.options import LEVELS, MODEL, NAMES, VALUES, read_share
from localexpert.cli.out_column import OutColumn, lay_aside
from localexpert.cli.output import (
    STDOUT,
    OutTable,
    check_table_writable,
    read_out,
)
from localexpert.cli.tables import find_tables, read_tables
from localexpert.distribution.frame import DEFAULT_LEVELS, Questions
from localexpert.large.predict_table import predict_table

_EPILOG = """\
A row for each of the table, in its order: mean, std, and a column for each thing
asked for: q0.05 (quantile), low_0.9 and high_0.9 (interval), p_above_100 (the
probability of a greater value). Categories not met in training count as missing.
Several files, and the Parquet files of folders, are one table. Parquet is read and
written part by part, so a table may be larger than memory; of CSV one file must fit.

examples:
  localexpert predict houses.zip new.csv --out forecasts.csv
  localexpert predict houses.zip new.csv --keep id --quantiles .05,.5,.95 \\
      --interval .9 --exceed 100,200 --out forecasts.csv
  localexpert predict houses.zip january.csv february.csv --out forecasts.parquet
  localexpert predict houses.zip folder_of_parquet --keep id --out forecasts.parquet
  localexpert predict houses.zip new.csv | head
"""


def run(options: Any) -> None:
    """Load the model, read the tables part by part, write their forecasts."""
    check_table_writable(options.out, [options.model, *options.table])
    paths = find_tables(options.table)
    if paths != options.table:
        check_table_writable(options.out, paths)
    model = load_table_model(options.model)
    schema = model.schema
    options.decimal = options.decimal or schema.decimal
    asked = {
        "quantiles": options.quantiles,
        "interval": options.interval,
        "exceed": options.exceed or None,
    }
    clash = sorted(set(options.keep) & set(Questions.of(**asked).names))
    if clash:
        refuse(f"--keep {clash[0]!r} has the name of a column of forecasts")
    parts: dict[str, list[OutColumn]] = {name: [] for name in options.keep}
    dialect = schema.dialect(options.decimal, options.thousands)
    tables = read_tables(options, paths, schema.features, options.keep)
    marks = options.decimal, parts, options.thousands
    frames = schema.frames(lay_aside(tables, parts, dialect), *marks)
    with OutTable(options.out, "forecast") as out:
        for frame in frames:
            kept = {name: columns.pop() for name, columns in parts.items()}
            said = predict_table(model, frame, **asked)
            answers = {name: OutColumn(said[name].to_numpy()) for name in said}
            out.write({**kept, **answers})


COMMAND = Command(
    run,
    "forecast the rows of a table",
    "Forecast the target of every row of a table.",
    _EPILOG,
    (
        MODEL,
        (
            "table",
            "rows with the columns of the training file: files, or folders of Parquet",
            {"nargs": "+"},
        ),
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
