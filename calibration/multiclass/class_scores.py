"""Rows of several classes: checks, log-probabilities, and rows held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from calibration._validation import (
    check_columns,
    check_order,
    check_rows,
    check_same_length,
    check_table,
    check_weights,
    names_of_columns,
    warn_of_light,
)
from calibration.typing import Float64Array, Int64Array

# A probability that rounds to 0 becomes this, the least float of full precision.
LEAST = float(np.finfo(np.float64).tiny)
# Logits this far below the largest keep only their order, so that squares are finite.
_DEEPEST = -1e60
# Numbers that one pass uses at once. It is about what the cache of a core holds.
_BLOCK = 2**17


@dataclass(frozen=True)
class LogProbabilityScale:
    """Turns scores (n, k) into log-probabilities (k, n), a column for each row.

    Forests, for instance, say a probability of exactly 0. It means "less than my least
    positive one", and not a logarithm of minus infinity. So it counts as half of the
    least positive score that was seen. An assay reads a value below its limit of
    detection in this way. Any score below that half counts as that half too.

    Parameters
    ----------
    scale : {"probability", "logit"}
    least : float
        The value that a probability of 0 gets.
    """

    scale: str
    least: float = LEAST

    @classmethod
    def of(cls, scale: str, table: Float64Array, n: float) -> LogProbabilityScale:
        """Choose the value of a 0, from scores (m, k) that weigh n.

        Without exact zeros it is the least positive float. If scores are all 0 and 1,
        there is no least one. Then a 0 counts as half a row in n + 1.
        """
        if scale != "probability" or table.min() > 0.0:
            return cls(scale)
        inner = table[(table > 0.0) & (table < 1.0)]
        least = 0.5 * float(inner.min()) if len(inner) else 0.5 / (n + 1.0)
        return cls(scale, max(least, LEAST))

    def __call__(self, table: Float64Array) -> Float64Array:
        """Return log-probabilities, shape (k, n)."""
        z = np.empty(table.shape[::-1])
        if self.scale == "probability":
            np.maximum(table.T, self.least, out=z)
            np.log(z, out=z)
            return z
        z[...] = table.T
        z -= z.max(axis=0)
        np.maximum(z, _DEEPEST, out=z)
        return log_softmax(z)


def column_blocks(z: Float64Array) -> Iterator[slice]:
    """Yield the columns of z (k, n) in blocks that a core's cache holds."""
    k, n = z.shape
    size = max(_BLOCK // k, 64)
    return (slice(start, start + size) for start in range(0, n, size))


def log_softmax(z: Float64Array) -> Float64Array:
    """Subtract the logarithm of each column's sum of exponentials, in place.

    Parameters
    ----------
    z : ndarray of shape (k, n)

    Returns
    -------
    ndarray of shape (k, n)
        `z` itself.
    """
    for block in column_blocks(z):
        part = z[:, block]
        part -= part.max(axis=0)
        part -= np.log(np.exp(part).sum(axis=0))
    return z


def mix_uniform(z: Float64Array, n: float) -> Float64Array:
    r"""Mix columns of log-probabilities in place with the uniform law, as Laplace did.

    The result is :math:`(1 - \frac{1}{n+1}) p + \frac{1}{(n+1) k}`: n rows, and one
    more row that may be of any class.

    Parameters
    ----------
    z : ndarray of shape (k, n_rows)
    n : float

    Returns
    -------
    ndarray of shape (k, n_rows)
        `z` itself.
    """
    z += np.log(n / (n + 1.0))
    np.logaddexp(z, -np.log((n + 1.0) * len(z)), out=z)
    return z


def to_probabilities(z: Float64Array) -> Float64Array:
    """Return the softmax of columns, shape (n, k). It overwrites `z`.

    Parameters
    ----------
    z : ndarray of shape (k, n)

    Returns
    -------
    ndarray of shape (n, k)
        Rows sum to 1.
    """
    p = np.ascontiguousarray(np.exp(log_softmax(z)).T)
    p /= p.sum(axis=1, keepdims=True)
    return p


def positive_shares(counts: NDArray[Any]) -> Float64Array:
    """Return shares (k,) of counts, or (n_c + 1) / (n + k) if a class has no row."""
    counts = counts + float(counts.min() == 0.0)
    return np.asarray(counts / counts.sum())


Shared = TypeVar("Shared")


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Checked rows to learn from. All of them have weight.

    Parameters
    ----------
    scores : ndarray of shape (n, k)
    labels : ndarray of shape (n,)
        Column numbers.
    weight : ndarray of shape (n,)
        How often each row counts. Every number is positive.
    side : ndarray of shape (n, s), optional
        Other numbers that are known of each row. Some calibrators ask for them.
    names : list of str
        Names of the columns of scores. The list is empty if the columns have no names.
    """

    scores: Float64Array
    labels: Int64Array
    weight: Float64Array
    side: Float64Array | None = None
    names: list[str] = field(default_factory=list)
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
        kept = self.scores[rows], self.labels[rows]
        return ClassScores(*kept, weight, side, self.names)

    def share(self, key: Any, make: Callable[[], Shared]) -> Shared:
        """Return what calibrators of these rows have in common. It is made once.

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
        return cast(Shared, self._shared[key])

    def merged(self) -> ClassScores:
        """Return distinct rows in the order of their values, with added weights.

        So repeated rows are the same as their weights, to the last digit.
        """
        parts = [self.labels[:, None], self.scores]
        if self.side is not None:
            parts.append(self.side)
        # Adding zero turns -0.0 into 0.0, its equal.
        keys = np.column_stack(parts) + 0.0
        _, first, places = np.unique(
            keys, axis=0, return_index=True, return_inverse=True
        )
        # Add weights in the order of their size, so that sums do not depend on the row
        # order.
        order = np.argsort(self.weight, kind="stable")
        weight = np.bincount(places.ravel()[order], self.weight[order], len(first))
        return self.take(first, weight.astype(np.float64))


def read_class_scores(
    scores: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    classes: Sequence[Any] | None,
    scale: str,
    side: Float64Array | None = None,
) -> ClassScores:
    """Check scores, labels and weights, and return the rows that have weight.

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
        It is checked, except for its length.

    Returns
    -------
    ClassScores
    """
    table = check_score_table(scores, scale)
    labels = check_columns(y, table.shape[1], classes)
    check_order(scores, classes, "scores")
    check_same_length(len(table), "scores", len(labels), "y")
    weight = check_weights(sample_weight, len(table))
    if side is not None:
        check_same_length(len(table), "scores", len(side), "side")
    warn_of_light(sample_weight, stacklevel=3)
    data = ClassScores(table, labels, weight, side, names_of_columns(scores))
    return data if weight.min() > 0.0 else data.take(weight > 0.0)


def check_score_table(scores: ArrayLike, scale: str) -> Float64Array:
    """Return scores as finite float64 (n, k). Rows of probabilities must sum to 1.

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
    # Do not divide by the sums of rows, because equal scores of a class must stay
    # equal.
    return check_rows(scores, "scores")


# A simpler candidate may be worse than the best by this many standard errors.
_NEAR = 0.25


@dataclass(frozen=True, eq=False)
class RowLosses:
    """Held-out log losses of one candidate.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Loss of each row.
    weight : ndarray of shape (n,)
        How often each row counts.
    """

    losses: Float64Array
    weight: Float64Array

    @property
    def mean(self) -> float:
        """Mean loss of all rows."""
        return float(self.weight @ self.losses / self.weight.sum())

    @property
    def error(self) -> float:
        """Standard error of the mean. Weights count independent rows."""
        n = float(self.weight.sum())
        spread = float(self.weight @ (self.losses - self.mean) ** 2)
        # Divide by n - 1, because the mean comes from the same rows.
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
        # In this order the least weight of a row of one turn is not rounded away.
        held[order] = np.where(is_last, count - turns + data.weight[order], count)
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
    if (n := len(data.labels)) <= most:
        return data
    rng = np.random.default_rng(random_state)
    return data.take(np.sort(rng.choice(n, most, replace=False)))
