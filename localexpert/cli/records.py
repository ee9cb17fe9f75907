"""`Records`: where the rows of a delimited file begin, and how wide they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# As bytes.
_NEW_LINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True, eq=False)
class Records:
    """What pandas does not tell: it fills short rows, and counts no lines.

    Parameters
    ----------
    lines : ndarray of int, shape (n,)
        Line of the file in which each row begins, from 1 on.
    widths : ndarray of int, shape (n,)
        Number of fields of each row, 0 of a blank line.
    problem : str
        Why the file cannot be read beyond these rows.
    """

    lines: NDArray[np.intp]
    widths: NDArray[np.intp]
    problem: str = ""


def read_rows(data: bytes, delimiter: str, *, strict: bool = True) -> Any:
    """Return a reader of rows of UTF-8 text by Python's own rules."""
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    return csv.reader(text, delimiter=delimiter, strict=strict)


def find_records(data: bytes, delimiter: str) -> Records:
    """Return the rows of UTF-8 text."""
    return _find_plain(data, delimiter) or _find_any(data, delimiter)


def _find_plain(data: bytes, delimiter: str) -> Records | None:
    """Count marks; None if quotes are not as programs write them."""
    if not delimiter.isascii():
        return None
    text = np.frombuffer(data, dtype=np.uint8)
    is_break = text == _NEW_LINE
    returns = np.flatnonzero(text == _RETURN)
    # The end of a line of two bytes is its second.
    is_break[returns[_at(text, returns + 1) != _NEW_LINE]] = True
    breaks = np.flatnonzero(is_break)
    ends, marks = breaks, np.flatnonzero(text == ord(delimiter))
    quotes = np.flatnonzero(text == _QUOTE)
    if len(quotes):
        if not _are_paired(text, quotes, delimiter):
            return None
        # After an odd number of quotes a mark is inside of them.
        ends, marks = (
            places[np.searchsorted(quotes, places) % 2 == 0] for places in (ends, marks)
        )
    if not data.endswith((b"\n", b"\r")):
        ends = np.append(ends, len(text))
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts
    if lengths.max() > csv.field_size_limit():
        return None
    widths = np.diff(np.searchsorted(marks, ends), prepend=0) + 1
    widths[(lengths == 0) | ((lengths == 1) & (text[starts] == _RETURN))] = 0
    return Records(1 + np.searchsorted(breaks, starts), widths)


def _are_paired(
    text: NDArray[np.uint8], quotes: NDArray[np.intp], delimiter: str
) -> bool:
    """Say whether each field has quotes at both its ends or none at all."""
    if len(quotes) % 2:
        return False
    is_edge = np.zeros(256, dtype=bool)
    is_edge[[_NEW_LINE, _RETURN, _QUOTE, ord(delimiter)]] = True
    before, after = _at(text, quotes[::2] - 1), _at(text, quotes[1::2] + 1)
    return bool(is_edge[before].all() and is_edge[after].all())


def _at(text: NDArray[np.uint8], places: NDArray[np.intp]) -> NDArray[np.uint8]:
    """Return the bytes at some places; before and after the text are line ends."""
    inside = (places >= 0) & (places < len(text))
    return np.where(inside, text[np.where(inside, places, 0)], _RETURN)


def _find_any(data: bytes, delimiter: str) -> Records:
    """Read every row by Python's rules, which also say what is wrong."""
    reader = read_rows(data, delimiter)
    found: list[tuple[int, int]] = []
    problem = ""
    try:
        found.extend(_measure(reader))
    except csv.Error as error:
        problem = f"{error} (line {reader.line_num})"
    lines, widths = np.array(found, dtype=np.intp).reshape(-1, 2).T
    return Records(lines, widths, problem)


def _measure(reader: Any) -> Iterator[tuple[int, int]]:
    line = 1
    for row in reader:
        yield line, len(row)
        line = reader.line_num + 1
