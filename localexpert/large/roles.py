"""`Roles`: which column of a large table is what, and how a part is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.sources.kinds import Kind
from calibration.sources.part import Part
from calibration.sources.source import Source
from calibration.typing import Float64Array


@dataclass(frozen=True)
class Roles:
    """The columns of a source by what they are for.

    Parameters
    ----------
    target : str
    weight, key : str or None
    features : tuple of str
        All others.
    kinds : mapping of str to str
        Of all columns.
    """

    target: str
    weight: str | None
    key: str | None
    features: tuple[str, ...]
    kinds: Mapping[str, Kind]

    @classmethod
    def of(
        cls, source: Source, target: str, weight: str | None, key: str | None
    ) -> Roles:
        """Check which column is what.

        Parameters
        ----------
        source : Source
        target : str
        weight, key : str or None

        Returns
        -------
        Roles
        """
        named = {"target": target, "weight": weight, "key": key}
        for role, name in named.items():
            if name is None and role != "target":
                continue
            if not isinstance(name, str):
                msg = f"`{role}` must be the name of a column, got {name!r}."
                raise TypeError(msg)
            if name not in source.kinds:
                listed = ", ".join(map(repr, source.columns))
                msg = (
                    f"`{role}` must be a column of the source, got {name!r}; "
                    f"{source.name} has {listed}."
                )
                raise ValueError(msg)
            if role != "key" and source.kinds[name] not in ("number", "bool"):
                msg = (
                    f"`{role}` must be a column of numbers, got {name!r}, a column of "
                    f"{source.kinds[name]}."
                )
                raise ValueError(msg)
        held = [name for name in named.values() if name is not None]
        if len(set(held)) < len(held):
            msg = f"`weight` and `key` must not be used twice, got {', '.join(held)}."
            raise ValueError(msg)
        features = tuple(name for name in source.columns if name not in held)
        if not features:
            msg = f"`source` must have a column to learn from, got {', '.join(held)}."
            raise ValueError(msg)
        for name in features:
            if source.kinds[name] == "time":
                msg = (
                    f"`source` must hold features of numbers and texts, got {name!r}, "
                    "a column of times: give its parts (year, weekday) as numbers."
                )
                raise ValueError(msg)
        return cls(target, weight, key, features, dict(source.kinds))

    def read(self, frame: Any, name: str) -> Rows:
        """Return the rows of a part that have weight.

        Parameters
        ----------
        frame : pandas.DataFrame
            With all columns, or with those that are asked for.
        name : str
            What messages call the part.

        Returns
        -------
        Rows
        """
        y = as_floats(frame[self.target])
        weight = np.ones(len(y))
        if self.weight is not None:
            weight = as_floats(frame[self.weight])
            wrong = ~(np.isfinite(weight) & (weight >= 0.0))
            _refuse(wrong, weight, name, self.weight, "weights of at least 0")
        _refuse(
            ~np.isfinite(y) & (weight > 0.0), y, name, self.target, "finite targets"
        )
        held = weight > 0.0
        if not held.all():
            frame, y, weight = frame[held], y[held], weight[held]
        return Rows(frame, y, weight)

    def frame_of(self, frame: Any) -> Any:
        """Return the features: texts as plain objects, all else as floats.

        Parameters
        ----------
        frame : pandas.DataFrame

        Returns
        -------
        pandas.DataFrame
            Without the index of the part.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                name: pd.Series(as_texts(frame[name]), dtype=object)
                if self.kinds[name] == "text"
                else pd.Series(as_floats(frame[name]))
                for name in self.features
            }
        )

    def columns_of(self, frame: Any) -> dict[str, Any]:
        """Return the columns that say what a row is, without its weight and key.

        Parameters
        ----------
        frame : pandas.DataFrame

        Returns
        -------
        dict of str to Series
        """
        return {name: frame[name] for name in (*self.features, self.target)}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a part.

    Parameters
    ----------
    frame : pandas.DataFrame
    y, weight : ndarrays of shape (n,)
    """

    frame: Any
    y: Float64Array
    weight: Float64Array


def read_rows(
    roles: Roles, part: Part, frame: Any = None, *, y_only: bool = False
) -> Rows:
    """Read a part, or take the frame that it was read as.

    Parameters
    ----------
    roles : Roles
    part : Part
    frame : pandas.DataFrame, optional
    y_only : bool
        Whether target, weight and texts are enough.

    Returns
    -------
    Rows
    """
    columns = None
    if y_only:
        texts = [name for name in roles.features if roles.kinds[name] == "text"]
        weights = [] if roles.weight is None else [roles.weight]
        columns = [roles.target, *weights, *texts]
    held = part.read(columns) if frame is None else frame
    return roles.read(held, part.name)


def as_floats(column: Any) -> Float64Array:
    """Return a column of numbers, truths or times as new floats, NaN where missing.

    Parameters
    ----------
    column : Series of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
    """
    if getattr(column.dtype, "kind", "O") in "mM":
        return np.asarray(column.to_numpy("datetime64[ns]").view(np.int64), np.float64)
    return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan), np.float64)


def as_texts(column: Any) -> Any:
    """Return a column of texts or categories as objects, None where missing.

    Parameters
    ----------
    column : Series of shape (n,)

    Returns
    -------
    ndarray of object, shape (n,)
    """
    held = column.astype(object).to_numpy()
    missing = column.isna().to_numpy()
    if missing.any():
        held = held.copy()
        held[missing] = None
    return held


def _refuse(
    wrong: Any, values: Float64Array, part: str, column: str, rule: str
) -> None:
    """Refuse values of a part, the first of them by its place."""
    if wrong.any():
        place = int(np.argmax(wrong))
        msg = (
            f"`source` must hold {rule} in {column!r}, got {values[place]} in row "
            f"{place} of {part}."
        )
        raise ValueError(msg)
