"""Parquet files as runs of row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.sources.file_stamp import check_stamp, stamp_of
from calibration.sources.kinds import Kind, kinds_of
from calibration.sources.part import Part


@dataclass(frozen=True)
class ParquetPart(Part):
    """A run of row groups of one file.

    Parameters
    ----------
    path : str
    first, last : int
        Row groups, `last` included.
    n_rows : int
    name : str
    stamp : str
        Size and time of the file.
    """

    path: str
    first: int
    last: int
    n_rows: int
    name: str
    stamp: str

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """Return the rows, under the index that pandas has written."""
        path = Path(self.path)
        check_stamp(path, self.stamp, self.name)
        file = _open(path)
        wanted = None if columns is None else list(columns)
        try:
            with file:
                groups = list(range(self.first, self.last + 1))
                held = file.read_row_groups(
                    groups, columns=wanted, use_pandas_metadata=True
                )
        except (OSError, ValueError) as error:
            msg = f"`source` must be whole files, got {self.name}: {_said(error)}."
            raise ValueError(msg) from error
        check_stamp(path, self.stamp, self.name)
        frame = held.to_pandas()
        return frame if wanted is None else frame[wanted]

    def identity(self) -> str:
        """Return file, size, time and row groups."""
        return f"{self.path}|{self.stamp}|{self.first}-{self.last}"


def read_layout(path: Path, most_rows: int) -> tuple[dict[str, Kind], list[Part]]:
    """Return the kinds of a file's columns, and its parts.

    Parameters
    ----------
    path : Path
    most_rows : int
        Of a part, but that a row group is never parted.

    Returns
    -------
    kinds : dict of str to str
    parts : list of Part
        None for a file without rows.
    """
    stamp = stamp_of(path)
    with _open(path) as file:
        empty = file.schema_arrow.empty_table().to_pandas()
        meta = file.metadata
        counts = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
    parts = [
        ParquetPart(
            str(path), first, last, rows, _name(path, first, last, len(counts)), stamp
        )
        for first, last, rows in _runs(counts, most_rows)
    ]
    return kinds_of(_Typed(empty)), list(parts)


class _Typed:
    """A frame without rows, whose columns are no gaps for that."""

    def __init__(self, frame: Any):
        self.columns = frame.columns
        self._frame = frame

    def __getitem__(self, name: Any) -> Any:
        return _Column(self._frame[name].dtype)


@dataclass
class _Column:
    dtype: Any


def _open(path: Path) -> Any:
    """Open a file, which must be one of Parquet."""
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        msg = "Parquet needs pandas and pyarrow: pip install 'localexpert[io]'."
        raise ImportError(msg) from error
    try:
        return ParquetFile(path)
    except ArrowInvalid as error:
        msg = (
            f"`source` must be whole files, got {path.name}, which is cut short or no "
            f"Parquet file: {_said(error)}."
        )
        raise ValueError(msg) from error


def _runs(counts: list[int], most_rows: int) -> Iterator[tuple[int, int, int]]:
    """Yield first and last row group, and rows, of runs that are not too long."""
    first, rows = 0, 0
    for place, count in enumerate(counts):
        if rows and rows + count > most_rows:
            yield first, place - 1, rows
            first, rows = place, 0
        rows += count
    if rows:
        yield first, len(counts) - 1, rows


def _name(path: Path, first: int, last: int, groups: int) -> str:
    """Return what a part is called; a whole file has its name."""
    if last - first + 1 == groups:
        return path.name
    if first == last:
        return f"{path.name}, row group {first}"
    return f"{path.name}, row groups {first}-{last}"


def _said(error: Exception) -> str:
    """Return the first line of a message, without its stop."""
    return str(error).partition("\n")[0].rstrip(". ")
