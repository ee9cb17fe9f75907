"""`TableSummary`: what a model keeps of the features that it was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.table import Table

# Values of a column that are kept where it has more: the ends and quantiles between.
_MOST_EDGES = 33


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """Counts of one column's values in training.

    Of numbers the k edges are all values, or some of many, from the least to the
    greatest. Each edge is a cell of its own and so is what lies before, between and
    after edges, which makes 2k + 1 cells; all counts are exact. A category has a cell
    for each of its values, by code.

    Parameters
    ----------
    edges : ndarray of shape (k,) or None
        Increasing; None of a category.
    counts : ndarray of int, shape (2k + 1,) or (number of values,)
        Rows in each cell.
    n_missing : int
    """

    edges: Float64Array | None
    counts: NDArray[np.int64]
    n_missing: int

    @classmethod
    def of(cls, values: Float64Array, n_categories: int | None) -> Self:
        """Count numbers, or codes of so many categories; NaN is missing."""
        known = np.sort(values[~np.isnan(values)])
        n_missing = len(values) - len(known)
        if n_categories is not None:
            counts = np.bincount(known.astype(np.intp), minlength=n_categories)
            return cls(None, counts.astype(np.int64), n_missing)
        edges = _choose_edges(known)
        empty = cls(edges, np.zeros(2 * len(edges) + 1, dtype=np.int64), n_missing)
        cells = empty.place(known).astype(np.intp)
        counts = np.bincount(cells, minlength=len(empty.counts))
        return cls(edges, counts.astype(np.int64), n_missing)

    def place(self, values: Float64Array) -> Float64Array:
        """Return the cell of each value (n,), which keeps their order; NaN stays."""
        edges = self.edges
        if edges is None:
            return values
        before = np.searchsorted(edges, values, side="left")
        upto = np.searchsorted(edges, values, side="right")
        return np.where(np.isnan(values), np.nan, (before + upto).astype(np.float64))

    def sample(self) -> Float64Array:
        """Return the cell of each row of training, sorted, NaN where missing."""
        cells = np.repeat(np.arange(len(self.counts), dtype=np.float64), self.counts)
        return np.concatenate([cells, np.full(self.n_missing, np.nan)])


@dataclass(frozen=True, eq=False)
class TableSummary:
    """Counts of all columns' values in the rows that a model was fitted on.

    All columns are kept end to end: a file of few long arrays is small.

    Parameters
    ----------
    n_rows : int
    edges : ndarray of shape (sum of n_edges,)
    n_edges : ndarray of int, shape (p,)
        -1 of a category.
    counts : ndarray of int, shape (sum of n_counts,)
    n_counts, n_missing : ndarrays of int, shape (p,)

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
    edges: Float64Array
    n_edges: NDArray[np.int64]
    counts: NDArray[np.int64]
    n_counts: NDArray[np.int64]
    n_missing: NDArray[np.int64]

    @classmethod
    def of(cls, table: Table, weight: Float64Array) -> Self | None:
        """Count the rows (n,) that have weight, each once.

        None of a table that only a user's own learner can read, with lists say.
        """
        try:
            codes, known = table.codes[weight > 0.0], table.reader.category_codes
        except (TypeError, ValueError):
            return None
        told = [
            ColumnSummary.of(codes[:, j], len(known[j]) if j in known else None)
            for j in range(codes.shape[1])
        ]
        none = np.empty(0)
        return cls(
            len(codes),
            np.concatenate([none, *(c.edges for c in told if c.edges is not None)]),
            _integers(-1 if c.edges is None else len(c.edges) for c in told),
            np.concatenate([_integers(()), *(c.counts for c in told)]),
            _integers(len(c.counts) for c in told),
            _integers(c.n_missing for c in told),
        )

    @cached_property
    def columns(self) -> list[ColumnSummary]:
        """The columns one by one."""
        ends = np.cumsum(self.n_counts)[:-1]
        edges = np.split(self.edges, np.cumsum(np.maximum(self.n_edges, 0))[:-1])
        counts = np.split(self.counts, ends)
        return [
            ColumnSummary(None if k < 0 else at, held, int(gaps))
            for k, at, held, gaps in zip(
                self.n_edges, edges, counts, self.n_missing, strict=True
            )
        ]


def _choose_edges(known: Float64Array) -> Float64Array:
    """Return all distinct values of a sorted column, or quantiles of many."""
    if len(known) == 0:
        return known
    distinct: Float64Array = known[np.concatenate([[True], np.diff(known) > 0.0])]
    if len(distinct) <= _MOST_EDGES:
        return distinct
    places = np.linspace(0, len(known) - 1, _MOST_EDGES).round().astype(np.intp)
    kept: Float64Array = np.unique(known[places])
    return kept


def _integers(values: Any) -> NDArray[np.int64]:
    return np.fromiter(values, dtype=np.int64)
