"""`OutFormat`: how a table is written, which the name of its file says."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from localexpert.cli.cells import load_module
from localexpert.cli.console import refuse
from localexpert.cli.out_column import OutColumn

_PARQUET = ".parquet"
_DELIMITERS = {"": ",", ".csv": ",", ".tsv": "\t"}


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

    def encode(self, columns: Mapping[str, OutColumn]) -> bytes:
        """Return the whole file."""
        if self.suffix == _PARQUET:
            return _encode_parquet(columns)
        texts = {name: column.texts() for name, column in columns.items()}
        data = lay_out(texts, _DELIMITERS[self.suffix]).encode("utf-8")
        # Without the time, so that the same table gives the same file.
        return gzip.compress(data, mtime=0) if self.packed else data


def lay_out(columns: Mapping[str, Sequence[str]], delimiter: str = ",") -> str:
    """Return columns of texts as CSV."""
    text = _join(columns, delimiter, csv.QUOTE_MINIMAL)
    if "\r" in text:
        # Of line breaks only those that end a line of ours are seen as such.
        text = _join(columns, delimiter, csv.QUOTE_ALL)
    return text


def _join(
    columns: Mapping[str, Sequence[str]], delimiter: str, quoting: Literal[0, 1]
) -> str:
    buffer = io.StringIO(newline="")
    how = {"lineterminator": "\n", "delimiter": delimiter}
    writer = csv.writer(buffer, quoting=quoting, **how)  # type: ignore[arg-type]
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return buffer.getvalue()


def _encode_parquet(columns: Mapping[str, OutColumn]) -> bytes:
    pyarrow = load_module("pyarrow", "")
    typed = {name: column.typed() for name, column in columns.items()}
    buffer = io.BytesIO()
    load_module("pyarrow.parquet", "").write_table(pyarrow.table(typed), buffer)
    return buffer.getvalue()
