"""Categories that training never saw: a warning for each column, once a call."""

from __future__ import annotations

import reprlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from calibration import CalibrationWarning

# Columns that a warning names.
_MOST_NAMED = 5
# Whose frames are no lines of the user's: ours, and those that wrap our methods.
_NOT_THE_USER = (__name__.partition(".")[0], "sklearn", "contextlib", "functools")


@dataclass(frozen=True)
class Unseen:
    """Values of a column that training never saw.

    Parameters
    ----------
    column : str or whatever names columns
    n_rows : int
        Rows that hold such a value.
    example : object
        One of the values.
    """

    column: Any
    n_rows: int
    example: Any

    def __str__(self) -> str:
        rows = "1 row" if self.n_rows == 1 else f"{self.n_rows:,} rows"
        return f"{self.column!r} ({rows}, such as {reprlib.repr(self.example)})"


# Columns that were warned of in the call under way. None: no such call is under way.
# False: somebody else warns.
_TOLD: ContextVar[set[Any] | bool | None] = ContextVar("told", default=None)


@contextmanager
def unseen_once() -> Iterator[None]:
    """Tell of each column once, however often tables are read inside."""
    token = _TOLD.set(set() if _TOLD.get() is None else _TOLD.get())
    try:
        yield
    finally:
        _TOLD.reset(token)


@contextmanager
def unseen_silently() -> Iterator[None]:
    """Tell of none: the caller does, or they are no news."""
    token = _TOLD.set(False)
    try:
        yield
    finally:
        _TOLD.reset(token)


def warn_of_unseen(found: Sequence[Unseen]) -> None:
    """Warn of columns with such values, in one warning, at the user's own line.

    Parameters
    ----------
    found : sequence of Unseen
    """
    told = _TOLD.get()
    if isinstance(told, set):
        found = [one for one in found if one.column not in told]
        told.update(one.column for one in found)
    if told is False or not found:
        return
    listed = ", ".join(map(str, found[:_MOST_NAMED]))
    more = len(found) - _MOST_NAMED
    listed += f" and {more} columns more" if more > 0 else ""
    msg = f"`X` holds categories not met in `fit`, taken as missing: {listed}."
    warnings.warn(msg, CalibrationWarning, stacklevel=level_of_user())


def level_of_user() -> int:
    """Return the stack level of the first caller that is the user's."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _NOT_THE_USER:
            break
        frame, level = frame.f_back, level + 1
    return level
