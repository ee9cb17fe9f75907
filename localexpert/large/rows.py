"""The rows of a large table by hashes of their content, and the passes over them.

`Draw` takes the sample, `CountScores` the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration._kernels.cells import mix_bits
from calibration._validation import refuse
from calibration.sources import check_columns
from calibration.typing import Float64Array
from localexpert.data.columns import holds_dates, read_moments
from localexpert.data.training_rows import Hashes, salt_of
from localexpert.recalibration.pit import PitCells

_SOUND = "hold numbers, truths, texts or dates"
# The bits of a gap in any kind of column.
_GAP = np.uint64(0x7FF8000000000000)
# From here on several integers are one float. They differ in the remainder of a unit.
_WHOLE, _UNIT = 2.0**53, 2**16
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

    @property
    def check(self) -> int:
        """Sum of the hashes of all rows; other rows have another sum."""
        return int(self.content.sum(dtype=np.uint64))

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

    def __post_init__(self) -> None:
        for role, name in vars(self).items():
            if not isinstance(name, str) and (role == "target" or name is not None):
                refuse(role, "be the name of a column", f"{name!r}", TypeError)
        held = list(self.named.values())
        if len(set(held)) < len(held):
            refuse("target`, `weight` and `key", "be different", ", ".join(held))

    @property
    def named(self) -> dict[str, str]:
        """The columns that have a role, by their roles."""
        return {role: name for role, name in vars(self).items() if name is not None}

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
        check_columns(self.named, name, frame)
        y, weight = _numbers(frame, self.target, name), np.ones(len(frame))
        if self.weight is not None:
            weight = _numbers(frame, self.weight, name)
            wrong = ~(np.isfinite(weight) & (weight >= 0.0))
            _refuse(wrong, weight, name, self.weight, "weights of at least 0")
        has_weight = weight > 0.0
        wrong = ~np.isfinite(y) & has_weight
        _refuse(wrong, y, name, self.target, "finite targets")
        frame, y, weight = frame[has_weight], y[has_weight], weight[has_weight]
        features = frame.drop(columns=list(self.named.values()))
        if not len(features.columns):
            refuse("parts", "have a column to learn from", f"none in {name}")
        content = hash_rows({**dict(features.items()), self.target: frame[self.target]})
        key = self.key
        hashes = content if key is None else hash_rows({key: frame[key]})
        return Rows(features, y, weight, hashes, content)


def kind_of(column: Any) -> str:
    """Return what a column holds.

    Parameters
    ----------
    column : Series

    Returns
    -------
    {"number", "date", "text", "category", "gaps"} or what pandas calls it
        Columns of gaps alone go with any kind. "category": a pandas category of
        numbers or truths, which have no order for `fit` either.
    """
    from pandas.api import types

    is_category = isinstance(column.dtype, types.CategoricalDtype)
    if is_category:
        column = column.cat.categories
    if column.isna().all():
        return "gaps"
    met: str = types.infer_dtype(column, skipna=True)
    kind = _KINDS.get(met, met)
    return "category" if is_category and kind == "number" else kind


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
        Texts as plain objects, dates as they are, for they may have a time zone, all
        else as floats; without the part's index.
    """
    import pandas as pd

    ways: dict[str, Any] = {
        "text": as_texts,
        "category": lambda held: pd.Categorical(as_texts(held)),
        "date": lambda held: held.array if holds_dates(held) else read_moments(held),
    }
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
        try:
            bits = _bits(column)
        except TypeError as error:  # lists, for one
            refuse("parts", _SOUND, f"other cells in {name!r}: {error}", cause=error)
        total += mix_bits(mix_bits(bits) ^ salt_of(str(name)))
    return mix_bits(total ^ salt_of("rows"))


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
    mixed = mix_bits(hashes ^ salt_of(purpose)) >> np.uint64(12)
    return (mixed.astype(np.float64) + 0.5) * 2.0**-52


def _bits(column: Any) -> Hashes:
    """Return the bits of numbers, where a zero has no sign, of dates, or of texts."""
    import pandas as pd

    kind = kind_of(column)
    if kind == "text":
        codes, met = pd.factorize(as_texts(column), use_na_sentinel=True)
        # A gap has the code -1, the last place.
        bits = np.array([*(salt_of(str(value)) for value in met), _GAP], np.uint64)
        return np.asarray(bits[codes])
    if kind == "date":
        held = read_moments(column)
        return np.where(np.isnat(held), _GAP, held.view(np.uint64))
    numbers = as_floats(column) + 0.0
    bits = np.where(np.isnan(numbers), _GAP, numbers.view(np.uint64))
    if (np.abs(numbers) >= _WHOLE).any():
        bits ^= mix_bits(_beyond_floats(column, numbers).view(np.uint64))
    return bits


