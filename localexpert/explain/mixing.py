"""`RowMixer`: rows whose columns come from different rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.typing import Int64Array
from localexpert.data.columns import Columns, list_columns


def read_table(X: Any, name: str) -> Any:
    """Return a data frame as it is and anything else as an array with two axes."""
    table = X if hasattr(X, "columns") else np.asarray(X)
    if len(table.shape) != 2 or 0 in table.shape:
        msg = (
            f"`{name}` must be an array or data frame of shape (n, p) that is not "
            f"empty, got shape {tuple(table.shape)}."
        )
        raise ValueError(msg)
    return table


@dataclass(frozen=True)
class RowMixer:
    """Make tables column by column; every column keeps its type.

    Parameters
    ----------
    table : array or data frame of shape (n, p)
        What columns are taken from.
    """

    table: Any

    @classmethod
    def join(cls, X: Any, background: Any) -> RowMixer:
        """Take columns from the rows of `X`, and after them those of `background`."""
        check_same_columns(X, background)
        if not hasattr(X, "columns"):
            return cls(np.concatenate([X, background]))
        if hasattr(X, "with_columns"):  # polars
            _check_types(X, background, list(X.dtypes))
            return cls(X.vstack(background))
        import pandas as pd

        table = pd.concat([X, background], ignore_index=True)
        _check_types(X, background, list(table.dtypes))
        return cls(table)

    def mix(self, places: Int64Array) -> Any:
        """Return k rows, the column j of which is taken from the rows places[:, j].

        Parameters
        ----------
        places : ndarray of shape (k, p)

        Returns
        -------
        array or data frame of shape (k, p)
        """
        table = self.table
        if not hasattr(table, "columns"):
            return np.take_along_axis(table, places, axis=0)
        if hasattr(table, "with_columns"):  # polars
            pairs = enumerate(table.columns)
            columns = [table[name].gather(places[:, j]) for j, name in pairs]
            return table[places[:, 0]].with_columns(*columns)
        import pandas as pd

        # Joined in one go: columns set one by one would leave the frame in pieces.
        columns = [
            pd.Series(column.array.take(places[:, j]))
            for j, column in enumerate(list_columns(table))
        ]
        return pd.concat(columns, axis=1).set_axis(table.columns, axis=1)


def check_same_columns(X: Any, background: Any) -> None:
    """Refuse a background that is not a table like `X`."""
    if type(X) is not type(background):
        rule, found = type(X).__name__, type(background).__name__
        msg = f"`background` must be of the type of `X`, {rule}, got {found}."
        raise TypeError(msg)
    check_columns(X, background, "background")


def check_columns(X: Any, other: Any, name: str) -> None:
    """Refuse a table of that name with other columns than `X` has."""
    want, got = Columns.of(X), Columns.of(other)
    if got != want:
        msg = (
            f"`{name}` must have the columns of `X`, {want.names or want.n_columns}, "
            f"got {got.names or got.n_columns}."
        )
        raise ValueError(msg)


def _check_types(X: Any, background: Any, joined: list[Any]) -> None:
    """Refuse columns that hold one thing in `X` and another in the background."""
    types = zip(X.columns, X.dtypes, background.dtypes, joined, strict=True)
    for name, ours, theirs, both in types:
        codes = "cat" in str(both) and ours != theirs
        if codes or both not in (ours, theirs) or _are_mixed(ours, theirs, both):
            msg = (
                "`background` must have the types of the columns of `X`, "
                f"got {theirs} and {ours} in column {name!r}."
            )
            raise TypeError(msg)


def _are_mixed(ours: Any, theirs: Any, both: Any) -> bool:
    """Return whether objects hold texts from one table, and numbers from the other."""
    return str(both) == "object" and any(t.kind in "biufcmM" for t in (ours, theirs))
