"""`Rows`: what a part of a large table holds, known by hashes of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.sources.parts import check_columns
from calibration.typing import Float64Array
from localexpert._kernels.row_hashes import add_hashes, finish_hashes

Hashes = NDArray[np.uint64]

# The bits of a gap in any kind of column.
_GAP = np.uint64(0x7FF8000000000000)
# Kinds of columns, by what pandas calls their cells; the rest is texts.
_KINDS = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float"), "number"),
    **dict.fromkeys(("decimal", "boolean"), "number"),
    **dict.fromkeys(("datetime64", "datetime", "date"), "date"),
    **dict.fromkeys(("string", "mixed", "mixed-integer"), "text"),
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with weight.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, p)
        Features, as they were read.
    y, weight : ndarrays of shape (n,)
    hashes, content : ndarrays of uint64, shape (n,)
        Of the row's key, or of its content where there is none, and of its content.
    """

    frame: Any
    y: Float64Array
    weight: Float64Array
    hashes: Hashes
    content: Hashes

    def __len__(self) -> int:
        return len(self.y)

    def take(self, places: Any) -> Rows:
        """Return some rows.

        Parameters
        ----------
        places : slice or ndarray of int or bool

        Returns
        -------
        Rows
        """
        columns = self.y, self.weight, self.hashes, self.content
        return Rows(self.frame.iloc[places], *(column[places] for column in columns))

    def repeat(self, most: int) -> Rows:
        """Return rows whose weight is at most `most`; equal rows repeat if they fit.

        Parameters
        ----------
        most : int

        Returns
        -------
        Rows
            If weights are whole and sum to at most `most`, each row is repeated as
            often as its weight says, and has the weight 1.
        """
        weight = self.weight * min(most / self.weight.sum(), 1.0)
        more = np.maximum(weight - 1.0, 0.0)
        room = max(most - len(self), 0) / max(more.sum(), 1.0)
        times = 1 + np.floor(more * min(room, 1.0)).astype(np.intp)
        lighter = replace(self, weight=weight / times)
        return lighter.take(np.repeat(np.arange(len(self)), times))

    @classmethod
    def smallest(cls, parts: Sequence[Rows], most: int) -> Rows:
        """Return the distinct rows of several parts with the smallest hashes.

        Equal rows become one row with the sum of their weights. A row that is left out
        of one part would be left out of all parts together, so it can be dropped.

        Parameters
        ----------
        parts : sequence of Rows
        most : int
            Rows of the next hash are taken while there are fewer rows than this.

        Returns
        -------
        Rows
            In the order of their hashes, then of their content.
        """
        import pandas as pd

        frame = pd.concat([part.frame for part in parts], ignore_index=True)
        y, weight, hashes, content = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("y", "weight", "hashes", "content")
        )
        order = np.lexsort((weight, content, hashes))
        own, key = content[order], hashes[order]
        starts = np.flatnonzero(
            np.append(True, (np.diff(own) != 0) | (np.diff(key) != 0))
        )
        total = np.add.reduceat(weight[order], starts)
        # Rows of the smaller hashes, for each row.
        before = np.searchsorted(key[starts], key[starts])
        kept = order[starts][before < most]
        found = cls(frame, y, weight, hashes, content).take(kept)
        return replace(found, weight=total[: len(kept)])


@dataclass(frozen=True)
class Roles:
    """The roles of columns of a table; all other columns are features.

    Parameters
    ----------
    target : str
    weight, key : str or None
    """

    target: str
    weight: str | None
    key: str | None

    @classmethod
    def of(cls, target: Any, weight: Any, key: Any) -> Roles:
        """Check names of columns.

        Parameters
        ----------
        target, weight, key : object

        Returns
        -------
        Roles
        """
        named = {"target": target, "weight": weight, "key": key}
        for role, name in named.items():
            if not isinstance(name, str) and (role == "target" or name is not None):
                msg = f"`{role}` must be the name of a column, got {name!r}."
                raise TypeError(msg)
        held = [name for name in named.values() if name is not None]
        if len(set(held)) < len(held):
            listed = ", ".join(held)
            msg = f"`target`, `weight` and `key` must be different, got {listed}."
            raise ValueError(msg)
        return cls(target, weight, key)

    def read(self, name: str, frame: Any) -> Rows:
        """Return the rows of a part that have weight.

        Parameters
        ----------
        name : str
            What messages call the part.
        frame : pandas.DataFrame

        Returns
        -------
        Rows
        """
        named = {"target": self.target, "weight": self.weight, "key": self.key}
        held = {role: column for role, column in named.items() if column is not None}
        check_columns(held, name, frame)
        y, weight = _numbers(frame, self.target, name), np.ones(len(frame))
        if self.weight is not None:
            weight = _numbers(frame, self.weight, name)
            wrong = ~(np.isfinite(weight) & (weight >= 0.0))
            _refuse(wrong, weight, name, self.weight, "weights of at least 0")
        has_weight = weight > 0.0
        wrong = ~np.isfinite(y) & has_weight
        _refuse(wrong, y, name, self.target, "finite targets")
        frame, y, weight = frame[has_weight], y[has_weight], weight[has_weight]
        features = frame.drop(columns=list(held.values()))
        if not len(features.columns):
            msg = f"`parts` must have a column to learn from, got none in {name}."
            raise ValueError(msg)
        content = hash_rows({**dict(features.items()), self.target: frame[self.target]})
        hashes = content
        if self.key is not None:
            hashes = hash_rows({self.key: frame[self.key]})
        return Rows(features, y, weight, hashes, content)


