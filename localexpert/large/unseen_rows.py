"""`UnseenRows`: the rows of a part that no model has learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.sources.part import Part
from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.large.roles import Roles, read_rows
from localexpert.large.row_hash import Hashes, deal
from localexpert.large.row_sample import hash_part
from localexpert.large.strata import Strata

# Rows that are forecast together.
_BLOCK = 16_384
_HALVES = "half"


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that no model has learned from.

    Parameters
    ----------
    table : Table of shape (m, p)
    y, weight : ndarrays of shape (m,)
    hashes : ndarray of uint64, shape (m,)
    """

    table: Table
    y: Float64Array
    weight: Float64Array
    hashes: Hashes


@dataclass(frozen=True, eq=False)
class UnseenRows:
    """How the rows of a part are read that no model has learned from.

    Parameters
    ----------
    model : LocalExpertRegressor
        Fitted on the sample.
    roles : Roles
    strata : Strata
    last : ndarray of uint64, shape (S,)
        The greatest hash that was drawn from each stratum.
    """

    model: Any
    roles: Roles
    strata: Strata
    last: Hashes

    def blocks(self, part: Part, frame: Any, half: int) -> Iterator[Block]:
        """Yield the rows of one half of them, in blocks.

        Parameters
        ----------
        part : Part
        frame : pandas.DataFrame or None
        half : {0, 1}

        Yields
        ------
        Block
        """
        rows = read_rows(self.roles, part, frame)
        hashes, _ = hash_part(self.roles, rows)
        new = hashes > self.last[self.strata.place(rows.y)]
        places = np.flatnonzero(new & (deal(hashes, _HALVES, 2) == half))
        for start in range(0, len(places), _BLOCK):
            own = places[start : start + _BLOCK]
            features = self.roles.frame_of(rows.frame.iloc[own])
            table = self.model.reader_.read(features)
            yield Block(table, rows.y[own], rows.weight[own], hashes[own])
