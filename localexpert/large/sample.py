"""`Draw`: one pass that counts a large table and draws its sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from localexpert.large.rows import Roles, Rows, as_features, as_texts, kind_of

# Values of a column of texts that are told apart.
_MOST_TEXTS = 1000
_KNOWN = ("number", "date", "text", "gaps")


@dataclass(frozen=True)
class Column:
    """What is known of a feature.

    Parameters
    ----------
    kind : {"number", "date", "text", "gaps"}
    where : str
        The part that says so.
    texts : frozenset of str or None
        Its values, None if they are too many.
    """

    kind: str
    where: str
    texts: frozenset[str] | None = frozenset()

    @classmethod
    def of(cls, name: str, part: str, column: Any) -> Column:
        """Look at the column of a part.

        Parameters
        ----------
        name, part : str
        column : Series

        Returns
        -------
        Column
        """
        import pandas as pd

        kind = kind_of(column)
        if kind not in _KNOWN:
            msg = (
                "`parts` must hold numbers, truths, texts or dates, got a column "
                f"{name!r} of {kind} in {part}."
            )
            raise ValueError(msg)
        met: Any = as_texts(column) if kind == "text" else []
        held = frozenset(map(str, pd.unique(pd.Series(met, dtype=object).dropna())))
        return cls(kind, part)._with(held)

    def merge(self, name: str, other: Column) -> Column:
        """Return what is known by two parts, which must agree.

        Parameters
        ----------
        name : str
        other : Column

        Returns
        -------
        Column
        """
        one, two = (self, other) if self.kind != "gaps" else (other, self)
        if two.kind not in (one.kind, "gaps"):
            msg = (
                f"`parts` must have columns of one kind, got the column {name!r} as "
                f"{one.kind} in {one.where}, as {two.kind} in {two.where}."
            )
            raise ValueError(msg)
        if one.texts is None or two.texts is None:
            return replace(one, texts=None)
        return one._with(one.texts | two.texts)

    def _with(self, texts: frozenset[str]) -> Column:
        return replace(self, texts=texts if len(texts) <= _MOST_TEXTS else None)


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a table is, and its rows with the smallest hashes.

    Parameters
    ----------
    n_rows : int
        With weight.
    weight : float
    check : int
        Sum of the rows' hashes: that of other rows is another one.
    low, high : float
        Least and greatest target.
    columns : dict of str to Column
        Features.
    rows : Rows
        In the order of their hashes.
    """

    n_rows: int
    weight: float
    check: int
    low: float
    high: float
    columns: dict[str, Column]
    rows: Rows

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each feature."""
        return {name: column.kind for name, column in self.columns.items()}

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

    def lacking(self, sample: Rows) -> dict[str, int]:
        """Return how many values of texts a sample lacks: they count as missing.

        Parameters
        ----------
        sample : Rows

        Returns
        -------
        dict of str to int
        """
        lacks = {
            name: len(column.texts.difference(map(str, sample.frame[name])))
            for name, column in self.columns.items()
            if column.texts
        }
        return {name: count for name, count in lacks.items() if count}


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
        """Return what one part tells, None without weight."""
        rows = self.roles.read(name, frame)
        if not len(rows):
            return None
        features = rows.frame
        return Drawn(
            len(rows),
            float(rows.weight.sum()),
            check_of(rows),
            float(rows.y.min()),
            float(rows.y.max()),
            {str(c): Column.of(c, name, features[c]) for c in features.columns},
            Rows.smallest([rows], self.most),
        )

    def merge(self, parts: Sequence[Drawn]) -> Drawn:
        """Return what several parts tell."""
        columns = parts[0].columns
        for part in parts[1:]:
            _check_names(columns, part.columns)
            columns = {
                name: column.merge(name, part.columns[name])
                for name, column in columns.items()
            }
        return Drawn(
            sum(part.n_rows for part in parts),
            sum(part.weight for part in parts),
            sum(part.check for part in parts) % 2**64,
            min(part.low for part in parts),
            max(part.high for part in parts),
            columns,
            Rows.smallest([part.rows for part in parts], self.most),
        )


def check_of(rows: Rows) -> int:
    """Return the sum of the hashes of rows, as often as each is there.

    Parameters
    ----------
    rows : Rows

    Returns
    -------
    int
    """
    return int(rows.content.sum(dtype=np.uint64))


def _check_names(one: dict[str, Column], other: dict[str, Column]) -> None:
    """Refuse parts of other columns."""
    for names, others in ((one, other), (other, one)):
        for name in names:
            if name not in others:
                has, lacks = names[name].where, next(iter(others.values())).where
                msg = (
                    "`parts` must have the same columns everywhere, got a column "
                    f"{name!r} in {has}, none in {lacks}."
                )
                raise ValueError(msg)
