"""Ctrl-C where Python would show a traceback: in imports, and when all is done."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType

#: The exit code of shells for a program that was interrupted.
INTERRUPTED = 130


def leave_at_once() -> None:
    """Let Ctrl-C end this process on the spot, where it is the command's own.

    What is imported is most of a short command's time. Programs that import the
    package keep their ways, and so do those that are told to ignore Ctrl-C.
    """
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def clean_up_first() -> None:
    """Let Ctrl-C be an exception, after which no file is left half-written."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_command() -> bool:
    program = Path(sys.argv[0] if sys.argv else "")
    # What `python -m localexpert` runs.
    as_module = program.parts[-2:] == ("localexpert", "__main__.py")
    return as_module or program.name in ("localexpert", "localexpert.exe")


def _leave(_signal: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


leave_at_once()
