"""`TrainingSketch`: hashes of training rows, by which they are recognised later."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.data.unseen import level_of_user

Hashes = NDArray[np.uint64]

# Hashes that are kept. Of tables with more rows the smallest ones are a fair sample.
_MOST_HASHES = 8192
# A larger share of training rows with an equal, and new rows are equal by chance too.
_MOST_EQUAL = 0.1
# A part of so few new rows tells nothing.
_FEWEST_CHECKED = 20
# Equal rows are taken for training rows if chance makes as many less often than this.
_LEVEL = 1e-3


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Which of some rows a model has learned from, as far as can be told.

    Parameters
    ----------
    n : int
        Rows that were asked about.
    share : float or None
        Share of them that was learned from; None where nobody can tell.
    learned : ndarray of bool, shape (n,), or None
        Which they are; None where only a share is known, or nothing.
    n_checked : int
        Rows that the answer rests on.
    """

    n: int
    share: float | None
    learned: NDArray[np.bool_] | None
    n_checked: int

    @classmethod
    def unknown(cls, n: int) -> Self:
        """Return the answer of a model that cannot tell."""
        return cls(n, None, None, 0)

    @classmethod
    def join(cls, parts: Sequence[SeenRows]) -> Self:
        """Return one answer about the rows of several tables, in their order."""
        n, told = sum(one.n for one in parts), [one for one in parts if one.n_checked]
        n_checked = sum(one.n_checked for one in told)
        if not told:
            return cls.unknown(n)
        share = sum((one.share or 0.0) * one.n_checked for one in told) / n_checked
        each = [one.learned for one in parts if one.learned is not None]
        learned = np.concatenate(each) if len(each) == len(parts) else None
        return cls(n, share, learned, n_checked)

    @property
    def found(self) -> bool:
        """Whether some rows were learned from, beyond what chance makes equal."""
        return bool(self.share)

    def __str__(self) -> str:
        """Return a sentence that claims no more than was checked."""
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
        if k == 0:
            return f"None of the {self.n:,} {rows} is equal to a training row."
        return f"The model has learned from {k:,} of the {self.n:,} {rows}."

    def warn(self, consequence: str) -> None:
        """Warn, at the user's own line, if rows were learned from.

        Parameters
        ----------
        consequence : str
            What follows from it, a sentence.
        """
        if self.found:
            msg = f"{self} {consequence}"
            warnings.warn(msg, CalibrationWarning, stacklevel=level_of_user())


