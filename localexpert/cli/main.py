"""`main`: the command `localexpert`, its options, exit codes and one-line errors.

What commands there are, what they say of themselves and their options stand on pages of
text, in the folder `pages`. Below a heading "options ..." each line is one of these:

    table+  an argument, which may be repeated with a plus
    --flag  without a value
    --name KIND  one value, read as `_KINDS` says of the word, else a text
    --name KIND,KIND  a list, whose option may be repeated
    --name KIND KIND  two values
    --name a|b  one of these
    --name 2..  a whole number from there on

An exclamation mark behind the name says that an option is needed, "=value" behind the
kind what it is by default. Lines without a help are those of the page `shared`.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stderr, suppress
from functools import cache
from importlib.resources import files
from typing import Any, NoReturn

from calibration import __version__, calibrator_names
from calibration._kernels._jit import telling
from localexpert.cli.fit import fit
from localexpert.cli.forecasts import evaluate, inspect, predict, report
from localexpert.cli.monitor import monitor, recalibrate
from localexpert.cli.output import name_stdout, note, warn, write_out
from localexpert.cli.probabilities import apply, calibrate
from localexpert.cli.warm import warm
from localexpert.reading import FileFormat, TableError
from localexpert.reading.texts import as_whole, refuse

_COMMANDS = (fit, inspect, predict, evaluate, report, monitor, recalibrate, calibrate)
_MISTAKE, _INTERRUPTED, _BROKEN_PIPE, _TERMINATED = 2, 130, 141, 143
_READING = "reading tables (CSV, Parquet or Excel, also packed; - is standard input)"
_READS = ("--delimiter", "--decimal", "--thousands", "--encoding", "--max-unpacked")
_THOUSANDS = {"comma": ",", "point": ".", "blank": " ", "apostrophe": "'"}
_SMOOTHINGS = ("auto", "pchip", "smoothing_spline")
_EFFORTS = ("quick", "default", "best")
_SIGNS = {"+1": 1, "1": 1, "-1": -1}


def _reader(
    rule: str, read: Callable[[str], Any], fits: Callable[[Any], bool] = lambda _: True
) -> Callable[[str], Any]:
    """Return a reader of values that fit; of others the message has the rule."""

    def read_option(text: str) -> Any:
        with suppress(ValueError, LookupError):
            value = read(text)
            if fits(value):
                return value
        msg = f"must {rule}, got {text!r}"
        raise argparse.ArgumentTypeError(msg)

    return read_option


_KINDS: dict[str, Callable[[str], Any]] = {
    "P": _reader("lie between 0 and 1", float, lambda p: 0.0 < p < 1.0),
    "V": _reader("be a number", float, math.isfinite),
    "SIZE": _reader("be a number from 0 on", float, lambda x: 0.0 <= x < math.inf),
    "JOBS": _reader("be a whole number other than 0", int, bool),
    "METHOD": _reader(
        f"be one of {', '.join(calibrator_names(3))}",
        str,
        calibrator_names(3).__contains__,
    ),
    "EFFORT": _reader(
        "be quick, default, best, or a number of seconds",
        lambda text: text if text in _EFFORTS else float(text),
        lambda effort: effort in _EFFORTS or effort > 0.0,
    ),
    "SMOOTHING": _reader(
        "be a number, auto, pchip or smoothing_spline",
        lambda text: text if text in _SMOOTHINGS else float(text),
    ),
    "LOW": _reader(
        "be a number or none",
        lambda text: None if text == "none" else float(text),
        lambda end: end is None or not math.isnan(end),
    ),
    "COLUMN:SIGN": _reader(
        "be columns with +1 or -1, such as area:+1,age:-1",
        lambda text: (text.rpartition(":")[0].strip(), _SIGNS[text.rpartition(":")[2]]),
        lambda pair: bool(pair[0]),
    ),
    "TABLE.csv": name_stdout,
    "LABEL": as_whole,
    "MARK": _reader(
        "be one character or tab",
        lambda text: "\t" if text == "tab" else text,
        lambda mark: len(mark) == 1 and mark not in '"\r\n\0',
    ),
    "SIGN": _reader(
        f"be one of {', '.join(_THOUSANDS)} or such a mark",
        lambda text: _THOUSANDS.get(text, text),
        lambda mark: mark in _THOUSANDS.values(),
    ),
    "ENCODING": _reader(
        "be the name of an encoding such as cp1252",
        str,
        lambda name: isinstance("".encode(name), bytes),
    ),
    "GIB": _reader(
        "be a number above 0",
        lambda text: 2.0**30 * float(text),
        lambda most: most > 0.0,
    ),
}


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
    if argv is None:
        # The signal alone would leave half-written files.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    try:
        return _run(argv)
    except TableError as error:
        note(f"error: {error}")
    except MemoryError:
        note("error: not enough memory for this table; use fewer rows or columns")
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # whoever read the output has gone
        return _BROKEN_PIPE
    return _MISTAKE


def _run(argv: Sequence[str] | None) -> int:
    """Run the chosen command with warnings of all kinds as lines."""
    try:
        options = make_parser().parse_args(argv)
    except SystemExit as end:  # --help and --version
        write_out("")
        return end.code if isinstance(end.code, int) else 0
    if hasattr(options, "delimiter"):
        names = "delimiter", "decimal", "encoding", "max_unpacked", "thousands"
        options.format = FileFormat(**{name: getattr(options, name) for name in names})
    # Progress is for someone who sees it.
    options.verbose = int(not options.quiet and sys.stderr.isatty())
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        # A user of files can do nothing about future changes of libraries.
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        # A file may be read more than once, and is complained of as one.
        tell = cache(warn)
        warnings.showwarning = lambda message, *_, **__: tell(str(message))
        if options.quiet:
            # Errors are raised past it.
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            stack.enter_context(redirect_stderr(nowhere))
        stack.enter_context(telling(note))
        return options.run(options) or 0


class _Parser(argparse.ArgumentParser):
    """A parser of a page, whose errors are those of every other mistake.

    Parameters
    ----------
    page : str
        Of help: a line, and below it what follows the options.
    **how : object
        Of argparse.
    """

    def __init__(self, page: str, **how: Any) -> None:
        line, *texts = (p for p in page.split("\n\n") if not p.startswith("options"))
        how |= {"description": line, "epilog": "\n\n".join(texts)}
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=layout, **how)
        # argparse takes -inf for an option, and before Python 3.14 also -1e5.
        self._negative_number_matcher = re.compile(r"-(\.?\d|inf$)")

    def error(self, message: str) -> NoReturn:
        """Raise what ends the command with one line."""
        refuse(f"{message} (see {self.prog} --help)")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands, each of which is a page."""
    parser = _Parser(_read_page("localexpert"), prog="localexpert")
    parser.add_argument("--version", action="version", version=__version__)
    how: Any = {"title": "commands", "metavar": "COMMAND", "required": True}
    commands = parser.add_subparsers(parser_class=_Parser, **how)
    shared = {line.split()[0]: line for line in _lines(_read_page("shared"))}
    for run in (*_COMMANDS, apply, warm):
        page = _read_page(run.__name__)
        summary = page.partition("\n")[0].rstrip(".")
        command = commands.add_parser(run.__name__, page=page, help=summary)
        command.set_defaults(run=run)
        for table in (p for p in page.split("\n\n") if p.startswith("options")):
            title, *lines = _lines(table)
            lines = lines or [shared[name] for name in _READS]
            title = _READING if title == "options on reading" else title.strip(":")
            alone = title == "options"
            group: Any = command if alone else command.add_argument_group(title)
            for line in lines:
                _add_option(group, line, shared)
    return parser


