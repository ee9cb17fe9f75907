"""Checks of scores and labels of several classes, and what is read from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    check_columns,
    check_rows,
    check_same_length,
    check_table,
    check_weights,
    warn_of_light,
)
from calibration.typing import Float64Array, Int64Array

Shared = TypeVar("Shared")


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Checked rows to learn from, none without weight.

    Parameters
    ----------
    scores : ndarray of shape (n, k)
    labels : ndarray of shape (n,)
        Column numbers.
    weight : ndarray of shape (n,)
        Positive numbers of repetitions.
    side : ndarray of shape (n, s), optional
        Numbers known beside the scores, for those who ask for them.
    """

    scores: Float64Array
    labels: Int64Array
    weight: Float64Array
    side: Float64Array | None = None
    _shared: dict[Any, Any] = field(default_factory=dict)

    @property
    def n(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    @property
    def counts(self) -> Float64Array:
        """Weight of each class, shape (k,)."""
        k = self.scores.shape[1]
        return np.bincount(self.labels, self.weight, k).astype(np.float64)

    def take(
        self, rows: NDArray[Any], weight: Float64Array | None = None
    ) -> ClassScores:
        """Return some of the rows, with their weights or with others."""
        side = None if self.side is None else self.side[rows]
        weight = self.weight[rows] if weight is None else weight
        return ClassScores(self.scores[rows], self.labels[rows], weight, side)

    def share(self, key: Any, make: Callable[[], Shared]) -> Shared:
        """Return what calibrators of these rows have in common, made once.

        Parameters
        ----------
        key : hashable
        make : function without arguments

        Returns
        -------
        object
            Nobody may write to it.
        """
        if key not in self._shared:
            self._shared[key] = make()
        found: Shared = self._shared[key]
        return found

    def merged(self) -> ClassScores:
        """Return distinct rows in the order of their values, weights added up.

        Repeated rows are thus the same as their weights, to the last digit.
        """
        parts = [self.labels[:, None], self.scores]
        if self.side is not None:
            parts.append(self.side)
        # Adding zero turns -0.0 into 0.0, its equal.
        keys = np.column_stack(parts) + 0.0
        _, first, places = np.unique(
            keys, axis=0, return_index=True, return_inverse=True
        )
        weight = np.bincount(places.ravel(), self.weight, len(first))
        return self.take(first, weight.astype(np.float64))


def read_class_scores(
    scores: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    classes: Sequence[Any] | None,
    scale: str,
    side: Float64Array | None = None,
) -> ClassScores:
    """Check scores, labels and weights, and return the rows that weigh anything.

    Parameters
    ----------
    scores : array-like of shape (n, k)
    y : array-like of shape (n,)
        Column numbers, or names among `classes`.
    sample_weight : array-like of shape (n,), optional
        Non-negative numbers of repetitions.
    classes : sequence of k names, optional
    scale : {"probability", "logit"}
    side : ndarray of shape (n, s), optional
        Checked, but for its length.

    Returns
    -------
    ClassScores
    """
    table = check_score_table(scores, scale)
    labels = check_columns(y, table.shape[1], classes)
    check_same_length(len(table), "scores", len(labels), "y")
    weight = check_weights(sample_weight, len(table))
    if side is not None:
        check_same_length(len(table), "scores", len(side), "side")
    warn_of_light(sample_weight, stacklevel=3)
    data = ClassScores(table, labels, weight, side)
    return data if weight.min() > 0.0 else data.take(weight > 0.0)


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
