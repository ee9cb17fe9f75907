"""`OutColumn`: a column to be written, as texts or with a type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.cli.cells import Cells, Dialect, as_texts
from localexpert.cli.raw_table import RawTable
from localexpert.cli.text_kinds import TextKinds, load_arrow


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
        held = [part.cells for part in parts]
        if len({cells.dtype for cells in held}) > 1:
            # Parts of numbers, and of whole ones that numbers would round.
            held = [np.array(as_texts(cells), dtype=object) for cells in held]
        cells = np.concatenate(held)
        return replace(parts[0], cells=cells, own=None)

    def take(self, rows: NDArray[np.intp]) -> OutColumn:
        """Return the cells of some rows."""
        return replace(self, cells=self.cells[rows], own=None)

    @property
    def is_text(self) -> bool:
        """Whether the cells are texts whose type is to be found out."""
        return self.own is None and self.cells.dtype == object

    def texts(self) -> Sequence[str]:
        """Return the cells for CSV: what is copied as it stands, numbers exactly."""
        return as_texts(self.cells) if self.copied else format_numbers(self.cells)

    def typed(self) -> Any:
        """Return the cells for Parquet, as an array of Arrow; missing is null."""
        if self.own is not None:
            return self.own
        if self.is_text:
            kinds = TextKinds(self.dialect)
            kinds.add(self.cells)
            return kinds.typed(self.cells)
        return load_arrow().array(self.cells, from_pandas=True)


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