@dataclass(frozen=True, eq=False)
class TrainingSketch:
    """Hashes of training rows with their targets.

    A row is what the model's reader makes of it, by the names of its columns, in single
    precision: equal rows have equal hashes in every container, process and order of
    columns. All hashes are kept up to 8192 different ones; of more the smallest ones,
    which are a sample of the rows that does not depend on their order (Bar-Yossef et
    al. 2002).

    Parameters
    ----------
    hashes : ndarray of uint64, shape (k,)
        Different ones, increasing.
    counts : ndarray of int, shape (k,)
        Training rows that have each.
    n_rows : int
        Training rows in all.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.table import Table
    >>> from localexpert.data.training_rows import TrainingSketch
    >>> X = np.random.default_rng(0).normal(size=(150, 2))
    >>> sketch = TrainingSketch.of(Table.of(X[:100]), X[:100, 0])
    >>> print(sketch.compare(Table.of(X), X[:, 0]))
    The model has learned from 100 of the 150 rows.
    """

    hashes: Hashes
    counts: NDArray[np.int64]
    n_rows: int

    @classmethod
    def of(cls, table: Table, y: Float64Array) -> Self:
        """Sketch rows that are learned from, with their targets, shape (n,)."""
        hashes, counts = np.unique(_hash_rows(table, y), return_counts=True)
        return cls(hashes[:_MOST_HASHES], counts[:_MOST_HASHES], len(y))

    @classmethod
    def learn(
        cls, parts: Iterable[tuple[Table, Float64Array, Float64Array]]
    ) -> Self | None:
        """Sketch rows that have weight: tables with targets and weights, (n,) each.

        None where too many are equal, and of a table that only a user's own learner
        can read, with lists say.
        """
        made = []
        for table, y, weight in parts:
            held = np.flatnonzero(weight)
            try:
                made.append(cls.of(table.take(held), y[held]))
            except (TypeError, ValueError):
                return None
        whole = cls.join(made)
        return whole if whole.tells else None

    @classmethod
    def join(cls, sketches: Sequence[TrainingSketch]) -> Self:
        """Return the sketch of all rows of some sketches, however they were parted."""
        held = np.concatenate([one.hashes for one in sketches])
        hashes, place = np.unique(held, return_inverse=True)
        counts = np.zeros(len(hashes), np.int64)
        np.add.at(counts, place, np.concatenate([one.counts for one in sketches]))
        # Beyond the last hash of a sketch that is cut, rows are missing.
        ends = [one.hashes[-1] for one in sketches if not one.is_whole]
        n = np.searchsorted(hashes, min(ends), "right") if ends else len(hashes)
        n = min(int(n), _MOST_HASHES)
        n_rows = sum(one.n_rows for one in sketches)
        return cls(hashes[:n], counts[:n], n_rows)

    @property
    def is_whole(self) -> bool:
        """Whether the hashes of all rows are there."""
        return int(self.counts.sum()) == self.n_rows

    @property
    def tells(self) -> bool:
        """Whether training rows differ so much that equal ones are the same ones."""
        return self.n_rows > 0 and self._n_equal <= _MOST_EQUAL * self.counts.sum()

    def compare(self, table: Table, y: Float64Array) -> SeenRows:
        """Tell which rows, of targets (n,), were learned from.

        Parameters
        ----------
        table : Table
            Read by the reader of the training rows.
        y : ndarray of shape (n,)
        """
        n = len(y)
        if not self.tells:
            return SeenRows.unknown(n)
        hashes = _hash_rows(table, y)
        checked = np.ones(n, bool) if self.is_whole else hashes <= self.hashes[-1]
        n_checked = int(checked.sum())
        if n_checked == 0 or (not self.is_whole and n_checked < _FEWEST_CHECKED):
            return SeenRows.unknown(n)
        known = checked & np.isin(hashes, self.hashes)
        if not self._is_beyond_chance(int(known.sum()), n_checked):
            known = np.zeros(n, bool)
        share = float(known.sum() / n_checked)
        return SeenRows(n, share, known if self.is_whole else None, n_checked)

    @property
    def _n_equal(self) -> int:
        """Number of sketched training rows that are equal to another one."""
        return int(self.counts[self.counts > 1].sum())

    def _is_beyond_chance(self, k: int, n: int) -> bool:
        """Say whether k of n new rows are more than are equal by chance.

        A new row is as likely to be equal to a training row as a training row to
        another one; that share is known up to chance itself (Jeffreys' prior).
        """
        equal, held = self._n_equal, int(self.counts.sum())
        chance = betabinom.sf(k - 1, n, equal + 0.5, held - equal + 0.5)
        return k > 0 and bool(chance < _LEVEL)


def _hash_rows(table: Table, y: Float64Array) -> Hashes:
    """Return a hash of each row and its target; sums forget the order of columns."""
    names: Iterable[Any] = table.reader.features.names or (
        f"x{j}" for j in range(table.codes.shape[1])
    )
    total = mix_bits(_bits_of(y) ^ _salt_of("target"))
    for name, values in zip(names, table.codes.T, strict=True):
        total += mix_bits(mix_bits(_bits_of(values)) ^ _salt_of(f"column {name}"))
    return mix_bits(total)


def _bits_of(values: Float64Array) -> Hashes:
    """Return numbers as bits; zeros have no sign, and all gaps are one."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32) + np.float32(0.0)
    single[np.isnan(single)] = np.nan
    return single.view(np.uint32).astype(np.uint64)


def _salt_of(name: str) -> np.uint64:
    """Return a number for a text, the same on every machine."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return np.uint64(int.from_bytes(digest[:8], "little"))


def mix_bits(bits: Hashes) -> Hashes:
    """Return splitmix64's last step (Steele, Lea & Flood 2014), which is one to one.

    Parameters
    ----------
    bits : ndarray of uint64

    Returns
    -------
    ndarray of uint64
    """
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
