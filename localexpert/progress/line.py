"""Where progress is written: one line that is drawn anew, or a few plain lines."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TextIO

# Seconds between two drawings.
_LEAST_PAUSE = 0.1
_BAR_WIDTH = 16
# Where lines cannot be drawn anew one is printed for every such share of the work.
_N_PLAIN_LINES = 5
# No bar is full before the end.
_ALMOST_ALL = 0.995


class ProgressLine(Protocol):
    """A place that shows how far the work is."""

    def show(self, share: float, text: str, now: float) -> None:
        """Show a share in [0, 1] and what else there is to say."""

    def close(self, share: float, text: str) -> None:
        """Show the last state and leave the cursor at the start of a line."""

    def watched(self) -> AbstractContextManager[None]:
        """Return a context in which warnings do not garble the line."""


class DrawnLine:
    """A bar on one line of a terminal or notebook, drawn anew a few times a second.

    Parameters
    ----------
    stream : text stream
    title : str
    width : int
        Columns that there are.
    """

    def __init__(self, stream: TextIO, title: str, width: int):
        self.stream = stream
        self.title = title
        self.width = width
        self._drawn = ""
        self._next_time = -float("inf")
        # Threads may warn while the line is being drawn.
        self._lock = threading.RLock()

    def show(self, share: float, text: str, now: float) -> None:
        """Draw the bar, if the last drawing is not too fresh."""
        if now >= self._next_time:
            self._next_time = now + _LEAST_PAUSE
            self._draw(min(share, _ALMOST_ALL), text)

    def close(self, share: float, text: str) -> None:
        """Draw the bar for the last time and end its line."""
        self._draw(share, text)
        self._write("\n")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Take the bar away while a warning is printed.

        Warnings are still shown, recorded or raised as they would be without it.
        """
        shown: Callable[..., None] = warnings.showwarning

        def show(*arguments: Any, **options: Any) -> None:
            with self._lock:
                self._write("\r" + " " * len(self._drawn) + "\r")
                shown(*arguments, **options)
                self._write(self._drawn)

        warnings.showwarning = show
        try:
            yield
        finally:
            warnings.showwarning = shown

    def _draw(self, share: float, text: str) -> None:
        filled = int(share * _BAR_WIDTH)
        bar = "#" * filled + "." * (_BAR_WIDTH - filled)
        line = f"{self.title} [{bar}] {_percent(share)} {text}"[: self.width]
        with self._lock:
            # What the longer line before leaves over is blanked.
            self._write("\r" + line.ljust(len(self._drawn)))
            self._drawn = line

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


class PlainLines:
    """A few whole lines, for logs and pipes.

    Parameters
    ----------
    stream : text stream
    title : str
    """

    def __init__(self, stream: TextIO, title: str):
        self.stream = stream
        self.title = title
        self._n_passed = 0

    def show(self, share: float, text: str, now: float) -> None:
        """Print a line where the next fifth of the work is done."""
        del now
        n_passed = int(share * _N_PLAIN_LINES)
        if self._n_passed < n_passed < _N_PLAIN_LINES:
            self._n_passed = n_passed
            self._print(share, text)

    def close(self, share: float, text: str) -> None:
        """Print the last line."""
        self._print(share, text)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Do nothing: what comes between whole lines garbles none."""
        yield

    def _print(self, share: float, text: str) -> None:
        self.stream.write(f"{self.title} {_percent(share)} {text}\n")
        self.stream.flush()


def can_redraw(stream: TextIO) -> bool:
    """Say whether a carriage return takes a stream back to the start of its line.

    So it does in a terminal, and in a notebook, whose stream denies being one.
    """
    return stream.isatty() or type(stream).__module__.startswith("ipykernel.")


def format_seconds(seconds: float) -> str:
    """Return a length of time in one or two units."""
    whole = round(seconds)
    if whole < 1:
        return "less than 1 s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _percent(share: float) -> str:
    """Return whole per cents, rounded down."""
    return f"{int(100.0 * share):3d} %"
