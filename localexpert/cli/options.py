"""Options that several commands share, and readers of their values."""

from __future__ import annotations

import argparse
import codecs
import math
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any, TypeAlias

from localexpert.cli.lists import list_of
from localexpert.cli.raw_table import RawTable
from localexpert.cli.read_file import read_parts, read_table

# Name of an option or argument, its help, and what else argparse is to know of it.
Option: TypeAlias = tuple[str, str | None, dict[str, Any]]

_THOUSANDS = {"comma": ",", "point": ".", "blank": " ", "apostrophe": "'"}
_DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


def show_bar(options: Any) -> int:
    """Return 1 where progress is to be shown: to someone who sees it, if not quiet."""
    return int(not options.quiet and sys.stderr.isatty())


def read_with(options: Any, path: str) -> RawTable:
    """Read a whole file as the options say."""
    how = options.delimiter, options.decimal
    return read_table(path, *how, options.max_unpacked, options.encoding)


def read_parts_with(
    options: Any, wanted: Collection[str] | None, path: str | None = None
) -> Iterator[RawTable]:
    """Read columns of a file, or the table of the options, part by part as they say.

    None wants all columns.
    """
    how = options.delimiter, options.decimal
    return read_parts(
        path or options.table,
        *how,
        wanted=wanted,
        most=options.max_unpacked,
        encoding=options.encoding,
    )


def make_reader(
    read: Callable[[str], Any], fits: Callable[[Any], bool], message: str
) -> Callable[[str], Any]:
    """Return a reader of values that fit; the message has {} for a text that fails."""

    def read_option(text: str) -> Any:
        with suppress(ValueError):
            value = read(text)
            if fits(value):
                return value
        raise argparse.ArgumentTypeError(message.format(repr(text)))

    return read_option


def read_count(least: int) -> Callable[[str], Any]:
    """Return a reader of whole numbers from `least` on."""
    message = f"must be a whole number from {least} on, got {{}}"
    return make_reader(int, lambda number: number >= least, message)


def whole_number(least: int, **more: Any) -> dict[str, Any]:
    """Return what argparse is to know of an option with such a number."""
    return {"type": read_count(least), "metavar": "N", **more}


def _is_encoding(name: str) -> bool:
    with suppress(LookupError):
        return bool(codecs.lookup(name)._is_text_encoding)
    return False


read_delimiter = make_reader(
    lambda text: _DELIMITERS.get(text, text),
    lambda mark: len(mark) == 1 and mark not in '"\r\n\0',
    "must be one character or tab, got {}",
)
read_encoding = make_reader(
    str, _is_encoding, "must be the name of an encoding such as cp1252, got {}"
)
read_finite = make_reader(float, math.isfinite, "must be a number, got {}")
# Inside (0, 1).
read_share = make_reader(
    read_finite, lambda p: 0.0 < p < 1.0, "must lie between 0 and 1, got {}"
)
# Of gibibytes, in bytes.
read_gib = make_reader(
    lambda text: 2.0**30 * float(text),
    lambda most: most > 0.0,
    "must be a number above 0, got {}",
)
# Of processors: positive, or -1 and below to leave some idle.
read_jobs = make_reader(read_count(-(2**31)), bool, "must not be 0")

THOUSANDS = {
    "type": make_reader(
        lambda text: _THOUSANDS.get(text, text),
        lambda mark: mark in _THOUSANDS.values(),
        f"must be one of {', '.join(_THOUSANDS)} or such a mark, got {{}}",
    ),
    "metavar": "MARK",
}
REQUIRED = {"required": True}
FLAG = {"action": "store_true"}
COLUMN = {"metavar": "COLUMN"}
NAMES = list_of("A,B")
VALUES = list_of("V,V", read_finite)
# In order, each once; none unless asked for.
LEVELS = list_of("P,P", read_share, lambda levels: sorted(set(levels)), default=None)
SEED = whole_number(0, dest="random_state", default=0)
MODEL: Option = ("model", "a file that `localexpert fit` saved", {})
QUIET: Option = ("--quiet", "no progress and no warnings, only errors", FLAG)
