"""Partitions of a Dask data frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibration.sources.kinds import Kind, check_alike, kinds_of
from calibration.sources.part import Part


@dataclass(frozen=True, eq=False)
class DaskPart(Part):
    """One partition, which may have no rows.

    Parameters
    ----------
    name : str
    delayed : dask.delayed.Delayed
        Of a pandas frame.
    kinds : tuple of (str, str)
        What each column must be.
    """

    name: str
    delayed: Any
    kinds: tuple[tuple[str, Kind], ...]
    n_rows: int | None = None

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """Compute the partition."""
        return self.taken(self.delayed.compute(), columns)

    def taken(self, frame: Any, columns: Sequence[str] | None = None) -> Any:
        """Return the columns of the computed partition that are wanted.

        Parameters
        ----------
        frame : pandas.DataFrame
        columns : sequence of str, optional

        Returns
        -------
        pandas.DataFrame
        """
        if len(frame):
            check_alike(
                kinds_of(frame), self.name, dict(self.kinds), "the collection's meta"
            )
        return frame if columns is None else frame[list(columns)]

    def without_data(self) -> DaskPart:
        """Return the part for a worker that gets the computed partition beside it.

        Returns
        -------
        DaskPart
        """
        return replace(self, delayed=None)

    def identity(self) -> str:
        """Return Dask's key, a token of what the partition is computed from."""
        return str(self.delayed.key)

    def digest(self, frame: Any) -> str:
        """Return what tells the computed rows from others, in whatever order they are.

        Parameters
        ----------
        frame : pandas.DataFrame
            The whole partition.

        Returns
        -------
        str
        """
        from pandas.util import hash_pandas_object

        hashes = hash_pandas_object(frame, index=False).to_numpy()
        return f"{len(hashes)} rows, {int(hashes.sum()):x}"


def is_dask(source: Any) -> bool:
    """Say whether something is a Dask data frame, without importing Dask.

    Parameters
    ----------
    source : object

    Returns
    -------
    bool
    """
    module = type(source).__module__.partition(".")[0]
    return module.startswith("dask") and hasattr(source, "to_delayed")


def partitions(source: Any) -> tuple[dict[str, Kind], list[Part]]:
    """Return the kinds of a Dask data frame's columns, and its partitions.

    Parameters
    ----------
    source : dask.dataframe.DataFrame

    Returns
    -------
    kinds : dict of str to str
    parts : list of Part
    """
    kinds = kinds_of(source._meta)
    known = tuple(kinds.items())
    parts: list[Part] = [
        DaskPart(f"partition {number}", delayed, known)
        for number, delayed in enumerate(source.to_delayed())
    ]
    return kinds, parts
