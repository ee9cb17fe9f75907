"""`Strata`: parts of a target's range, and how much of each is drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.large.scan import DROPPED, Keys, Scan, keys_of

# Strata of a target of many values, and most values with a stratum of their own.
_MANY, _MOST = 64, 200


@dataclass(frozen=True, eq=False)
class Strata:
    """Ranges of the target with about equal weight, or values of few.

    Parameters
    ----------
    ends : ndarray of int64, shape (S,)
        The last key (`keys_of`) of each stratum.
    quota : ndarray of shape (S,)
        Weight that is drawn from each.
    weight : ndarray of shape (S,)
        That each has.
    unit : float
        Weight of a row on average.
    """

    ends: Keys
    quota: Float64Array
    weight: Float64Array
    unit: float

    @classmethod
    def of(cls, scan: Scan, most_rows: int, *, single: bool) -> Strata:
        """Part the target's range.

        Parameters
        ----------
        scan : Scan
        most_rows : int
            That are drawn.
        single : bool
            Whether all is one stratum.

        Returns
        -------
        Strata
        """
        values = scan.values
        if single:
            ends, weight = np.array([np.iinfo(np.int64).max]), np.array([scan.weight])
        elif not values.overflown and len(values.keys) <= _MOST:
            ends, weight = values.keys, values.weight
        else:
            upto = np.cumsum(scan.bins.weight)
            number = np.floor((upto - 0.5 * scan.bins.weight) / upto[-1] * _MANY)
            last = np.flatnonzero(np.diff(number, append=_MANY))
            ends = ((scan.bins.keys[last] + 1) << DROPPED) - 1
            weight = np.diff(upto[last], prepend=0.0)
        unit = scan.weight / scan.n_rows
        if scan.n_rows <= most_rows:
            return cls(ends, weight, weight, unit)
        if 2 * len(ends) > most_rows:
            last, whole = np.array([np.iinfo(np.int64).max]), np.array([scan.weight])
            return cls(last, whole * most_rows / scan.n_rows, whole, unit)
        # Each stratum has a row at least, and those that lack most the rows left over.
        rows = weight / scan.weight
        drawn = np.maximum(np.floor((most_rows - len(ends)) * rows), 1.0)
        left = most_rows - int(drawn.sum())
        lacking = np.argsort(drawn - most_rows * rows, kind="stable")
        np.add.at(drawn, np.resize(lacking, left), 1.0)
        return cls(ends, drawn * unit, weight, unit)

    def reach(self, quota: Float64Array) -> Float64Array:
        """Return the share of all hashes below which a quota is almost surely found.

        Parameters
        ----------
        quota : ndarray of shape (S,)

        Returns
        -------
        ndarray of shape (S,)
            Eight deviations of the number of rows beyond the mean one; 1 where that
            is all there is.
        """
        rows, all_rows = quota / self.unit, self.weight / self.unit
        return np.minimum((rows + 8.0 * np.sqrt(rows) + 30.0) / all_rows, 1.0)

    def place(self, y: Float64Array) -> NDArray[np.intp]:
        """Return the stratum of each target.

        Parameters
        ----------
        y : ndarray of shape (n,)

        Returns
        -------
        ndarray of int, shape (n,)
        """
        return np.searchsorted(self.ends, keys_of(y))
