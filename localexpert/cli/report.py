"""`localexpert report`: a page on a model and its forecasts."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from localexpert.cli.command import Command
from localexpert.cli.console import note, refuse, refusing
from localexpert.cli.evaluate import TEST_ROWS, read_rows, read_test_rows
from localexpert.cli.options import (
    COLUMN,
    FLAG,
    NAMES,
    REQUIRED,
    Option,
    read_share,
    show_bar,
)
from localexpert.cli.out_column import OutColumn
from localexpert.cli.output import STDOUT, check_writable
from localexpert.reporting import report
from localexpert.reporting.columns import MISSING

_EPILOG = """\
The page is one HTML file that needs no network: scores beside climatology,
calibration, coverage, risks, examples of forecasts, importance of the columns, and
warnings where the rows differ from those of training, of which the model keeps a
summary. With the training file there is a boosted baseline as well.

examples:
  localexpert report houses.zip test.csv --out report.html
  localexpert report houses.zip test.csv --train houses.csv --id house \\
      --groups town,kind --title "House prices" --unit EUR --out report.html
"""
_PAGE: tuple[Option, ...] = (
    ("--train", "the training rows, for a boosted baseline", {"metavar": "TABLE"}),
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
    if options.out == STDOUT:
        refuse("--out of report must be a file")
    inputs = [options.model, options.table, options.train]
    check_writable(options.out, "--out", [name for name in inputs if name])
    named = dict.fromkeys([*options.groups, *([options.id] if options.id else [])])
    kept: dict[str, list[OutColumn]] = {name: [] for name in named}
    model, frame, y = read_test_rows(options, kept)
    columns = {name: OutColumn.join(parts).texts() for name, parts in kept.items()}
    more: dict[str, Any] = {}
    if options.train is not None:
        schema = model.schema
        X, target = read_rows(options, schema, options.train, schema.target, {})
        more = {"X_train": X, "y_train": target}
    if options.groups:
        more["groups"] = {
            name: _group(frame, name, columns[name]) for name in options.groups
        }
    if options.id is not None:
        more["row_names"] = columns[options.id]
    with refusing(f"cannot write --out {options.out!r}", OSError):
        report(
            model.model,
            frame,
            y,
            options.out,
            coverage=options.coverage,
            title=options.title,
            target_name=model.schema.target,
            unit=options.unit,
            source=os.path.basename(options.table),
            pdf_friendly=options.pdf_friendly,
            verbose=show_bar(options),
            **more,
        )
    note(f"wrote {options.out}")


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
    (*TEST_ROWS, ("--out", None, {"metavar": "REPORT.html"} | REQUIRED)),
    {"page": _PAGE},
)
