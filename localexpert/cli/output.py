"""Files that are written: found writable before the work, and whole or not at all."""

from __future__ import annotations

import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import IO, Any, Self

from calibration.storage import replacing_file, writable_file
from localexpert.cli.console import note
from localexpert.cli.out_formats import Conventions, check_format, make_writer
from localexpert.reading.messages import count, refuse, refusing

# The name of standard output.
STDOUT = "-"
_NAMES_OF_STDOUT = (STDOUT, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def read_out(text: str) -> str:
    """Return where an option says that tables go.

    The names of standard output are one: where it is a file, it may be one that is to
    grow, and must not be replaced.
    """
    return STDOUT if text in _NAMES_OF_STDOUT else text


def check_file(path: str, option: str, others: Sequence[str] = ()) -> None:
    """Refuse a path that is no file which can be written, or another of the command."""
    if path == STDOUT:
        refuse(f"{option} must be a file")
    with refusing(f"cannot write {option} {path!r}", OSError, ValueError):
        target = writable_file(path)
        clash = next((name for name in others if _is_same(target, name)), None)
    if clash is not None:
        refuse(f"{option} {path!r} is the same file as {clash!r}")


def check_table(path: str, others: Sequence[str]) -> None:
    """Refuse an --out to which no table can be written: devices and pipes are good."""
    if path == STDOUT:
        return
    check_format(path)
    if not _is_stream(path):
        check_file(path, "--out", others)


def _is_same(target: Path, name: str) -> bool:
    if target.exists() and os.path.exists(name):
        return target.samefile(name)
    return os.path.realpath(name) == str(target)


def _is_stream(path: str) -> bool:
    """Return whether a path is a device or pipe, which no file may replace."""
    with suppress(OSError, ValueError):
        mode = os.stat(path).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


class OutTable:
    """A table that is written part by part, and is there whole or not at all.

    Parameters
    ----------
    path : str
        Of a file, whose name says how it is written, a device, or standard output.
    noun : str
        What a row is.
    """

    def __init__(self, path: str, noun: str) -> None:
        self.path, self.noun, self.n_rows = path, noun, 0
        self._stack = ExitStack()
        self._is_copied = path == STDOUT or _is_stream(path)
        self._writer: Any = None

    def __enter__(self) -> Self:
        with self._refusing(), ExitStack() as stack:
            if self._is_copied:
                # Nothing that was sent to a stream can be taken back.
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                self._whole = Path(folder) / "table"
            else:
                self._whole = stack.enter_context(replacing_file(Path(self.path)))
            self._stack = stack.pop_all()
        return self

    def write(self, frame: Any, how: Conventions) -> None:
        """Write some rows: the same columns every time, as the first call says."""
        with self._refusing():
            if self._writer is None:
                self._writer = make_writer(self.path, self._whole, how)
            self._writer.write(frame)
        self.n_rows += len(frame)

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        with self._refusing():
            if kind is not None:
                with suppress(Exception):
                    self._writer.close()
                self._stack.__exit__(kind, *error)
                return
            with self._stack:
                self._writer.close()
                if self._is_copied:
                    self._copy()
        if self.path != STDOUT:
            note(f"wrote {count(self.n_rows, self.noun)} to {self.path}")

    def _copy(self) -> None:
        """Send what has been written to where it belongs."""
        with self._whole.open("rb") as file:
            if self.path == STDOUT:
                _send(file)
                return
            with open(self.path, "wb") as out:
                shutil.copyfileobj(file, out)

    def _refusing(self) -> AbstractContextManager[None]:
        if self.path == STDOUT:
            return refusing("cannot write to standard output", OSError)
        return refusing(f"cannot write --out {self.path!r}", OSError)


def write_out(text: str) -> None:
    """Write to standard output in UTF-8, whatever the terminal's encoding is."""
    _send(io.BytesIO(text.encode("utf-8", "backslashreplace")))


def _send(file: IO[bytes]) -> None:
    """Write a file to standard output."""
    if sys.stdout is None:
        refuse("cannot write to standard output: it is closed")
    with refusing("cannot write to standard output", OSError):
        try:
            sys.stdout.flush()
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.flush()
        except OSError:
            # What is still to be written must not fail again at the end.
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            raise
