"""Files that are written: found writable before the work, and whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from calibration.storage import replacing_file
from calibration.typing import Float64Array
from localexpert.cli.console import UserError

# The name of standard output.
STDOUT = "-"


def check_writable(path: str, option: str, inputs: Sequence[str] = ()) -> None:
    """Refuse a path that cannot be written, or that would replace what is read."""
    if path == STDOUT:
        return
    target = Path(path)
    try:
        if target.is_dir():
            msg = f"{option} {path!r} is a directory"
            raise UserError(msg)
        if target.exists() and not target.is_file():
            # A device or pipe would be replaced by a file.
            msg = f"{option} {path!r} is no ordinary file"
            raise UserError(msg)
        for name in inputs:
            if target.exists() and os.path.samefile(name, target):
                msg = f"{option} {path!r} is the file that is read"
                raise UserError(msg)
        if target.exists() and not os.access(target, os.W_OK):
            msg = f"cannot write {option} {path!r}: Permission denied"
            raise UserError(msg)
        with tempfile.TemporaryFile(dir=target.parent):
            pass
        # Names that are too long, or odd, are only found out by themselves.
        target.with_name(f".{target.name}.tmp").exists()
    except (OSError, ValueError) as error:
        raise _cannot_write(path, option, error) from error


@contextmanager
def replacing(path: str, option: str = "--out") -> Iterator[Path]:
    """Yield a path beside the given one, which takes its place if all goes well."""
    try:
        with replacing_file(Path(path)) as temporary:
            yield temporary
    except OSError as error:
        raise _cannot_write(path, option, error) from error


def write_csv(path: str, columns: dict[str, Sequence[str]]) -> None:
    """Write columns of texts as CSV, to a file or to standard output."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    if path == STDOUT:
        write_out(buffer.getvalue())
        return
    with replacing(path) as temporary:
        temporary.write_text(buffer.getvalue(), encoding="utf-8", newline="")


def write_out(text: str) -> None:
    """Write to standard output in UTF-8, whatever the terminal's encoding is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def format_numbers(values: Float64Array) -> list[str]:
    """Return numbers so that reading them gives the same bits; NaN is ""."""
    return ["" if np.isnan(value) else repr(float(value)) for value in values]


def _cannot_write(path: str, option: str, error: Exception) -> UserError:
    reason = getattr(error, "strerror", None) or error
    return UserError(f"cannot write {option} {path!r}: {reason}")