def _beyond_floats(column: Any, numbers: Float64Array) -> NDArray[np.int64]:
    """Return what integers of 64 bits are more than their floats, as a remainder."""
    kind = column.dtype.kind
    if kind == "O":
        pairs = zip(column, numbers.tolist(), strict=True)
        more: Any = [
            int(v) - int(x) if isinstance(v, Integral) else 0 for v, x in pairs
        ]
    elif kind in "iu":
        exact = column.to_numpy(f"{kind}8", na_value=0) % _UNIT
        more = exact - np.nan_to_num(numbers % _UNIT)
    else:
        more = np.zeros(len(numbers))
    return np.asarray(more, np.int64) % _UNIT


def _numbers(frame: Any, column: str, name: str) -> Float64Array:
    """Return a column of numbers."""
    kind = kind_of(frame[column])
    if kind not in ("number", "category", "gaps"):
        refuse("parts", f"have numbers in {column!r}", f"{kind} in {name}")
    return as_floats(frame[column])


def _refuse(
    wrong: NDArray[np.bool_], values: Float64Array, part: str, column: str, rule: str
) -> None:
    """Refuse values of a part, the first of them by its place."""
    if wrong.any():
        place = int(np.argmax(wrong))
        rule = f"hold {rule} in {column!r}"
        refuse("parts", rule, f"{values[place]} in row {place} of {part}")


# By name of a feature its kind, and the part that says so.
Columns: TypeAlias = dict[str, tuple[str, str]]

_KNOWN = ("number", "date", "text", "category", "gaps")
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
        Kind of each feature and of the key, and the part that says so.
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
        held = self.rows.frame
        return {name: kind for name, (kind, _) in self.columns.items() if name in held}

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

    def weigh_beyond(self, sample: Rows) -> float:
        """Return the weight of all rows of the table that are not in a sample of it.

        Parameters
        ----------
        sample : Rows

        Returns
        -------
        float
        """
        drawn = self.rows.hashes <= sample.hashes[-1]
        return self.weight - float(self.rows.weight[drawn].sum())


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
        columns = _look_at(name, rows.frame)
        if (key := self.roles.key) is not None:
            role = self.roles.weight
            held = frame if role is None else frame[frame[role] > 0.0]
            columns |= _look_at(name, held[[key]])
        return Drawn(
            len(rows),
            float(rows.weight.sum()),
            rows.check,
            float(rows.y.min()),
            float(rows.y.max()),
            columns,
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
    """The pass that forecasts rows beyond a sample.

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
    share : float
        Part of the rows beyond the sample that are forecast; drawn by key and content.
    """

    model: Any
    roles: Roles
    kinds: Mapping[str, str]
    last: np.uint64
    furthest: float
    share: float

    def __call__(self, name: str, frame: Any) -> Scores:
        """Return the counts of one part."""
        rows = self.roles.read(name, frame)
        pit_ends = [np.empty((0, 1))]
        # Content alone would draw all equal rows of many keys, or none.
        drawn = shares_of(rows.content + rows.hashes, "corrects") < self.share
        unseen = rows.take((rows.hashes > self.last) & drawn)
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
        return Scores(cells, len(rows), rows.check)

    def merge(self, parts: Sequence[Scores]) -> Scores:
        """Return the counts of several parts."""
        cells = PitCells(
            np.sum([part.cells.weight for part in parts], axis=0),
            np.sum([part.cells.sums for part in parts], axis=0),
        )
        check = sum(part.check for part in parts) % 2**64
        return Scores(cells, sum(part.n_rows for part in parts), check)


def _look_at(part: str, frame: Any) -> Columns:
    """Return what the features of a part are."""
    kinds = {name: kind_of(frame[name]) for name in frame.columns}
    for name, kind in kinds.items():
        if kind not in _KNOWN:
            refuse("parts", _SOUND, f"a column {name!r} of {kind} in {part}")
        if kind == "number" and np.isinf(as_floats(frame[name])).any():
            refuse("parts", "hold finite numbers", f"infinity in {name!r} of {part}")
    return {name: (kind, part) for name, kind in kinds.items()}


def _agree(one: Columns, other: Columns) -> Columns:
    """Return what is known by two parts, which must agree."""
    for held, others in ((one, other), (other, one)):
        for name in held.keys() - others.keys():
            has, lacks = held[name][1], next(iter(others.values()))[1]
            rule = "have the same columns everywhere"
            refuse("parts", rule, f"a column {name!r} in {has}, none in {lacks}")
    # No part comes first: where orders differ, names have one of their own.
    names = list(one) if list(one) == list(other) else sorted(one, key=str)
    known = {name: (one if one[name][0] != "gaps" else other)[name] for name in names}
    for name, (kind, part) in other.items():
        if kind not in ("gaps", known[name][0]):
            first, where = known[name]
            got = f"the column {name!r} as {first} in {where}, as {kind} in {part}"
            refuse("parts", "have columns of one kind", got)
    return known
