"""Messages about a table: mistakes as one line, and short lists."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

# Names that one message lists, and letters of a cell that it shows.
_MOST_NAMES, _MOST_LETTERS = 8, 40


class TableError(ValueError):
    """A table, or an option about it, that is wrong; the message is one line."""


def refuse(message: str) -> NoReturn:
    """Refuse what the user gave."""
    raise TableError(message)


@contextmanager
def refusing(what: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of these kinds into errors of the user; `what` comes first."""
    try:
        yield
    except (TableError, BrokenPipeError):  # the latter is the end of the output
        raise
    except kinds as error:
        msg = f"{what}: {getattr(error, 'strerror', None) or error}"
        raise TableError(msg) from error


def load_module(name: str, message: str) -> Any:
    """Return a module, or refuse with a message that says who needs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise TableError(message) from error


def load_pandas() -> Any:
    """Return the module pandas, which is an optional dependency."""
    return load_module("pandas", 'tables need pandas: pip install "localexpert[io]"')


def list_names(names: Iterable[Any], most: int = _MOST_NAMES) -> str:
    """Return names in quotes, the first few of many."""
    return join_few([repr(name) for name in names], most)


def join_few(texts: list[str], most: int = _MOST_NAMES) -> str:
    """Return texts with commas, the first few of many."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def count(n: int, noun: str) -> str:
    """Return "1 row" or "2 rows"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def cut(text: str) -> str:
    """Return a cell short enough for a message."""
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."
