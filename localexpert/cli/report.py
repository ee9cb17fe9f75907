"""`localexpert report`: a page on a model and its forecasts."""

from __future__ import annotations

from typing import Any

from localexpert.cli.command import Command
from localexpert.cli.console import note, refuse, refusing
from localexpert.cli.evaluate import TEST_ROWS, read_test_rows
from localexpert.cli.options import REQUIRED, show_bar
from localexpert.cli.output import STDOUT, check_writable
from localexpert.reporting import report

_EPILOG = """\
The page is one HTML file that needs no network: scores beside climatology,
calibration, coverage, risks, examples of forecasts, importance of the columns, and
warnings where the rows differ from those of training.

example:
  localexpert report houses.zip test.csv --out report.html
"""


def run(options: Any) -> None:
    """Load the model, read the table, write the report."""
    if options.out == STDOUT:
        refuse("--out of report must be a file")
    check_writable(options.out, "--out", [options.model, options.table])
    model, frame, y = read_test_rows(options)
    with refusing(f"cannot write --out {options.out!r}", OSError):
        report(model.model, frame, y, options.out, verbose=show_bar(options))
    note(f"wrote {options.out}")


COMMAND = Command(
    run,
    "write a page on a model and its forecasts",
    "Write a report on a model's forecasts of rows with known targets.",
    _EPILOG,
    (*TEST_ROWS, ("--out", None, {"metavar": "REPORT.html"} | REQUIRED)),
)
