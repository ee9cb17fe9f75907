"""`RawTable`: what stands in a file, before anyone knows what it means."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.cli.cells import (
    Cells,
    Dialect,
    Distinct,
    Numbers,
    as_texts,
    read_plain,
)
from localexpert.cli.console import list_names, refuse
from localexpert.cli.number_formats import (
    PLAIN,
    NumberFormat,
    find_format,
    hint_at_format,
    read_numbers,
)


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns of a file by their names.

    Parameters
    ----------
    path : str
    columns : dict of str to Cells
        In the order of the file, all of one length.
    places : ndarray of int, shape (n,)
        Where in the file each row begins.
    unit : str
        What places count.
    repeated : tuple of str
        Names that the file gives to several columns, of which only the first kept it.
    names : tuple of str
        Of all columns, where only some have been read.
    own : dict of str to pyarrow.ChunkedArray
        Columns as they were, of a file that knows types.
    pointed : set of str
        Columns of texts with decimal points, whatever else is said of the file.
    rows : ndarray of int, shape (n,), optional
        Which rows of the file these are; None is all of them.
    """

    path: str
    columns: dict[str, Cells]
    places: NDArray[np.intp]
    unit: str = "line"
    repeated: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    own: dict[str, Any] = field(default_factory=dict)
    pointed: frozenset[str] = frozenset()
    rows: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: NDArray[np.intp]) -> RawTable:
        """Return some rows, which keep their places in the file."""
        columns = {name: cells[rows] for name, cells in self.columns.items()}
        old = np.arange(len(self)) if self.rows is None else self.rows
        places = self.places[rows]
        return replace(self, columns=columns, places=places, rows=old[rows], own={})

    def count_by_file(self, rows: NDArray[np.intp]) -> dict[str, int]:
        """Return how many of some rows each file has, by its path."""
        return {self.path: len(rows)}

    def dialect_of(self, name: str, dialect: Dialect) -> Dialect:
        """Return how a column of the file writes its values."""
        if name in self.pointed:
            return replace(dialect, decimal=".", thousands="")
        return dialect

    def counts_rows(self, values: Float64Array) -> bool:
        """Return whether values are the numbers of the rows, from any number on."""
        rows = np.arange(len(self)) if self.rows is None else self.rows
        return len(rows) > 0 and bool(np.all(values - values[0] == rows - rows[0]))

    def where(self, row: int) -> str:
        """Return where in the file a row is."""
        return f"{self.unit} {self.places[row]} of {self.path}"

    def show(self, name: str, row: int) -> str:
        """Return one cell as a text in quotes, cut if it is long."""
        text = as_texts(self.columns[name][row : row + 1])[0].strip()
        return repr(text if len(text) <= 40 else text[:37] + "...")

    def column(self, name: str, role: str = "column") -> Cells:
        """Return the one column of that name, or say which there are."""
        if name in self.repeated:
            refuse(f"{self.path} has several columns {name!r}; the {role} must be one")
        if name not in self.columns:
            names = self.names or self.columns
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            refuse(
                f"{self.path} has no {role} {name!r}{hint}; "
                f"its columns are {list_names(names)}"
            )
        return self.columns[name]

    def find_format(self, name: str, role: str, dialect: Dialect) -> NumberFormat:
        """Return how the numbers of a column are written, if they are in one way."""
        cells, dialect = self.column(name, role), self.dialect_of(name, dialect)
        if read_plain(cells, dialect) is not None:
            return PLAIN
        return find_format(Distinct.of(cells, dialect).words, dialect) or PLAIN

    def numbers(
        self, name: str, role: str, dialect: Dialect, written: NumberFormat = PLAIN
    ) -> Numbers:
        """Return a column that must hold finite numbers of a format, or gaps."""
        cells, dialect = self.column(name, role), self.dialect_of(name, dialect)
        numbers = read_numbers(cells, dialect, written)
        wrong = numbers.is_word | np.isinf(numbers.values)
        hint = ""
        if wrong.any():
            row = int(np.argmax(wrong))
            (cell,) = as_texts(cells[row : row + 1])
            words = Distinct.of(cells, dialect).words
            hint = hint_at_format(words, dialect, cell.strip())
        rule = f"{role} {name!r} must hold finite numbers"
        if written.text:
            rule += f" {written.text}"
        self.refuse_if(wrong, name, rule, hint and f"; {hint}")
        return numbers

    def refuse_if(
        self, wrong: NDArray[np.bool_], name: str, rule: str, hint: str = ""
    ) -> None:
        """Refuse the first cell of a column that breaks a rule, if there is one."""
        if wrong.any():
            row = int(np.argmax(wrong))
            refuse(f"{rule}, got {self.show(name, row)} in {self.where(row)}{hint}")

    def words(self, name: str, role: str, dialect: Dialect) -> NDArray[np.object_]:
        """Return a column of texts that must have no gaps, shape (n,)."""
        texts = Distinct.of(self.column(name, role), dialect)
        is_gap = texts.is_gap[texts.codes]
        if is_gap.any():
            where = self.where(int(np.argmax(is_gap)))
            refuse(f"{role} {name!r} has a gap in {where}")
        return np.array(texts.texts, dtype=object)[texts.codes]
