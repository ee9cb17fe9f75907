"""Folds: parts of the rows that are predicted by models that never saw them."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import (
    check_integer,
    check_same_length,
    check_weights,
    make_rng,
)

Rows: TypeAlias = NDArray[np.intp]
Fold: TypeAlias = tuple[Rows, Rows]

# Most rows for which "auto" makes so many folds; beyond the last, two. Every fold
# costs a fit, and what a fold more gains shrinks with the number of rows. Of few rows
# more folds are no cure: a share learned on the other folds leans against that of the
# fold left out, the more so the smaller it is, and calibrators learn to lean back.
_AUTO_FOLDS = ((50_000, 5), (200_000, 3))


def make_folds(
    n: int,
    cv: Any = "auto",
    y: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = None,
    sample_weight: ArrayLike | None = None,
) -> list[Fold]:
    """Return folds of which no two test the same row.

    Parameters
    ----------
    n : int
        Number of rows, at least 2.
    cv : "auto", int, splitter or iterable of (train, test)
        "auto": 5 folds up to 50 000 rows, 3 up to 200 000, else 2, and never more
        than there are rows or groups. An integer is obeyed: shuffled folds of equal
        size, or with `groups` folds that keep each group whole. Test parts of these
        hold every row; those of a splitter or an iterable may leave rows out, as
        scikit-learn's `TimeSeriesSplit` does: such rows only train.
    y : array-like of shape (n,), optional
        Handed to the `split` of a splitter.
    groups : array-like of shape (n,), optional
        Rows with the same group are never parted.
    random_state : int or Generator, optional
        Shuffles rows, and groups of one size; splitters have their own.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights: the folds of "auto" or an integer are of nearly equal
        weight. Rows of weight zero are dealt last and change nothing for the others.

    Returns
    -------
    list of (train, test)
        Sorted row numbers.

    Notes
    -----
    A row that is tested is so whatever its weight. Where weights differ the heaviest
    rows are dealt first, one to each fold, and so on; the heaviest group comes first,
    and each goes to the fold that is the lightest so far.

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
        msg = f'`cv` must be "auto", an integer, a splitter or folds, got {cv!r}.'
        raise ValueError(msg)
    if isinstance(cv, (str, numbers.Integral)):
        weight = check_weights(sample_weight, n)
        return _deal_rows(weight, cv, groups, make_rng(random_state))
    folds = _read_folds(n, cv, y, groups)
    check_folds(folds, n, "cv")
    return folds


def check_groups(groups: ArrayLike | None, n: int) -> NDArray[Any] | None:
    """Return the groups of `n` rows: a vector without gaps, of values with an order."""
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.ndim != 1:
        msg = f"`groups` must have shape (n,), got shape {labels.shape}."
        raise ValueError(msg)
    check_same_length(n, "the data", len(labels), "groups")
    if labels.dtype.kind == "O":
        try:
            sorted(set(labels.tolist()))
        except TypeError as error:
            msg = f"`groups` must hold values of one kind, without gaps, got {error}."
            raise TypeError(msg) from error
    gaps = labels[labels != labels]  # noqa: PLR0124 - NaN and NaT are told by this
    if len(gaps):
        msg = f"`groups` must have no gaps, got {gaps[0]}."
        raise ValueError(msg)
    return labels


def _deal_rows(
    weight: Float64Array, cv: Any, groups: NDArray[Any] | None, rng: np.random.Generator
) -> list[Fold]:
    """Return folds of equal size, of rows or of whole groups."""
    held, absent = np.flatnonzero(weight > 0.0), np.flatnonzero(weight == 0.0)
    n_parts, unit = len(held), "rows"
    if groups is not None:
        n_parts, unit = len(np.unique(groups[held])), "groups"
    if isinstance(cv, str):
        wanted = next((k for most, k in _AUTO_FOLDS if len(held) <= most), 2)
        n_folds = max(2, min(wanted, n_parts))
    else:
        n_folds = check_integer(cv, "cv", 2)
    if n_parts < n_folds:
        msg = (
            f"`cv` must not be greater than the number of {unit}, "
            f"got {n_folds} folds for {n_parts} {unit}."
        )
        raise ValueError(msg)
    if groups is None:
        dealt = np.empty(len(weight), dtype=np.intp)
        dealt[held] = _shuffle(weight[held], n_folds, rng)
        dealt[absent] = np.arange(len(absent)) % n_folds
    else:
        names, part = _deal_groups(weight[held], groups[held], n_folds, rng)
        # A group of weight zero only goes with the next one.
        place = np.searchsorted(names, groups)
        dealt = part[np.minimum(place, n_parts - 1)]
    return [
        (np.flatnonzero(dealt != number), np.flatnonzero(dealt == number))
        for number in range(n_folds)
    ]


