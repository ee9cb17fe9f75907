"""Tasks: what the experts of one fit have to learn, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import (
    check_increasing,
    check_same_length,
    check_vector,
    check_weights,
    show,
)
from localexpert.data.folds import Fold, Rows, check_folds, judged_rows
from localexpert.data.table import Table
from localexpert.experts.thresholds import threshold_widths


@dataclass(frozen=True, eq=False)
class Tasks:
    """Rows, thresholds and folds: task k is to foretell `r <= thresholds[k]`.

    Parameters
    ----------
    table : Table of shape (n, p)
    r : ndarray of shape (n,)
    thresholds : ndarray of shape (N,)
        Increasing; every one has a row on both sides.
    folds : list of (train, test)
        No row is in two test parts; rows in none only train. Rows of weight zero are
        no part of any training part: what is weighted nothing is as if it were not
        there.
    weights : ndarray of shape (n,)
        Ones where none were given.
    """

    table: Table
    r: Float64Array
    thresholds: Float64Array
    folds: list[Fold]
    weights: Float64Array

    @classmethod
    def check(
        cls,
        X: Any,
        r: ArrayLike,
        thresholds: ArrayLike,
        folds: Sequence[tuple[ArrayLike, ArrayLike]],
        sample_weight: ArrayLike | None,
    ) -> Tasks:
        """Refuse what no expert can be fitted on."""
        table = Table.of(X)
        targets = check_vector(r, "r")
        n = len(targets)
        check_same_length(n, "`r`", len(table), "X")
        weights = check_weights(sample_weight, n)
        cuts = check_vector(thresholds, "thresholds")
        check_increasing(cuts, "thresholds")
        present = targets[weights > 0.0]
        if cuts[0] < present.min() or cuts[-1] >= present.max():
            msg = (
                "`thresholds` must lie in the range of `r`, "
                f"[{show(present.min())}, {show(present.max())}), "
                f"got {show(cuts[0])} to {show(cuts[-1])}."
            )
            raise ValueError(msg)
        return cls(table, targets, cuts, _check_folds(folds, weights), weights)

    @cached_property
    def widths(self) -> Float64Array:
        """Widths of the thresholds in a sum over them, shape (N,)."""
        return threshold_widths(self.thresholds, self.r, self.weights)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.r)

    @property
    def n_thresholds(self) -> int:
        """Number of tasks."""
        return len(self.thresholds)

    @property
    def present(self) -> Rows:
        """Rows with a weight above zero."""
        return np.flatnonzero(self.weights > 0.0)

    @cached_property
    def judged(self) -> Rows:
        """Rows that a test part holds."""
        return judged_rows(self.folds)

    @property
    def is_whole(self) -> bool:
        """Whether the test parts hold every row."""
        return len(self.judged) == self.n

    @property
    def weighted(self) -> bool:
        """Whether the rows with a weight differ in it."""
        positive = self.weights[self.weights > 0.0]
        return bool(positive.min() != positive.max())

    def label(self, rows: Rows, k: int) -> NDArray[np.bool_]:
        """Return the labels of some rows in task k."""
        labels: NDArray[np.bool_] = self.r[rows] <= self.thresholds[k]
        return labels

    def count_below(self, rows: Rows) -> Rows:
        """Return how many thresholds are less than each r: label k is 1 from there."""
        return np.searchsorted(self.thresholds, self.r[rows], side="left")

    def base_rates(self, rows: Rows) -> Float64Array:
        """Return the smoothed share of class 1 per task, shape (N,).

        The constant (n1 + 1) / (n + 2) of weights: the answer without features.
        """
        weights = self.weights[rows]
        below = np.bincount(
            self.count_below(rows), weights, minlength=self.n_thresholds + 1
        )
        rates: Float64Array = (np.cumsum(below)[:-1] + 1.0) / (weights.sum() + 2.0)
        return rates

    def describe(self, k: int, fold: int) -> str:
        """Name a task and a fold for a message; the fold after the last is all rows."""
        part = f"fold {fold}" if fold < len(self.folds) else "the refit on all rows"
        return f"threshold {self.thresholds[k]:g} (number {k}) in {part}"


def _check_folds(
    folds: Sequence[tuple[ArrayLike, ArrayLike]], weights: Float64Array
) -> list[Fold]:
    """Return folds whose training parts hold only rows with a weight."""
    pairs = [
        (np.asarray(train, dtype=np.intp), np.asarray(test, dtype=np.intp))
        for train, test in folds
    ]
    check_folds(pairs, len(weights), "folds")
    checked = [(train[weights[train] > 0.0], test) for train, test in pairs]
    for number, (train, _) in enumerate(checked):
        if len(train) == 0:
            msg = (
                "`folds` must leave rows with a weight in every training part, "
                f"got none in fold {number}."
            )
            raise ValueError(msg)
    return checked
