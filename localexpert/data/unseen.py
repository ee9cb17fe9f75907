"""Categories that training never saw. Each call warns once for each column."""

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
from calibration._validation import setting

# A warning names at most this many columns.
_MOST_NAMED = 5
# Stack frames of these modules are not the user's code: ours, and wrappers of ours.
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


# Columns with a warning in the current call. None: there is no such call. False: some
# other code warns.
_WARNED: ContextVar[set[Any] | bool | None] = ContextVar("warned", default=None)


@contextmanager
def unseen_once() -> Iterator[None]:
    """Warn once for each column, even if tables are read several times inside."""
    with setting(_WARNED, set() if _WARNED.get() is None else _WARNED.get()):
        yield


@contextmanager
def unseen_silently() -> Iterator[None]:
    """Give no warning, because the caller warns or no warning is needed."""
    with setting(_WARNED, False):
        yield


def warn_of_unseen(found: Sequence[Unseen]) -> None:
    """Warn of columns with such values, in one warning, at the user's own line.

    Parameters
    ----------
    found : sequence of Unseen
    """
    warned = _WARNED.get()
    if isinstance(warned, set):
        found = [one for one in found if one.column not in warned]
        warned.update(one.column for one in found)
    if warned is False or not found:
        return
    listed = ", ".join(map(str, found[:_MOST_NAMED]))
    more = len(found) - _MOST_NAMED
    listed += f" and {more} columns more" if more > 0 else ""
    warn_user(f"`X` holds categories not met in `fit`, taken as missing: {listed}.")


def warn_user(message: str) -> None:
    """Warn at the user's own line: that of the first caller who is not one of ours."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _NOT_THE_USER:
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, CalibrationWarning, stacklevel=level)
