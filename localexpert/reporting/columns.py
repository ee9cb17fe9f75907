"""`Column`: a feature as numbers or as names, whatever container it comes in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.reporting.markup import show

MISSING = "missing"
# Values of features from here on are written with marks of thousands.
_MARKED = 10_000


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one feature in n rows.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Numbers, NaN where missing; or numbers of the names.
    names : list of str or None
        Of the values of a category.
    """

    values: Float64Array
    names: list[str] | None

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        """Which rows have no value, shape (n,)."""
        return np.isnan(self.values)

    def texts(self) -> list[str]:
        """Return the values as texts."""
        if self.names is None:
            return [show_feature(value) for value in self.values]
        return [MISSING if np.isnan(v) else self.names[int(v)] for v in self.values]

    def take(self, rows: Any) -> Column:
        """Return some rows."""
        return Column(self.values[rows], self.names)


def show_feature(value: float, digits: int = 4) -> str:
    """Return a value of a feature; years and other short numbers have no marks."""
    text = show(value, digits)
    return text.replace(",", "") if abs(value) < _MARKED else text


def read_columns(table: Table) -> list[Column]:
    """Return the columns of a table; categories are those of its reader."""
    codes, known = table.codes, table.reader.category_codes.items()
    names = {j: [str(value) for value in values] for j, values in known}
    return [Column(codes[:, j], names.get(j)) for j in range(codes.shape[1])]
