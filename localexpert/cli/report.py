"""`localexpert report`: a page on a model and its forecasts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from localexpert.cli.command import Command
from localexpert.cli.console import count, note, refuse, refusing
from localexpert.cli.known_rows import (
    KNOWN_ROWS,
    KnownRows,
    draw_rows,
    read_known,
    target_name,
)
from localexpert.cli.model_files import load_table_model
from localexpert.cli.options import (
    COLUMN,
    FLAG,
    NAMES,
    REQUIRED,
    Option,
    read_share,
    show_bar,
    whole_number,
)
from localexpert.cli.output import STDOUT, check_writable
from localexpert.cli.read_file import STDIN, name_input
from localexpert.cli.schema import Schema
from localexpert.cli.tables import find_tables, name_tables
from localexpert.reporting import report
from localexpert.reporting.evidence import MISSING

_EPILOG = """\
The page is one HTML file that needs no network: scores beside climatology,
calibration, coverage, risks, examples of forecasts, importance of the columns, and
warnings where the rows differ from those of training, of which the model keeps a
summary. With the training file there is a boosted baseline as well.

Several files, and the Parquet files of folders, are one table. Of more than --max-rows
rows, and of as many training rows, so many are drawn, and the page says so: it takes
all forecasts at once. `localexpert evaluate` scores any number of rows.

examples:
  localexpert report houses.zip test.csv --out report.html
  localexpert report houses.zip test.csv --train houses.csv --id house \\
      --groups town,kind --title "House prices" --unit EUR --out report.html
"""
# A page takes the forecasts of all its rows at once.
_MOST_ROWS = 50_000
_PAGE: tuple[Option, ...] = (
    (
        "--train",
        "the training rows, for a boosted baseline: a file, or a folder of Parquet",
        {"metavar": "TABLE"},
    ),
    (
        "--max-rows",
        "of more rows so many are drawn, the same ones each time (default: "
        f"{_MOST_ROWS})",
        whole_number(1, default=_MOST_ROWS),
    ),
    ("--title", "heading of the page", {"metavar": "TEXT"}),
    ("--unit", "of the target, for axes", {"metavar": "TEXT"}),
    ("--id", "what rows that are shown are called", COLUMN),
    (
        "--coverage",
        "of the intervals (default: 0.9)",
        {"type": read_share, "default": 0.9, "metavar": "P"},
    ),
    ("--groups", "columns that coverage is shown by", NAMES),
    ("--pdf-friendly", "made to be printed: light, all open, page breaks", FLAG),
)


def run(options: Any) -> None:
    """Load the model, read the tables, write the report."""
    paths, train = _find_files(options)
    model = load_table_model(options.model)
    schema = model.schema
    options.decimal = options.decimal or schema.decimal
    named = dict.fromkeys([*options.groups, *([options.id] if options.id else [])])
    rows, n = _draw(options, schema, paths, target_name(options, schema), named)
    columns = {name: column.texts() for name, column in rows.kept.items()}
    source = name_tables(options.table)
    if len(rows) < n:
        source += f" (drawn from {n:,})"
    more: dict[str, Any] = {}
    if train:
        learned, _ = _draw(options, schema, train, schema.target)
        more = {"X_train": learned.frame, "y_train": learned.y}
    if options.groups:
        more["groups"] = {
            name: _group(rows.frame, name, columns[name]) for name in options.groups
        }
    if options.id is not None:
        more["row_names"] = columns[options.id]
    with refusing(f"cannot write --out {options.out!r}", OSError):
        report(
            model.model,
            rows.frame,
            rows.y,
            options.out,
            coverage=options.coverage,
            title=options.title,
            target_name=schema.target,
            unit=options.unit,
            source=source,
            pdf_friendly=options.pdf_friendly,
            verbose=show_bar(options),
            **more,
        )
    note(f"wrote {options.out}")


def _find_files(options: Any) -> tuple[list[str], list[str]]:
    """Return the files of both tables, once the page can be written beside them."""
    if options.out == STDOUT:
        refuse("--out of report must be a file")
    train = [] if options.train is None else [options.train]
    if STDIN in options.table and STDIN in train:
        refuse("standard input can be one table only: give a file after --train")
    given = [options.model, *options.table, *train]
    check_writable(options.out, "--out", given)
    files = find_tables(options.table), find_tables(train)
    found = [options.model, *files[0], *files[1]]
    if found != given:
        check_writable(options.out, "--out", found)
    return files


def _draw(
    options: Any,
    schema: Schema,
    paths: Sequence[str],
    target: str,
    kept: Iterable[str] = (),
) -> tuple[KnownRows, int]:
    """Return rows of files, some of them if there are more than a page takes."""
    parts = read_known(options, schema, paths, target, kept)
    rows, n = draw_rows(parts, options.max_rows)
    if len(rows) < n:
        where = name_input(paths[0]) if len(paths) == 1 else count(len(paths), "file")
        note(f"drew {len(rows)} (--max-rows) of {n} rows of {where}")
    return rows, n


def _group(frame: Any, name: str, texts: Any) -> Any:
    """Return a feature of numbers, or any other column as texts."""
    if name in frame.columns and frame[name].dtype.kind in "biuf":
        return frame[name]
    return np.array([text.strip() or MISSING for text in texts])


COMMAND = Command(
    run,
    "write a page on a model and its forecasts",
    "Write a report on a model's forecasts of rows with known targets.",
    _EPILOG,
    (*KNOWN_ROWS, ("--out", None, {"metavar": "REPORT.html"} | REQUIRED)),
    {"page": _PAGE},
)
