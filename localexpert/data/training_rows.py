"""What a model keeps of its training rows: counts of values, and hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom

from calibration._kernels.cells import mix_bits
from calibration.typing import Float64Array
from localexpert.data.table import Table, TableReader, read_codes
from localexpert.data.unseen import warn_user

# Copies of a row with values of training in the place of a gap.
_N_COPIES = 12
# At most this many values of a column are kept: the ends and quantiles between them.
_MOST_EDGES = 33


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """Counts of one column's values in training.

    For numbers, the k edges are all values, or some of them if there are many, from the
    least to the greatest. Each edge is a cell of its own. So is each interval before,
    between and after the edges. This makes 2k + 1 cells. All counts are exact. A
    category has a cell for each of its values, by code. With weights, the counts are of
    the rows that `draw_evenly` draws.

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
    def of(
        cls, values: Float64Array, weight: Float64Array, n_categories: int | None
    ) -> Self:
        """Count numbers, or codes if there are `n_categories`. NaN is missing."""
        drawn = draw_evenly(values, weight)
        cells, n_missing = drawn[~np.isnan(drawn)], int(np.isnan(drawn).sum())
        if n_categories is not None:
            counts = np.bincount(cells.astype(np.intp), minlength=n_categories)
            return cls(None, counts.astype(np.int64), n_missing)
        # All distinct values, or quantiles of many; the ends are those of all rows.
        known = np.sort(values[~np.isnan(values)])
        edges = np.unique(known)
        if len(edges) > _MOST_EDGES:
            places = np.linspace(0, len(known) - 1, _MOST_EDGES).round()
            edges = np.unique(known[places.astype(np.intp)])
        cells = _place(cells, edges).astype(np.intp)
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
    fills : ndarray of shape (13, p)
        Values that take the place of gaps, where no training row had one.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.table import Table
    >>> from localexpert.data.training_rows import TableSummary
    >>> X = np.array([[1.0], [2.0], [2.0], [np.nan]])
    >>> column = TableSummary.of(Table.of(X), np.ones(4)).columns[0]
    >>> column.edges, column.counts, column.n_missing
    (array([1., 2.]), array([0, 1, 0, 2, 0]), 1)
    >>> column.place(np.array([0.5, 1.0, 1.5, 2.0, 3.0]))
    array([0., 1., 2., 3., 4.])
    """

    n_rows: int
    columns: list[ColumnSummary]
    fills: Float64Array

    @classmethod
    def of(cls, table: Table, weight: Float64Array) -> Self | None:
        """Count the rows (n,) that have weight; `n_rows` is their number.

        Returns None if only a user's own learner can read the table, for example if it
        holds lists.
        """
        codes, known = read_codes(table), table.reader.category_codes
        if codes is None:
            return None
        codes, weight = codes[weight > 0.0], weight[weight > 0.0]
        columns = [
            ColumnSummary.of(values, weight, len(known[j]) if j in known else None)
            for j, values in enumerate(codes.T)
        ]
        return cls(len(weight), columns, _choose_fills(codes, weight, table.reader))

    def find_new_gaps(self, codes: Float64Array) -> NDArray[np.bool_]:
        """Return the cells (n, p) that are gaps where no training row had one."""
        return np.asarray(np.isnan(codes) & ~np.isnan(self.fills[0]))

    def fill(self, codes: Float64Array, *, ordered: bool) -> Iterator[Float64Array]:
        """Yield copies of codes (n, p) with values of training in such gaps.

        All rows of a copy have the same values. If forecasts must keep their order,
        there is one copy.
        """
        new = self.find_new_gaps(codes)
        for values in self.fills[:1] if ordered else self.fills[1:]:
            yield np.where(new, values, codes)


def _choose_fills(
    codes: Float64Array, weight: Float64Array, reader: TableReader
) -> Float64Array:
    """Return values that stand for gaps, by feature, NaN where training had gaps.

    The first row holds the median or the most frequent category. The others are spread
    as in training. Features of one date come from one row, so that they agree.
    """
    fills = np.full((1 + _N_COPIES, codes.shape[1]), np.nan)
    levels = (np.arange(_N_COPIES) + 0.5) / _N_COPIES
    columns = np.array(reader.column_of)
    for place in np.unique(columns).tolist():
        features = np.flatnonzero(columns == place)
        part = codes[:, features]
        if len(part) == 0 or np.isnan(part).any():
            continue
        order = np.argsort(part[:, 0], kind="stable")
        upto = np.cumsum(weight[order])
        mixed = np.random.default_rng(place).permutation(levels)
        rows = order[np.searchsorted(upto, np.append(0.5, mixed) * upto[-1])]
        if features[0] in reader.category_codes:
            counts = np.bincount(part[:, 0].astype(np.intp), weights=weight)
            rows[0] = np.argmax(part[:, 0] == np.argmax(counts))
        fills[:, features] = part[rows]
    return fills


def effective_rows(weight: Float64Array) -> float:
    """Return the number of rows of equal weight that tell as much (Kish 1965).

    Parameters
    ----------
    weight : ndarray of shape (n,)

    Returns
    -------
    float
    """
    if not weight.any():
        return 0.0
    scaled = weight / weight.max()
    return float(scaled.sum() ** 2 / (scaled @ scaled))


def draw_evenly(values: Float64Array, weight: Float64Array) -> Float64Array:
    """Return evenly spaced quantiles of weighted values, as many as they tell.

    They stand for the values where a test takes no weights. Of equal weights these are
    the values, sorted; NaN comes last. Random draws would be as many, but noisier.

    Parameters
    ----------
    values, weight : ndarrays of shape (n,)

    Returns
    -------
    ndarray of shape (m,)
    """
    order = np.argsort(values, kind="stable")
    upto, n = np.cumsum(weight[order]), int(np.ceil(effective_rows(weight) - 1e-6))
    levels = (np.arange(n) + 0.5) / n * upto[-1:]
    return np.asarray(values[order][np.searchsorted(upto, levels)])


def _place(values: Float64Array, edges: Float64Array) -> Float64Array:
    """Return the numbers of the cells, NaN where missing."""
    before = np.searchsorted(edges, values, side="left")
    upto = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), np.nan, (before + upto).astype(np.float64))


Hashes = NDArray[np.uint64]

# At most this many hashes are kept. In larger tables the smallest ones are a fair
# sample.
_MOST_HASHES = 8192
# If a larger share of training rows has an equal row, new rows are equal by chance too.
_MOST_EQUAL = 0.1
# Fewer new rows than this tell nothing.
_FEWEST_CHECKED = 20
# Equal rows count as training rows if chance makes this many more rarely than this.
_LEVEL = 1e-3


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Which of some rows a model has learned from, as far as the model knows.

    Parameters
    ----------
    n : int
        Number of rows in the question.
    share : float or None
        Share of rows that the model has learned from. None if it is not known.
    learned : ndarray of bool, shape (n,), or None
        Which rows these are. None if only the share is known, or nothing.
    n_checked : int
        Number of rows on which the answer rests.
    n_equal : int
        Number of these that are equal to a training row, if only by chance.
    """

    n: int
    share: float | None = None
    learned: NDArray[np.bool_] | None = None
    n_checked: int = 0
    n_equal: int = 0

    @classmethod
    def either(cls, answers: Sequence[SeenRows]) -> Self:
        """Return one answer about the same rows that one fit after another may know."""
        n, shares = answers[0].n, [one.share for one in answers]
        known = [share for share in shares if share is not None]
        # A fit that cannot tell may have learned from them.
        if not known or (len(known) < len(shares) and not any(known)):
            return cls(n)
        n_checked = min(one.n_checked for one in answers if one.share is not None)
        n_equal = max(one.n_equal for one in answers)
        masks = [one.learned for one in answers if one.learned is not None]
        if len(masks) < len(answers):
            return cls(n, min(sum(known), 1.0), None, n_checked, n_equal)
        learned = np.logical_or.reduce(masks)
        return cls(n, float(learned.mean()), learned, n_checked, n_equal)

    @property
    def found(self) -> bool:
        """Whether more rows are equal to training rows than by chance."""
        return bool(self.share)

    def __str__(self) -> str:
        """Return a sentence that only claims what was checked."""
        rows = "row" if self.n == 1 else "rows"
        if self.share is None:
            which = "this row is" if self.n == 1 else f"these {self.n:,} rows are"
            return f"Whether {which} of training cannot be told."
        if self.learned is None:
            of = f"of the {self.n:,} {rows}, judged by {self.n_checked:,} of them"
            if self.found:
                return f"The model has learned from about {self.share:.0%} {of}."
            return f"The model seems to have learned from none {of}."
        k = int(self.learned.sum())
        if k == 0 and self.n_equal:
            equal = "1 equals" if self.n_equal == 1 else f"{self.n_equal:,} equal"
            none = f"None of the {self.n:,} {rows} seems to be a training row"
            return f"{none}: {equal} one, which may be by chance."
        if k == 0:
            return f"None of the {self.n:,} {rows} is equal to a training row."
        return f"The model has learned from {k:,} of the {self.n:,} {rows}."

    def warn(self, consequence: str) -> None:
        """Warn, at the user's own line, if rows were learned from.

        Parameters
        ----------
        consequence : str
            A sentence that says what follows from it.
        """
        if self.found:
            warn_user(f"{self} {consequence}")


