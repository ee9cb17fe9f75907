"""`ScoreReader`: parts of a table as summaries, and how these are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.sources.dask_part import DaskPart
from calibration.sources.part import Part
from calibration.summary import ScoreSummary

# Summaries that are merged at once: the shape of the tree is the same wherever parts
# are read, so that sums of real weights are the same too.
_WIDE = 8


@dataclass(frozen=True)
class ScoreReader:
    """Reads scores, labels and weights of parts, and summarises them.

    Parameters
    ----------
    names : tuple of str
        Columns of scores, of labels, and perhaps of weights.
    max_cells : int or None
        Most cells of a summary.
    """

    names: tuple[str, ...]
    max_cells: int | None

    def summarize(self, name: str, *values: Any) -> ScoreSummary | None:
        """Return the summary of some rows, None where none counts.

        Parameters
        ----------
        name : str
            Of the part, in messages.
        *values : array-like of shape (n,)
            Scores, labels and perhaps weights.
        """
        if not len(values[0]):
            return None
        try:
            if len(values) > 2:
                counts = np.asarray(values[2]) != 0
                if not counts.any():
                    return None
                values = tuple(np.asarray(column)[counts] for column in values)
            return ScoreSummary.from_scores(*values, max_cells=self.max_cells)
        except (TypeError, ValueError) as error:
            columns = " and ".join(map(repr, self.names))
            msg = f"`source` has no sound rows in {name}, columns {columns}: {error}"
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(msg) from error

    def read(self, part: Part) -> ScoreSummary | None:
        """Return the summary of a part."""
        return self.of_frame(part, part.read(list(self.names)))

    def of_frame(self, part: Part, frame: Any) -> ScoreSummary | None:
        """Return the summary of a part that has been read."""
        columns = [frame[name].to_numpy() for name in self.names]
        return self.summarize(part.name, *columns)

    def of_partition(self, part: DaskPart, frame: Any) -> ScoreSummary | None:
        """Return the summary of a partition that Dask has computed."""
        return self.of_frame(part, part.taken(frame, self.names))


def merge_summaries(summaries: Iterable[ScoreSummary | None]) -> ScoreSummary | None:
    """Return the summary of the rows of several, None where none has any."""
    held = [summary for summary in summaries if summary is not None]
    return sum(held[1:], held[0]) if held else None


def merge_stream(summaries: Iterable[ScoreSummary | None]) -> ScoreSummary | None:
    """Merge summaries as they come: a few are held of each height of the tree."""
    heights: list[list[ScoreSummary | None]] = [[]]
    for summary in summaries:
        heights[0].append(summary)
        for height, held in enumerate(heights):
            if len(held) < _WIDE:
                break
            if height + 1 == len(heights):
                heights.append([])
            heights[height + 1].append(merge_summaries(held))
            held.clear()
    left: list[ScoreSummary | None] = []
    for held in heights:
        left = [merge_summaries([*held, *left])] if held or left else []
    return left[0] if left else None


def merge_tree(leaves: list[Any], merge: Callable[[list[Any]], Any]) -> Any:
    """Merge by groups, and groups of groups, as `merge_stream` does."""
    while len(leaves) > 1:
        groups = range(0, len(leaves), _WIDE)
        leaves = [merge(leaves[start : start + _WIDE]) for start in groups]
    return leaves[0]
