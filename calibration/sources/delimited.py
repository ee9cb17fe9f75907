"""CSV files as runs of whole lines."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from calibration.sources.file_stamp import check_stamp, stamp_of
from calibration.sources.kinds import Kind, check_alike, kinds_of
from calibration.sources.part import Part

# Bytes that are looked at together for ends of lines.
_BLOCK = 1 << 24
_QUOTE, _NEWLINE = np.frombuffer(b'"\n', dtype=np.uint8)


@dataclass(frozen=True)
class CsvPart(Part):
    """A run of lines of one file.

    Parameters
    ----------
    path : str
    first, start, stop : int
        Bytes of the header's end, and of the lines.
    name : str
    kinds : tuple of (str, str)
        What each column must be.
    stamp : str
        Size and time of the file.
    """

    path: str
    first: int
    start: int
    stop: int
    name: str
    kinds: tuple[tuple[str, Kind], ...]
    stamp: str
    n_rows: int | None = None

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """Return the rows; a column of texts keeps numbers as they are written."""
        kinds = dict(self.kinds)
        with open(self.path, "rb") as file:
            header = file.read(self.first)
            file.seek(self.start)
            lines = file.read(self.stop - self.start)
        check_stamp(Path(self.path), self.stamp, self.name)
        texts = {name: "str" for name, kind in kinds.items() if kind == "text"}
        frame = _parse(header + lines, self.name, texts)
        check_alike(kinds_of(frame), self.name, kinds, "what comes before")
        return frame if columns is None else frame[list(columns)]

    def identity(self) -> str:
        """Return file, size, time and place."""
        return f"{self.path}|{self.stamp}|{self.start}-{self.stop}"


def read_layout(path: Path, most_rows: int) -> tuple[dict[str, Kind], list[Part]]:
    """Return the kinds of a file's columns, and its parts.

    Parameters
    ----------
    path : Path
    most_rows : int
        Of a part.

    Returns
    -------
    kinds : dict of str to str
        As the first part tells.
    parts : list of Part
        None for a file without rows.
    """
    stamp = stamp_of(path)
    ends = list(_line_ends(path, most_rows))
    if not ends:
        msg = f"`source` must be files with a header, got {path.name}, which is empty."
        raise ValueError(msg)
    first, *stops = ends
    with path.open("rb") as file:
        header = file.read(first)
        lines = file.read(stops[0] - first) if stops else b""
    frame = _parse(header + lines, path.name, {})
    kinds = kinds_of(frame)
    _check_last_line(path, len(kinds))
    own = tuple(kinds.items())
    parts: list[Part] = [
        CsvPart(
            str(path),
            first,
            start,
            stop,
            path.name if len(stops) == 1 else f"{path.name}, part {number}",
            own,
            stamp,
        )
        for number, (start, stop) in enumerate(zip(ends[:-1], stops, strict=True))
    ]
    return kinds, parts


def _parse(data: bytes, name: str, texts: dict[str, str]) -> Any:
    """Return the frame of some lines with a header."""
    try:
        import pandas as pd
    except ImportError as error:
        msg = "CSV files need pandas: pip install 'localexpert[io]'."
        raise ImportError(msg) from error
    try:
        return pd.read_csv(
            BytesIO(data), dtype=texts, low_memory=False, **_to_the_last_digit(pd)
        )
    except (ValueError, UnicodeDecodeError) as error:
        said = str(error).partition("\n")[0].rstrip(". ")
        msg = f"`source` must be whole files of CSV, got {name}: {said}."
        raise ValueError(msg) from error


def _to_the_last_digit(pandas: Any) -> dict[str, Any]:
    """Return what makes pandas read a number as the nearest float.

    A row's hash must not tell of the kind of its file. From 3.1 on it is so anyway.
    """
    release = tuple(int(part) for part in pandas.__version__.split(".")[:2])
    return {} if release >= (3, 1) else {"float_precision": "round_trip"}


def _line_ends(path: Path, most_rows: int) -> Iterator[int]:
    """Yield where the header ends, and where each run of lines does.

    A line ends where the quotes so far are even: others are within a quoted field.
    """
    odd, lines, place, last = 0, -1, 0, 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            data = np.frombuffer(block, dtype=np.uint8)
            marks = np.flatnonzero((data == _QUOTE) | (data == _NEWLINE))
            quotes = data[marks] == _QUOTE
            parity = (np.cumsum(quotes) + odd) % 2
            ends = place + marks[~quotes & (parity == 0)] + 1
            odd = (odd + int(quotes.sum())) % 2
            while len(ends):
                # The header alone, then runs.
                ahead = 1 if lines < 0 else most_rows - lines
                if len(ends) < ahead:
                    lines += len(ends)
                    break
                last = int(ends[ahead - 1])
                yield last
                ends, lines = ends[ahead:], 0
            place += len(block)
    if odd:
        msg = (
            f"`source` must be whole files, got {path.name}, which is cut short: it "
            "ends within quotes."
        )
        raise ValueError(msg)
    if place > last:
        yield place


def _check_last_line(path: Path, fields: int) -> None:
    """Refuse a file whose last line ends early."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - _BLOCK // 16, 0))
        lines = file.read().decode("utf-8", "replace").splitlines()
    held = next(csv.reader([lines[-1]]), []) if lines else []
    # Quotes may run over several lines: then the last one tells nothing.
    if '"' not in lines[-1] and 0 < len(held) < fields:
        msg = (
            f"`source` must be whole files, got {path.name}, which is cut short: its "
            f"last line has {len(held)} of {fields} fields."
        )
        raise ValueError(msg)
