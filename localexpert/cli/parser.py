"""`Parser`: reads the words of a command; values of options, and shared options."""

from __future__ import annotations

import argparse
import codecs
import csv
import math
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

from localexpert.cli.output import STDOUT, read_out
from localexpert.reading.files import MOST_BYTES, FileFormat
from localexpert.reading.messages import refuse

_THOUSANDS = {"comma": ",", "point": ".", "blank": " ", "apostrophe": "'"}
_DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
# How argparse begins to say that words are lacking.
_REQUIRED = "the following arguments are required"


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
        # What the last list of several words has taken, and perhaps should not have.
        self.took = ""

    def error(self, message: str) -> NoReturn:
        """Raise what ends the command with one line."""
        option = self.took.partition(" ")[0]
        if option and message.startswith((_REQUIRED, f"argument {option}:")):
            message += f"; {self.took}: write lists with commas, or -- after"
        refuse(f"{message} (see {self.prog} --help)")


class _ListAction(argparse.Action):
    """Stores all values of a list, from all places where its option is given."""

    def __call__(
        self, parser: Any, namespace: Any, values: Any, option_string: Any = None
    ) -> None:
        """Add the values of one place to those of the places before."""
        if len(values) > 1:
            words = shlex.join(text for _, text in values)
            parser.took = f"{option_string} took {words}"
        held = [
            *getattr(namespace, self.dest),
            *(one for some, _ in values for one in some),
        ]
        setattr(namespace, self.dest, held)


def make_reader(
    read: Callable[[str], Any], fits: Callable[[Any], bool], message: str
) -> Callable[[str], Any]:
    """Return a reader of values that fit; the message has {} for a text that fails."""

    def read_option(text: str) -> Any:
        with suppress(ValueError, KeyError):
            value = read(text)
            if fits(value):
                return value
        raise argparse.ArgumentTypeError(message.format(repr(text)))

    return read_option


def split_names(word: str) -> list[str]:
    """Return the texts between commas, as CSV has them, without empty ones."""
    try:
        fields = next(csv.reader([word], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        message = f"must be a list such as A,B or '\"A, B\"',C, got {word!r}"
        raise argparse.ArgumentTypeError(message) from error
    return [field.strip() for field in fields if field.strip()]


def list_of(metavar: str, read: Callable[[str], Any] = str) -> dict[str, Any]:
    """Return what argparse is to know of a list with commas, blanks, or both."""

    def read_word(word: str) -> tuple[list[Any], str]:
        return [read(text) for text in split_names(word)], word

    how = {"type": read_word, "metavar": metavar, "default": ()}
    return {"action": _ListAction, "nargs": "+", **how}


def whole_number(least: int, **more: Any) -> dict[str, Any]:
    """Return what argparse is to know of an option with a number from `least` on."""
    message = f"must be a whole number from {least} on, got {{}}"
    read = make_reader(int, lambda number: number >= least, message)
    return {"type": read, "metavar": "N", **more}


def _is_encoding(name: str) -> bool:
    with suppress(LookupError):
        return bool(codecs.lookup(name)._is_text_encoding)
    return False


read_finite = make_reader(float, math.isfinite, "must be a number, got {}")
read_size = make_reader(
    read_finite, lambda size: size >= 0.0, "must be a number from 0 on, got {}"
)
read_share = make_reader(
    read_finite, lambda p: 0.0 < p < 1.0, "must lie between 0 and 1, got {}"
)
read_jobs = make_reader(int, bool, "must be a whole number other than 0, got {}")
_read_delimiter = make_reader(
    lambda text: _DELIMITERS.get(text, text),
    lambda mark: len(mark) == 1 and mark not in '"\r\n\0',
    "must be one character or tab, got {}",
)
_read_thousands = make_reader(
    lambda text: _THOUSANDS.get(text, text),
    lambda mark: mark in _THOUSANDS.values(),
    f"must be one of {', '.join(_THOUSANDS)} or such a mark, got {{}}",
)
_read_encoding = make_reader(
    str, _is_encoding, "must be the name of an encoding such as cp1252, got {}"
)
_read_gib = make_reader(
    lambda text: 2.0**30 * float(text),
    lambda most: most > 0.0,
    "must be a number above 0, got {}",
)

FLAG: dict[str, Any] = {"action": "store_true"}
COLUMN: dict[str, Any] = {"metavar": "COLUMN"}
NAMES = list_of("A,B")
VALUES = list_of("V,V", read_finite)
LEVELS = list_of("P,P", read_share)
SHARE: dict[str, Any] = {"type": read_share, "metavar": "P"}
SEED = whole_number(0, dest="random_state", default=0)


def add_table_options(parser: Parser, decimal: str = "found out") -> None:
    """Add the options on how tables are written."""
    title = "reading tables (CSV, Parquet or Excel, also packed; - is standard input)"
    add: Any = partial(parser.add_argument_group(title).add_argument, metavar="MARK")
    text = "what parts fields: one character, or tab (default: found out)"
    add("--delimiter", type=_read_delimiter, help=text)
    add("--decimal", choices=(".", ","), help=f"decimal mark (default: {decimal})")
    text = f"mark between thousands, or its name: {', '.join(_THOUSANDS)}"
    add("--thousands", type=_read_thousands, help=f"{text} (default: found out)")
    text = "of text, such as cp1252 (default: found out)"
    add("--encoding", type=_read_encoding, metavar="NAME", help=text)
    text = f"GiB that packed tables may unpack to (default: {MOST_BYTES / 2**30:g})"
    size: dict[str, Any] = {"type": _read_gib, "default": MOST_BYTES, "metavar": "GIB"}
    add("--max-unpacked", help=text, **size)


def add_model(parser: Parser, rows: str = "") -> None:
    """Add the arguments of a model, and of tables with such rows."""
    parser.add_argument("model", help="a file that `localexpert fit` saved")
    if rows:
        text = f"{rows}: files, or folders of Parquet"
        parser.add_argument("table", nargs="+", help=text)


def add_target(parser: Parser) -> None:
    """Add the option that says what the target is called."""
    text = "its name here, if not as in training"
    parser.add_argument("--target", help=text, **COLUMN)


def add_out(parser: Parser, metavar: str) -> None:
    """Add the option that says where a table goes."""
    text = "default: standard output; the ending says how it is written"
    how: dict[str, Any] = {"default": STDOUT, "type": read_out, "metavar": metavar}
    parser.add_argument("--out", help=text, **how)


def add_json(parser: Parser) -> None:
    """Add the option for programs that read what is told."""
    parser.add_argument("--json", help="one JSON object; null is not finite", **FLAG)


def format_of(options: Any) -> FileFormat:
    """Return what the options say of files."""
    told = (options.delimiter, options.decimal, options.encoding)
    return FileFormat(*told, options.max_unpacked)


def show_bar(options: Any) -> int:
    """Return 1 where progress is to be shown: to someone who sees it, if not quiet."""
    return int(not options.quiet and sys.stderr.isatty())
