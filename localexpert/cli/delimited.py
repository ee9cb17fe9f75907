"""Delimited text files: decoding, the delimiter, the header, and rows of one width."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from itertools import islice
from typing import Any

from localexpert.cli.cells import Cells
from localexpert.cli.console import UserError, count, list_names, warn
from localexpert.cli.raw_table import RawTable

_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_ROWS = 20
# Rows that are turned to columns at once, so that few are held twice.
_CHUNK = 5_000


def parse_delimited(
    path: str, data: bytes, delimiter: str | None, decimal: str
) -> RawTable:
    """Return the table in the bytes of a file."""
    text = _decode(path, data)
    if not text.strip():
        msg = f"{path} is empty"
        raise UserError(msg)
    if delimiter is None:
        delimiter = _sniff_delimiter(text, decimal)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return _read_rows(path, reader)
    except csv.Error as error:
        msg = f"{path} is no proper table: {error} (line {reader.line_num})"
        raise UserError(msg) from error


def unzip(path: str, data: bytes) -> bytes:
    """Return what is in a gzip file."""
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        msg = f"{path} is a damaged gzip file: {error}"
        raise UserError(msg) from error


def _decode(path: str, data: bytes) -> str:
    """Return the text of bytes in UTF-8, or in UTF-16 that says so."""
    encoding = "utf-8-sig"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        msg = (
            f"{path} is not UTF-8 text: byte 0x{data[error.start]:02x} in line {line}; "
            "save it as UTF-8"
        )
        raise UserError(msg) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        msg = f"{path} is not a text file: a zero byte in line {line}"
        raise UserError(msg)
    return text


def _sniff_delimiter(text: str, decimal: str) -> str:
    """Return the delimiter that cuts the first rows most evenly, then most often."""
    head = text[: 1 << 20]

    def evenness(delimiter: str) -> tuple[bool, int]:
        rows = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
        try:
            widths = [len(row) for row in islice(rows, _SNIFFED_ROWS) if row]
        except csv.Error:
            return False, 0
        return len(set(widths)) == 1 and widths[0] > 1, widths[0] if widths else 0

    choices = [mark for mark in _DELIMITERS if mark != decimal]
    return max(choices, key=evenness)


def _read_rows(path: str, reader: Any) -> RawTable:
    """Return the table of a reader: the first row that is not blank names columns."""
    header: list[str] = next((row for row in reader if row), [])
    names, repeated = _name_columns(path, header)
    columns: list[list[str]] = [[] for _ in names]
    lines: list[int] = []
    chunk: list[list[str]] = []

    def turn() -> None:
        for column, cells in zip(columns, zip(*chunk, strict=True), strict=False):
            column.extend(cells)
        chunk.clear()

    line = reader.line_num + 1
    for row in reader:
        if row:
            if len(row) != len(names):
                msg = (
                    f"line {line} of {path} has {count(len(row), 'field')}, "
                    f"its header has {len(names)}"
                )
                raise UserError(msg)
            chunk.append(row)
            lines.append(line)
        if len(chunk) == _CHUNK:
            turn()
        line = reader.line_num + 1
    turn()
    if not lines:
        msg = f"{path} has a header but no rows"
        raise UserError(msg)
    named: dict[str, Cells] = dict(zip(names, columns, strict=True))
    return RawTable(path, named, lines, repeated=repeated)


def _name_columns(path: str, header: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return names that all differ, and those that the header repeats.

    Blank names are numbered, and so are repeated ones from the second on.
    """
    wanted = [name.strip() or f"column {j + 1}" for j, name in enumerate(header)]
    names: list[str] = []
    repeated = []
    taken = set(wanted)
    for base in wanted:
        unique, number = base, 0
        while unique in names or (number > 0 and unique in taken):
            number += 1
            unique = f"{base}.{number}"
        if number:
            repeated.append(base)
        names.append(unique)
    several = tuple(dict.fromkeys(repeated))
    if several:
        warn(
            f"{path} has several columns of one name, numbered from the second on: "
            f"{list_names(several)}"
        )
    return names, several
