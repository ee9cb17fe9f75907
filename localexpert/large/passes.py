"""The passes over a large table: `Draw` takes the sample, `CountScores` the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from localexpert.large.rows import Roles, Rows, as_features, kind_of, shares_of
from localexpert.recalibration.pit import PitCells

# By name of a feature its kind, and the part that says so.
Columns: TypeAlias = dict[str, tuple[str, str]]

_KNOWN = ("number", "date", "text", "gaps")
# Rows that are forecast together, and folds of their scores.
_BLOCK, _FOLDS = 16_384, 5
# Scores are rounded to this. So their sums with integer weights are exact in any order,
# and do not depend on the last bits, which differ between products of matrices.
_STEP = 2.0**-12


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a table is, and its rows with the smallest hashes.

    Parameters
    ----------
    n_rows : int
        With weight.
    weight : float
    check : int
        Sum of the rows' hashes; other rows have another sum.
    low, high : float
        Least and greatest target.
    columns : dict of str to (str, str)
        Kind of each feature, and the part that says so.
    rows : Rows
        In the order of their hashes.
    """

    n_rows: int
    weight: float
    check: int
    low: float
    high: float
    columns: Columns
    rows: Rows

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each feature."""
        return {name: kind for name, (kind, _) in self.columns.items()}

    def cut(self, most: int) -> tuple[Rows, Rows]:
        """Return the sample, with features as a model takes them, and rows beyond.

        Parameters
        ----------
        most : int
            Distinct rows of the sample, and its weight; rows of one hash go together.

        Returns
        -------
        sample, beyond : Rows
        """
        rows = replace(self.rows, frame=as_features(self.rows.frame, self.kinds))
        end = len(rows)
        if end > most:
            end = int(np.searchsorted(rows.hashes, rows.hashes[most]))
            # Rows of one key may be more than that.
            end = end or int(np.searchsorted(rows.hashes, rows.hashes[0], "right"))
        return rows.take(slice(end)).repeat(most), rows.take(slice(end, None))


@dataclass(frozen=True)
class Draw:
    """The pass that counts and draws.

    Parameters
    ----------
    roles : Roles
    most : int
        Rows of the sample, and some beyond it.
    """

    roles: Roles
    most: int

    def __call__(self, name: str, frame: Any) -> Drawn | None:
        """Return the answer of one part, None without weight."""
        rows = self.roles.read(name, frame)
        if not len(rows):
            return None
        return Drawn(
            len(rows),
            float(rows.weight.sum()),
            _check_of(rows),
            float(rows.y.min()),
            float(rows.y.max()),
            _look_at(name, rows.frame),
            Rows.smallest([rows], self.most),
        )

    def merge(self, parts: Sequence[Drawn]) -> Drawn:
        """Return the answers of several parts as one."""
        return Drawn(
            sum(part.n_rows for part in parts),
            sum(part.weight for part in parts),
            sum(part.check for part in parts) % 2**64,
            min(part.low for part in parts),
            max(part.high for part in parts),
            reduce(_agree, (part.columns for part in parts)),
            Rows.smallest([part.rows for part in parts], self.most),
        )


@dataclass(frozen=True, eq=False)
class Scores:
    """Cells of PIT values, and a mark of the rows of a pass.

    Parameters
    ----------
    cells : PitCells
    n_rows, check : int
        Of all rows, as `Drawn` has them.
    """

    cells: PitCells
    n_rows: int
    check: int


@dataclass(frozen=True, eq=False)
class CountScores:
    """The pass that forecasts the rows beyond a sample.

    If y has probability of its own, its PIT value is drawn from the jump of the CDF, by
    the row's hash. So every row is in one cell.

    Parameters
    ----------
    model : LocalExpertRegressor
        Fitted on the sample.
    roles : Roles
    kinds : mapping of str to str
        Of features.
    last : uint64
        The greatest hash of the sample.
    furthest : float
        Scores are clipped to -furthest and furthest.
    """

    model: Any
    roles: Roles
    kinds: Mapping[str, str]
    last: np.uint64
    furthest: float

    def __call__(self, name: str, frame: Any) -> Scores:
        """Return the counts of one part."""
        rows = self.roles.read(name, frame)
        pit_ends = [np.empty((0, 1))]
        unseen = rows.take(rows.hashes > self.last)
        for start in range(0, len(unseen), _BLOCK):
            block = unseen.take(slice(start, start + _BLOCK))
            table = self.model.reader_.read(as_features(block.frame, self.kinds))
            share = shares_of(block.content, "place in a jump")[:, None]
            pit_ends.append(self.model._law(table).scores(block.y[:, None], share))
        near = np.clip(np.concatenate(pit_ends), -self.furthest, self.furthest)
        ends = np.round(near / _STEP) * _STEP
        part = shares_of(unseen.hashes, "fold of a PIT value")
        fold = (part * _FOLDS).astype(np.int64)
        cells = PitCells.of(ends, self.furthest + 1.0, unseen.weight, fold, _FOLDS)
        return Scores(cells, len(rows), _check_of(rows))

    def merge(self, parts: Sequence[Scores]) -> Scores:
        """Return the counts of several parts."""
        cells = PitCells(
            np.sum([part.cells.weight for part in parts], axis=0),
            np.sum([part.cells.sums for part in parts], axis=0),
        )
        check = sum(part.check for part in parts) % 2**64
        return Scores(cells, sum(part.n_rows for part in parts), check)


def _check_of(rows: Rows) -> int:
    """Return the sum of the hashes of rows, as often as each is there.

    Parameters
    ----------
    rows : Rows

    Returns
    -------
    int
    """
    return int(rows.content.sum(dtype=np.uint64))


def _look_at(part: str, frame: Any) -> Columns:
    """Return what the features of a part are."""
    kinds = {name: kind_of(frame[name]) for name in frame.columns}
    for name, kind in kinds.items():
        if kind not in _KNOWN:
            msg = (
                "`parts` must hold numbers, truths, texts or dates, got a column "
                f"{name!r} of {kind} in {part}."
            )
            raise ValueError(msg)
    return {name: (kind, part) for name, kind in kinds.items()}


def _agree(one: Columns, other: Columns) -> Columns:
    """Return what is known by two parts, which must agree."""
    for names, others in ((one, other), (other, one)):
        for name in names.keys() - others.keys():
            has, lacks = names[name][1], next(iter(others.values()))[1]
            msg = (
                "`parts` must have the same columns everywhere, got a column "
                f"{name!r} in {has}, none in {lacks}."
            )
            raise ValueError(msg)
    known = {name: one[name] if one[name][0] != "gaps" else other[name] for name in one}
    for name, (kind, part) in other.items():
        if kind not in ("gaps", known[name][0]):
            first, where = known[name]
            msg = (
                f"`parts` must have columns of one kind, got the column {name!r} as "
                f"{first} in {where}, as {kind} in {part}."
            )
            raise ValueError(msg)
    return known