def _read_page(name: str) -> str:
    page = files("localexpert.cli").joinpath("pages", f"{name}.txt")
    return page.read_text(encoding="utf-8").strip()


def _lines(table: str) -> list[str]:
    """Return the lines of a table; what is indented further goes on."""
    return [line.strip() for line in re.sub(r"\n {6}", " ", table).splitlines()]


def _add_option(group: Any, line: str, shared: dict[str, str]) -> None:
    """Add what a line of a page declares."""
    form, _, text = line.partition("  ")
    name = re.sub("[!+]$", "", form.split()[0])
    if not text:
        form, _, text = shared[name].partition("  ")
    kind, _, default = form.partition(" ")[2].partition("=")
    how: dict[str, Any] = {"metavar": kind, "type": _KINDS.get(kind, str)}
    if not name.startswith("-"):
        how = {"nargs": "+"} if line.startswith(f"{name}+") else {}
    elif not kind:
        how = {"action": "store_true"}
    elif "|" in kind:
        how["choices"] = kind.split("|")
    elif "," in kind:
        read = _KINDS.get(kind.partition(",")[0], str)
        how |= {"action": "extend", "type": _list_reader(read), "default": []}
    elif " " in kind:
        pair = tuple(kind.split())
        how |= {"nargs": 2, "metavar": pair, "type": _KINDS[pair[0]]}
    elif kind.endswith(".."):
        how |= {"metavar": "N", "type": _whole_number(int(kind[:-2]))}
    if default:
        how["default"], text = default, f"{text} (default: {default})"
    if line.startswith(f"{name}!"):
        how["required"] = True
    group.add_argument(name, help=text, **how)


def _whole_number(least: int) -> Callable[[str], Any]:
    rule = f"be a whole number from {least} on"
    return _reader(rule, int, lambda number: number >= least)


def _list_reader(read: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Return a reader of values between commas, as CSV has them."""

    def read_list(word: str) -> list[Any]:
        try:
            fields = next(csv.reader([word], skipinitialspace=True, strict=True), [])
        except csv.Error as error:
            message = f"must be a list such as A,B or '\"A, B\"',C, got {word!r}"
            raise argparse.ArgumentTypeError(message) from error
        return [read(field.strip()) for field in fields if field.strip()]

    return read_list
