"""What the command line says beside its results, a line each on stderr."""

from __future__ import annotations

import os
import sys


def warn(message: str) -> None:
    """Print a warning."""
    note(f"warning: {message}")


def note(message: str) -> None:
    """Print what was done without being asked for."""
    # Names out of a file may hold line breaks.
    _print_line(f"localexpert: {' '.join(message.split())}")


def complain(message: str) -> None:
    """Print the error that ends a command."""
    note(f"error: {message}")


def show_table(text: str) -> None:
    """Print lines that are laid out, after an empty one."""
    for line in ["", *text.splitlines()]:
        _print_line(line)


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
