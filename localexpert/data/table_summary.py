"""`TableSummary`: the counts of feature values that a model keeps from its fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.table import Table

# At most this many values of a column are kept: the ends and quantiles between them.
_MOST_EDGES = 33


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """Counts of one column's values in training.

    For numbers, the k edges are all values, or some of them if there are many, from the
    least to the greatest. Each edge is a cell of its own. So is each interval before,
    between and after the edges. This makes 2k + 1 cells. All counts are exact. A
    category has a cell for each of its values, by code.

    Parameters
    ----------
    edges : ndarray of shape (k,) or None
        Increasing. None for a category.
    counts : ndarray of int, shape (2k + 1,) or (number of values,)
        Rows in each cell.
    n_missing : int
    """

    edges: Float64Array | None
    counts: NDArray[np.int64]
    n_missing: int

    @classmethod
    def of(cls, values: Float64Array, n_categories: int | None) -> Self:
        """Count numbers, or codes if there are `n_categories`. NaN is missing."""
        known = np.sort(values[~np.isnan(values)])
        n_missing = len(values) - len(known)
        if n_categories is not None:
            counts = np.bincount(known.astype(np.intp), minlength=n_categories)
            return cls(None, counts.astype(np.int64), n_missing)
        edges = _choose_edges(known)
        cells = _place(known, edges).astype(np.intp)
        counts = np.bincount(cells, minlength=2 * len(edges) + 1)
        return cls(edges, counts.astype(np.int64), n_missing)

    def place(self, values: Float64Array) -> Float64Array:
        """Return the cell of each value (n,). Cells are in the order of values."""
        return values if self.edges is None else _place(values, self.edges)

    def sample(self) -> Float64Array:
        """Return the cells of all training rows, sorted, with NaN where missing."""
        cells = np.repeat(np.arange(len(self.counts), dtype=np.float64), self.counts)
        return np.concatenate([cells, np.full(self.n_missing, np.nan)])


@dataclass(frozen=True, eq=False)
class TableSummary:
    """Counts of all columns' values in the rows that a model was fitted on.

    Parameters
    ----------
    n_rows : int
    columns : list of ColumnSummary

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.table import Table
    >>> from localexpert.data.table_summary import TableSummary
    >>> X = np.array([[1.0], [2.0], [2.0], [np.nan]])
    >>> column = TableSummary.of(Table.of(X), np.ones(4)).columns[0]
    >>> column.edges, column.counts, column.n_missing
    (array([1., 2.]), array([0, 1, 0, 2, 0]), 1)
    >>> column.place(np.array([0.5, 1.0, 1.5, 2.0, 3.0]))
    array([0., 1., 2., 3., 4.])
    """

    n_rows: int
    columns: list[ColumnSummary]

    @classmethod
    def of(cls, table: Table, weight: Float64Array) -> Self | None:
        """Count the rows (n,) that have weight, each once.

        Returns None if only a user's own learner can read the table, for example if it
        holds lists.
        """
        try:
            codes, known = table.codes[weight > 0.0], table.reader.category_codes
        except (TypeError, ValueError):
            return None
        return cls(
            len(codes),
            [
                ColumnSummary.of(values, len(known[j]) if j in known else None)
                for j, values in enumerate(codes.T)
            ],
        )


def _place(values: Float64Array, edges: Float64Array) -> Float64Array:
    """Return the numbers of the cells, NaN where missing."""
    before = np.searchsorted(edges, values, side="left")
    upto = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), np.nan, (before + upto).astype(np.float64))


def _choose_edges(known: Float64Array) -> Float64Array:
    """Return all distinct values of a sorted column, or quantiles of many."""
    distinct = np.unique(known)
    if len(distinct) <= _MOST_EDGES:
        return distinct
    places = np.linspace(0, len(known) - 1, _MOST_EDGES).round().astype(np.intp)
    return np.unique(known[places])
