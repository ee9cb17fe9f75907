"""`Scratch`: rows on disk that are appended once and read by boosters in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np

from calibration.typing import Float64Array

# Rows that are read at once: some 10 MB.
BATCH = 65_536
# Rows from which bins are made.
_ROWS_TO_BIN = 200_000

# Features of the rows from one number to another, given their codes.
Widen = Callable[[int, int, Float64Array], Float64Array]


class Scratch:
    """Codes of features, float64, in a file.

    They are read by calls, not mapped into memory: pages of a map count as memory of
    the process.

    Parameters
    ----------
    path : Path
        A new file.
    width : int
    """

    def __init__(self, path: Path, width: int):
        self.path = path
        self.width = width
        self.n_rows = 0

    def append(self, codes: Float64Array) -> None:
        """Write rows at the end.

        Parameters
        ----------
        codes : ndarray of shape (m, width)
        """
        with self.path.open("ab") as file:
            np.ascontiguousarray(codes, dtype=np.float64).tofile(file)
        self.n_rows += len(codes)

    def read(self, start: int, stop: int) -> Float64Array:
        """Return rows, shape (stop - start, width).

        Parameters
        ----------
        start, stop : int
        """
        count, offset = (stop - start) * self.width, start * self.width * 8
        with self.path.open("rb") as file:
            found = np.fromfile(file, np.float64, count, offset=offset)
        return found.reshape(stop - start, self.width)

    def batches(self) -> Iterator[tuple[int, int, Float64Array]]:
        """Yield first row, end, and codes of all rows."""
        for start in range(0, self.n_rows, BATCH):
            stop = min(start + BATCH, self.n_rows)
            yield start, stop, self.read(start, stop)


class ScratchRows(lgb.Sequence):  # type: ignore[misc, unused-ignore]
    """Rows of a scratch file as LightGBM reads them, each one or several times.

    Parameters
    ----------
    scratch : Scratch
    repeats : int
        How often each row comes, one time after another.
    widen : callable, optional
        Takes first and last number of a range of rows (repeated ones counted) and
        their codes; returns their features.
    """

    def __init__(self, scratch: Scratch, repeats: int = 1, widen: Widen | None = None):
        self.scratch = scratch
        self.repeats = repeats
        self.widen = widen
        self.batch_size = BATCH

    def __len__(self) -> int:
        return self.scratch.n_rows * self.repeats

    def __getitem__(self, index: Any) -> Float64Array:
        start, stop, _ = index.indices(len(self))
        first, last = start // self.repeats, -(-stop // self.repeats)
        codes = self.scratch.read(first, last)
        if self.repeats > 1:
            codes = np.repeat(codes, self.repeats, axis=0)
            codes = codes[start - first * self.repeats : stop - first * self.repeats]
        return codes if self.widen is None else self.widen(start, stop, codes)


def bin_rows(
    parts: list[ScratchRows], categories: list[int], parameters: dict[str, Any]
) -> lgb.Dataset:
    """Return the bins of rows on disk, which are read once, batch by batch.

    Where the bins end is told by some batches, spread over all of them.

    Parameters
    ----------
    parts : list of ScratchRows
        One at least has a row.
    categories : list of int
        Columns of codes.
    parameters : dict
        Of LightGBM.

    Returns
    -------
    lightgbm.Dataset
        Without labels.
    """
    known = lgb.Dataset(
        _spread(parts),
        categorical_feature=categories,
        params=parameters,
        free_raw_data=True,
    ).construct()
    held = [part for part in parts if len(part)]
    return lgb.Dataset(held, reference=known, params=parameters).construct()


def _spread(parts: list[ScratchRows]) -> Float64Array:
    """Return some rows of all parts, in short runs."""
    total = sum(map(len, parts))
    step = -(-total // _ROWS_TO_BIN)
    run = 512
    found = [
        part[start : min(start + run, len(part))]
        for part in parts
        for start in range(0, len(part), run * step)
    ]
    return np.concatenate(found)
