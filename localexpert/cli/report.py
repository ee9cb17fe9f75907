"""`localexpert report`: a page on a model and its forecasts."""

from __future__ import annotations

from typing import Any

from localexpert.cli.console import UserError, note
from localexpert.cli.evaluate import add_test_arguments, read_test_rows
from localexpert.cli.options import (
    HelpFormatter,
    add_quiet,
    add_table_options,
    show_bar,
)
from localexpert.cli.output import STDOUT, check_writable, replacing
from localexpert.reporting import report

_EPILOG = """\
The page is one HTML file that needs no network: scores beside climatology,
calibration, coverage, risks, examples of forecasts, importance of the columns, and
warnings where the rows differ from those of training.

example:
  localexpert report houses.zip test.csv --out report.html
"""


def add_command(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "report",
        help="write a page on a model and its forecasts",
        description="Write a report on a model's forecasts of rows with known targets.",
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.set_defaults(run=run)
    add_test_arguments(parser)
    parser.add_argument("--out", required=True, metavar="REPORT.html")
    add_quiet(parser)
    add_table_options(parser, decimal=None)


def run(options: Any) -> None:
    """Load the model, read the table, write the report."""
    if options.out == STDOUT:
        msg = "--out of report must be a file"
        raise UserError(msg)
    check_writable(options.out, "--out", [options.model, options.table])
    model, frame, y = read_test_rows(options)
    with replacing(options.out) as temporary:
        report(model.model, frame, y, temporary, verbose=show_bar(options))
    note(f"wrote {options.out}")
