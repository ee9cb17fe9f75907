"""`Source`: a table of any size, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from calibration._validation import check_integer
from calibration.sources import delimited, parquet
from calibration.sources.dask_part import is_dask, partitions
from calibration.sources.kinds import Kind, check_alike, join_kinds, kinds_of
from calibration.sources.part import FramePart, Part

_LAYOUTS = {".parquet": parquet.read_layout, ".csv": delimited.read_layout}
_ROWS = 500_000


@dataclass(frozen=True, eq=False)
class Source:
    """A table as parts, which all have the same columns.

    Parameters
    ----------
    parts : iterable of Part
        A list, or, of a function, frames that come in order, anew at each pass.
    kinds : mapping of str to {"number", "bool", "text", "time", "gaps"}
        By column.
    name : str
        What messages call it.
    in_order : bool
        Whether parts come one after another only: `parts` has no length then.
    """

    parts: Iterable[Part]
    kinds: Mapping[str, Kind]
    name: str
    in_order: bool = False

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.kinds)

    @property
    def n_parts(self) -> int | None:
        """Number of parts, if that is known before they are read."""
        return None if self.in_order else len(list(self.parts))

    @property
    def n_rows(self) -> int | None:
        """Number of rows, if that is known before they are read."""
        if self.in_order:
            return None
        counts = [part.n_rows for part in self.parts]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def check_columns(self, columns: Iterable[str]) -> None:
        """Refuse columns that the source lacks.

        Parameters
        ----------
        columns : iterable of str
        """
        for column in columns:
            if column not in self.kinds:
                held = ", ".join(map(repr, self.columns))
                msg = (
                    f"`source` must have the column {column!r}, got {self.name} with "
                    f"{held}."
                )
                raise ValueError(msg)


def open_source(source: Any, *, rows_per_part: int = _ROWS) -> Source:
    """Return a table of any size as parts.

    Parameters
    ----------
    source : path, list of paths, DataFrame, dask.dataframe.DataFrame, or callable
        A Parquet or CSV file, a folder of Parquet files, several files; a frame; or
        a function without arguments that returns an iterator of pandas frames, the
        same ones whenever it is called. A `Source` is returned as it is.
    rows_per_part : int
        Most rows of a part of a file; a row group of Parquet is never parted.

    Returns
    -------
    Source
    """
    most = check_integer(rows_per_part, "rows_per_part", 1)
    if isinstance(source, Source):
        return source
    if isinstance(source, str | PathLike):
        return _of_files(_find_files(Path(source)), str(source), most)
    if isinstance(source, list | tuple):
        return _of_files([_check_file(path) for path in source], "the files", most)
    if is_dask(source):
        kinds, parts = partitions(source)
        return Source(parts, kinds, "the Dask data frame")
    if callable(source):
        return _of_function(source)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return _of_frame(source)
    msg = (
        "`source` must be a path, a list of paths, a pandas or Dask data frame or a "
        f"function that returns an iterator of frames, got {type(source).__name__}."
    )
    raise TypeError(msg)


def _find_files(path: Path) -> list[Path]:
    """Return the files of a folder, or the one file."""
    if not path.is_dir():
        return [_check_file(path)]
    found = sorted(path.rglob("*.parquet"))
    files = [file for file in found if not file.name.startswith(("_", "."))]
    if not files:
        msg = f"`source` must be a folder with *.parquet files, got {path} with none."
        raise ValueError(msg)
    return files


def _check_file(given: Any) -> Path:
    """Return the path of a file of a known suffix."""
    if not isinstance(given, str | PathLike):
        msg = f"`source` must list paths, got {type(given).__name__}."
        raise TypeError(msg)
    path = Path(given)
    if path.suffix.lower() not in _LAYOUTS:
        known = " or ".join(_LAYOUTS)
        msg = f"`source` must be files that end in {known}, got {path}."
        raise ValueError(msg)
    if not path.is_file():
        msg = f"`source` must be a file that exists, got {path}."
        raise FileNotFoundError(msg)
    return path


def _of_files(files: Sequence[Path], name: str, most: int) -> Source:
    """Return the source of files that agree."""
    if not files:
        msg = "`source` must list at least one file, got an empty list."
        raise ValueError(msg)
    kinds: dict[str, Kind] | None = None
    parts: list[Part] = []
    for path in files:
        own, held = _LAYOUTS[path.suffix.lower()](path, most)
        if kinds is None:
            kinds, first = own, path.name
        check_alike(own, path.name, kinds, first)
        kinds = join_kinds(kinds, own)
        parts += held
    if not parts or kinds is None:
        msg = f"`source` must have at least one row, got {name} without any."
        raise ValueError(msg)
    return Source(parts, kinds, name)


def _of_frame(frame: Any) -> Source:
    """Return the source of a frame in memory."""
    if len(frame) == 0:
        msg = "`source` must have at least one row, got a frame without any."
        raise ValueError(msg)
    return Source([FramePart("the frame", frame)], kinds_of(frame), "the frame")


@dataclass(eq=False)
class _Frames:
    """Frames of a function, which is called anew at each pass."""

    function: Callable[[], Iterator[Any]]
    kinds: dict[str, Kind] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Part]:
        for number, frame in enumerate(self.function()):
            name = f"frame {number}"
            if not (hasattr(frame, "iloc") and hasattr(frame, "columns")):
                msg = (
                    "`source` must return an iterator of pandas data frames, got "
                    f"{type(frame).__name__} as {name}."
                )
                raise TypeError(msg)
            if len(frame) == 0:
                continue
            own = kinds_of(frame)
            self.kinds = self.kinds or own
            check_alike(own, name, self.kinds, "what comes before")
            self.kinds = join_kinds(self.kinds, own)
            yield FramePart(name, frame)


def _of_function(function: Callable[[], Iterator[Any]]) -> Source:
    """Return the source of a function's frames, of which the first is looked at."""
    frames = _Frames(function)
    for _ in frames:
        break
    else:
        msg = "`source` must have at least one row, got a function of no rows."
        raise ValueError(msg)
    return Source(frames, frames.kinds, "the function's frames", in_order=True)
