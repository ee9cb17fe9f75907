"""Delimited text files: decoding, the delimiter, the header, and rows of one width."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localexpert.cli.cells import load_pandas
from localexpert.cli.console import count, list_names, note, refuse, warn
from localexpert.cli.foreign import cure_of
from localexpert.cli.raw_table import RawTable

_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_ROWS = 20


def parse_delimited(
    path: str,
    data: bytes,
    delimiter: str | None,
    decimal: str,
    n_rows: int | None,
    wanted: Collection[str] | None,
    encoding: str | None,
) -> Iterator[RawTable]:
    """Yield the table in the bytes of a file, so many rows at a time."""
    data = _as_utf8(path, data, encoding)
    if delimiter is None:
        delimiter = _sniff_delimiter(data, decimal)
    header, places = _find_rows(path, data, delimiter)
    names, repeated = _name_columns(path, header)
    # Without any column pandas would read no rows.
    chosen = [
        j for j, name in enumerate(names) if wanted is None or name in wanted
    ] or [0]
    # Texts as Python objects: pandas' own kind of texts takes twice as long. Blank
    # lines and the header are read as well, so that rows are counted as `places`
    # counts them; but a first part of blank lines alone is nothing pandas can read.
    reader = load_pandas().read_csv(
        io.BytesIO(data.lstrip(b"\r\n")),
        engine="c" if delimiter.isascii() else "python",
        sep=delimiter,
        header=None,
        names=range(len(names)),
        usecols=chosen,
        index_col=False,
        dtype=object,
        na_filter=False,
        skip_blank_lines=False,
        chunksize=n_rows or len(places),
    )
    with reader:
        for frame in reader:
            # Rows are numbered on from part to part.
            lines = places[frame.index]
            part = frame[lines > 0]
            columns = {names[j]: part[j].to_numpy() for j in chosen}
            if len(part):
                held = lines[lines > 0]
                yield RawTable(path, columns, held, "line", repeated, tuple(names))


def _as_utf8(path: str, data: bytes, encoding: str | None) -> bytes:
    """Return text as UTF-8, out of an encoding, UTF-8, or UTF-16 that says so."""
    marked = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    chosen = encoding or ("utf-16" if marked else "utf-8")
    try:
        text = data.decode(chosen).lstrip("\ufeff")
        coded = text.encode()
    except UnicodeError as error:
        cure = cure_of(path) or (
            "give another --encoding"
            if encoding
            else "save it as UTF-8, or give --encoding (often cp1252)"
        )
        where = ""
        if isinstance(error, UnicodeDecodeError):
            line = data.count(b"\n", 0, error.start) + 1
            where = f": byte 0x{data[error.start]:02x} in line {line}"
        name = "UTF-8" if chosen == "utf-8" else chosen
        refuse(f"{path} is not {name} text{where}; {cure}")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        cure = f"; {cure_of(path)}" if cure_of(path) else ""
        refuse(f"{path} is not a text file: a zero byte in line {line}{cure}")
    if not text.strip():
        refuse(f"{path} is empty")
    return coded


def _sniff_delimiter(data: bytes, decimal: str) -> str:
    """Return the delimiter that cuts the first rows most evenly, then most often."""

    def evenness(delimiter: str) -> tuple[bool, int]:
        rows = _read_rows(data, delimiter, strict=False)
        try:
            widths = [len(row) for row in islice(rows, _SNIFFED_ROWS) if row]
        except csv.Error:
            return False, 0
        return len(set(widths)) == 1 and widths[0] > 1, widths[0] if widths else 0

    choices = [mark for mark in _DELIMITERS if mark != decimal]
    best = max(choices, key=evenness)
    if evenness(best)[0] or decimal not in _DELIMITERS:
        return best
    # Numbers with decimal commas may stand in quotes.
    return max((best, decimal), key=evenness)


def _find_rows(
    path: str, data: bytes, delimiter: str
) -> tuple[list[str], NDArray[np.intp]]:
    """Return the header, and the line in which each row begins.

    pandas tells no lines, and fills short rows. The header and blank lines below it
    count as rows of line 0.
    """
    reader = _read_rows(data, delimiter, strict=True)
    header: list[str] = []
    lines = []
    line = 1
    try:
        for row in reader:
            if header and row and len(row) != len(header):
                refuse(
                    f"line {line} of {path} has {count(len(row), 'field')}, "
                    f"its header has {len(header)}"
                )
            if header or row:
                lines.append(line if header and row else 0)
            header = header or row
            line = reader.line_num + 1
    except csv.Error as error:
        refuse(f"{path} is no proper table: {error} (line {reader.line_num})")
    if not any(lines):
        refuse(f"{path} has a header but no rows")
    last = max(row for row, line in enumerate(lines) if line)
    if n_blank := lines[1:last].count(0):
        note(f"left out {count(n_blank, 'blank line')} of {path}")
    return header, np.array(lines, dtype=np.intp)


def _read_rows(data: bytes, delimiter: str, *, strict: bool) -> Any:
    """Return a reader of rows of UTF-8 text by Python's own rules."""
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    return csv.reader(text, delimiter=delimiter, strict=strict)


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
