"""What the command line says beside its results, a line each on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

# Most names that one message lists.
_MOST_NAMES = 8


class UserError(Exception):
    """A mistake of the user's; its message is the one line that is printed."""


def refuse(message: str) -> NoReturn:
    """End the command for a mistake of the user's."""
    raise UserError(message)


@contextmanager
def refusing(what: str, *kinds: type[Exception]) -> Iterator[None]:
    """Make errors of these kinds the user's; their reason follows what is said."""
    try:
        yield
    except BrokenPipeError:  # no mistake, but the end of who reads the output
        raise
    except kinds as error:
        msg = f"{what}: {getattr(error, 'strerror', None) or error}"
        raise UserError(msg) from error


def warn(message: str) -> None:
    """Print a warning."""
    _print(f"localexpert: warning: {message}")


def note(message: str) -> None:
    """Print what was done without being asked for."""
    _print(f"localexpert: {message}")


def complain(message: str) -> None:
    """Print the error that ends a command."""
    _print(f"localexpert: error: {message}")


def show_table(text: str) -> None:
    """Print lines that are laid out, after an empty one."""
    for line in ["", *text.splitlines()]:
        _print_line(line)


def list_names(names: Iterable[str]) -> str:
    """Return names in quotes, the first few of many."""
    return join_few([repr(name) for name in names])


def join_few(texts: list[str]) -> str:
    """Return texts with commas, the first few of many."""
    shown = ", ".join(texts[:_MOST_NAMES])
    more = len(texts) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def count(n: int, noun: str) -> str:
    """Return "1 row" or "2 rows"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _print(message: str) -> None:
    # Names out of a file may hold line breaks.
    _print_line(" ".join(message.split()))


def _print_line(line: str) -> None:
    if sys.stderr is None:
        return
    # They may hold what no terminal can show, too.
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    line = line.encode(encoding, "backslashreplace").decode(encoding)
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        # The results are worth more than what is said beside them.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
