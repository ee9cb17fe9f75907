"""Reading a file of any supported kind into a `RawTable`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress

from localexpert.cli.console import refuse, refusing
from localexpert.cli.delimited import parse_delimited
from localexpert.cli.foreign import refuse_foreign
from localexpert.cli.packed import MOST_BYTES, unpack
from localexpert.cli.parquet import open_parquet, parse_parquet
from localexpert.cli.raw_table import RawTable

#: The name of standard input.
STDIN = "-"
#: How a Parquet file begins.
PARQUET = b"PAR1"
# Rows that are held as texts at once where the columns are known already.
_PART = 100_000


def read_table(
    path: str,
    delimiter: str | None = None,
    decimal: str = ".",
    most: float = MOST_BYTES,
    encoding: str | None = None,
) -> RawTable:
    """Return the whole table of a file."""
    how = delimiter, decimal, None, None, most, encoding
    return next(read_parts(path, *how))


def read_parts(
    path: str,
    delimiter: str | None,
    decimal: str,
    n_rows: int | None = _PART,
    wanted: Collection[str] | None = None,
    most: float = MOST_BYTES,
    encoding: str | None = None,
) -> Iterator[RawTable]:
    """Yield the table of a CSV or Parquet file, plain or packed, in parts.

    A part has so many rows, of CSV without the blank lines among them, and of columns
    those that are wanted, or all. Of a plain Parquet file no more is read than a part
    needs. A packed file must not have more than `most` bytes when it is unpacked.
    Texts are in UTF-8, or in the encoding.
    """
    if is_parquet(path):
        # Not read before it is asked for, row group by row group.
        file = open_parquet(path, path, most, n_rows)
        return parse_parquet(path, file, n_rows, wanted)
    data = unpack(name_input(path), read_bytes(path), most)
    path = name_input(path)
    if data[:4] == PARQUET:
        file = open_parquet(path, io.BytesIO(data), most, n_rows)
        return parse_parquet(path, file, n_rows, wanted)
    refuse_foreign(path, data)
    how = delimiter, decimal, n_rows, wanted, encoding
    return parse_delimited(path, data, *how)


def is_parquet(path: str) -> bool:
    """Return whether a path is a Parquet file that can be read in any order."""
    with suppress(OSError, ValueError):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return file.read(4) == PARQUET
    return False


def name_input(path: str) -> str:
    """Return what messages call a file, which may be standard input."""
    return "standard input" if path == STDIN else path


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file, or say why they cannot be read."""
    if path == STDIN:
        return _read_stdin()
    with refusing(f"cannot read {path!r}", OSError, ValueError), open(path, "rb") as f:
        return f.read()


def _read_stdin() -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        refuse("cannot read standard input: it is closed")
    if sys.stdin.isatty():
        refuse(
            "standard input is a terminal; send it a table, as in "
            "`zcat table.csv.gz | localexpert COMMAND ... -`"
        )
    with refusing("cannot read standard input", OSError, ValueError):
        return sys.stdin.buffer.read()
