"""Held-out rows and their losses: how surely they separate two forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from calibration.multiclass.class_scores import ClassScores
from calibration.typing import Float64Array

# A simpler candidate may be behind the best by so many standard errors.
_NEAR = 0.25


@dataclass(frozen=True, eq=False)
class RowLosses:
    """Held-out log losses of one candidate.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Loss of each row.
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
        # n - 1, since the mean comes from the same rows.
        return float(np.sqrt(spread / n / (n - 1.0))) if n > 1.0 else np.inf

    def less(self, other: RowLosses) -> RowLosses:
        """Return the paired differences to another candidate."""
        return RowLosses(self.losses - other.losses, self.weight)

    def harm(self, reference: RowLosses, charge: float = 0.0) -> float:
        """Probability of being worse than the reference, after a charge in nats.

        This is the smaller of two numbers. The first is the normal approximation to the
        mean of paired differences. The second is one over the likelihood ratio. It
        bounds the chance of such a ratio if the reference were right (Markov's
        inequality). It decides if a few rows, impossible by the reference, make both
        the mean difference and its error. The result is 0 if nothing differs.
        """
        gap = self.less(reference)
        n = float(self.weight.sum())
        mean, error = gap.mean + charge / n, gap.error
        if error == 0.0:
            return float(mean > 0.0)
        return float(min(ndtr(mean / error), np.exp(min(n * mean, 0.0))))


def simplest_of_best(candidates: Sequence[RowLosses]) -> int:
    """Return the place of the first candidate that is about as good as the best.

    Parameters
    ----------
    candidates : sequence of RowLosses
        Losses of the same rows, with the simplest candidate first.

    Returns
    -------
    int
    """
    best = int(np.argmin([one.mean for one in candidates]))
    for place, one in enumerate(candidates[:best]):
        gap = one.less(candidates[best])
        if gap.mean <= _NEAR * gap.error:
            return place
    return best


def deal_by_class(
    data: ClassScores, n_folds: int, random_state: int | None
) -> list[tuple[ClassScores, ClassScores]]:
    """Return (rest, fold) pairs in which every class is spread evenly.

    Rows are merged and put in an order drawn by the seed, class by class. Their
    repetitions are put in the folds in turn. So folds have equal sizes, and a weight of
    w is split as w rows are. The part of a weight beyond a whole number goes to one
    fold.

    Parameters
    ----------
    data : ClassScores
    n_folds : int
        At most this many. With fewer rows, as many as there are rows.
    random_state : int or None

    Returns
    -------
    list of (ClassScores, ClassScores)
        Empty if there are too few rows: the rest of every fold must hold two classes.
    """
    data = data.merged()
    order = np.random.default_rng(random_state).permutation(len(data.labels))
    order = order[np.argsort(data.labels[order], kind="stable")]
    turns = np.ceil(data.weight[order])
    ends = np.cumsum(turns)
    n_folds = int(min(n_folds, ends[-1]))
    pairs = []
    for fold in range(n_folds):
        # Turns of this fold before each end, as whole numbers. The last may be a part.
        before = np.floor((ends + (n_folds - 1 - fold)) / n_folds)
        count = np.diff(before, prepend=0.0)
        is_last = (ends - 1.0) % n_folds == fold
        held = np.empty(len(order))
        held[order] = count - np.where(is_last, turns - data.weight[order], 0.0)
        parts = []
        for weight in (data.weight - held, held):
            # Rounding may leave a little of a weight that is taken away. It counts as
            # none.
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
