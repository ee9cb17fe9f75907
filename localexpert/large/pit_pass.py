"""The map of PIT values, learned from all rows that no model has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibration.sources.part import Part
from calibration.typing import Float64Array
from localexpert.large.row_hash import deal, shares_of
from localexpert.large.unseen_rows import UnseenRows
from localexpert.recalibration.pit import PitCells

_FOLDS = 5
# Scores are rounded to this, so that sums of them with integer weights are exact, in
# any order, and do not tell of the last bits, which products of matrices leave open.
_STEP = 2.0**-12


@dataclass(frozen=True, eq=False)
class PitCounts:
    """Cells of the PIT values' normal scores, and what was lost.

    Parameters
    ----------
    weight, sums : ndarrays of shape (F, C)
        See `PitCells`.
    """

    weight: Float64Array
    sums: Float64Array

    @property
    def cells(self) -> PitCells:
        """The same for a recalibration."""
        return PitCells(self.weight, self.sums)

    def arrays(self) -> dict[str, Any]:
        """Return all of it as arrays.

        Returns
        -------
        dict of str to ndarray
        """
        return {"weight": self.weight, "sums": self.sums}


@dataclass(frozen=True, eq=False)
class PitPass:
    """The pass that forecasts the other half of the rows that no model has seen.

    Where y has probability of its own its PIT value is drawn, by the row's hash, from
    the jump of the CDF: then every row is in one cell.

    Parameters
    ----------
    unseen : UnseenRows
    furthest : float
        Scores beyond are taken to be there.
    """

    unseen: UnseenRows
    furthest: float
    name: ClassVar[str] = "recalibration"

    def __call__(self, part: Part, frame: Any = None) -> PitCounts:
        """Return the counts of one part."""
        told = [self._count(np.empty(0), np.empty(0), np.empty(0, np.int64))]
        for block in self.unseen.blocks(part, frame, half=1):
            law = self.unseen.model._law(block.table)
            share = shares_of(block.hashes, "place in a jump")[:, None]
            scores = law.scores(block.y[:, None], share)[:, 0]
            fold = deal(block.hashes, "fold of a PIT value", _FOLDS)
            told.append(self._count(scores, block.weight, fold))
        return self.join(told)

    def _count(self, scores: Any, weight: Any, fold: Any) -> PitCounts:
        """Return the counts of rows."""
        near = np.clip(scores, -self.furthest, self.furthest)
        ends = (np.round(near / _STEP) * _STEP)[:, None]
        cells = PitCells.of(ends, self.furthest + 1.0, weight, fold, _FOLDS)
        return PitCounts(cells.weight, cells.sums)

    def join(self, parts: Sequence[PitCounts]) -> PitCounts:
        """Return the counts of all parts."""
        weight = np.sum([part.weight for part in parts], axis=0)
        return PitCounts(weight, np.sum([part.sums for part in parts], axis=0))

    def load(self, arrays: Mapping[str, Any]) -> PitCounts:
        """Return counts from their arrays."""
        return PitCounts(arrays["weight"], arrays["sums"])
