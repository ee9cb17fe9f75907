"""`Sample`: rows with targets, weights and folds. No model predicts a row it saw."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    as_labels,
    check_integer,
    check_same_length,
    check_weights,
    make_rng,
    refuse,
)
from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.data.target_values import range_without_outliers

Rows: TypeAlias = NDArray[np.intp]
Fold: TypeAlias = tuple[Rows, Rows]

# Each pair is a number of rows, and how many folds "auto" makes for at most that many.
# With more rows than the last number it makes two. Every fold costs a fit, and one more
# fold gains less if there are more rows. For few rows, more folds do not help. A share
# learned on the other folds is biased away from that of the fold left out. The bias is
# greater for smaller folds, and calibrators learn to reverse it.
_AUTO_FOLDS = ((50_000, 5), (200_000, 3))


def make_folds(
    n: int,
    cv: Any = "auto",
    y: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = None,
    sample_weight: ArrayLike | None = None,
) -> list[Fold]:
    """Return folds. No two of them test the same row.

    Parameters
    ----------
    n : int
        Number of rows, at least 2.
    cv : "auto", int, splitter or iterable of (train, test)
        "auto": 5 folds up to 50 000 rows, 3 up to 200 000, otherwise 2. There are never
        more folds than rows or groups. An integer is the exact number of folds. They
        are shuffled and of equal size, or with `groups` they keep each group whole. In
        both cases the test parts hold every row. The test parts of a splitter or an
        iterable may leave rows out, as scikit-learn's `TimeSeriesSplit` does. Such rows
        only train.
    y : array-like of shape (n,), optional
        Passed to the `split` of a splitter.
    groups : array-like of shape (n,), optional
        Rows of the same group stay together.
    random_state : int or Generator, optional
        Shuffles rows, and groups of equal size. A splitter gets a seed if it has none.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights. The folds of "auto" or an integer have nearly equal
        weight. Rows of weight zero are dealt last and change nothing for the others.

    Returns
    -------
    list of (train, test)
        Sorted row numbers.

    Notes
    -----
    A row's weight does not decide whether the row is tested. If weights differ, the
    heaviest rows are dealt first, one to each fold, then the next ones, and so on. With
    groups, the heaviest comes first. Each group goes to the fold that is the lightest
    so far.

    Examples
    --------
    >>> from localexpert.data.folds import make_folds
    >>> folds = make_folds(6, 3, random_state=0)
    >>> sorted(row for _, test in folds for row in test.tolist())
    [0, 1, 2, 3, 4, 5]
    """
    n = check_integer(n, "n", 2)
    groups = check_groups(groups, n)
    if isinstance(cv, str) and cv != "auto":
        refuse("cv", 'be "auto", an integer, a splitter or folds', repr(cv))
    if isinstance(cv, (str, numbers.Integral)):
        weight = check_weights(sample_weight, n)
        return _deal_rows(weight, cv, groups, make_rng(random_state))
    if getattr(cv, "random_state", 0) is None:
        cv = seed_splitter(cv, int(make_rng(random_state).integers(2**31)))
    folds = _read_folds(n, cv, y, groups)
    check_folds(folds, n, "cv")
    return folds


def seed_splitter(cv: Any, seed: int) -> Any:
    """Return a copy of a splitter with a seed, if it lets itself be given one."""
    own = copy(cv)
    with suppress(AttributeError):
        own.random_state = seed
    return own


def check_groups(groups: ArrayLike | None, n: int) -> NDArray[Any] | None:
    """Check and return the groups of `n` rows: values with an order, without gaps."""
    if groups is None:
        return None
    labels = as_labels(groups, "groups")
    if labels.ndim != 1:
        refuse("groups", "have shape (n,)", f"shape {labels.shape}")
    check_same_length(n, "the data", len(labels), "groups")
    return labels


def _deal_rows(
    weight: Float64Array, cv: Any, groups: NDArray[Any] | None, rng: np.random.Generator
) -> list[Fold]:
    """Return folds of rows or of whole groups, of equal size."""
    held, absent = np.flatnonzero(weight > 0.0), np.flatnonzero(weight == 0.0)
    n_parts, unit, name = len(held), "rows", "sample_weight"
    if groups is not None:
        n_parts, unit, name = len(np.unique(groups[held])), "groups", "groups"
    if n_parts < 2:
        refuse(name, f"leave at least two {unit} with a weight", f"{n_parts}")
    if isinstance(cv, str):
        wanted = next((k for most, k in _AUTO_FOLDS if len(held) <= most), 2)
        n_folds = min(wanted, n_parts)
    else:
        n_folds = check_integer(cv, "cv", 2)
    if n_parts < n_folds:
        rule = f"not be greater than the number of {unit}"
        refuse("cv", rule, f"{n_folds} folds for {n_parts} {unit}")
    if groups is None:
        dealt = np.empty(len(weight), dtype=np.intp)
        dealt[held] = _shuffle(weight[held], n_folds, rng)
        dealt[absent] = np.arange(len(absent)) % n_folds
    else:
        names, part = _deal_groups(weight[held], groups[held], n_folds, rng)
        # A group whose rows all have weight zero goes with the next group.
        place = np.searchsorted(names, groups)
        dealt = part[np.minimum(place, n_parts - 1)]
    return [
        (np.flatnonzero(dealt != number), np.flatnonzero(dealt == number))
        for number in range(n_folds)
    ]


def _shuffle(
    weight: Float64Array, n_folds: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return the fold of each row. The numbers of rows differ by one at most.

    Rows are shuffled, because tables are often sorted. If a fold held one end of a
    table, the other folds would know nothing about it.
    """
    order = rng.permutation(len(weight))
    dealt = np.empty(len(weight), dtype=np.intp)
    if weight.min() == weight.max():
        for number, rows in enumerate(np.array_split(order, n_folds)):
            dealt[rows] = number
        return dealt
    # Deal in rounds, the heaviest rows first, and one row to each fold per round.
    order = order[np.argsort(-weight[order], kind="stable")]
    n_rounds = -(-len(weight) // n_folds)
    rounds = np.tile(np.arange(n_folds), (n_rounds, 1))
    dealt[order] = rng.permuted(rounds, axis=1).ravel()[: len(weight)]
    return dealt


def _deal_groups(
    weight: Float64Array, groups: NDArray[Any], n_folds: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the groups and their folds, as `GroupKFold` would deal copies of rows.

    The heaviest group comes first. The order of equal groups is random. Each group goes
    to the fold that is the lightest so far.
    """
    names, place = np.unique(groups, return_inverse=True)
    # If all weights are the same, count rows, as without weights.
    equal = weight.min() == weight.max()
    sizes = np.bincount(place, None if equal else weight)
    part = np.empty(len(names), dtype=np.intp)
    held = np.zeros(n_folds)
    order = rng.permutation(len(names))
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        part[group] = np.argmin(held)
        held[part[group]] += sizes[group]
    return names, part


def _read_folds(
    n: int, cv: Any, y: ArrayLike | None, groups: NDArray[Any] | None
) -> list[Fold]:
    """Return the folds of a splitter or an iterable as row numbers from 0."""
    if hasattr(cv, "split"):
        pairs: Any = cv.split(np.zeros((n, 1)), y, groups)
    elif isinstance(cv, Iterable):
        pairs = cv
    else:
        refuse("cv", 'be "auto", an integer, a splitter or folds', repr(cv), TypeError)
    folds = []
    for number, pair in enumerate(pairs):
        try:
            train, test = (np.asarray(part) for part in pair)
        except (TypeError, ValueError) as error:
            rule = "yield pairs of row numbers"
            refuse("cv", rule, f"{pair!r}", TypeError, cause=error)
        folds.append((_read_part(train, n, number), _read_part(test, n, number)))
    return folds


def _read_part(part: NDArray[Any], n: int, number: int) -> Rows:
    """Return the rows of a mask, or of row numbers of any sign, sorted."""
    # An empty list holds floats.
    part = part if part.size else part.astype(np.intp)
    where = f"in fold {number}"
    if part.ndim != 1 or part.dtype.kind not in "biu":
        got = f"{part.dtype} of shape {part.shape} {where}"
        refuse("cv", "yield row numbers or masks of shape (m,)", got, TypeError)
    if part.dtype.kind == "b" and len(part) != n:
        refuse("cv", f"yield masks of all {n} rows", f"{len(part)} rows {where}")
    outside = part[(part < -n) | (part >= n)]
    if len(outside):
        refuse("cv", f"yield rows of these {n}", f"row {outside[0]} {where}")
    return np.sort(np.arange(n)[part])


def check_folds(folds: list[Fold], n: int, name: str) -> None:
    """Refuse folds that test a row twice, or train on a row that they test."""
    if len(folds) == 0:
        refuse(name, "yield at least one fold", "none")
    for number, (train, test) in enumerate(folds):
        if len(train) == 0 or len(test) == 0:
            empty = "test" if len(train) else "train"
            refuse(name, f"leave no {empty} part empty", f"fold {number}")
        shared = np.intersect1d(train, test)
        if len(shared):
            rule = "keep test rows out of the training part"
            refuse(name, rule, f"row {shared[0]} in both parts of fold {number}")
    counts = np.bincount(np.concatenate([test for _, test in folds]), minlength=n)
    twice = counts > 1
    if twice.any():
        row = int(np.argmax(twice))
        got = f"row {row} in {counts[row]} of them ({twice.sum()} such rows)"
        refuse(name, "put no row in more than one test part", got)


def check_tests_every_row(folds: list[Fold], n: int, cure: str) -> None:
    """Refuse folds that leave rows untested, if an answer needs all rows."""
    missing = n - len(judged_rows(folds))
    if missing:
        rule = "put every row in a test part here"
        refuse("cv", rule, f"{missing} of {n} rows in none: {cure}")


def check_learns(folds: list[Fold], weight: Float64Array) -> None:
    """Refuse folds from which nothing can be learned out of fold."""
    if not weight[judged_rows(folds)].any():
        refuse("cv", "put rows with a weight in a test part", "none of them in one")


def check_trains(folds: list[Fold], weight: Float64Array, name: str = "cv") -> None:
    """Refuse a fold that has nothing to learn from."""
    for number, (train, _) in enumerate(folds):
        if not weight[train].any():
            rule = "train on rows with a weight in every fold"
            refuse(name, rule, f"none of them in fold {number}")


def spread_rows(rows: Rows, most: int) -> Rows:
    """Return at most so many of the rows, from all over, since rows may be sorted."""
    return rows[:: -(-len(rows) // most)]


def judged_rows(folds: list[Fold]) -> Rows:
    """Return the rows that a test part holds, sorted."""
    return np.sort(np.concatenate([np.empty(0, np.intp), *(t for _, t in folds)]))


def number_folds(folds: list[Fold], n: int, none: int = 0) -> NDArray[np.int64]:
    """Return the number of the fold that tests each row, or `none`, shape (n,)."""
    numbers = np.full(n, none)
    for number, (_, test) in enumerate(folds):
        numbers[test] = number
    return numbers


def renumber_folds(folds: list[Fold], rows: Rows, n: int) -> list[Fold]:
    """Return the folds of some of `n` rows, renumbered. Parts may be empty."""
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    parts = ((place[train], place[test]) for train, test in folds)
    return [(train[train >= 0], test[test >= 0]) for train, test in parts]


def known_folds(folds: list[Fold], n: int) -> list[list[int]]:
    """Return for each fold the other folds whose test rows it trains on.

    A correction of a fold's forecasts may be learned from the forecasts of these folds.
    If each fold trains on all others, these are all others. If folds follow time, these
    are the earlier ones.
    """
    number = number_folds(folds, n, -1)
    met = [np.unique(number[train]) for train, _ in folds]
    return [[int(j) for j in one if j >= 0] for one in met]


def join_parts(
    number: NDArray[np.int64], known: list[list[int]], most: int
) -> tuple[NDArray[np.int64], list[list[int]]]:
    """Return fewer folds, for models that are fitted per fold on out-of-fold forecasts.

    Neighbouring folds are joined only if each fold may know all others. This is still
    true afterwards.

    Parameters
    ----------
    number : ndarray of shape (n,)
        Number of each row's fold.
    known : list of lists of int
        As `known_folds` returns it.
    most : int
        At most this many folds are left.

    Returns
    -------
    number : ndarray of shape (n,)
    known : list of lists of int
    """
    n = len(known)
    if n <= most or any(len(others) < n - 1 for others in known):
        return number, known
    joined = number * most // n
    return joined, [[j for j in range(most) if j != k] for k in range(most)]


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
        No row is in two test parts. Rows in no test part only train. Training parts
        have rows with a weight only.
    groups : ndarray of shape (n,), optional
        Rows of one group were dealt to one fold.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.folds import Sample
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
        # A row of weight 0 is left out, but it is forecast out of fold.
        folds = [(train[self.weight[train] > 0.0], test) for train, test in folds]
        return replace(self, folds=folds, groups=groups)

    @cached_property
    def judged(self) -> Rows:
        """Rows in a test part. Everything learned out of fold comes from them."""
        return judged_rows(self.folds)

    @property
    def is_whole(self) -> bool:
        """Whether the test parts hold every row."""
        return len(self.judged) == len(self)

    @property
    def is_linked(self) -> bool:
        """Whether a fold trains on rows with a weight that another one tests."""
        held = np.flatnonzero(self.weight > 0.0)
        known = np.intersect1d(self.judged, held)
        return any(np.isin(train, known).any() for train, _ in self.folds)

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
