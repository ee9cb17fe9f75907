"""`ScoreSummary`: all that a calibrator needs to know about scores and labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration._kernels.cells import (
    collapse_ties,
    count_classes,
    count_rounded,
    finest_level,
    fold_share,
    group_means,
    group_starts,
    merge_cells,
)
from calibration._validation import (
    check_integer,
    check_labels,
    check_number,
    check_optional_seed,
    check_same_length,
    check_vector,
    check_weights,
    refuse,
)
from calibration.typing import BoolArray, Float64Array

# At these levels the cell width 2**-level and its inverse are ordinary floats.
_LEVELS = range(-1000, 1000)
# These are multiples of the bound on cells: the rows from which there are many, the
# rows that tell a level, and the cells that may lie between the least and the greatest
# score.
_MANY, _PILOT, _WIDE = 16, 4, 64
# If real weights are subtracted, a rest below this share of a cell's weight is
# rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class ScoreSummary:
    """Sorted distinct scores ("cells") with the weight of each class.

    Summaries can be merged, and every calibrator on scores alone is fitted from one. So
    a fit on merged shards is the fit on all rows, and a fold is left out by
    subtraction. A weight is a number of repetitions. If weights are integers, weighted
    rows and repeated rows give the same summary bit for bit.

    Build it with `from_scores`. The fields are read-only.

    Parameters
    ----------
    scores : ndarray of shape (n_cells,)
        Strictly increasing scores.
    weight0, weight1 : ndarrays of shape (n_cells,)
        Weight of class 0 and of class 1 in each cell.
    max_cells : int or None
        Bound on the number of cells. None keeps every distinct score.
    level : int or None
        Scores were moved to dyadic cells [k, k + 1) * 2**-level. None means that they
        are exact.
    lowest, highest : float
        Least and greatest score before any score was moved.

    Notes
    -----
    In bounded mode the cells are dyadic intervals. Their level is the finest that keeps
    their number within `max_cells`. A cell is represented by its midpoint, clipped to
    [lowest, highest]. Cells of one level are unions of cells of the next. The level of
    a union of data is never finer than that of its parts. So merging is associative and
    commutative, and gives the summary of all rows. This and `max_cells` hold for
    probabilities. They also hold for scores up to 2^1000 whose sizes differ by a factor
    of 2^52 at most.

    Examples
    --------
    >>> from calibration import ScoreSummary
    >>> first = ScoreSummary.from_scores([0.2, 0.7, 0.7], [0, 1, 0])
    >>> second = ScoreSummary.from_scores([0.2, 0.9], [1, 1])
    >>> both = first + second
    >>> both
    ScoreSummary(n_cells=3, n=5, base_rate=0.6)
    >>> both.scores, both.weight1
    (array([0.2, 0.7, 0.9]), array([1., 1., 1.]))
    """

    scores: Float64Array
    weight0: Float64Array
    weight1: Float64Array
    max_cells: int | None = None
    level: int | None = None
    lowest: float = np.nan
    highest: float = np.nan

    def __post_init__(self) -> None:
        for name in ("scores", "weight0", "weight1"):
            # Copy the array if the caller may still write to it.
            array = getattr(self, name)
            array = array.copy() if array.flags.writeable else array
            if array.shape != self.scores.shape or array.ndim != 1:
                rule = "scores`, `weight0` and `weight1"
                refuse(rule, "have one shape", f"{array.shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if np.isnan(self.lowest) and len(self.scores):
            object.__setattr__(self, "lowest", float(self.scores[0]))
            object.__setattr__(self, "highest", float(self.scores[-1]))

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        max_cells: int | None = None,
    ) -> ScoreSummary:
        """Summarise scores and their labels in O(n log n).

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Finite scores on any scale.
        y : array-like of shape (n,)
            Labels coded 0 and 1.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.
        max_cells : int, optional
            Keep at most this many cells (at least 2). Scores are then rounded to dyadic
            cells; see `max_displacement`.

        Returns
        -------
        ScoreSummary
        """
        # Check in this order, so that the message is about the argument given first.
        values = check_vector(scores, "scores")
        ones = check_labels(y)
        check_same_length(len(values), "`scores`", len(ones), "y")
        if max_cells is not None:
            max_cells = check_integer(max_cells, "max_cells", 2)
        weights = check_weights(sample_weight, len(values))
        # Adding zero turns -0.0 into 0.0, its equal, so that no cell has two names. Two
        # sorts of plain numbers are several times faster than one sort of places.
        if (weights == 1.0).all():
            if (rounded := _count_many(values, ones, max_cells)) is not None:
                return rounded
            parts = np.sort(values[~ones]), np.sort(values[ones])
            cells = count_classes(parts[0] + 0.0, parts[1] + 0.0)
        else:
            # Weights of one cell are added in the order of their size. In another
            # order, sums may differ by rounding, and then numbers of bins and folds by
            # one.
            order = np.lexsort((weights, values))
            weights, ones = weights[order], ones[order]
            of_classes = np.where(ones, 0.0, weights), np.where(ones, weights, 0.0)
            cells = collapse_ties(values[order] + 0.0, *of_classes)
        return cls(*cells, max_cells)._bounded()

    @property
    def n(self) -> float:
        """Total weight. It is the number of rows if repetitions are counted."""
        return self.n0 + self.n1

    @property
    def n0(self) -> float:
        """Weight of class 0."""
        return float(self.weight0.sum())

    @property
    def n1(self) -> float:
        """Weight of class 1."""
        return float(self.weight1.sum())

    @property
    def n_cells(self) -> int:
        """Number of distinct scores."""
        return len(self.scores)

    @property
    def weight(self) -> Float64Array:
        """Weight of both classes per cell, shape (n_cells,)."""
        return self.weight0 + self.weight1

    @property
    def base_rate(self) -> float:
        """Share of class 1 in the total weight."""
        return self.n1 / self.n

    @property
    def max_displacement(self) -> float:
        """Greatest possible move of any score: 0, or the width of a cell."""
        return 0.0 if self.level is None else 2.0**-self.level

    def __repr__(self) -> str:
        moved = "" if self.level is None else f", max_displacement={2.0**-self.level:g}"
        return (
            f"ScoreSummary(n_cells={self.n_cells}, n={self.n:g}, "
            f"base_rate={self.base_rate:.4g}{moved})"
        )

    def merge(self, other: ScoreSummary) -> ScoreSummary:
        """Return the summary of both sets of rows. `a + b` does the same.

        Parameters
        ----------
        other : ScoreSummary

        Returns
        -------
        ScoreSummary
            Bounded by the smaller `max_cells` of the two.
        """
        # Take the coarser of the two levels, because cells can be joined but never
        # parted.
        level = _least(self.level, other.level)
        lowest = min(self.lowest, other.lowest)
        highest = max(self.highest, other.highest)
        a = self._at_level(level, lowest, highest)
        b = other._at_level(level, lowest, highest)
        cells = merge_cells(*a, *b)
        most = _least(self.max_cells, other.max_cells)
        return ScoreSummary(*cells, most, level, lowest, highest)._bounded()

    __add__ = merge

    def __radd__(self, other: object) -> ScoreSummary:
        """Allow the built-in `sum` to start from 0."""
        return self if other == 0 else NotImplemented

    def __mul__(self, factor: float) -> ScoreSummary:
        """Return the summary with all weights times a factor: `0.9 * old + new`."""
        factor = check_number(factor, "factor", 0.0, open_low=True)
        weights = factor * self.weight0, factor * self.weight1
        if (scaled := self._with_cells(self.scores, *weights, self.level)) is None:
            refuse("factor", "leave some weight", f"{factor!r}")
        return scaled

    __rmul__ = __mul__

    def __sub__(self, other: ScoreSummary) -> ScoreSummary:
        """Return the summary without the rows of `other`. They must be part of it."""
        level = _least(self.level, other.level)
        a = self._at_level(level, self.lowest, self.highest)
        b = other._at_level(level, self.lowest, self.highest)
        scores = a[0]
        # Cells are known by their score. Each must be there.
        place = np.minimum(np.searchsorted(scores, b[0]), len(scores) - 1)
        inside = self.lowest <= other.lowest and other.highest <= self.highest
        contained = inside and bool((scores[place] == b[0]).all())
        weights = []
        for held, taken in zip(a[1:], b[1:], strict=True):
            weight = held.copy()
            weight[place] -= taken
            contained &= bool((weight >= -_ROUNDING * held).all())
            # A rest that is only rounding counts as no weight.
            weights.append(np.where(weight > _ROUNDING * held, weight, 0.0))
        if not contained:
            rule = "be a part of the summary that it is subtracted from"
            refuse("other", rule, "a cell that holds more weight")
        left = self._with_cells(scores, weights[0], weights[1], level)
        if left is None:
            refuse("other", "leave some weight", "the whole summary")
        return left

    def split(self, k: int, random_state: int | None = 0) -> list[ScoreSummary]:
        """Deal the rows over k disjoint folds that sum to this summary.

        How a cell is dealt depends only on its score, class and weight, and on the
        seed. It does not depend on the order of rows, nor on whether a row is repeated
        or weighted. Tied rows are dealt one by one.

        Parameters
        ----------
        k : int
            Number of folds, at least 2.
        random_state : int, optional
            Seed. None draws one.

        Returns
        -------
        list of ScoreSummary
            The folds that received any weight. There are k unless there are few rows.
        """
        k = check_integer(k, "k", 2)
        check_optional_seed(random_state)
        keys = np.random.SeedSequence(random_state).generate_state(2, np.uint64)
        # A fold depends on the score itself, never on its place among the others.
        bits = self.scores.view(np.uint64)
        folds = []
        for fold in range(k):
            # Each class has its own key. Otherwise its rows in one cell would go the
            # same way.
            weight0 = fold_share(bits, self.weight0, k, fold, keys[0])
            weight1 = fold_share(bits, self.weight1, k, fold, keys[1])
            folds.append(self._with_cells(self.scores, weight0, weight1, self.level))
        return [fold for fold in folds if fold is not None]

    def condense(self, n_cells: int) -> ScoreSummary:
        """Merge neighbours into at most `n_cells` cells of about equal weight.

        Parameters
        ----------
        n_cells : int
            Most cells to keep. The score of a merged cell is the mean score of its
            rows.

        Returns
        -------
        ScoreSummary
            It is this summary itself if that is small enough.
        """
        if self.n_cells <= check_integer(n_cells, "n_cells", 1):
            return self
        weight = self.weight
        starts = group_starts(weight, n_cells)
        return ScoreSummary(
            group_means(self.scores, weight, starts),
            np.add.reduceat(self.weight0, starts),
            np.add.reduceat(self.weight1, starts),
        )

    def percentiles(
        self, q: ArrayLike, weight: Float64Array | None = None
    ) -> Float64Array:
        """Return the scores below which a share q of the weight lies.

        Parameters
        ----------
        q : array-like of shape (k,)
            Shares in [0, 1].
        weight : ndarray of shape (n_cells,), optional
            Weights to use, for instance `weight0`. The default is the weight of both
            classes.

        Returns
        -------
        ndarray of shape (k,)
            The least scores with cumulative weight >= q * total.
        """
        cumulative = np.cumsum(self.weight if weight is None else weight)
        # Give a little slack, so that q * total is not missed by rounding.
        goal = np.asarray(q, dtype=np.float64) * cumulative[-1] * (1.0 - 1e-14)
        place = np.searchsorted(cumulative, goal, side="left")
        return np.asarray(self.scores[np.minimum(place, self.n_cells - 1)])

    def _with_cells(
        self,
        scores: Float64Array,
        weight0: Float64Array,
        weight1: Float64Array,
        level: int | None,
    ) -> ScoreSummary | None:
        """Return a summary of the cells that have weight, under the same bounds."""
        kept = (weight0 > 0.0) | (weight1 > 0.0)
        if not kept.any():
            return None
        cells = scores[kept], weight0[kept], weight1[kept]
        ends = (np.nan, np.nan) if level is None else (self.lowest, self.highest)
        return ScoreSummary(*cells, self.max_cells, level, *ends)

    def _at_level(
        self, level: int | None, lowest: float, highest: float
    ) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Move cells to the dyadic cells of `level`, clipped to [lowest, highest]."""
        if level is None:
            return self.scores, self.weight0, self.weight1
        width = 2.0**-level
        # The width is a power of two, so the division does not round.
        index = np.floor(self.scores / width)
        moved = np.clip((index + 0.5) * width, lowest, highest)
        return collapse_ties(moved, self.weight0, self.weight1)

    def _bounded(self) -> ScoreSummary:
        """Coarsen to the finest level that respects `max_cells`."""
        if self.max_cells is None or self.n_cells <= self.max_cells:
            return self
        high = _LEVELS.stop - 1 if self.level is None else self.level
        bounds = self.max_cells, _LEVELS.start, high
        level = finest_level(self.scores, *bounds, self.lowest, self.highest)
        cells = self._at_level(level, self.lowest, self.highest)
        return ScoreSummary(*cells, self.max_cells, level, self.lowest, self.highest)


def _count_many(
    values: Float64Array, ones: BoolArray, max_cells: int | None
) -> ScoreSummary | None:
    """Summarise many rows without sorting them, or return None if that is impossible.

    Some of the rows tell a level. The level of all rows is no finer.
    """
    if max_cells is None or len(values) < _MANY * max_cells:
        return None
    some = np.sort(values[:: len(values) // (_PILOT * max_cells)])
    if np.count_nonzero(np.diff(some)) < max_cells:
        return None
    ends = float(values.min()) + 0.0, float(values.max()) + 0.0
    level = finest_level(some, max_cells, _LEVELS.start, _LEVELS.stop - 1, *ends)
    cells = count_rounded(values, ones, level, _WIDE * max_cells)
    rounded = ScoreSummary(*cells, max_cells, level, *ends)
    return rounded._bounded() if rounded.n_cells else None


def _least(*bounds: int | None) -> int | None:
    """Return the least bound, or None if there is none."""
    return min((bound for bound in bounds if bound is not None), default=None)
