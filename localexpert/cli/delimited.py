"""Delimited text files: decoding, the delimiter, the header, and rows of one width."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from localexpert.cli.cells import load_pandas
from localexpert.cli.console import count, list_names, refuse, refusing, warn
from localexpert.cli.raw_table import RawTable
from localexpert.cli.records import Records, find_records, read_rows

_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_ROWS = 20


def parse_delimited(
    path: str, data: bytes, delimiter: str | None, decimal: str, n_rows: int | None
) -> Iterator[RawTable]:
    """Yield the table in the bytes of a file, so many rows at a time."""
    data = _as_utf8(path, data)
    if delimiter is None:
        delimiter = _sniff_delimiter(data, decimal)
    records = find_records(data, delimiter)
    is_row = _find_rows(path, records)
    header = next(row for row in read_rows(data, delimiter) if row)
    names, repeated = _name_columns(path, header)
    # Texts as Python objects: pandas' own kind of texts takes twice as long. Blank
    # lines and the header are read as well, so that rows are those of `records`.
    reader = load_pandas().read_csv(
        io.BytesIO(data),
        engine="c" if delimiter.isascii() else "python",
        sep=delimiter,
        header=None,
        names=range(len(names)),
        index_col=False,
        dtype=object,
        na_filter=False,
        skip_blank_lines=False,
        chunksize=n_rows or len(is_row),
    )
    start = 0
    with reader:
        for frame in reader:
            kept = slice(start, start + len(frame))
            start = kept.stop
            part = frame[is_row[kept]]
            columns = {name: part[j].to_numpy() for j, name in enumerate(names)}
            lines = records.lines[kept][is_row[kept]]
            if len(lines):
                yield RawTable(path, columns, lines, repeated=repeated)


def unzip(path: str, data: bytes) -> bytes:
    """Return what is in a gzip file."""
    with refusing(f"{path} is a damaged gzip file", OSError, EOFError, zlib.error):
        return gzip.decompress(data)


def _as_utf8(path: str, data: bytes) -> bytes:
    """Return text as UTF-8, out of UTF-8, or out of UTF-16 that says so."""
    encoding = "utf-8-sig"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        refuse(
            f"{path} is not UTF-8 text: byte 0x{data[error.start]:02x} in line {line}; "
            "save it as UTF-8"
        )
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        refuse(f"{path} is not a text file: a zero byte in line {line}")
    if not text.strip():
        refuse(f"{path} is empty")
    return text.encode()


def _sniff_delimiter(data: bytes, decimal: str) -> str:
    """Return the delimiter that cuts the first rows most evenly, then most often."""

    def evenness(delimiter: str) -> tuple[bool, int]:
        rows = read_rows(data, delimiter, strict=False)
        try:
            widths = [len(row) for row in islice(rows, _SNIFFED_ROWS) if row]
        except csv.Error:
            return False, 0
        return len(set(widths)) == 1 and widths[0] > 1, widths[0] if widths else 0

    choices = [mark for mark in _DELIMITERS if mark != decimal]
    return max(choices, key=evenness)


def _find_rows(path: str, records: Records) -> NDArray[np.bool_]:
    """Say which records are rows: neither blank nor the header, and as wide as it."""
    held = np.flatnonzero(records.widths)
    uneven = held[records.widths[held] != records.widths[held[:1]]]
    if len(uneven):
        line, width = records.lines[uneven[0]], int(records.widths[uneven[0]])
        refuse(
            f"line {line} of {path} has {count(width, 'field')}, "
            f"its header has {records.widths[held[0]]}"
        )
    if records.problem:
        refuse(f"{path} is no proper table: {records.problem}")
    if len(held) < 2:
        refuse(f"{path} has a header but no rows")
    is_row = records.widths > 0
    is_row[held[0]] = False
    return is_row


def _name_columns(path: str, header: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return names that all differ, and those that the header repeats.

    Blank names are numbered, and so are repeated ones from the second on.
    """
    wanted = [name.strip() or f"column {j + 1}" for j, name in enumerate(header)]
    names: dict[str, None] = {}
    numbers = dict.fromkeys(wanted, 0)
    for base in wanted:
        unique = base
        while unique in names or (numbers[base] and unique in numbers):
            numbers[base] += 1
            unique = f"{base}.{numbers[base]}"
        names[unique] = None
    several = tuple(base for base, number in numbers.items() if number)
    if several:
        warn(
            f"{path} has several columns of one name, numbered from the second on: "
            f"{list_names(several)}"
        )
    return list(names), several
