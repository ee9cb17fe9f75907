"""Parquet files: their columns, and their rows part by part."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from localexpert.cli.cells import LAST_WHOLE, Cells, load_module, load_pandas
from localexpert.cli.console import refuse, refusing
from localexpert.cli.packed import refuse_size
from localexpert.cli.raw_table import RawTable


def open_parquet(path: str, file: Any, most: float, n_rows: int | None) -> Any:
    """Return a ParquetFile of a path or an open file, its footer read.

    What it unpacks to is bounded by `most` bytes, or each row group where not all rows
    are to be read at once.
    """
    need = f'{path} is a Parquet file, which needs: pip install "localexpert[io]"'
    load_module("pyarrow", need)
    # A damaged file ends in errors of many classes, some of them pyarrow's own.
    with refusing(f"{path} is a damaged Parquet file", Exception):
        # Buffers of pages to come would be kept until the last row has been read.
        parquet = load_module("pyarrow.parquet", need)
        opened = parquet.ParquetFile(file, pre_buffer=False)
        told = opened.metadata
        groups = [told.row_group(i) for i in range(told.num_row_groups)]
        # A page may say in a few bytes that one value comes a thousand million times.
        sizes = [max(g.total_byte_size, 8 * g.num_rows * g.num_columns) for g in groups]
    if (sum(sizes) if n_rows is None else max(sizes, default=0)) > most:
        refuse_size(path, most)
    return opened


def parse_parquet(
    path: str, file: Any, n_rows: int | None, wanted: Collection[str] | None
) -> Iterator[RawTable]:
    """Yield the table of a ParquetFile, so many rows at a time or all at once.

    Only columns that are wanted are read, or the first if none is there.
    """
    with refusing(f"{path} is a damaged Parquet file", Exception):
        arrow_names = file.schema_arrow.names
        # What pandas makes its index of is no column.
        held = file.schema_arrow.empty_table().to_pandas().columns
        names = [str(name) for name in held]
        total = file.metadata.num_rows
    if not names or not total:
        refuse(f"{path} has no rows")
    if len(set(names)) < len(names):
        refuse(f"{path} has several columns of one name")
    chosen = [n for n in names if wanted is None or n in wanted] or names[:1]
    # Names of several levels are written in another way.
    some = chosen if set(chosen) <= set(arrow_names) else None
    start = 0
    for arrow in _read_batches(path, file, n_rows, some):
        if len(arrow):
            rows = np.arange(start, start + len(arrow)) + 1
            start += len(arrow)
            yield _as_raw(path, arrow, rows, chosen, tuple(names))


def _read_batches(
    path: str, file: Any, n_rows: int | None, columns: list[str] | None
) -> Iterator[Any]:
    """Yield tables of Arrow, or refuse the file that holds none."""
    table = load_module("pyarrow", "").Table
    if n_rows is None:
        # A batch may end where a row group does.
        with refusing(f"{path} is a damaged Parquet file", Exception):
            whole = file.read(columns=columns)
        yield whole
        return
    batches = file.iter_batches(batch_size=n_rows, columns=columns)
    while True:
        with refusing(f"{path} is a damaged Parquet file", Exception):
            batch = next(batches, None)
            if batch is None:
                return
            arrow = table.from_batches([batch])
        yield arrow


def _as_raw(
    path: str, arrow: Any, rows: Any, chosen: list[str], names: tuple[str, ...]
) -> RawTable:
    """Return some columns of a table of Arrow as cells."""
    pyarrow, pandas = load_module("pyarrow", ""), load_pandas()
    # With gaps among them they would be rounded.
    whole = {
        pyarrow.int64(): pandas.Int64Dtype(),
        pyarrow.uint64(): pandas.UInt64Dtype(),
    }
    # Texts are looked at only now.
    with refusing(f"{path} is a damaged Parquet file", Exception):
        frame = arrow.to_pandas(types_mapper=whole.get)
        frame.columns = [str(name) for name in frame.columns]
        columns = {name: _read_column(frame[name]) for name in chosen}
    own = {name: arrow[name] for name in chosen if name in arrow.column_names}
    pointed = frozenset(
        name
        for name in chosen
        if isinstance(next(iter(frame[name].dropna()), None), Decimal)
    )
    return RawTable(path, columns, rows, "row", names=names, pointed=pointed, own=own)


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
