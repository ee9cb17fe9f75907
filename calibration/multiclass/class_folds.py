"""Rows held out: folds in which every class is spread evenly, of not too many."""

from __future__ import annotations

import numpy as np

from calibration.multiclass.class_scores import ClassScores
from calibration.typing import Int64Array


def deal_by_class(
    data: ClassScores, n_folds: int, random_state: int | None
) -> list[tuple[Int64Array, Int64Array]]:
    """Return (rest, fold) pairs of row numbers, those whose rest holds two classes.

    The rows of a class are dealt in turn, in an order drawn by the seed, and the next
    class goes on where the last has ended: folds are as large as each other.

    Parameters
    ----------
    data : ClassScores
    n_folds : int
        At most this many; as many as there are rows, if they are fewer.
    random_state : int or None

    Returns
    -------
    list of (ndarray, ndarray)
        Empty for rows too few.
    """
    n = len(data.labels)
    order = np.random.default_rng(random_state).permutation(n)
    order = order[np.argsort(data.labels[order], kind="stable")]
    fold_of = np.empty(n, dtype=np.int64)
    fold_of[order] = np.arange(n) % min(n_folds, n)
    pairs = []
    for fold in range(min(n_folds, n)):
        rest, held = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        labels = data.labels[rest]
        if len(labels) and (labels != labels[0]).any():
            pairs.append((rest, held))
    # Rows that no fold holds would have no loss.
    return pairs if len(pairs) == min(n_folds, n) else []


def draw_rows(data: ClassScores, most: int, random_state: int | None) -> ClassScores:
    """Return at most some number of the rows, drawn by the seed.

    Parameters
    ----------
    data : ClassScores
    most : int
    random_state : int or None

    Returns
    -------
    ClassScores
    """
    n = len(data.labels)
    if n <= most:
        return data
    rng = np.random.default_rng(random_state)
    return data.take(np.sort(rng.choice(n, most, replace=False)))
