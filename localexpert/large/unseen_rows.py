"""`UnseenRows`: the rows of a part that no model has learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.sources.part import Part
from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.large.roles import Roles, Rows, read_rows
from localexpert.large.row_hash import Hashes, deal, shares_of
from localexpert.large.row_sample import hash_part
from localexpert.large.strata import Strata

# Rows that are forecast together.
_BLOCK = 16_384
_HALVES, _HELD = "half", "held out of what is learned from"


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
    held : float
        Share of the others that calibrate; boosters learn from the rest.
    beyond : ndarray of uint64, shape (S,), optional
        The greatest hash of each stratum that nothing is learned from, if it is not
        the last one drawn.
    """

    model: Any
    roles: Roles
    strata: Strata
    last: Hashes
    held: float = 1.0
    beyond: Hashes | None = None

    def blocks(self, part: Part, frame: Any, half: int) -> Iterator[Block]:
        """Yield the rows of one half of those that calibrate, in blocks.

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
        if self.held < 1.0:
            new &= shares_of(hashes, _HELD) < self.held
        yield from self._read(rows, hashes, new & (deal(hashes, _HALVES, 2) == half))

    def lessons(self, part: Part, frame: Any) -> Iterator[Block]:
        """Yield the rows that neither calibrate nor were drawn, in blocks.

        Parameters
        ----------
        part : Part
        frame : pandas.DataFrame or None

        Yields
        ------
        Block
        """
        rows = read_rows(self.roles, part, frame)
        hashes, _ = hash_part(self.roles, rows)
        most = self.last if self.beyond is None else self.beyond
        new = hashes > most[self.strata.place(rows.y)]
        yield from self._read(
            rows, hashes, new & (shares_of(hashes, _HELD) >= self.held)
        )

    def _read(
        self, rows: Rows, hashes: Hashes, wanted: NDArray[np.bool_]
    ) -> Iterator[Block]:
        """Yield some rows of a part, as the model reads them."""
        places = np.flatnonzero(wanted)
        for start in range(0, len(places), _BLOCK):
            own = places[start : start + _BLOCK]
            features = self.roles.frame_of(rows.frame.iloc[own])
            table = self.model.reader_.read(features)
            yield Block(table, rows.y[own], rows.weight[own], hashes[own])
