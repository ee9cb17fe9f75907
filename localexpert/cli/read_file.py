"""Reading a file of any supported kind into a `RawTable`."""

from __future__ import annotations

import io
import sys
from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from localexpert.cli.cells import LAST_WHOLE, Cells, load_module, load_pandas
from localexpert.cli.console import refuse, refusing
from localexpert.cli.delimited import parse_delimited
from localexpert.cli.foreign import refuse_foreign
from localexpert.cli.packed import MOST_BYTES, refuse_size, unpack
from localexpert.cli.raw_table import RawTable

#: The name of standard input.
STDIN = "-"
# Rows that are held as texts at once where the columns are known already.
_PART = 100_000


def read_table(
    path: str,
    delimiter: str | None = None,
    decimal: str = ".",
    most: float = MOST_BYTES,
    encoding: str | None = None,
) -> RawTable:
    """Return the whole table of a file."""
    how = delimiter, decimal, None, None, most, encoding
    return next(read_parts(path, *how))


def read_parts(
    path: str,
    delimiter: str | None,
    decimal: str,
    n_rows: int | None = _PART,
    wanted: Collection[str] | None = None,
    most: float = MOST_BYTES,
    encoding: str | None = None,
) -> Iterator[RawTable]:
    """Yield the table of a CSV or Parquet file, plain or packed, in parts.

    A part of a CSV file has so many rows, without the blank lines among them, and of
    columns those that are wanted, or all. A packed file must not have more than `most`
    bytes when it is unpacked. Texts are in UTF-8, or in the encoding.
    """
    data = unpack(name_input(path), read_bytes(path), most)
    path = name_input(path)
    if data[:4] == b"PAR1":
        return iter([_read_parquet(path, data, most)])
    refuse_foreign(path, data)
    how = delimiter, decimal, n_rows, wanted, encoding
    return parse_delimited(path, data, *how)


def name_input(path: str) -> str:
    """Return what messages call a file, which may be standard input."""
    return "standard input" if path == STDIN else path


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file, or say why they cannot be read."""
    if path == STDIN:
        return _read_stdin()
    with refusing(f"cannot read {path!r}", OSError, ValueError), open(path, "rb") as f:
        return f.read()


def _read_stdin() -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        refuse("cannot read standard input: it is closed")
    if sys.stdin.isatty():
        refuse(
            "standard input is a terminal; send it a table, as in "
            "`zcat table.csv.gz | localexpert COMMAND ... -`"
        )
    with refusing("cannot read standard input", OSError, ValueError):
        return sys.stdin.buffer.read()


def _read_parquet(path: str, data: bytes, most: float) -> RawTable:
    pandas = load_pandas()
    need = f'{path} is a Parquet file, which needs: pip install "localexpert[io]"'
    pyarrow = load_module("pyarrow", need)
    # A damaged file ends in errors of many classes, some of them pyarrow's own.
    with refusing(f"{path} is a damaged Parquet file", Exception):
        file = load_module("pyarrow.parquet", need).ParquetFile(io.BytesIO(data))
        told = file.metadata
        groups = [told.row_group(i).total_byte_size for i in range(told.num_row_groups)]
    # A page may say in a few bytes that one value comes a thousand million times.
    if max(sum(groups), 8 * told.num_rows * told.num_columns) > most:
        refuse_size(path, most)
    # With gaps among them they would be rounded.
    whole = {
        pyarrow.int64(): pandas.Int64Dtype(),
        pyarrow.uint64(): pandas.UInt64Dtype(),
    }
    with refusing(f"{path} is a damaged Parquet file", Exception):
        arrow = file.read()
        frame = arrow.to_pandas(types_mapper=whole.get)
    if not frame.shape[1] or not len(frame):
        refuse(f"{path} has no rows")
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        refuse(f"{path} has several columns of one name")
    # Texts are looked at only now.
    with refusing(f"{path} is a damaged Parquet file", Exception):
        columns = {name: _read_column(frame.iloc[:, j]) for j, name in enumerate(names)}
    # What pandas makes its index of is no column.
    own = {name: arrow[name] for name in names if name in arrow.column_names}
    pointed = frozenset(
        name
        for name, column in zip(names, frame.items(), strict=True)
        if isinstance(next(iter(column[1].dropna()), None), Decimal)
    )
    rows = np.arange(1, len(frame) + 1)
    return RawTable(path, columns, rows, "row", pointed=pointed, own=own)


def _read_column(column: Any) -> Cells:
    """Return numbers as numbers, anything else as the text a CSV would hold."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf":
        values = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if kind == "f" or not (np.abs(values) >= LAST_WHOLE).any():
            return values
    if kind == "M":
        return _read_moments(column)
    texts = column.astype(object)
    return np.where(column.isna(), "", texts.map(str))


def _read_moments(column: Any) -> Cells:
    """Return times as texts to the last digit, those of a zone in UTC with a Z."""
    zone = "" if column.dt.tz is None else "Z"
    moments = (column.dt.tz_convert(None) if zone else column).to_numpy()
    texts = np.datetime_as_string(moments).astype(object) + zone
    return np.where(column.isna(), "", texts)
