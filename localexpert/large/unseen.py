"""`CountScores`: the pass over all rows that no model has learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from localexpert.large.rows import Roles, as_features, deal, shares_of
from localexpert.large.sample import check_of
from localexpert.recalibration.pit import PitCells

# Rows that are forecast together, and folds of their scores.
_BLOCK, _FOLDS = 16_384, 5
# Scores are rounded to this, so that sums of them with integer weights are exact, in
# any order, and do not tell of the last bits, which products of matrices leave open.
_STEP = 2.0**-12


@dataclass(frozen=True, eq=False)
class Scores:
    """Cells of PIT values, and what tells the rows of a pass from other ones.

    Parameters
    ----------
    cells : PitCells
    n_rows, check : int
        Of all rows, as `Drawn` has them.
    """

    cells: PitCells
    n_rows: int
    check: int

    @property
    def weight(self) -> float:
        """Weight of the rows that no model has seen."""
        return float(self.cells.weight.sum())


@dataclass(frozen=True, eq=False)
class CountScores:
    """The pass that forecasts the rows beyond a sample.

    Where y has probability of its own its PIT value is drawn, by the row's hash, from
    the jump of the CDF: then every row is in one cell.

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
        Scores beyond are taken to be there.
    """

    model: Any
    roles: Roles
    kinds: Mapping[str, str]
    last: np.uint64
    furthest: float

    def __call__(self, name: str, frame: Any) -> Scores:
        """Return the counts of one part."""
        rows = self.roles.read(name, frame)
        told = [np.empty((0, 1))]
        unseen = rows.take(rows.hashes > self.last)
        for start in range(0, len(unseen), _BLOCK):
            some = unseen.take(slice(start, start + _BLOCK))
            table = self.model.reader_.read(as_features(some.frame, self.kinds))
            share = shares_of(some.content, "place in a jump")[:, None]
            told.append(self.model._law(table).scores(some.y[:, None], share))
        near = np.clip(np.concatenate(told), -self.furthest, self.furthest)
        ends = np.round(near / _STEP) * _STEP
        fold = deal(unseen.hashes, "fold of a PIT value", _FOLDS)
        cells = PitCells.of(ends, self.furthest + 1.0, unseen.weight, fold, _FOLDS)
        return Scores(cells, len(rows), check_of(rows))

    def merge(self, parts: Sequence[Scores]) -> Scores:
        """Return the counts of several parts."""
        cells = PitCells(
            np.sum([part.cells.weight for part in parts], axis=0),
            np.sum([part.cells.sums for part in parts], axis=0),
        )
        check = sum(part.check for part in parts) % 2**64
        return Scores(cells, sum(part.n_rows for part in parts), check)
