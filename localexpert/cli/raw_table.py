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
    as_texts,
    parse_number,
    read_numbers,
)
from localexpert.cli.console import list_names, refuse


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
    """

    path: str
    columns: dict[str, Cells]
    places: NDArray[np.intp]
    unit: str = "line"
    repeated: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    own: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: NDArray[np.intp]) -> RawTable:
        """Return some rows, which keep their places in the file."""
        columns = {name: cells[rows] for name, cells in self.columns.items()}
        return replace(self, columns=columns, places=self.places[rows], own={})

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

    def numbers(self, name: str, role: str, dialect: Dialect) -> Float64Array:
        """Return a column that must hold finite numbers or gaps (NaN), shape (n,)."""
        numbers = read_numbers(self.column(name, role), dialect)
        wrong = numbers.is_word | np.isinf(numbers.values)
        hint = ""
        if wrong.any() and dialect.decimal == ".":
            text = self.show(name, int(np.argmax(wrong)))[1:-1]
            if parse_number(text, ",") is not None:
                hint = "; if that is a number with a decimal comma, say --decimal ,"
        self.refuse_if(wrong, name, f"{role} {name!r} must hold finite numbers", hint)
        return numbers.values

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
