"""`MixedRows`: rows whose features come from different rows of a table.

Features, or groups of them that go together, are called players.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Int64Array
from localexpert._validation import check_list, check_mapping, format_number, refuse
from localexpert.data.columns import Columns, has_columns, list_columns

# A group shows so many of its values.
_VALUES_SHOWN = 3
# Kinds of numbers; truth values are another.
_NUMBERS = {"i", "u", "f"}


@dataclass(frozen=True)
class MixedRows:
    """Makes tables column by column; every column keeps its type.

    Parameters
    ----------
    table : array or data frame of shape (n, p)
        The table that columns are taken from.
    names : tuple of str
        Names of the P players. A group has the place of its first column.
    owner : ndarray of shape (p,)
        The player of every column.
    """

    table: Any
    names: tuple[str, ...]
    owner: Int64Array

    @classmethod
    def of(cls, table: Any, groups: Mapping[str, Sequence[Any]] | None) -> MixedRows:
        """Name the columns of a table, and join some of them to groups.

        Columns of an array are called x0, x1, ..., and may be given by number.
        """
        names = Columns.of(table).names
        labels = names or tuple(f"x{j}" for j in range(table.shape[1]))
        held = _read_groups(labels, {} if groups is None else groups, names is None)
        keys: list[tuple[bool, Any]] = [
            (j in held, held.get(j, j)) for j in range(len(labels))
        ]
        players = list(dict.fromkeys(keys))
        named = tuple(k if group else str(labels[k]) for group, k in players)
        for name in held.values():
            if named.count(name) > 1:
                refuse("groups", "not be named as a feature is", f"{name!r}")
        owner = np.array([players.index(key) for key in keys], dtype=np.int64)
        return cls(table, named, owner)

    def mix(self, places: Int64Array) -> Any:
        """Return k rows, player j of which is taken from the rows places[:, j].

        Parameters
        ----------
        places : ndarray of shape (k, P)

        Returns
        -------
        array or data frame of shape (k, p)
        """
        table, at = self.table, places[:, self.owner]
        if not has_columns(table):
            return np.take_along_axis(table, at, axis=0)
        columns = list_columns(table)
        if hasattr(table, "with_columns"):  # polars
            taken = [column.gather(at[:, j]) for j, column in enumerate(columns)]
            return table[at[:, 0]].with_columns(*taken)
        import pandas as pd

        # Joined in one go: columns set one by one would leave the frame in pieces.
        parts = [pd.Series(c.array.take(at[:, j])) for j, c in enumerate(columns)]
        return pd.concat(parts, axis=1).set_axis(table.columns, axis=1)

    def describe(self, n: int) -> NDArray[np.object_]:
        """Return the values of every player in the first n rows as text, (n, P)."""
        table = self.table
        columns = list_columns(table) if has_columns(table) else list(table.T)
        text = np.empty((n, len(self.names)), dtype=object)
        for player in range(len(self.names)):
            mine = np.flatnonzero(self.owner == player)
            cells = [map(format_number, columns[j][:n]) for j in mine[:_VALUES_SHOWN]]
            more = ", ..." if len(mine) > _VALUES_SHOWN else ""
            text[:, player] = [
                ", ".join(row) + more for row in zip(*cells, strict=True)
            ]
        return text


def read_table(X: Any, name: str) -> Any:
    """Return a data frame as it is and anything else as an array with two axes."""
    table = X if hasattr(X, "columns") else np.asarray(X)
    if len(table.shape) != 2 or 0 in table.shape:
        rule = "be an array or data frame of shape (n, p) that is not empty"
        refuse(name, rule, f"shape {tuple(table.shape)}")
    return table


def check_columns(X: Any, other: Any, name: str) -> None:
    """Refuse a table of that name with other columns than `X` has."""
    want, got = Columns.of(X), Columns.of(other)
    if got != want:
        rule = f"have the columns of `X`, {want.names or want.n_columns}"
        refuse(name, rule, got.names or got.n_columns)


def join_rows(X: Any, background: Any) -> Any:
    """Return the rows of `X` and after them those of a background that is like it."""
    if type(X) is not type(background):
        rule, found = type(X).__name__, type(background).__name__
        refuse("background", f"be of the type of `X`, {rule}", found, TypeError)
    check_columns(X, background, "background")
    if not has_columns(X):
        return np.concatenate([X, background])
    for name, *types in zip(X.columns, X.dtypes, background.dtypes, strict=True):
        # Numbers of different width can be joined, and nothing else.
        if (
            types[0] != types[1]
            and not {getattr(t, "kind", "") for t in types} < _NUMBERS
        ):
            got = f"{types[1]} and {types[0]} in column {name!r}"
            refuse("background", "have the types of the columns of `X`", got, TypeError)
    if hasattr(X, "with_columns"):  # polars
        return X.vstack(background)
    import pandas as pd

    return pd.concat([X, background], ignore_index=True)


def _read_groups(
    labels: tuple[Any, ...], groups: Mapping[str, Sequence[Any]], numbered: bool
) -> dict[int, str]:
    """Return the group of each column in a group, by the column's number."""
    check_mapping(groups, "groups", "names to lists of features")
    held: dict[int, str] = {}
    for name, features in groups.items():
        listed = check_list(features, f"groups[{name!r}]", "features")
        if not listed:
            refuse(f"groups[{name!r}]", "hold at least one feature", "none")
        for feature in listed:
            found = [j for j, label in enumerate(labels) if feature == label]
            if numbered and feature in range(len(labels)):
                found = [feature]
            for wrong, rule in (
                (not found, f"features of `X`, which are {list(labels)}"),
                (any(j in held for j in found), "a feature once"),
            ):
                if wrong:
                    refuse("groups", f"hold {rule}", f"{feature!r} in {name!r}")
            held |= dict.fromkeys(found, name)
    return held
