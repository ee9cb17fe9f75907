"""`LearnPass`: all rows that a model has not seen, placed by it, for boosters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibration.sources.part import Part
from calibration.typing import Float64Array
from localexpert.large.row_hash import deal
from localexpert.large.stages import leaves_of, walk_leaves
from localexpert.large.unseen_rows import Block, UnseenRows

#: Parts of the rows: what one says of the other is honest.
N_HALVES = 2


@dataclass(frozen=True, eq=False)
class LearnRows:
    """Rows to learn from, and where a model places them.

    Parameters
    ----------
    codes : ndarray of shape (m, p)
        Features, as trees read them.
    weight : ndarray of shape (m,)
    half : ndarray of int, shape (m,)
        By a hash of the row, or of its key.
    y, center, scale : ndarrays of shape (m, L)
        For each of the roads that ask experts: the target as it sees it, NaN where the
        row is none of its, and where the model's frame places the row.
    """

    codes: Float64Array
    weight: Float64Array
    half: NDArray[np.int64]
    y: Float64Array
    center: Float64Array
    scale: Float64Array

    def arrays(self) -> dict[str, Any]:
        """Return all of it as arrays.

        Returns
        -------
        dict of str to ndarray
        """
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def take(self, rows: NDArray[np.bool_]) -> LearnRows:
        """Return some rows.

        Parameters
        ----------
        rows : ndarray of bool, shape (m,)

        Returns
        -------
        LearnRows
        """
        return LearnRows(**{name: held[rows] for name, held in self.arrays().items()})


@dataclass(frozen=True, eq=False)
class LearnPass:
    """The pass that reads the rows to learn from.

    Parameters
    ----------
    unseen : UnseenRows
    """

    unseen: UnseenRows
    name: ClassVar[str] = "all rows"

    def __call__(self, part: Part, frame: Any = None) -> LearnRows:
        """Return the rows of one part."""
        found = [self.place(block) for block in self.unseen.lessons(part, frame)]
        if found:
            return self.join(found)
        width = self.unseen.model.reader_.features.n_columns
        wide = len(leaves_of(self.unseen.model.forecaster_))
        none = np.empty((3, 0, wide))
        return LearnRows(
            np.empty((0, width)), np.empty(0), np.empty(0, np.int64), *none
        )

    def place(self, block: Block) -> LearnRows:
        """Return what is known of some rows.

        Parameters
        ----------
        block : Block

        Returns
        -------
        LearnRows
        """
        road = self.unseen.model.forecaster_
        number = {id(leaf): place for place, leaf in enumerate(leaves_of(road))}
        y, center, scale = np.full((3, len(block.y), len(number)), np.nan)
        for leaf in walk_leaves(road, block.table, block.y):
            place = number[id(leaf.road)]
            y[leaf.rows, place] = leaf.y
            center[leaf.rows, place], scale[leaf.rows, place] = leaf.locate()
        half = deal(block.hashes, "half to learn from", N_HALVES)
        return LearnRows(block.table.codes, block.weight, half, y, center, scale)

    def join(self, parts: Sequence[LearnRows]) -> LearnRows:
        """Return the rows of several parts."""
        held = [part.arrays() for part in parts]
        return LearnRows(
            **{name: np.concatenate([own[name] for own in held]) for name in held[0]}
        )

    def load(self, arrays: Mapping[str, Any]) -> LearnRows:
        """Return rows from their arrays."""
        return LearnRows(**arrays)