def _shuffle(
    weight: Float64Array, n_folds: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return the fold of each row; the numbers of rows differ by one at most.

    Shuffled, for tables are often sorted, and a fold of one end tells nothing of it.
    """
    order = rng.permutation(len(weight))
    dealt = np.empty(len(weight), dtype=np.intp)
    if weight.min() == weight.max():
        for number, rows in enumerate(np.array_split(order, n_folds)):
            dealt[rows] = number
        return dealt
    # In rounds from the heaviest row on, one to each fold.
    order = order[np.argsort(-weight[order], kind="stable")]
    n_rounds = -(-len(weight) // n_folds)
    rounds = np.tile(np.arange(n_folds), (n_rounds, 1))
    dealt[order] = rng.permuted(rounds, axis=1).ravel()[: len(weight)]
    return dealt


def _deal_groups(
    weight: Float64Array,
    groups: NDArray[Any],
    n_folds: int,
    rng: np.random.Generator,
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the groups and their folds, as `GroupKFold` would deal copies of rows.

    The heaviest group comes first, of equal ones any, and each goes to the lightest
    fold so far.
    """
    names, place = np.unique(groups, return_inverse=True)
    # Counted where weights are all the same, which is as good as none.
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
        msg = f'`cv` must be "auto", an integer, a splitter or folds, got {cv!r}.'
        raise TypeError(msg)
    every = np.arange(n)
    folds = []
    for pair in pairs:
        # Indexing reads masks and row numbers of any sign; an empty list is of floats.
        try:
            train, test = (np.asarray(part) for part in pair)
        except (TypeError, ValueError) as error:
            msg = f"`cv` must yield pairs of row numbers, got {pair!r}."
            raise TypeError(msg) from error
        train, test = (
            np.sort(every[part if part.size else part.astype(np.intp)])
            for part in (train, test)
        )
        folds.append((train, test))
    return folds


def check_folds(folds: list[Fold], n: int, name: str) -> None:
    """Refuse folds by which a row is predicted twice, or by itself."""
    if len(folds) == 0:
        msg = f"`{name}` must yield at least one fold, got none."
        raise ValueError(msg)
    for number, (train, test) in enumerate(folds):
        if len(train) == 0 or len(test) == 0:
            empty = "test" if len(train) else "train"
            msg = f"`{name}` must leave no {empty} part empty, got fold {number}."
            raise ValueError(msg)
        shared = np.intersect1d(train, test)
        if len(shared):
            msg = (
                f"`{name}` must keep test rows out of the training part, "
                f"got row {shared[0]} in both parts of fold {number}."
            )
            raise ValueError(msg)
    counts = np.bincount(np.concatenate([test for _, test in folds]), minlength=n)
    twice = counts > 1
    if twice.any():
        row = int(np.argmax(twice))
        msg = (
            f"`{name}` must put no row in more than one test part, "
            f"got row {row} in {counts[row]} of them ({twice.sum()} such rows)."
        )
        raise ValueError(msg)


def check_tests_every_row(folds: list[Fold], n: int, cure: str) -> None:
    """Refuse folds that leave rows untested, where an answer has to have them all."""
    missing = n - len(judged_rows(folds))
    if missing:
        msg = (
            "`cv` must put every row in a test part here, "
            f"got {missing} of {n} rows in none: {cure}."
        )
        raise ValueError(msg)


def check_learns(folds: list[Fold], weight: Float64Array) -> None:
    """Refuse folds of which nothing can be learned out of fold."""
    if not weight[judged_rows(folds)].any():
        msg = (
            "`cv` must put rows with a weight in a test part, got none of them in one."
        )
        raise ValueError(msg)


def check_trains(folds: list[Fold], weight: Float64Array) -> None:
    """Refuse a fold that has nothing to learn from."""
    for number, (train, _) in enumerate(folds):
        if not weight[train].any():
            msg = (
                "`cv` must train on rows with a weight in every fold, got none of them "
                f"in fold {number}."
            )
            raise ValueError(msg)


def judged_rows(folds: list[Fold]) -> Rows:
    """Return the rows that a test part holds, sorted."""
    return np.sort(np.concatenate([np.empty(0, np.intp), *(t for _, t in folds)]))


def number_folds(folds: list[Fold], n: int, none: int = 0) -> NDArray[np.int64]:
    """Return the number of the fold that tests each row, `none` if none does, (n,)."""
    numbers = np.full(n, none)
    for number, (_, test) in enumerate(folds):
        numbers[test] = number
    return numbers


def renumber_folds(folds: list[Fold], rows: Rows, n: int) -> list[Fold]:
    """Return the folds of some of `n` rows, numbered anew; parts may be empty."""
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    parts = ((place[train], place[test]) for train, test in folds)
    return [(train[train >= 0], test[test >= 0]) for train, test in parts]


def known_folds(folds: list[Fold], n: int) -> list[list[int]]:
    """Return for each fold the other ones whose tested rows are among its own.

    What corrects forecasts of a fold may be learned from those of these folds: of all
    others where each trains on all others, of earlier ones where folds are in time.
    """
    number = number_folds(folds, n, -1)
    met = [np.unique(number[train]) for train, _ in folds]
    return [[int(j) for j in one if j >= 0] for one in met]


def join_parts(
    number: NDArray[np.int64], known: list[list[int]], most: int
) -> tuple[NDArray[np.int64], list[list[int]]]:
    """Return fewer folds for what is fitted fold by fold on out-of-fold forecasts.

    Neighbours are joined where each fold may know all others, as it may then, too.

    Parameters
    ----------
    number : ndarray of shape (n,)
        Of each row's fold.
    known : list of lists of int
        As `known_folds` returns it.
    most : int
        Folds to be left.

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
