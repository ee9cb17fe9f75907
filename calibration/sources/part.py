"""`Part`: what a large table is read by."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class Part(ABC):
    """Some rows of a table that fit into memory.

    A part can be pickled, and is read in any order and in any process.
    """

    #: What messages call it: "sales_3.parquet, row groups 4-7".
    name: str
    #: How many rows it has, where that is known before it is read.
    n_rows: int | None

    @abstractmethod
    def read(self, columns: Sequence[str] | None = None) -> Any:
        """Return the rows.

        Parameters
        ----------
        columns : sequence of str, optional
            Those that are wanted, in this order; all by default.

        Returns
        -------
        pandas.DataFrame
        """

    @abstractmethod
    def identity(self) -> str:
        """Return what tells the part from others, and from itself after a change.

        Returns
        -------
        str
        """


@dataclass(frozen=True, eq=False)
class FramePart(Part):
    """Rows that are in memory.

    Parameters
    ----------
    name : str
    frame : pandas.DataFrame
    """

    name: str
    frame: Any

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self.frame)

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """Return the rows."""
        return self.frame if columns is None else self.frame[list(columns)]

    def identity(self) -> str:
        """Return a digest of the content."""
        from pandas.util import hash_pandas_object

        digest = hashlib.sha256(repr(list(self.frame.columns)).encode())
        digest.update(hash_pandas_object(self.frame, index=False).to_numpy().tobytes())
        return digest.hexdigest()
