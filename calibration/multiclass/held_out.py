"""Rows held out, and losses of rows: how sure they tell one forecast from another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from calibration.multiclass.class_scores import ClassScores
from calibration.typing import Float64Array

# Of the best's lead, in standard errors, that a simpler candidate may be behind.
_NEAR = 0.25


@dataclass(frozen=True, eq=False)
class RowLosses:
    """Held-out log losses of one candidate.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Of each row.
    weight : ndarray of shape (n,)
        Numbers of repetitions.
    """

    losses: Float64Array
    weight: Float64Array

    @property
    def mean(self) -> float:
        """Mean loss of a row."""
        return float(self.weight @ self.losses / self.weight.sum())

    @property
    def error(self) -> float:
        """Standard error of the mean; weights count independent rows."""
        n = float(self.weight.sum())
        spread = float(self.weight @ (self.losses - self.mean) ** 2)
        # n - 1: the mean is taken from the same rows.
        return float(np.sqrt(spread / n / (n - 1.0))) if n > 1.0 else np.inf

    def less(self, other: RowLosses) -> RowLosses:
        """Return the paired differences to another candidate."""
        return RowLosses(self.losses - other.losses, self.weight)

    def harm(self, reference: RowLosses, charge: float = 0.0) -> float:
        """Probability of being worse than the reference, with so many nats added.

        The smaller of two: the normal approximation to the mean of paired
        differences, and one over the likelihood ratio, which bounds the chance of
        such a ratio if the reference were right (Markov's inequality). The second
        speaks where a few rows that the reference holds to be impossible make both
        the mean difference and its error. 0 where nothing differs.
        """
        gap = self.less(reference)
        n = float(self.weight.sum())
        mean, error = gap.mean + charge / n, gap.error
        if error == 0.0:
            return float(mean > 0.0)
        return float(min(ndtr(mean / error), np.exp(min(n * mean, 0.0))))


def simplest_of_best(candidates: Sequence[RowLosses], near: float = _NEAR) -> int:
    """Return the place of the first candidate that is about as good as the best.

    Parameters
    ----------
    candidates : sequence of RowLosses
        Of the same rows, the simplest candidate first.
    near : float
        Standard errors, of the paired difference, that it may be behind.

    Returns
    -------
    int
    """
    best = int(np.argmin([one.mean for one in candidates]))
    for place, one in enumerate(candidates[:best]):
        gap = one.less(candidates[best])
        if gap.mean <= near * gap.error:
            return place
    return best


def deal_by_class(
    data: ClassScores, n_folds: int, random_state: int | None
) -> list[tuple[ClassScores, ClassScores]]:
    """Return (rest, fold) pairs in which every class is spread evenly.

    Rows are merged, put in an order drawn by the seed, class by class, and their
    repetitions dealt in turn: folds are as large as each other, and a weight of w is
    dealt as w rows are. What a weight has beyond a whole number goes one way.

    Parameters
    ----------
    data : ClassScores
    n_folds : int
        At most this many; as many as there are rows, if they are fewer.
    random_state : int or None

    Returns
    -------
    list of (ClassScores, ClassScores)
        Empty for rows too few: the rest of every fold must hold two classes.
    """
    data = data.merged()
    order = np.random.default_rng(random_state).permutation(len(data.labels))
    order = order[np.argsort(data.labels[order], kind="stable")]
    turns = np.ceil(data.weight[order])
    ends = np.cumsum(turns)
    n_folds = int(min(n_folds, ends[-1]))
    pairs = []
    for fold in range(n_folds):
        # Turns of this fold before each end, of whole numbers; the last may be a part.
        before = np.floor((ends + (n_folds - 1 - fold)) / n_folds)
        count = np.diff(before, prepend=0.0)
        is_last = (ends - 1.0) % n_folds == fold
        held = np.empty(len(order))
        held[order] = count - np.where(is_last, turns - data.weight[order], 0.0)
        parts = []
        for weight in (data.weight - held, held):
            # What rounding leaves of a weight taken away is none.
            kept = np.flatnonzero(weight > 1e-9 * data.weight)
            parts.append(data.take(kept, weight[kept]))
        if len(np.unique(parts[0].labels)) < 2:
            return []
        pairs.append((parts[0], parts[1]))
    return pairs


def draw_rows(data: ClassScores, most: int, random_state: int | None) -> ClassScores:
    """Return at most some number of distinct rows, drawn by the seed.

    Parameters
    ----------
    data : ClassScores
        Merged rows.
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
