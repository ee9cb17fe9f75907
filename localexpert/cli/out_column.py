"""`OutColumn`: a column to be written, as texts or with a type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.cli.cells import (
    LAST_WHOLE,
    Cells,
    Dialect,
    Distinct,
    as_texts,
    load_module,
    parse_booleans,
)
from localexpert.cli.raw_table import RawTable

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
# Keys such as 00123, which are no numbers though they could be read as such.
_KEY = re.compile(r"[+-]?0[0-9]|\+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?")


@dataclass(frozen=True, eq=False)
class OutColumn:
    """What stands in a column of an output.

    Parameters
    ----------
    cells : Cells
        Of all rows.
    copied : bool
        Whether it comes from the input; else it holds numbers of ours.
    own : pyarrow.ChunkedArray, optional
        The same as it was in a file that knows types.
    dialect : Dialect
        Of the input.
    """

    cells: Cells
    copied: bool = False
    own: Any = None
    dialect: Dialect = field(default_factory=Dialect)

    @classmethod
    def join(cls, parts: Sequence[OutColumn]) -> OutColumn:
        """Return one column of the parts of a file."""
        if len(parts) == 1:
            return parts[0]
        cells = np.concatenate([part.cells for part in parts])
        return replace(parts[0], cells=cells, own=None)

    def texts(self) -> Sequence[str]:
        """Return the cells for CSV: what is copied as it stands, numbers exactly."""
        return as_texts(self.cells) if self.copied else format_numbers(self.cells)

    def typed(self) -> Any:
        """Return the cells for Parquet, as an array of Arrow; missing is null."""
        if self.own is not None:
            return self.own
        if self.cells.dtype == object:
            return _find_type(self.cells, self.dialect)
        return _load_arrow().array(self.cells, from_pandas=True)


def copy_column(table: RawTable, name: str, dialect: Dialect) -> OutColumn:
    """Return a column of the input as it is to be copied."""
    own = table.own.get(name)
    return OutColumn(table.columns[name], copied=True, own=own, dialect=dialect)


def lay_aside(
    tables: Iterable[RawTable],
    kept: dict[str, list[OutColumn]],
    dialect: Dialect,
    role: str = "column to keep",
) -> Iterator[RawTable]:
    """Yield parts of a file unchanged, and append their columns to those kept."""
    for table in tables:
        for name, parts in kept.items():
            table.column(name, role)
            parts.append(copy_column(table, name, dialect))
        yield table


def format_numbers(values: Float64Array) -> list[str]:
    """Return numbers so that reading them gives the same bits; NaN is ""."""
    return ["" if np.isnan(value) else repr(float(value)) for value in values]


def _find_type(cells: Cells, dialect: Dialect) -> Any:
    """Return texts as what all of them are: numbers, flags, days, moments; or texts."""
    arrow, texts = _load_arrow(), Distinct.of(cells, dialect)
    for values, kind in _readings(texts.words, dialect):
        with suppress(arrow.ArrowInvalid, OverflowError):
            given = None if isinstance(values[0], str) else kind
            read = iter(arrow.array(values, given).cast(kind).to_pylist())
            all_of_them = [None if gap else next(read) for gap in texts.is_gap]
            return arrow.array(all_of_them, kind).take(arrow.array(texts.codes))
    return arrow.array([cell or None for cell in cells], arrow.string())


def _readings(words: list[str], dialect: Dialect) -> list[tuple[Sequence[Any], Any]]:
    """Return what the values of a column may be, with a type of Arrow for each."""
    arrow = _load_arrow()
    if not words or any(_KEY.match(word) for word in words):
        return []
    if all(map(_WHOLE.fullmatch, words)):
        whole = list(map(int, words))
        return [(whole, kind) for kind in (arrow.int64(), arrow.uint64())]
    if all(map(_DAY.fullmatch, words)):
        return [(words, arrow.date32())]
    if all(map(_MOMENT.fullmatch, words)):
        return [(words, arrow.timestamp("us"))]
    flags = parse_booleans(words)
    if None not in flags:
        return [(list(map(bool, flags)), arrow.bool_())]
    values = dialect.parse_numbers(words)
    # Beyond the last of them whole numbers would be rounded.
    fit = all(v is not None and abs(v) <= LAST_WHOLE for v in values)
    return [(values, arrow.float64())] if fit else []


def _load_arrow() -> Any:
    return load_module("pyarrow", "Parquet needs pyarrow")
