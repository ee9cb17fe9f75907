"""`main`: the command `localexpert`, its exit codes and its one-line errors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr
from importlib import import_module
from typing import Any

from calibration import __version__
from calibration._kernels._jit import telling
from localexpert.cli.args import Parser, add_options
from localexpert.cli.output import complain, note, warn, write_out
from localexpert.reading import TableError

_NAMES = ("fit", "inspect", "predict", "evaluate", "report", "monitor", "recalibrate")
# Each command is a file, whose docstring is its page of help.
_COMMANDS = {
    name: import_module(f"localexpert.cli.{name}")
    for name in (*_NAMES, "calibrate", "apply", "warm")
}
_MISTAKE, _INTERRUPTED, _BROKEN_PIPE = 2, 130, 141

_PAGE = """Forecast whole distributions of a column of a table.

a first session:
  localexpert fit houses.csv --target price --out houses.zip
  localexpert inspect houses.zip
  localexpert evaluate houses.zip test.csv
  localexpert predict houses.zip new.csv --out forecasts.csv --quantiles .05,.5,.95
  localexpert report houses.zip test.csv --out report.html
  localexpert monitor houses.zip may.csv --state houses_state.zip
  localexpert recalibrate houses.zip may.csv --out houses_may.zip

`localexpert COMMAND --help` is a page on each command. Exit codes: 0 done, 2 a mistake
in the options or files (one line on stderr says which), 3 an alarm of `monitor`, 130
interrupted.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the name of the program; None takes those of the process.

    Returns
    -------
    int

    Examples
    --------
    >>> from localexpert.cli.main import main
    >>> main(["predict", "--no-such-option"])
    2
    """
    try:
        return _run(argv)
    except TableError as error:
        complain(str(error))
    except MemoryError:
        complain("not enough memory for this table; use fewer rows or columns")
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # whoever read the output has gone
        return _BROKEN_PIPE
    return _MISTAKE


def make_parser() -> Parser:
    """Return the parser of all commands: the first line of a file is its summary."""
    parser = Parser(_PAGE, prog="localexpert")
    parser.add_argument("--version", action="version", version=__version__)
    how: Any = {"title": "commands", "metavar": "COMMAND", "required": True}
    commands = parser.add_subparsers(parser_class=Parser, **how)
    for name, module in _COMMANDS.items():
        page = module.__doc__ or ""
        summary = page.partition("\n")[0].rstrip(".")
        command = commands.add_parser(name, page=page, help=summary)
        add_options(command, "--quiet  no progress and no warnings, only errors")
        module.add_options(command)
        command.set_defaults(run=module.run)
    return parser


def _run(argv: Sequence[str] | None) -> int:
    """Run the chosen command with warnings of all kinds as lines."""
    try:
        options = make_parser().parse_args(argv)
    except SystemExit as end:  # --help and --version
        write_out("")
        return end.code if isinstance(end.code, int) else 0
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        # What libraries are going to change is nothing a user of files can act on.
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: warn(str(message))
        if options.quiet:
            # Errors are raised past it.
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            stack.enter_context(redirect_stderr(nowhere))
        stack.enter_context(telling(note))
        return options.run(options) or 0
