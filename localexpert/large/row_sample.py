"""`RowSample`: the rows with the smallest hashes in each stratum of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibration.sources.part import Part
from calibration.typing import Float64Array
from localexpert.large.roles import Roles, Rows, read_rows
from localexpert.large.row_hash import Hashes, hash_rows
from localexpert.large.strata import Strata

_OWN = ("y", "weight", "hashes", "content")


@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows that are drawn, or may be when all parts are seen.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (m, p)
        Features.
    y, weight : ndarrays of shape (m,)
    hashes, content : ndarrays of uint64, shape (m,)
        Of the row's key, or of its content where there is none, and of its content.
    """

    frame: Any
    y: Float64Array
    weight: Float64Array
    hashes: Hashes
    content: Hashes

    def __len__(self) -> int:
        return len(self.y)

    def arrays(self) -> dict[str, Any]:
        """Return all of it as arrays; texts and what is missing of them apart.

        Returns
        -------
        dict of str to ndarray
        """
        own = {name: getattr(self, name) for name in _OWN}
        for number, name in enumerate(self.frame.columns):
            column = self.frame[name]
            if column.dtype == object:
                own[f"gaps{number}"] = column.isna().to_numpy()
                own[f"texts{number}"] = column.fillna("").to_numpy().astype(np.str_)
            else:
                own[f"numbers{number}"] = column.to_numpy()
        return own

    def take(self, places: NDArray[Any]) -> RowSample:
        """Return some rows.

        Parameters
        ----------
        places : ndarray of int or bool

        Returns
        -------
        RowSample
        """
        own = self.y, self.weight, self.hashes, self.content
        frame = self.frame[places] if places.dtype == bool else self.frame.iloc[places]
        return RowSample(frame, *(part[places] for part in own))

    @classmethod
    def join(cls, parts: Sequence[RowSample]) -> RowSample:
        """Return the rows of several, in the order of their hashes.

        Equal rows that no key tells apart become one of their weight together: their
        order says nothing of where they came from.

        Parameters
        ----------
        parts : sequence of RowSample

        Returns
        -------
        RowSample
        """
        import pandas as pd

        # A part that adds nothing has no say in types.
        some = [part for part in parts if len(part)] or [parts[0]]
        frame = pd.concat([part.frame for part in some], ignore_index=True)
        y, weight, hashes, content = (
            np.concatenate([getattr(part, name) for part in some]) for name in _OWN
        )
        order = np.lexsort((weight, content, hashes))
        whole = cls(frame, y, weight, hashes, content).take(order)
        same = np.diff(whole.hashes) == 0
        same &= np.diff(whole.content) == 0
        starts = np.flatnonzero(np.append(True, ~same)[: len(whole)])
        if len(starts) == len(whole):
            return whole
        total = np.add.reduceat(whole.weight, starts)
        kept = whole.take(starts)
        return cls(kept.frame, kept.y, total, kept.hashes, kept.content)

    def within(self, strata: Strata, quota: Float64Array) -> RowSample:
        """Return the rows before which each stratum's quota is not full.

        What is left out of a part is left out of all parts together.

        Parameters
        ----------
        strata : Strata
        quota : ndarray of shape (S,)

        Returns
        -------
        RowSample
        """
        stratum, upto, own = self._weigh(strata)
        return self.take(upto - own < quota[stratum])

    def cut(self, strata: Strata) -> tuple[RowSample, Hashes]:
        """Draw the sample, of rows in the order of their hashes.

        Parameters
        ----------
        strata : Strata

        Returns
        -------
        sample : RowSample
            Rows of one hash are drawn together, and those of the first one in any
            case; a stratum of one row many times gives it the weight of its quota.
        last : ndarray of uint64, shape (S,)
            The greatest hash that is drawn from each stratum.
        """
        stratum, upto, own = self._weigh(strata)
        quota = strata.quota[stratum]
        drawn = (upto <= quota) | (upto == own)
        last = np.zeros(len(strata.ends), dtype=np.uint64)
        np.maximum.at(last, stratum[drawn], self.hashes[drawn])
        lighter = np.minimum(self.weight, quota)
        whole = RowSample(self.frame, self.y, lighter, self.hashes, self.content)
        return whole.take(drawn), last

    def _weigh(
        self, strata: Strata
    ) -> tuple[NDArray[np.intp], Float64Array, Float64Array]:
        """Return stratum, weight up to the row's hash there, and weight of the hash."""
        stratum = strata.place(self.y)
        order = np.lexsort((self.hashes, stratum))
        of, weight = stratum[order], self.weight[order]
        new = np.append(True, (np.diff(self.hashes[order]) != 0) | (np.diff(of) > 0))
        starts = np.flatnonzero(new[: len(of)])
        group = np.cumsum(new[: len(of)]) - 1
        each = np.add.reduceat(weight, starts) if len(of) else weight
        total = np.cumsum(each)
        first = np.searchsorted(of[starts], of[starts])
        upto = total - np.append(0.0, total)[first]
        own, reached = np.empty((2, len(of)))
        own[order], reached[order] = each[group], upto[group]
        return stratum, reached, own


