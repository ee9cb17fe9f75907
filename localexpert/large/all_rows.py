"""`AllRows`: the rows that boosters learn from, on disk and in numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np

from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.data.target_values import range_without_outliers
from localexpert.large.learn_pass import N_HALVES, LearnRows
from localexpert.large.scratch import Scratch, ScratchRows, bin_rows

_NUMBERS = ("weight", "y", "center", "scale")
# What boosters of one value each take of LightGBM's parameters: what may not change
# from one to the next, for they share their bins.
BINS: dict[str, Any] = {
    "feature_pre_filter": False,
    "force_row_wise": True,
    "verbosity": -1,
}


@dataclass
class HalfRows:
    """One half of the rows: codes on disk, all else in memory.

    Parameters
    ----------
    scratch : Scratch
    weight : ndarray of shape (n,)
    y, center, scale : ndarrays of shape (n, L)
        See `LearnRows`; centre and scale are replaced by better ones, honest for the
        half, as they are found.
    """

    scratch: Scratch
    weight: Float64Array = field(default_factory=lambda: np.empty(0))
    y: Float64Array = field(default_factory=lambda: np.empty((0, 0)))
    center: Float64Array = field(default_factory=lambda: np.empty((0, 0)))
    scale: Float64Array = field(default_factory=lambda: np.empty((0, 0)))

    def ask(self, answer: Callable[[Float64Array], Float64Array]) -> Float64Array:
        """Return a function of the codes, batch by batch, shape (n,).

        Parameters
        ----------
        answer : callable
            Takes (m, p), returns (m,).

        Returns
        -------
        ndarray of shape (n,)
        """
        found = np.empty(self.scratch.n_rows)
        for start, stop, codes in self.scratch.batches():
            found[start:stop] = answer(codes)
        return found


@dataclass
class JudgeRows:
    """Rows in memory that nothing is learned from: they say when to stop, and if.

    Parameters
    ----------
    table : Table of shape (m, p)
    y, weight : ndarrays of shape (m,)
    placed : LearnRows
        What a model says of them.
    """

    table: Table
    y: Float64Array
    weight: Float64Array
    placed: LearnRows


@dataclass
class AllRows:
    """Rows that no model has seen, in two halves, and some to judge by.

    Parameters
    ----------
    halves : list of HalfRows
    judges : JudgeRows
    categories : list of int
        Columns of codes of categories.
    """

    halves: list[HalfRows]
    judges: JudgeRows
    categories: list[int]
    _bins: list[lgb.Dataset] = field(default_factory=list)

    @classmethod
    def gather(
        cls,
        parts: Iterable[LearnRows],
        judges: JudgeRows,
        categories: list[int],
        folder: Path,
    ) -> AllRows:
        """Write the codes of all parts to files, and keep their numbers.

        Parameters
        ----------
        parts : iterable of LearnRows
        judges : JudgeRows
        categories : list of int
        folder : Path

        Returns
        -------
        AllRows
        """
        width = judges.placed.codes.shape[1]
        files = [Scratch(folder / f"half{k}.rows", width) for k in range(N_HALVES)]
        held: list[list[list[Any]]] = [[[] for _ in _NUMBERS] for _ in files]
        for part in parts:
            for half, file in enumerate(files):
                own = part.take(part.half == half)
                file.append(own.codes)
                for kept, name in zip(held[half], _NUMBERS, strict=True):
                    kept.append(getattr(own, name))
        halves = [
            HalfRows(file, *map(_join, numbers))
            for file, numbers in zip(files, held, strict=True)
        ]
        return cls(halves, judges, categories)

    @property
    def n_rows(self) -> int:
        """How many there are to learn from."""
        return sum(half.scratch.n_rows for half in self.halves)

    def bins(self) -> list[lgb.Dataset]:
        """Return the bins of each half, made once: only labels and weights change."""
        if not self._bins:
            for half in self.halves:
                rows = [ScratchRows(half.scratch)]
                data = bin_rows(rows, self.categories, {**BINS, "max_bin": 255})
                self._bins.append(data)
        return self._bins

    def forget_bins(self) -> None:
        """Free the bins, which nothing is to be learned from any more."""
        self._bins = []

    def tame(self, number: int) -> tuple[float, float]:
        """Return the range beyond which targets of a road are far out.

        Parameters
        ----------
        number : int

        Returns
        -------
        (float, float)
        """
        y = np.concatenate([half.y[:, number] for half in self.halves])
        weight = np.concatenate([half.weight for half in self.halves])
        known = np.isfinite(y)
        return range_without_outliers(y[known], weight[known])


def _join(parts: list[Float64Array]) -> Float64Array:
    """Return arrays as one, and forget them: all rows are not to be held twice."""
    joined = np.concatenate(parts)
    parts.clear()
    return joined
