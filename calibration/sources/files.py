"""CSV and Parquet files as parts: runs of lines, or of row groups."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from calibration._validation import refuse

CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".csv.zst")
PARQUET = ".parquet"

# Bytes at the end of a file in which its last line is looked for.
_TAIL = 1 << 16
_DAMAGE = (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError, BadZipFile)


def find_files(given: Any) -> list[Path]:
    """Return a file, or the Parquet files of a folder in the order of their names.

    Parameters
    ----------
    given : path

    Returns
    -------
    list of Path
    """
    if not isinstance(given, str | PathLike):
        refuse("parts", "list paths or frames alone", type(given).__name__, TypeError)
    path, known = Path(given), (*CSV, PARQUET)
    if path.is_dir():
        # Engines leave marks such as _metadata.parquet.
        found = sorted(path.rglob(f"*{PARQUET}"))
        files = [file for file in found if file.name[0] not in "_."]
        if not files:
            refuse("parts", "be a folder with Parquet files", f"{path} with none")
        return files
    if not path.name.lower().endswith(known):
        listed = ", ".join(known)
        refuse("parts", f"be files that end in one of {listed}", path)
    if not path.is_file():
        refuse("parts", "be files that exist", path, FileNotFoundError)
    return [path]


def read_file(
    path: Path, most: int, columns: Sequence[str] | None
) -> Iterator[tuple[str, Any]]:
    """Yield the name of each part of a file, and its frame or what reads it.

    Parameters
    ----------
    path : Path
    most : int
        Rows of a part; a row group of Parquet is never parted.
    columns : sequence of str, optional
        Those that are wanted, if the file has them; all by default.

    Yields
    ------
    name : str
    frame : pandas.DataFrame, or callable that returns one
    """
    read = _read_parquet if path.name.lower().endswith(PARQUET) else _read_csv
    try:
        yield from read(path, most, columns)
    except ImportError as error:
        msg = "Files need pandas and pyarrow: pip install 'localexpert[io]'."
        raise ImportError(msg) from error


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say in one line which file is damaged."""
    try:
        yield
    except _DAMAGE as error:
        said = str(error).partition("\n")[0].rstrip(". ")
        rule = "be whole files"
        refuse("parts", rule, f"{name}, which is no such one: {said}", cause=error)


def _read_csv(
    path: Path, most: int, columns: Sequence[str] | None
) -> Iterator[tuple[str, Any]]:
    """Yield runs of lines; what is text in the first one keeps its digits in all."""
    import pandas as pd

    how: dict[str, Any] = {"chunksize": most, "low_memory": False}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        # A row's hash must not tell of the kind of its file; later ones always do so.
        how["float_precision"] = "round_trip"
    if columns is not None:
        wanted = frozenset(columns)
        how["usecols"] = lambda name: name in wanted
    with _naming(path.name):
        if path.name.lower().endswith(".csv"):
            _check_last_line(path)
        with pd.read_csv(path, **how) as chunks:
            first = next(iter(chunks))
        texts = dict.fromkeys(first.select_dtypes(exclude=["number", "bool"]), "str")
        with pd.read_csv(path, **how, dtype=texts) as chunks:
            start = 1
            for frame in chunks:
                whole = start == 1 and len(frame) < most
                yield path.name if whole else f"{path.name}, rows from {start}", frame
                start += len(frame)


def _check_last_line(path: Path) -> None:
    """Refuse a file whose last line ends early; quotes may run over lines."""
    with path.open("rb") as file:
        header = file.readline()
        file.seek(max(path.stat().st_size - _TAIL, 0))
        lines = file.read().splitlines()
    last = lines[-1] if lines else b""
    if (
        b'"' not in header + last
        and len(last) > 0
        and last.count(b",") < header.count(b",")
    ):
        msg = (
            f"it is cut short, its last line has {last.count(b',') + 1} of "
            f"{header.count(b',') + 1} fields"
        )
        raise ValueError(msg)


def _read_parquet(
    path: Path, most: int, columns: Sequence[str] | None
) -> Iterator[tuple[str, Any]]:
    """Yield what reads runs of row groups."""
    from pyarrow.parquet import ParquetFile

    with _naming(path.name), ParquetFile(path) as file:
        meta, held = file.metadata, file.schema_arrow.names
        counts = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
    wanted = None if columns is None else [name for name in columns if name in held]
    runs: list[list[int]] = []
    for place, count in enumerate(counts):
        if not runs or sum(counts[i] for i in runs[-1]) + count > most:
            runs.append([])
        runs[-1].append(place)
    for run in runs:
        part = f", row groups {run[0]}-{run[-1]}" if len(runs) > 1 else ""
        yield f"{path.name}{part}", partial(_read_groups, path, run, wanted)


def _read_groups(path: Path, groups: list[int], columns: list[str] | None) -> Any:
    """Return some row groups, under the index that pandas has written."""
    from pyarrow.parquet import ParquetFile

    with _naming(path.name), ParquetFile(path) as file:
        return file.read_row_groups(
            groups, columns=columns, use_pandas_metadata=True
        ).to_pandas()