def kind_of(column: Any) -> str:
    """Return what a column holds.

    Parameters
    ----------
    column : Series

    Returns
    -------
    {"number", "date", "text", "gaps"} or what pandas calls it
        Columns of gaps alone go with any kind.
    """
    from pandas.api import types

    if isinstance(column.dtype, types.CategoricalDtype):
        column = column.cat.categories
    if column.isna().all():
        return "gaps"
    met: str = types.infer_dtype(column, skipna=True)
    return _KINDS.get(met, met)


def as_floats(column: Any) -> Float64Array:
    """Return a column of numbers or truths as new floats, NaN where missing.

    Parameters
    ----------
    column : Series of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
    """
    if column.isna().all():
        return np.full(len(column), np.nan)
    return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan), np.float64)


def as_dates(column: Any) -> NDArray[Any]:
    """Return a column of dates as numpy's, those of a time zone by UTC.

    Parameters
    ----------
    column : Series of shape (n,)

    Returns
    -------
    ndarray of datetime64, shape (n,)
    """
    import pandas as pd

    read: Any = pd.to_datetime(column, utc=True)
    return np.asarray(read.dt.tz_localize(None).to_numpy("datetime64[us]"))


def as_texts(column: Any) -> NDArray[Any]:
    """Return a column of texts or categories as objects, None where missing.

    Parameters
    ----------
    column : Series of shape (n,)

    Returns
    -------
    ndarray of object, shape (n,)
    """
    held = column.astype(object).to_numpy(copy=True)
    held[column.isna().to_numpy()] = None
    return np.asarray(held)


def as_features(frame: Any, kinds: Mapping[str, str]) -> Any:
    """Return features with the kinds of the whole table, not those of one part.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, p)
    kinds : mapping of str to str
        Of each feature; in this order.

    Returns
    -------
    pandas.DataFrame of shape (n, p)
        Texts as plain objects, dates, all else as floats; without the part's index.
    """
    import pandas as pd

    ways: dict[str, Any] = {"text": as_texts, "date": as_dates}
    return pd.DataFrame(
        {name: ways.get(kind, as_floats)(frame[name]) for name, kind in kinds.items()}
    )


def hash_rows(columns: Mapping[str, Any]) -> Hashes:
    """Return a hash of each row's content.

    Parameters
    ----------
    columns : mapping of str to Series of shape (n,)

    Returns
    -------
    ndarray of uint64, shape (n,)
        Equal rows have equal hashes, in whatever order their columns are, in single
        or double precision, as categories or texts.
    """
    total = np.zeros(len(next(iter(columns.values()))), np.uint64)
    for name, column in columns.items():
        add_hashes(total, _bits(column), _salt(name))
    return finish_hashes(total, _salt("rows"))


def shares_of(hashes: Hashes, purpose: str) -> Float64Array:
    """Return a number in (0, 1) for each hash, evenly spread.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n,)
    purpose : str

    Returns
    -------
    ndarray of shape (n,)
    """
    mixed = finish_hashes(hashes, _salt(purpose)) >> np.uint64(12)
    return (mixed.astype(np.float64) + 0.5) * 2.0**-52


def _salt(name: str) -> np.uint64:
    """Return a number for a text, the same on every machine."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return np.uint64(int.from_bytes(digest[:8], "little"))


def _bits(column: Any) -> Hashes:
    """Return the bits of numbers, where a zero has no sign, of dates, or of texts."""
    import pandas as pd

    kind = kind_of(column)
    if kind == "text":
        codes, met = pd.factorize(as_texts(column), use_na_sentinel=True)
        # A gap has the code -1, the last place.
        bits = np.array([*(_salt(str(value)) for value in met), _GAP], np.uint64)
        return np.asarray(bits[codes])
    held = as_dates(column) if kind == "date" else as_floats(column) + 0.0
    return np.where(np.isnan(held), _GAP, held.view(np.uint64))


def _numbers(frame: Any, column: str, name: str) -> Float64Array:
    """Return a column of numbers."""
    kind = kind_of(frame[column])
    if kind not in ("number", "gaps"):
        msg = f"`parts` must have numbers in {column!r}, got {kind} in {name}."
        raise ValueError(msg)
    return as_floats(frame[column])


def _refuse(
    wrong: NDArray[np.bool_], values: Float64Array, part: str, column: str, rule: str
) -> None:
    """Refuse values of a part, the first of them by its place."""
    if wrong.any():
        place = int(np.argmax(wrong))
        msg = (
            f"`parts` must hold {rule} in {column!r}, got {values[place]} in row "
            f"{place} of {part}."
        )
        raise ValueError(msg)