@dataclass(frozen=True, eq=False)
class TrainingSketch:
    """Hashes of training rows with their targets.

    The model's reader turns a row into numbers. Their hash uses single precision and
    the names of the columns. So equal rows have equal hashes in every container,
    process and order of columns. Up to 8192 different hashes are all kept. If there are
    more, the smallest ones are kept. They are a sample of the rows that does not depend
    on the order of rows (Bar-Yossef et al. 2002).

    Parameters
    ----------
    hashes : ndarray of uint64, shape (k,)
        Distinct hashes, increasing.
    counts : ndarray of int, shape (k,)
        Number of training rows with each hash.
    n_rows : int
        Number of all training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.table import Table
    >>> from localexpert.data.training_rows import TrainingSketch, hash_rows
    >>> X = np.random.default_rng(0).normal(size=(150, 2))
    >>> sketch = TrainingSketch.of(hash_rows(Table.of(X[:100]), X[:100, 0]))
    >>> print(sketch.find(hash_rows(Table.of(X), X[:, 0])))
    The model has learned from 100 of the 150 rows.
    """

    hashes: Hashes
    counts: NDArray[np.int64]
    n_rows: int

    @classmethod
    def of(cls, rows: Hashes) -> Self:
        """Sketch the rows that have these hashes (n,)."""
        hashes, counts = np.unique(rows, return_counts=True)
        return cls(hashes[:_MOST_HASHES], counts[:_MOST_HASHES], len(rows))

    @classmethod
    def learn(
        cls, parts: Iterable[tuple[Table, Float64Array, Float64Array]]
    ) -> Self | None:
        """Sketch rows that have weight: tables with targets and weights, (n,) each.

        Returns None if too many rows are equal, or if only a user's own learner can
        read the table, for example if it holds lists.
        """
        held = ((table, y, np.flatnonzero(weight)) for table, y, weight in parts)
        try:
            each = [hash_rows(table.take(rows), y[rows]) for table, y, rows in held]
            whole = cls.of(np.concatenate(each))
        except (TypeError, ValueError):
            return None
        return whole if whole.recognises else None

    @property
    def is_whole(self) -> bool:
        """Whether the hashes of all rows are there."""
        return int(self.counts.sum()) == self.n_rows

    @property
    def recognises(self) -> bool:
        """Whether training rows differ enough: a row equal to one is the same row."""
        return self.n_rows > 0 and self._n_equal <= _MOST_EQUAL * self.counts.sum()

    def find(self, hashes: Hashes) -> SeenRows:
        """Tell which rows the model has learned from, by their `hash_rows` (n,).

        Rows are read by the reader of the training rows. Chance is judged by all.
        """
        n = len(hashes)
        if not self.recognises:
            return SeenRows(n)
        checked = np.ones(n, bool) if self.is_whole else hashes <= self.hashes[-1]
        n_checked = int(checked.sum())
        if n_checked == 0 or (not self.is_whole and n_checked < _FEWEST_CHECKED):
            return SeenRows(n)
        known = checked & np.isin(hashes, self.hashes)
        # By chance, a new row equals a training row as often as a training row equals
        # another one. That share is itself an estimate (Jeffreys' prior).
        equal, held, n_equal = self._n_equal, self.counts.sum(), int(known.sum())
        prior = equal + 0.5, held - equal + 0.5
        if betabinom.sf(n_equal - 1, n_checked, *prior) >= _LEVEL:
            known = np.zeros(n, bool)
        share = float(known.sum() / n_checked)
        learned = known if self.is_whole else None
        return SeenRows(n, share, learned, n_checked, n_equal)

    @property
    def _n_equal(self) -> int:
        """Number of sketched training rows that are equal to another one."""
        return int(self.counts[self.counts > 1].sum())


def hash_rows(table: Table, y: Float64Array) -> Hashes:
    """Return a hash of each row and its target, (n,).

    The order of columns does not matter, because hashes of cells are summed.
    """
    names: Iterable[Any] = table.reader.features.names or (
        f"x{j}" for j in range(table.codes.shape[1])
    )
    total = mix_bits(bits_of(y, np.float32) ^ salt_of("target"))
    for name, values in zip(names, table.codes.T, strict=True):
        bits = mix_bits(bits_of(values, np.float32))
        total += mix_bits(bits ^ salt_of(f"column {name}"))
    return mix_bits(total)


def bits_of(values: Float64Array, kind: type[np.floating[Any]] = np.float64) -> Hashes:
    """Return numbers as bits. Zeros have no sign, and all gaps have the same bits."""
    with np.errstate(over="ignore"):
        held = values.astype(kind) + kind(0.0)
    held[np.isnan(held)] = np.nan
    return np.asarray(held.view(f"u{held.itemsize}"), np.uint64)


def salt_of(name: str) -> np.uint64:
    """Return a number for a text, the same on every machine."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return np.uint64(int.from_bytes(digest[:8], "little"))
