"""`BinaryRows`: what a monitor remembers of rows, and their likelihood under shifts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, log_expit, logit

from calibration.summary import ScoreSummary
from calibration.typing import Float64Array, Int64Array

# Cells of a batch that are kept, and batches.
_CELLS, _KEPT = 50, 2000


@dataclass
class BinaryRows:
    """Scores and labels of the last 2000 batches, in at most 50 cells each.

    Parameters
    ----------
    batch : ndarray of shape (m,)
        Number of the batch of each cell.
    scores, weight0, weight1 : ndarrays of shape (m,)
    n_batches : int
        So far.
    """

    batch: Int64Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    scores: Float64Array = field(default_factory=lambda: np.empty(0))
    weight0: Float64Array = field(default_factory=lambda: np.empty(0))
    weight1: Float64Array = field(default_factory=lambda: np.empty(0))
    n_batches: int = 0

    def add(self, cells: ScoreSummary) -> None:
        """Remember a batch."""
        few = summarise(cells.scores, cells.weight0, cells.weight1, _CELLS)
        batch = np.concatenate([self.batch, np.full(few.n_cells, self.n_batches)])
        kept = batch > self.n_batches - _KEPT
        self.batch = batch[kept]
        for name in ("scores", "weight0", "weight1"):
            both = np.concatenate([getattr(self, name), getattr(few, name)])
            setattr(self, name, both[kept])
        self.n_batches += 1

    def since(self, batch: int) -> ScoreSummary:
        """Return the rows of the batches from that number on."""
        kept = self.batch >= batch
        return summarise(self.scores[kept], self.weight0[kept], self.weight1[kept])

    def find_onset(self, line: Float64Array, least: float) -> int:
        """Return the batch from which on a line fits better than none does.

        Parameters
        ----------
        line : ndarray of shape (2,)
            Intercept and slope of the log-odds.
        least : float
            No probability is surer.
        """
        f = logit(np.clip(self.scores, least, 1.0 - least))
        said = line[0] + line[1] * f
        gains = self.weight1 * (log_expit(said) - log_expit(f))
        gains += self.weight0 * (log_expit(-said) - log_expit(-f))
        first = int(self.batch[0])
        of_batches = np.bincount(self.batch - first, weights=gains)
        return first + likeliest_start(of_batches.astype(np.float64))


def likeliest_start(gains: Float64Array) -> int:
    """Return from which batch on gains (t,) add up to the most."""
    return len(gains) - 1 - int(np.argmax(np.cumsum(gains[::-1])))


def summarise(
    scores: Float64Array,
    weight0: Float64Array,
    weight1: Float64Array,
    max_cells: int | None = None,
) -> ScoreSummary:
    """Return the summary of cells (n,) in any order, some of which may be equal."""
    labels = np.repeat([0.0, 1.0], len(scores))
    weights = np.concatenate([weight0, weight1])
    return ScoreSummary.from_scores(
        np.tile(scores, 2), labels, weights, max_cells=max_cells
    )


def shift_likelihoods(
    f: Float64Array, weight0: Float64Array, weight1: Float64Array, shifts: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return log-likelihood ratios of shifts of log-odds, and their derivatives.

    Parameters
    ----------
    f, weight0, weight1 : ndarrays of shape (..., n)
        Log-odds, and the weight of each class.
    shifts : ndarray of shape (m,)

    Returns
    -------
    log_ratios, slopes : ndarrays of shape (..., m)
        Over the likelihood without a shift.
    """
    ones, rows = weight1.sum(axis=-1), weight0 + weight1
    ratios = np.empty((*f.shape[:-1], len(shifts)))
    slopes = np.empty_like(ratios)
    # A shift at a time: the table of all of them may not fit into memory. The logarithm
    # of 1 - p is that of p less the log-odds.
    at_zero = np.sum(rows * log_expit(f), axis=-1)
    apart = weight0.sum(axis=-1)
    for i, shift in enumerate(shifts):
        moved = f + shift
        gained = np.sum(rows * log_expit(moved), axis=-1) - at_zero
        ratios[..., i] = gained - apart * shift
        slopes[..., i] = ones - np.sum(rows * expit(moved), axis=-1)
    return ratios, slopes
