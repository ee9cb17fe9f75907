"""`RawTable`: what stands in a file, before anyone knows what it means."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from localexpert.cli.cells import Cells, as_texts
from localexpert.cli.console import UserError, list_names


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns of a file by their names.

    Parameters
    ----------
    path : str
    columns : dict of str to Cells
        In the order of the file, all of one length.
    places : list of int
        Where in the file each row begins.
    unit : str
        What places count.
    repeated : tuple of str
        Names that the file gives to several columns, of which only the first kept it.
    """

    path: str
    columns: dict[str, Cells]
    places: list[int]
    unit: str = "line"
    repeated: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def take(self, rows: NDArray[np.intp]) -> RawTable:
        """Return some rows, which keep their places in the file."""
        if len(rows) == len(self):
            return self
        columns: dict[str, Cells] = {
            name: [cells[row] for row in rows]
            if isinstance(cells, list)
            else cells[rows]
            for name, cells in self.columns.items()
        }
        places = [self.places[row] for row in rows]
        return replace(self, columns=columns, places=places)

    def where(self, row: int) -> str:
        """Return where in the file a row is."""
        return f"{self.unit} {self.places[row]} of {self.path}"

    def show(self, name: str, row: int) -> str:
        """Return one cell as a text in quotes, cut if it is long."""
        cells = self.columns[name]
        text = as_texts(cells[row : row + 1])[0]
        return repr(text if len(text) <= 40 else text[:37] + "...")

    def column(self, name: str, role: str = "column") -> Cells:
        """Return the one column of that name, or say which there are."""
        if name in self.repeated:
            msg = f"{self.path} has several columns {name!r}; the {role} must be one"
            raise UserError(msg)
        if name not in self.columns:
            close = difflib.get_close_matches(name, self.columns, n=1, cutoff=0.7)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            msg = (
                f"{self.path} has no {role} {name!r}{hint}; "
                f"its columns are {list_names(self.columns)}"
            )
            raise UserError(msg)
        return self.columns[name]
