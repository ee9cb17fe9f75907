"""`Sample`: the rows on which a stage is fitted, with targets, weights and folds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.folds import (
    Fold,
    Rows,
    check_learns,
    check_trains,
    judged_rows,
    make_folds,
    renumber_folds,
)
from localexpert.data.table import Table
from localexpert.data.target_values import range_without_outliers


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows, targets, weights and folds, which one stage passes to the next.

    `dataclasses.replace` changes the target or the table. For example, in a frame the
    experts learn the coordinate r from a table with centre and scale.

    Parameters
    ----------
    table : Table of shape (n, p)
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,)
    folds : list of (train, test)
        No row is in two test parts. Rows in no test part only train.
    groups : ndarray of shape (n,), optional
        Rows of one group were dealt to one fold.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.sample import Sample
    >>> from localexpert.data.table import Table
    >>> first, last = np.array([0, 1]), np.array([2, 3])
    >>> table = Table.of(np.arange(4.0)[:, None])
    >>> folds = [(first, last), (last, first)]
    >>> sample = Sample(table, np.arange(4.0), np.ones(4), folds)
    >>> part = sample.take(np.array([0, 3]))
    >>> part.y, part.folds[0]
    (array([0., 3.]), (array([0]), array([1])))
    """

    table: Table
    y: Float64Array
    weight: Float64Array
    folds: list[Fold]
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def deal(self, cv: Any, groups: NDArray[Any] | None, seed: int) -> Sample:
        """Return the rows with the folds that a parameter `cv` asks for."""
        folds = make_folds(len(self), cv, self.y, groups, seed, self.weight)
        check_learns(folds, self.weight)
        check_trains(folds, self.weight)
        if len(judged_rows(folds)) < len(self):
            # All folds follow what was tried on the first one, and where it stopped. So
            # if windows grow, the one that knows most comes first.
            folds.sort(key=lambda fold: -len(fold[0]))
        return replace(self, folds=folds, groups=groups)

    @cached_property
    def judged(self) -> Rows:
        """Rows in a test part. Everything learned out of fold comes from them."""
        return judged_rows(self.folds)

    def judged_folds(self) -> list[Fold]:
        """Return the folds of the judged rows, with positions among these rows."""
        return renumber_folds(self.folds, self.judged, len(self))

    @property
    def is_whole(self) -> bool:
        """Whether the test parts hold every row."""
        return len(self.judged) == len(self)

    def without_outliers(self) -> Sample:
        """Return rows with far targets clipped, for models that learn by squares."""
        low, high = range_without_outliers(self.y, self.weight)
        if not self.weight.all():
            # A target without weight may be infinite, and zero times that is NaN.
            held = self.y[self.weight > 0.0]
            low, high = max(low, held.min()), min(high, held.max())
        return replace(self, y=np.clip(self.y, low, high))

    def take(self, rows: Rows) -> Sample:
        """Return some rows, renumbered. Drop folds that cannot learn or test."""
        weight = self.weight[rows]
        folds = renumber_folds(self.folds, rows, len(self))
        kept = [fold for fold in folds if weight[fold[0]].any() and len(fold[1])]
        groups = None if self.groups is None else self.groups[rows]
        return Sample(self.table.take(rows), self.y[rows], weight, kept, groups)

    def take_judged(self, rows: Rows) -> Sample:
        """Return some judged rows, for a correction of their forecasts.

        All folds stay, because they tell which rows go together. This includes folds
        whose training rows are in no test part.
        """
        if len(rows) == len(self):
            return self
        folds = renumber_folds(self.folds, rows, len(self))
        return Sample(self.table.take(rows), self.y[rows], self.weight[rows], folds)
