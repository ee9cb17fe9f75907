"""`OutFormat`: how a table is written, which the name of its file says."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Any, Literal, Protocol

from localexpert.cli.cells import load_module
from localexpert.cli.console import refuse
from localexpert.cli.out_column import OutColumn
from localexpert.cli.out_parquet import ParquetWriter

_PARQUET = ".parquet"
_DELIMITERS = {"": ",", ".csv": ",", ".tsv": "\t"}


class PartWriter(Protocol):
    """Writes a table to a file, some rows at a time."""

    def write(self, columns: Mapping[str, OutColumn]) -> None:
        """Write some rows, the columns of which are those of the others."""

    def close(self) -> None:
        """End the file, or what there is of it."""


@dataclass(frozen=True)
class OutFormat:
    """A kind of file.

    Parameters
    ----------
    suffix : {".csv", ".tsv", ".parquet", ""}
        Nothing is CSV.
    packed : bool
        Whether by gzip.
    """

    suffix: str
    packed: bool = False

    @classmethod
    def of(cls, path: str) -> OutFormat:
        """Read it off a name, or refuse a name that means something else."""
        name = PurePath(path).name.lower()
        packed = name.endswith(".gz")
        suffix = PurePath(name.removesuffix(".gz")).suffix
        known = suffix in ((".csv", ".tsv") if packed else (*_DELIMITERS, _PARQUET))
        if not known:
            refuse(
                "--out must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet, which "
                f"says how the table is written, got {path!r}"
            )
        if suffix == _PARQUET:
            need = f'--out {path!r} needs pyarrow: pip install "localexpert[io]"'
            load_module("pyarrow.parquet", need)
        return cls(suffix, packed)

    def writer(self, path: Path) -> PartWriter:
        """Return what writes a file part by part."""
        if self.suffix == _PARQUET:
            return ParquetWriter(path)
        return TextWriter(path, _DELIMITERS[self.suffix], self.packed)


class TextWriter:
    """Writes a table as delimited text, perhaps packed.

    Parameters
    ----------
    path : Path
    delimiter : str
    packed : bool
        Whether by gzip.
    """

    def __init__(self, path: Path, delimiter: str, packed: bool) -> None:
        self.delimiter, self.begun = delimiter, False
        self.file: IO[bytes] = path.open("wb")
        self.stream: Any = self.file
        if packed:
            # Without the time and the name, so that the same table gives the same file.
            self.stream = gzip.GzipFile("", "wb", fileobj=self.file, mtime=0)

    def write(self, columns: Mapping[str, OutColumn]) -> None:
        """Write some rows, below a header if they are the first."""
        texts = {name: column.texts() for name, column in columns.items()}
        text = lay_out(texts, self.delimiter, header=not self.begun)
        self.stream.write(text.encode("utf-8", "backslashreplace"))
        self.begun = True

    def close(self) -> None:
        """Write what is still to be written."""
        self.stream.close()
        self.file.close()


def lay_out(
    columns: Mapping[str, Sequence[str]], delimiter: str = ",", *, header: bool = True
) -> str:
    """Return columns of texts as CSV."""
    text = _join(columns, delimiter, csv.QUOTE_MINIMAL, header)
    if "\r" in text:
        # Of line breaks only those that end a line of ours are seen as such.
        text = _join(columns, delimiter, csv.QUOTE_ALL, header)
    return text


def _join(
    columns: Mapping[str, Sequence[str]],
    delimiter: str,
    quoting: Literal[0, 1],
    header: bool,
) -> str:
    buffer = io.StringIO(newline="")
    how = {"lineterminator": "\n", "delimiter": delimiter}
    writer = csv.writer(buffer, quoting=quoting, **how)  # type: ignore[arg-type]
    if header:
        writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return buffer.getvalue()
