"""`Command`: one command of the shell as its options, and what it runs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from localexpert.cli.console import refuse
from localexpert.cli.options import (
    QUIET,
    THOUSANDS,
    Option,
    read_delimiter,
    read_encoding,
    read_gib,
)
from localexpert.cli.packed import MOST_BYTES

# How argparse begins to say that words are lacking.
_REQUIRED = "the following arguments are required"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps what is one line, and leaves alone what is laid out already."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are those of every other mistake."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # By itself argparse takes -inf and, before Python 3.14, -1e5 for options.
        self._negative_number_matcher = re.compile(r"-(\.?\d|inf$)")
        # What the last list of several words has taken, and perhaps should not have.
        self.took = "", ""

    def error(self, message: str) -> NoReturn:
        """Raise what ends the command with one line."""
        option, words = self.took
        if option and message.startswith((_REQUIRED, f"argument {option}:")):
            message += f"; {option} took {words}: write lists with commas, or -- after"
        refuse(f"{message} (see {self.prog} --help)")


@dataclass(frozen=True)
class Command:
    """A command, which has the name of the file of `run`.

    Parameters
    ----------
    run : callable
        Takes the options as read; may return an exit code other than 0.
    summary, description, epilog : str
        Of its help.
    options : sequence of Option
    groups : dict of str to sequence of Option
        Further options by their headings.
    decimal : str, optional
        Decimal mark of tables unless told; None is that of training.
    reads_tables : bool
    """

    run: Callable[[Any], int | None]
    summary: str
    description: str
    epilog: str
    options: Iterable[Option]
    groups: Mapping[str, Iterable[Option]] = field(default_factory=dict)
    decimal: str | None = None
    reads_tables: bool = True

    def add_to(self, commands: Any) -> None:
        """Add the command to those of a parser."""
        parser = commands.add_parser(
            self.run.__module__.rpartition(".")[2],
            help=self.summary,
            description=self.description,
            epilog=self.epilog,
            formatter_class=HelpFormatter,
        )
        parser.set_defaults(run=self.run)
        _add_options(parser, (QUIET, *self.options))
        reading = "reading tables (CSV or Parquet, also packed; - is standard input)"
        tables = {reading: self._of_tables()} if self.reads_tables else {}
        for title, group in {**tables, **self.groups}.items():
            _add_options(parser.add_argument_group(title), group)

    def named(self) -> dict[str, str]:
        """Return the names of options by those that their values are stored by."""
        own = [*self.options, *(one for group in self.groups.values() for one in group)]
        tables = self._of_tables() if self.reads_tables else ()
        return {
            how.get("dest", name.lstrip("-").replace("-", "_")): name
            for name, _, how in (*own, *tables)
        }

    def _of_tables(self) -> Iterable[Option]:
        """Return the options on how files are written."""
        text = "what parts fields: one character, or tab (default: found out)"
        yield "--delimiter", text, {"type": read_delimiter, "metavar": "MARK"}
        text = f"decimal mark, . or , (default: {self.decimal or 'as in training'})"
        marks = {"choices": (".", ","), "default": self.decimal, "metavar": "MARK"}
        yield "--decimal", text, marks
        text = "mark between thousands, or its name: comma, point, blank, apostrophe"
        yield "--thousands", f"{text} (default: found out)", THOUSANDS
        text = "of text, such as cp1252 (default: UTF-8, or UTF-16 that says so)"
        yield "--encoding", text, {"type": read_encoding, "metavar": "NAME"}
        text = f"GiB that packed tables may unpack to (default: {MOST_BYTES / 2**30:g})"
        size = {"type": read_gib, "default": MOST_BYTES, "metavar": "GIB"}
        yield "--max-unpacked", text, size


def _add_options(parser: Any, options: Iterable[Option]) -> None:
    for name, text, how in options:
        parser.add_argument(name, help=text, **how)
