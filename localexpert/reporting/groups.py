"""Groups of rows: whether forecasts hold everywhere, and not on average only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localexpert._validation import check_same_length
from localexpert.data.table import Table
from localexpert.reporting.evidence import (
    MISSING,
    Column,
    Evidence,
    read_columns,
)
from localexpert.reporting.numbers import adjust_holm, show_feature
from localexpert.reporting.verdicts import BackTest, CoverageTest, Promise

# Numbers of more values than _MOST_NUMBERS are put into _N_BINS bins; of more names
# than _MOST_NAMES the rare ones are one group.
_MOST_NUMBERS, _N_BINS, _MOST_NAMES = 8, 5, 10
# Features that are taken by default, besides the width of the forecasts.
_N_DEFAULT = 3


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows put into groups.

    Parameters
    ----------
    name : str
    labels : list of str
        Of the groups.
    group : ndarray of shape (n,)
        Number of each row's group.
    """

    name: str
    labels: list[str]
    group: NDArray[np.intp]

    @classmethod
    def of(cls, name: str, column: Column) -> Grouping:
        """Group rows by the values of a column; missing ones are a group."""
        values, missing = column.values, column.is_missing
        known = values[~missing]
        if column.names is not None:
            labels, group = _group_names(column.names, values, known)
        elif len(np.unique(known)) <= _MOST_NUMBERS:
            distinct = np.unique(known)
            labels = [show_feature(value) for value in distinct]
            group = np.searchsorted(distinct, values)
        else:
            edges = np.unique(np.quantile(known, np.linspace(0.0, 1.0, _N_BINS + 1)))
            ends = [show_feature(edge, 3) for edge in edges]
            labels = [f"{low} to <{high}" for low, high in pairwise(ends)]
            labels[-1] = labels[-1].replace("<", "")
            group = np.searchsorted(edges[1:-1], values, "right")
        group[missing] = len(labels)
        met, group = np.unique(group, return_inverse=True)
        return cls(name, [[*labels, MISSING][g] for g in met], group)


@dataclass(frozen=True, eq=False)
class GroupFigures:
    """What came of the forecasts of a group of rows.

    Parameters
    ----------
    name, label : str
        Of the grouping, and of the group in it.
    width : float
        Mean width of the intervals.
    coverage : CoverageTest
    promise : Promise
        The CRPS, as expected and as it came.
    back_tests : list of BackTest
        Of the values at risk at each level.
    p_values : dict of str to float
        Of "coverage", "promise" and by the levels the numbers of outcomes beyond the
        values at risk; raised by Holm's method for all groups of a report.
    """

    name: str
    label: str
    width: float
    coverage: CoverageTest
    promise: Promise
    back_tests: list[BackTest]
    p_values: dict[str, float]


def choose_groupings(
    evidence: Evidence,
    groups: list[tuple[str, Column]] | None,
    ranking: Sequence[int],
) -> list[Grouping]:
    """Return the groupings that are asked for, or some chosen ones.

    Chosen are the width of the interval and the first features of `ranking` (by
    importance) that take more than one value.
    """
    if groups is not None:
        return [Grouping.of(*pair) for pair in groups]
    found = [Grouping.of("width of the interval", Column(evidence.width, None))]
    found += [Grouping.of(evidence.names[j], evidence.columns[j]) for j in ranking]
    return [one for one in found if len(one.labels) > 1][: _N_DEFAULT + 1]


def measure_groups(
    evidence: Evidence, groupings: Sequence[Grouping], levels: Sequence[float]
) -> list[GroupFigures]:
    """Test coverage, expected losses and values at risk of all groups together."""
    made = []
    for one in groupings:
        for g, label in enumerate(one.labels):
            rows = one.group == g
            width, test = evidence.width[rows].mean(), evidence.test_coverage(rows)
            kept = Promise.of(evidence.y[rows], evidence.dist[rows], "crps")
            backs = back_test(evidence, levels, rows)
            p = {"coverage": test.p_value, "promise": kept.p_value}
            p |= {str(back.level): back.kupiec for back in backs}
            named = one.name, label, float(width)
            made.append(GroupFigures(*named, test, kept, backs, p))
    for kind in made[0].p_values if made else ():
        raised = adjust_holm([group.p_values[kind] for group in made]).tolist()
        for group, p_value in zip(made, raised, strict=True):
            group.p_values[kind] = p_value
    return made


def back_test(
    evidence: Evidence, levels: Sequence[float], rows: Any = slice(None)
) -> list[BackTest]:
    """Test the values at risk of some rows, in their order."""
    dist, y = evidence.dist[rows], evidence.y[rows]
    found = []
    for level in levels:
        value = dist.value_at_risk(level)
        found.append(BackTest.of(y > value, level, float(dist.sf(value).mean())))
    return found


def read_groups(X: Any, groups: Any) -> list[tuple[str, Column]]:
    """Return the columns to group the rows of a table by, with their names."""
    if isinstance(groups, Mapping):
        n = len(X)
        return [(str(key), _read_values(value, n)) for key, value in groups.items()]
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        msg = (
            "`groups` must be a list of column names or a mapping of names to arrays, "
            f"got {type(groups).__name__}."
        )
        raise TypeError(msg)
    names, columns = read_columns(Table.of(X))
    for name in groups:
        if str(name) not in names:
            msg = f"`groups` must name columns of `X`, {names}, got {name!r}."
            raise ValueError(msg)
    # Of columns with one name, the first.
    return [(str(name), columns[names.index(str(name))]) for name in groups]


def _read_values(values: Any, n: int) -> Column:
    """Return a group for each row from an array of numbers or of anything else."""
    array = np.asarray(values)
    if array.ndim != 1:
        msg = f"`groups` must hold arrays of shape (n,), got shape {array.shape}."
        raise ValueError(msg)
    check_same_length(n, "`X`", len(array), "groups")
    if array.dtype.kind in "biuf":
        return Column(array.astype(np.float64), None)
    names, place = np.unique(array.astype(str), return_inverse=True)
    return Column(place.astype(np.float64), names.tolist())


def _group_names(names: list[str], values: Any, known: Any) -> Any:
    """Return the frequent names in order, and the rest as one group."""
    count = np.bincount(known.astype(np.intp), minlength=len(names))
    kept = np.flatnonzero(count)
    if len(kept) > _MOST_NAMES:
        frequent = np.argsort(-count, kind="stable")[: _MOST_NAMES - 1]
        kept = np.sort(frequent)
    place = np.full(len(names) + 1, len(kept))
    place[kept] = np.arange(len(kept))
    group = place[np.where(np.isnan(values), len(names), values).astype(np.intp)]
    return [*(names[j] for j in kept), "all others"], group
