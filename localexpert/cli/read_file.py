"""Reading a file of any supported kind into a `RawTable`."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from localexpert.cli.cells import LAST_WHOLE, Cells, load_module, load_pandas
from localexpert.cli.console import refuse, refusing
from localexpert.cli.delimited import parse_delimited
from localexpert.cli.packed import MOST_BYTES, refuse_size, unzip
from localexpert.cli.raw_table import RawTable

# Rows that are held as texts at once where the columns are known already.
_PART = 100_000


def read_table(
    path: str,
    delimiter: str | None = None,
    decimal: str = ".",
    most: float = MOST_BYTES,
) -> RawTable:
    """Return the whole table of a file."""
    return next(read_parts(path, delimiter, decimal, None, most=most))


def read_parts(
    path: str,
    delimiter: str | None,
    decimal: str,
    n_rows: int | None = _PART,
    wanted: Collection[str] | None = None,
    most: float = MOST_BYTES,
) -> Iterator[RawTable]:
    """Yield the table of a CSV file, plain or gzipped, or of a Parquet file, in parts.

    A part of a CSV file has so many rows, without the blank lines among them, and of
    columns those that are wanted, or all. A packed file must not have more than `most`
    bytes when it is unpacked.
    """
    data = read_bytes(path)
    if data[:2] == b"\x1f\x8b":
        data = unzip(path, data, most)
    if data[:4] == b"PAR1":
        return iter([_read_parquet(path, data, most)])
    if data[:4] == b"PK\x03\x04":
        refuse(f"{path} is a zip or Excel file; save the table as CSV or Parquet")
    return parse_delimited(path, data, delimiter, decimal, n_rows, wanted)


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file, or say why they cannot be read."""
    with refusing(f"cannot read {path!r}", OSError, ValueError), open(path, "rb") as f:
        return f.read()


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
    return RawTable(path, columns, np.arange(1, len(frame) + 1), "row", own=own)


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
