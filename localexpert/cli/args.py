"""`Parser`: reads the words of a command; values of options, and shared options."""

from __future__ import annotations

import argparse
import csv
import math
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from localexpert.cli.output import STDOUT, read_out
from localexpert.reading.files import MOST_BYTES, FileFormat
from localexpert.reading.messages import refuse

_THOUSANDS = {"comma": ",", "point": ".", "blank": " ", "apostrophe": "'"}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are those of every other mistake.

    Parameters
    ----------
    page : str, optional
        Of help: a line, and below it what follows the options.
    **how : object
        Of argparse.
    """

    def __init__(self, page: str = "", **how: Any) -> None:
        line, _, below = page.partition("\n")
        layout = argparse.RawDescriptionHelpFormatter
        how = {"description": line, "epilog": below.strip("\n"), **how}
        super().__init__(formatter_class=layout, **how)
        # By itself argparse takes -inf and, before Python 3.14, -1e5 for options.
        self._negative_number_matcher = re.compile(r"-(\.?\d|inf$)")

    def error(self, message: str) -> NoReturn:
        """Raise what ends the command with one line."""
        refuse(f"{message} (see {self.prog} --help)")


def make_reader(
    read: Callable[[str], Any], fits: Callable[[Any], bool], message: str
) -> Callable[[str], Any]:
    """Return a reader of values that fit; the message has {} for a text that fails."""

    def read_option(text: str) -> Any:
        with suppress(ValueError, LookupError):
            value = read(text)
            if fits(value):
                return value
        raise argparse.ArgumentTypeError(message.format(repr(text)))

    return read_option


def list_of(metavar: str, read: Callable[[str], Any] = str) -> dict[str, Any]:
    """Return what argparse is to know of a list, whose option may be repeated.

    Its values stand between commas, as CSV has them.
    """

    def read_list(word: str) -> list[Any]:
        try:
            fields = next(csv.reader([word], skipinitialspace=True, strict=True), [])
        except csv.Error as error:
            message = f"must be a list such as A,B or '\"A, B\"',C, got {word!r}"
            raise argparse.ArgumentTypeError(message) from error
        return [read(field.strip()) for field in fields if field.strip()]

    return {"action": "extend", "type": read_list, "metavar": metavar, "default": []}


def whole_number(least: int) -> dict[str, Any]:
    """Return what argparse is to know of an option with a number from `least` on."""
    message = f"must be a whole number from {least} on, got {{}}"
    read = make_reader(int, lambda number: number >= least, message)
    return {"type": read, "metavar": "N"}


read_finite = make_reader(float, math.isfinite, "must be a number, got {}")
read_size = make_reader(
    read_finite, lambda size: size >= 0.0, "must be a number from 0 on, got {}"
)
read_share = make_reader(
    read_finite, lambda p: 0.0 < p < 1.0, "must lie between 0 and 1, got {}"
)
read_jobs = make_reader(int, bool, "must be a whole number other than 0, got {}")
_read_delimiter = make_reader(
    lambda text: "\t" if text == "tab" else text,
    lambda mark: len(mark) == 1 and mark not in '"\r\n\0',
    "must be one character or tab, got {}",
)
_read_thousands = make_reader(
    lambda text: _THOUSANDS.get(text, text),
    lambda mark: mark in _THOUSANDS.values(),
    f"must be one of {', '.join(_THOUSANDS)} or such a mark, got {{}}",
)
_read_encoding = make_reader(
    str,
    lambda name: isinstance("".encode(name), bytes),
    "must be the name of an encoding such as cp1252, got {}",
)
_read_gib = make_reader(
    lambda text: 2.0**30 * float(text),
    lambda most: most > 0.0,
    "must be a number above 0, got {}",
)

SEED = {"dest": "random_state", "default": 0}
# What options hold, by the word that help shows for it; other words are texts.
_KINDS = {"P": read_share, "V": read_finite, "SIZE": read_size}
# Options that several commands have, which name them alone.
_SHARED = """\
model  a file that `localexpert fit` saved
--target COLUMN  its name here, if not as in training
--json  one JSON object; null is not finite
--score A,B  column of scores, greater means likelier; of several classes one for each
--positive LABEL  the class whose probability is meant (default: the greater of the two)
--classes A,B  labels that several score columns stand for, in their order (default: \
those that the names of the columns end with)
"""
_READING = f"""\
--delimiter MARK  what parts fields: one character, or tab (default: found out)
--thousands MARK  mark between thousands, or its name: {", ".join(_THOUSANDS)} \
(default: found out)
--encoding NAME  of text, such as cp1252 (default: found out)
--max-unpacked GIB  GiB that packed tables may unpack to (default: \
{MOST_BYTES / 2**30:g})
"""


def add_options(parser: Any, table: str, **more: dict[str, Any]) -> None:
    """Add the options of a table, whose lines are `--name KIND  help`.

    A kind is a word of `_KINDS`, several with commas, values parted by |, or the least
    whole number, as 2..; without one an option is a flag. A line without help is that
    of `_SHARED`. `more` is what else argparse is to know of an option. Names without
    dashes are arguments, and with a plus they may be repeated.
    """
    shared = {line.split()[0]: line for line in _SHARED.splitlines()}
    for line in table.splitlines():
        words, _, text = shared.get(line, line).partition("  ")
        name, _, kind = words.partition(" ")
        how: dict[str, Any] = {"metavar": kind, "type": _KINDS.get(kind, str)}
        if not name.startswith("-"):
            name, how = name.rstrip("+"), {"nargs": "+"} if name[-1] == "+" else {}
        elif not kind:
            how = {"action": "store_true"}
        elif "|" in kind:
            how = {"choices": kind.split("|")}
        elif "," in kind:
            how = list_of(kind, _KINDS.get(kind[0], str))
        elif kind.endswith(".."):
            how = whole_number(int(kind[:-2]))
        how |= more.get(name.strip("-").replace("-", "_"), {})
        parser.add_argument(name, help=text, **how)


def add_table_options(parser: Parser, decimal: str = "found out") -> None:
    """Add the options on how tables are written."""
    title = "reading tables (CSV, Parquet or Excel, also packed; - is standard input)"
    line = f"--decimal .|,  decimal mark (default: {decimal})"
    add_options(
        parser.add_argument_group(title),
        _READING + line,
        delimiter={"type": _read_delimiter},
        decimal={"metavar": "MARK"},
        thousands={"type": _read_thousands},
        encoding={"type": _read_encoding},
        max_unpacked={"type": _read_gib, "default": MOST_BYTES},
    )


def add_out(parser: Parser, metavar: str) -> None:
    """Add the option that says where a table goes."""
    line = (
        f"--out {metavar}  default: standard output; the ending says how it is written"
    )
    add_options(parser, line, out={"default": STDOUT, "type": read_out})


def format_of(options: Any) -> FileFormat:
    """Return what the options say of files."""
    told = (options.delimiter, options.decimal, options.encoding)
    return FileFormat(*told, options.max_unpacked)


def show_bar(options: Any) -> int:
    """Return 1 where progress is to be shown: to someone who sees it, if not quiet."""
    return int(not options.quiet and sys.stderr.isatty())
