"""`Scan`: what one pass over a large table tells of its target and its texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibration.sources.part import Part
from calibration.typing import Float64Array
from localexpert.large.roles import Roles, as_texts, read_rows

Keys = NDArray[np.int64]

# Bits of a float that are left out of the number of its bin: sign, exponent and 12
# bits of the rest stay, so a bin is a part in 4000 of its values' size.
DROPPED = np.int64(40)
# Distinct values of a target, and of a column of texts, that are counted one by one.
MOST_VALUES, _MOST_TEXTS = 512, 1000
_SIGN = np.int64(np.iinfo(np.int64).min)


def keys_of(y: Float64Array) -> Keys:
    """Return integers in the order of floats, made of their bits.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Finite.

    Returns
    -------
    ndarray of int64, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.large.scan import keys_of
    >>> y = np.array([-1e300, -2.0, -0.0, 0.0, 1e-300, 3.0])
    >>> bool((np.diff(keys_of(y)) >= 0).all()), int(np.ptp(keys_of(y)[2:4]))
    (True, 0)
    """
    bits = (y + 0.0).view(np.int64)
    return np.where(bits < 0, _SIGN - bits, bits)


@dataclass(frozen=True, eq=False)
class Counts:
    """Weights of sorted keys; with too many of them, none.

    Parameters
    ----------
    keys : ndarray of int64, shape (m,)
    weight : ndarray of shape (m,)
    most : int or None
        More keys than that are not counted: then there are none.
    """

    keys: Keys
    weight: Float64Array
    most: int | None = None

    @classmethod
    def of(cls, keys: Keys, weight: Float64Array, most: int | None = None) -> Counts:
        """Add up the weights of equal keys.

        Parameters
        ----------
        keys : ndarray of int64, shape (n,)
        weight : ndarray of shape (n,)
        most : int, optional

        Returns
        -------
        Counts
        """
        if len(keys) == 0:
            return cls(keys, weight, most)
        order = np.argsort(keys, kind="stable")
        held = keys[order]
        starts = np.flatnonzero(np.diff(held, prepend=held[0] - 1))
        if most is not None and len(starts) > most:
            return cls(held[:0], weight[:0], 0)
        return cls(held[starts], np.add.reduceat(weight[order], starts), most)

    @property
    def overflown(self) -> bool:
        """Whether there were too many keys."""
        return self.most == 0

    def merge(self, other: Counts) -> Counts:
        """Return the counts of both.

        Parameters
        ----------
        other : Counts

        Returns
        -------
        Counts
        """
        if self.overflown or other.overflown:
            return self if self.overflown else other
        keys = np.concatenate([self.keys, other.keys])
        weight = np.concatenate([self.weight, other.weight])
        return Counts.of(keys, weight, self.most)


@dataclass(frozen=True, eq=False)
class Scan:
    """Counts of a table's rows, which merge in any order.

    With integer weights the scan of a table does not depend on its parts, bit for bit.

    Parameters
    ----------
    n_rows : int
        With weight.
    low, high : float
        Least and greatest target.
    bins : Counts
        Of the target, by bins of its bits.
    values : Counts
        Of the target's distinct values, if they are few.
    texts : dict of str to frozenset
        Values of each column of texts; empty where they are too many.
    """

    n_rows: int
    low: float
    high: float
    bins: Counts
    values: Counts
    texts: dict[str, frozenset[str]] = field(default_factory=dict)

    def merge(self, other: Scan) -> Scan:
        """Return the scan of both parts.

        Parameters
        ----------
        other : Scan

        Returns
        -------
        Scan
        """
        return Scan(
            self.n_rows + other.n_rows,
            min(self.low, other.low),
            max(self.high, other.high),
            self.bins.merge(other.bins),
            self.values.merge(other.values),
            {name: _join(held, other.texts[name]) for name, held in self.texts.items()},
        )

    @property
    def weight(self) -> float:
        """Weight of all rows."""
        return float(self.bins.weight.sum())

    def arrays(self) -> dict[str, Any]:
        """Return all of it as arrays.

        Returns
        -------
        dict of str to ndarray
        """
        texts = {name: sorted(held) for name, held in self.texts.items()}
        return {
            "n_rows": np.int64(self.n_rows),
            "ends": np.array([self.low, self.high]),
            "bins": self.bins.keys,
            "bin_weight": self.bins.weight,
            "values": self.values.keys,
            "value_weight": self.values.weight,
            "overflown": np.bool_(self.values.overflown),
            "texts": np.array(json.dumps(texts)),
        }


@dataclass(frozen=True)
class ScanPass:
    """The pass that makes a scan.

    Parameters
    ----------
    roles : Roles
    """

    roles: Roles
    name: ClassVar[str] = "scan"

    def join(self, parts: Sequence[Scan]) -> Scan:
        """Return the scan of all parts."""
        return reduce(Scan.merge, parts)

    def load(self, arrays: Mapping[str, Any]) -> Scan:
        """Return a scan from its arrays."""
        texts = json.loads(str(arrays["texts"]))
        most = 0 if arrays["overflown"] else MOST_VALUES
        low, high = arrays["ends"].tolist()
        return Scan(
            int(arrays["n_rows"]),
            low,
            high,
            Counts(arrays["bins"], arrays["bin_weight"]),
            Counts(arrays["values"], arrays["value_weight"], most),
            {name: frozenset(held) for name, held in texts.items()},
        )

    def __call__(self, part: Part, frame: Any = None) -> Scan:
        """Return the scan of one part."""
        rows = read_rows(self.roles, part, frame, y_only=True)
        y, keys = rows.y, keys_of(rows.y)
        texts = {
            name: _values_of(rows.frame[name])
            for name in self.roles.features
            if self.roles.kinds[name] == "text"
        }
        low, high = (y.min(), y.max()) if len(y) else (np.inf, -np.inf)
        bins = Counts.of(keys >> DROPPED, rows.weight)
        values = Counts.of(keys, rows.weight, MOST_VALUES)
        return Scan(len(y), float(low), float(high), bins, values, texts)


def _values_of(column: Any) -> frozenset[str]:
    import pandas as pd

    held = pd.unique(pd.Series(as_texts(column), dtype=object).dropna())
    return _few(frozenset(str(value) for value in held))


def _join(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    if _MANY in (one, other):
        return _MANY
    return _few(one | other)


def _few(held: frozenset[str]) -> frozenset[str]:
    """Return values, or if there are too many what stands for that."""
    return _MANY if len(held) > _MOST_TEXTS else held


_MANY = frozenset({"", "\0many"})
