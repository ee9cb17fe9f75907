"""Files that are written: found writable before the work, and whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from calibration.storage import replacing_file, writable_file
from localexpert.cli.console import count, note, refuse, refusing
from localexpert.cli.out_column import OutColumn
from localexpert.cli.out_format import OutFormat, lay_out

# The name of standard output.
STDOUT = "-"
_NAMES_OF_STDOUT = (STDOUT, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def read_out(text: str) -> str:
    """Return where an option says that tables go.

    The names of standard output are one: where it is a file, it may be one that is to
    grow, and must not be replaced.
    """
    return STDOUT if text in _NAMES_OF_STDOUT else text


def check_writable(path: str, option: str, others: Sequence[str] = ()) -> None:
    """Refuse a path that cannot be written, or that is another one of the command."""
    if path == STDOUT:
        return
    with refusing(f"cannot write {option} {path!r}", OSError, ValueError):
        target = writable_file(path)
        clash = next((name for name in others if _is_same(target, name)), None)
    if clash is not None:
        refuse(f"{option} {path!r} is the same file as {clash!r}")


def _is_same(target: Path, name: str) -> bool:
    if target.exists() and os.path.exists(name):
        return target.samefile(name)
    return os.path.realpath(name) == str(target)


def check_table_writable(path: str, others: Sequence[str]) -> None:
    """Refuse an --out to which no table can be written: devices and pipes are good."""
    if path == STDOUT:
        return
    OutFormat.of(path)
    if not _is_stream(path):
        check_writable(path, "--out", others)


def _is_stream(path: str) -> bool:
    """Return whether a path is a device or pipe, which no file may replace."""
    with suppress(OSError, ValueError):
        mode = os.stat(path).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def write_table(path: str, columns: Mapping[str, OutColumn], noun: str) -> None:
    """Write columns to a file, which is told, or as CSV to standard output.

    The name of the file says how; the noun says what a row is.
    """
    if path == STDOUT:
        write_out(lay_out({name: column.texts() for name, column in columns.items()}))
        return
    data = OutFormat.of(path).encode(columns)
    with ExitStack() as stack:
        stack.enter_context(refusing(f"cannot write --out {path!r}", OSError))
        target = Path(path)
        if not _is_stream(path):
            target = stack.enter_context(replacing_file(target))
        target.write_bytes(data)
    note(f"wrote {count(len(next(iter(columns.values())).cells), noun)} to {path}")


def write_out(text: str) -> None:
    """Write to standard output in UTF-8, whatever the terminal's encoding is."""
    if sys.stdout is None:
        refuse("cannot write to standard output: it is closed")
    with refusing("cannot write to standard output", OSError):
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
            sys.stdout.flush()
        except OSError:
            # What is still to be written must not fail again at the end.
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            raise