@dataclass(frozen=True, eq=False)
class SamplePass:
    """The pass that draws the sample, and some rows beyond it.

    Parameters
    ----------
    roles : Roles
    strata : Strata
    quota : ndarray of shape (S,)
        Of sample and rows beyond it.
    reach : ndarray of shape (S,)
        Share of all hashes that is looked at.
    """

    roles: Roles
    strata: Strata
    quota: Float64Array
    reach: Float64Array
    name: ClassVar[str] = "sample"

    def __call__(self, part: Part, frame: Any = None) -> RowSample:
        """Return the rows of one part that may be drawn."""
        rows = read_rows(self.roles, part, frame)
        hashes, content = hash_part(self.roles, rows)
        stratum = self.strata.place(rows.y)
        near = hashes.astype(np.float64) * 2.0**-64 <= self.reach[stratum]
        own = rows.frame[near]
        found = RowSample(
            self.roles.frame_of(own),
            rows.y[near],
            rows.weight[near],
            hashes[near],
            content[near],
        )
        return RowSample.join([found]).within(self.strata, self.quota)

    def join(self, parts: Sequence[RowSample]) -> RowSample:
        """Return what may still be drawn of several parts."""
        return RowSample.join(parts).within(self.strata, self.quota)

    def load(self, arrays: Mapping[str, Any]) -> RowSample:
        """Return rows from their arrays."""
        import pandas as pd

        columns = {}
        for number, name in enumerate(self.roles.features):
            if f"numbers{number}" in arrays:
                columns[name] = pd.Series(arrays[f"numbers{number}"])
            else:
                held = arrays[f"texts{number}"].astype(object)
                held[arrays[f"gaps{number}"]] = None
                columns[name] = pd.Series(held, dtype=object)
        own = (arrays[name] for name in _OWN)
        return RowSample(pd.DataFrame(columns), *own)

    def is_enough(self, found: RowSample) -> bool:
        """Say whether the hashes looked at filled every quota.

        Parameters
        ----------
        found : RowSample

        Returns
        -------
        bool
        """
        held = np.bincount(
            self.strata.place(found.y), found.weight, len(self.strata.ends)
        )
        return bool(((self.reach >= 1.0) | (held >= self.quota)).all())


def hash_part(roles: Roles, rows: Rows) -> tuple[Hashes, Hashes]:
    """Return the hash of each row's key, or of its content, and of its content.

    Parameters
    ----------
    roles : Roles
    rows : Rows

    Returns
    -------
    hashes, content : ndarrays of uint64, shape (n,)
    """
    content = hash_rows(roles.columns_of(rows.frame), roles.kinds)
    if roles.key is None:
        return content, content
    key = {roles.key: rows.frame[roles.key]}
    return hash_rows(key, roles.kinds), content
