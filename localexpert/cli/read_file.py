"""Reading a file of any supported kind into a `RawTable`."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from localexpert.cli.cells import Cells, load_module, load_pandas
from localexpert.cli.console import refuse, refusing
from localexpert.cli.delimited import parse_delimited, unzip
from localexpert.cli.raw_table import RawTable

# Rows that are held as texts at once where the columns are known already.
_PART = 100_000


def read_table(path: str, delimiter: str | None = None, decimal: str = ".") -> RawTable:
    """Return the whole table of a file."""
    return next(read_parts(path, delimiter, decimal, None))


def read_parts(
    path: str,
    delimiter: str | None,
    decimal: str,
    n_rows: int | None = _PART,
    wanted: Collection[str] | None = None,
) -> Iterator[RawTable]:
    """Yield the table of a CSV file, plain or gzipped, or of a Parquet file, in parts.

    A part of a CSV file has so many rows, without the blank lines among them, and of
    columns those that are wanted, or all.
    """
    data = read_bytes(path)
    if data[:2] == b"\x1f\x8b":
        data = unzip(path, data)
    if data[:4] == b"PAR1":
        return iter([_read_parquet(path, data)])
    if data[:4] == b"PK\x03\x04":
        refuse(f"{path} is a zip or Excel file; save the table as CSV or Parquet")
    return parse_delimited(path, data, delimiter, decimal, n_rows, wanted)


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file, or say why they cannot be read."""
    with refusing(f"cannot read {path!r}", OSError, ValueError), open(path, "rb") as f:
        return f.read()


def _read_parquet(path: str, data: bytes) -> RawTable:
    pandas = load_pandas()
    need = f'{path} is a Parquet file, which needs: pip install "localexpert[io]"'
    load_module("pyarrow", need)
    # A damaged file ends in errors of many classes, some of them pyarrow's own.
    with refusing(f"{path} is a damaged Parquet file", Exception):
        frame = pandas.read_parquet(io.BytesIO(data), engine="pyarrow")
    if not frame.shape[1] or not len(frame):
        refuse(f"{path} has no rows")
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        refuse(f"{path} has several columns of one name")
    columns = {name: _read_column(frame.iloc[:, j]) for j, name in enumerate(names)}
    return RawTable(path, columns, np.arange(1, len(frame) + 1), "row")


def _read_column(column: Any) -> Cells:
    """Return numbers as numbers, anything else as the text a CSV would hold."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "M":
        if getattr(column.dt, "tz", None) is not None:
            column = column.dt.tz_convert(None)
        column = column.dt.strftime("%Y-%m-%dT%H:%M:%S.%f")
    texts = column.astype(object)
    return np.where(column.isna(), "", texts.map(str))
