"""Options that several commands share, and readers of their values."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from localexpert.cli.console import refuse
from localexpert.cli.raw_table import RawTable
from localexpert.cli.read_file import read_parts, read_table

_DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps what is one line, and leaves alone what is laid out already."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are those of every other mistake."""

    def error(self, message: str) -> NoReturn:
        """Raise what ends the command with one line."""
        refuse(f"{message} (see {self.prog} --help)")


def new_command(
    commands: Any,
    run: Callable[[Any], None],
    epilog: str,
    *,
    decimal: str | None = ".",
    **texts: str,
) -> Parser:
    """Return the parser of a command, with what all of them share.

    It is called as the file of `run`. Without a decimal mark that of training holds.
    """
    name = run.__module__.rpartition(".")[2]
    parser: Parser = commands.add_parser(
        name, epilog=epilog, formatter_class=HelpFormatter, **texts
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--quiet", action="store_true", help="no progress and no warnings, only errors"
    )
    group = parser.add_argument_group("reading tables (CSV, gzipped CSV, Parquet)")
    group.add_argument(
        "--delimiter",
        type=read_delimiter,
        metavar="MARK",
        help="what parts fields: one character, or tab (default: found out)",
    )
    group.add_argument(
        "--decimal",
        choices=(".", ","),
        default=decimal,
        metavar="MARK",
        help=f"decimal mark, . or , (default: {decimal or 'as in training'})",
    )
    return parser


def show_bar(options: Any) -> int:
    """Return 1 where progress is to be shown: to someone who sees it, if not quiet."""
    return int(not options.quiet and sys.stderr.isatty())


def read_with(options: Any, path: str) -> RawTable:
    """Read a whole file as the options say."""
    return read_table(path, options.delimiter, options.decimal)


def read_parts_with(options: Any) -> Iterator[RawTable]:
    """Read the table of the options part by part as they say."""
    return read_parts(options.table, options.delimiter, options.decimal)


def read_delimiter(text: str) -> str:
    """Return the one character that is meant."""
    mark = _DELIMITERS.get(text, text)
    if len(mark) != 1 or mark in '"\r\n\0':
        msg = f"must be one character or tab, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return mark


def read_names(text: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def read_levels(text: str) -> list[float]:
    """Return increasing levels inside (0, 1) from a list with commas."""
    return sorted({read_share(part) for part in text.split(",") if part.strip()})


def read_share(text: str) -> float:
    """Return a number inside (0, 1)."""
    number = read_finite(text)
    if not 0.0 < number < 1.0:
        msg = f"must lie between 0 and 1, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return number


def read_finite(text: str) -> float:
    """Return a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        msg = f"must be a number, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return number


def read_count(least: int) -> Any:
    """Return a reader of whole numbers from `least` on."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            msg = f"must be a whole number from {least} on, got {text!r}"
            raise argparse.ArgumentTypeError(msg)
        return number

    return read


def read_jobs(text: str) -> int:
    """Return a number of processors: positive, or -1 and below to leave some idle."""
    number = read_count(-(2**31))(text)
    if number == 0:
        msg = "must not be 0"
        raise argparse.ArgumentTypeError(msg)
    return int(number)
