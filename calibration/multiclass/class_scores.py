"""Checks of scores and labels of several classes, and what is read from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import check_rows, check_table
from calibration.typing import Float64Array, Int64Array


class ClassScores(NamedTuple):
    """Checked rows to learn from, none without weight.

    `scores` (n, k), `labels` (n,) column numbers, `weight` (n,) positive.
    """

    scores: Float64Array
    labels: Int64Array
    weight: Float64Array

    @property
    def n(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    @property
    def counts(self) -> Float64Array:
        """Weight of each class, shape (k,)."""
        k = self.scores.shape[1]
        return np.bincount(self.labels, self.weight, k).astype(np.float64)

    def take(self, rows: NDArray[Any]) -> ClassScores:
        """Return some of the rows."""
        return ClassScores(self.scores[rows], self.labels[rows], self.weight[rows])


def check_score_table(scores: ArrayLike, scale: str) -> Float64Array:
    """Return scores as finite float64 of shape (n, k), rows of probabilities sum to 1.

    Parameters
    ----------
    scores : array-like of shape (n, k)
    scale : {"probability", "logit"}

    Returns
    -------
    ndarray of shape (n, k)
    """
    if scale == "logit":
        return check_table(scores, "scores")
    return scale_rows(check_rows(scores, "scores"))


def scale_rows(table: Float64Array) -> Float64Array:
    """Return rows (n, k) divided by their sums, which miss 1 by rounding at most."""
    scaled: Float64Array = table / table.sum(axis=1, keepdims=True)
    return scaled
