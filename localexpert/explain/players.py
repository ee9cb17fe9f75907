"""`Players`: what contributions are given to, features or groups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Int64Array
from localexpert._validation import check_list, check_mapping
from localexpert.data.columns import Columns, has_columns, list_columns

# Values of a group that are written out.
_VALUES_SHOWN = 3


@dataclass(frozen=True)
class Players:
    """Features, or groups of features that enter together.

    A group stands where the first of its columns stood.

    Parameters
    ----------
    names : tuple of str
    columns : tuple of tuple of int
        Numbers of the columns of each player; every column has one player.
    """

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls,
        columns: Columns,
        groups: Mapping[str, Sequence[Any]] | None = None,
        last: tuple[str, ...] = (),
    ) -> Players:
        """Name the columns of a table and put some of them together.

        Columns of an array are called x0, x1, ..., the last ones as in `last`, and may
        be given by number.
        """
        p = columns.n_columns
        labels = columns.names or (*(f"x{j}" for j in range(p - len(last))), *last)
        groups = {} if groups is None else groups
        check_mapping(groups, "groups", "names to lists of features")
        members = _read_groups(columns, labels, groups)
        first = {numbers[0]: name for name, numbers in members.items()}
        taken = {j for numbers in members.values() for j in numbers}
        names, parts = [], []
        for j in range(p):
            if j in first:
                names.append(first[j])
                parts.append(members[first[j]])
            elif j not in taken:
                names.append(str(labels[j]))
                parts.append((j,))
        for name in members:
            if names.count(name) > 1:
                msg = f"`groups` must not be named as a feature is, got {name!r}."
                raise ValueError(msg)
        return cls(tuple(names), tuple(parts))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def of_column(self) -> Int64Array:
        """Number of the player of every column, shape (p,)."""
        owner = np.empty(sum(map(len, self.columns)), dtype=np.int64)
        for player, numbers in enumerate(self.columns):
            owner[list(numbers)] = player
        return owner

    def describe(self, X: Any) -> NDArray[np.object_]:
        """Return the values of every player in every row as text, shape (n, P)."""
        columns = list_columns(X) if has_columns(X) else list(X.T)
        text = np.empty((len(X), len(self)), dtype=object)
        for player, numbers in enumerate(self.columns):
            rows = zip(*(columns[j] for j in numbers), strict=True)
            text[:, player] = [_list(row) for row in rows]
        return text


def _read_groups(
    columns: Columns, labels: tuple[Any, ...], groups: Mapping[str, Sequence[Any]]
) -> dict[str, tuple[int, ...]]:
    """Return the column numbers of every group, in order."""
    places: dict[Any, list[int]] = {}
    for j, label in enumerate(labels):
        places.setdefault(label, []).append(j)
        if columns.names is None:
            places.setdefault(j, []).append(j)
    read: dict[str, tuple[int, ...]] = {}
    owners: dict[int, str] = {}
    for name, features in groups.items():
        listed = check_list(features, f"groups[{name!r}]", "features")
        if not listed:
            msg = f"`groups[{name!r}]` must hold at least one feature, got none."
            raise ValueError(msg)
        for feature in listed:
            if feature not in places:
                msg = (
                    "`groups` must hold features of `X`, "
                    f"got {feature!r} in {name!r}; there are {list(labels)}."
                )
                raise ValueError(msg)
            for j in places[feature]:
                if j in owners:
                    msg = (
                        "`groups` must hold a feature once, "
                        f"got {feature!r} in {owners[j]!r} and {name!r}."
                    )
                    raise ValueError(msg)
                owners[j] = name
        read[name] = tuple(sorted(j for j, owner in owners.items() if owner == name))
    return read


def _list(values: Sequence[Any]) -> str:
    """Return the first values as text."""
    shown = list(map(_show, values[:_VALUES_SHOWN]))
    return ", ".join(shown + ["..."] * (len(values) > _VALUES_SHOWN))


def _show(value: Any) -> str:
    """Return a number with four digits, and anything else as it prints."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | float | np.number):
        return f"{value:.4g}"
    return str(value)
