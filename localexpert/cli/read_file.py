"""Reading a file of any supported kind into a `RawTable`."""

from __future__ import annotations

import importlib
import io
from typing import Any

import numpy as np

from localexpert.cli.cells import Cells
from localexpert.cli.console import UserError
from localexpert.cli.delimited import parse_delimited, unzip
from localexpert.cli.raw_table import RawTable


def read_table(path: str, delimiter: str | None = None, decimal: str = ".") -> RawTable:
    """Return the table of a CSV file, plain or gzipped, or of a Parquet file."""
    data = read_bytes(path)
    if data[:2] == b"\x1f\x8b":
        data = unzip(path, data)
    if data[:4] == b"PAR1":
        return _read_parquet(path, data)
    if data[:4] == b"PK\x03\x04":
        msg = f"{path} is a zip or Excel file; save the table as CSV or Parquet"
        raise UserError(msg)
    return parse_delimited(path, data, delimiter, decimal)


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file, or say why they cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"cannot read {path!r}: {reason}"
        raise UserError(msg) from error


def load_pandas() -> Any:
    """Return the module pandas, which is an optional dependency."""
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        msg = 'tables need pandas: pip install "localexpert[io]"'
        raise UserError(msg) from error


def _read_parquet(path: str, data: bytes) -> RawTable:
    pandas = load_pandas()
    try:
        importlib.import_module("pyarrow")
    except ImportError as error:
        msg = f'{path} is a Parquet file, which needs: pip install "localexpert[io]"'
        raise UserError(msg) from error
    try:
        frame = pandas.read_parquet(io.BytesIO(data), engine="pyarrow")
    # A damaged file ends in errors of many classes, some of them pyarrow's own.
    except Exception as error:
        msg = f"{path} is a damaged Parquet file: {error}"
        raise UserError(msg) from error
    if not frame.shape[1] or not len(frame):
        msg = f"{path} has no rows"
        raise UserError(msg)
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        msg = f"{path} has several columns of one name"
        raise UserError(msg)
    columns = {name: _read_column(frame.iloc[:, j]) for j, name in enumerate(names)}
    return RawTable(path, columns, list(range(1, len(frame) + 1)), "row")


def _read_column(column: Any) -> Cells:
    """Return numbers as numbers, anything else as the text a CSV would hold."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    missing = column.isna().to_numpy()
    if kind == "M":
        if getattr(column.dt, "tz", None) is not None:
            column = column.dt.tz_convert(None)
        column = column.dt.strftime("%Y-%m-%dT%H:%M:%S.%f")
    return [
        "" if gap else str(value)
        for value, gap in zip(column.to_list(), missing, strict=True)
    ]
