"""Files that are written: found writable before the work, and whole or not at all."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from calibration.storage import replacing_file, writable_file
from calibration.typing import Float64Array
from localexpert.cli.console import count, note, refuse, refusing

# The name of standard output.
STDOUT = "-"


def check_writable(path: str, option: str, inputs: Sequence[str] = ()) -> None:
    """Refuse a path that cannot be written, or that would replace what is read."""
    if path == STDOUT:
        return
    with refusing(f"cannot write {option} {path!r}", OSError, ValueError):
        target = writable_file(path)
        reads = target.exists() and any(target.samefile(name) for name in inputs)
    if reads:
        refuse(f"{option} {path!r} is the file that is read")


@contextmanager
def replacing(path: str, option: str = "--out") -> Iterator[Path]:
    """Yield a path beside the given one, which takes its place if all goes well."""
    with (
        refusing(f"cannot write {option} {path!r}", OSError),
        replacing_file(Path(path)) as temporary,
    ):
        yield temporary


def write_csv(path: str, columns: dict[str, Sequence[str]], noun: str) -> None:
    """Write columns of texts as CSV, to a file, which is told, or to standard output.

    The noun says what a row is.
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    if path == STDOUT:
        write_out(buffer.getvalue())
        return
    with replacing(path) as temporary:
        temporary.write_text(buffer.getvalue(), encoding="utf-8", newline="")
    note(f"wrote {count(len(next(iter(columns.values()))), noun)} to {path}")


def write_out(text: str) -> None:
    """Write to standard output in UTF-8, whatever the terminal's encoding is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def format_numbers(values: Float64Array) -> list[str]:
    """Return numbers so that reading them gives the same bits; NaN is ""."""
    return ["" if np.isnan(value) else repr(float(value)) for value in values]
