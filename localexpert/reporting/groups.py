"""Coverage by group: whether intervals hold everywhere, and not on average only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localexpert._validation import check_same_length
from localexpert.plots.coverage import plot_coverage
from localexpert.reporting import markup as html
from localexpert.reporting.columns import MISSING, Column, show_feature
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.findings import (
    SIGNIFICANT,
    CoverageTest,
    adjust_holm,
    show_p,
)
from localexpert.reporting.markup import Markup, Section, count, show
from localexpert.reporting.pictures import label, picture

# Numbers of more values than _MOST_NUMBERS are put into _N_BINS bins; of more names
# than _MOST_NAMES the rare ones are one group.
_MOST_NUMBERS, _N_BINS, _MOST_NAMES = 8, 5, 10
# Features that are taken by default, besides the width of the forecasts.
_N_DEFAULT = 3
_WIDTH = "width of the interval"


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
class _Tested:
    """A group of rows and its coverage.

    Parameters
    ----------
    grouping : Grouping
    label : str
    rows : ndarray of shape (n,)
        Whether each row is in the group.
    test : CoverageTest
    p : float
        Of the test, raised by Holm's method for all groups of a report.
    """

    grouping: Grouping
    label: str
    rows: NDArray[np.bool_]
    test: CoverageTest
    p: float


def choose_groupings(
    evidence: Evidence, groups: Any, ranking: Sequence[int]
) -> list[Grouping]:
    """Return the groupings that are asked for, or some chosen ones.

    Chosen are the width of the interval and the first features of `ranking` (by
    importance) that take more than one value.
    """
    if groups is not None:
        return [Grouping.of(*pair) for pair in _read_groups(evidence, groups)]
    found = [Grouping.of(_WIDTH, Column(evidence.width, None))]
    found += [Grouping.of(evidence.names[j], evidence.columns[j]) for j in ranking]
    return [one for one in found if len(one.labels) > 1][: _N_DEFAULT + 1]


def write_groups(evidence: Evidence, groupings: Sequence[Grouping]) -> Section:
    """Return the section on coverage by group."""
    if not groupings:
        return html.section("Coverage by group", html.paragraph("There are no groups."))
    told = _test_groups(evidence, groupings)
    parts = ([group for group in told if group.grouping is one] for one in groupings)
    return html.section(
        "Coverage by group",
        html.paragraph(
            "Intervals that hold on average may be too narrow for some rows and too "
            "wide for others. Each dot is the share of a group's outcomes inside, and "
            "its bar the 95 % range in which the true share may lie; it should reach "
            "the dashed line.",
        ),
        html.paragraph(_say_groups(told)),
        html.element(
            "div", *(_draw(evidence, part) for part in parts), class_="pictures"
        ),
        _tabulate(evidence, told),
    )


def _read_groups(evidence: Evidence, groups: Any) -> list[tuple[str, Column]]:
    """Return the columns to group by, with their names."""
    if isinstance(groups, Mapping):
        n = len(evidence)
        return [(str(key), _read_values(value, n)) for key, value in groups.items()]
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        msg = (
            "`groups` must be a list of column names or a mapping of names to arrays, "
            f"got {type(groups).__name__}."
        )
        raise TypeError(msg)
    # Of columns with one name, the first.
    columns = dict(zip(evidence.names[::-1], evidence.columns[::-1], strict=True))
    for name in groups:
        if str(name) not in columns:
            known = list(evidence.names)
            msg = f"`groups` must name columns of `X`, {known}, got {name!r}."
            raise ValueError(msg)
    return [(str(name), columns[str(name)]) for name in groups]


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


def _test_groups(evidence: Evidence, groupings: Sequence[Grouping]) -> list[_Tested]:
    """Test the coverage of the groups of all groupings together."""
    groups = [
        (one, label, one.group == g)
        for one in groupings
        for g, label in enumerate(one.labels)
    ]
    tests = [evidence.test_coverage(rows) for _, _, rows in groups]
    raised = adjust_holm([test.p_value for test in tests]).tolist()
    pairs = zip(groups, zip(tests, raised, strict=True), strict=True)
    return [_Tested(*group, *test) for group, test in pairs]


def _say_groups(told: Sequence[_Tested]) -> str:
    """Name the groups whose coverage is off by more than chance."""
    off = [
        f"{group.grouping.name} {group.label} ("
        f"{show(100 * group.test.share, 3)} %, {show_p(group.p)})"
        for group in told
        if group.p < SIGNIFICANT
    ]
    how = "binomial tests, p-values raised by Holm's method for their number"
    groups = f"the {count(len(told), 'group')}" if len(told) > 1 else "the only group"
    if not off:
        return (
            f"In {'none of ' if len(told) > 1 else ''}{groups} the coverage "
            f"{'differs' if len(told) > 1 else 'does not differ'} from what "
            f"it should be by more than chance explains ({how})."
        )
    return (
        f"In {f'{len(off)} of ' if len(told) > 1 else ''}{groups} the coverage differs "
        f"from what it should be by more than chance explains ({how}): "
        f"{'; '.join(off)}."
    )


def _draw(evidence: Evidence, told: list[_Tested]) -> Markup:
    """Return a heading and the picture of the groups of one grouping."""
    grouping = told[0].grouping
    shares = ", ".join(f"{g.label} {show(100 * g.test.share, 3)} %" for g in told)
    # Numbered, for the picture sorts names by coverage where their order is not told.
    place = grouping.group.astype(np.float64)

    def draw(ax: Any) -> None:
        y, dist = evidence.y, evidence.dist
        plot_coverage(y, dist, place, coverage=evidence.coverage, ax=ax)
        named = [f"{label(group.label)} ({group.test.n})" for group in told]
        ax.set_yticks(np.arange(len(named)), named)
        ax.get_legend().remove()  # it is wider than a phone; words say the same

    drawn = picture(
        draw,
        f"Coverage of the intervals by {grouping.name}: {shares}.",
        "Numbers of rows in brackets.",
        size=(5.0, min(1.3 + 0.3 * len(told), 6.0)),
    )
    return html.element("div", html.element("h3", "By ", grouping.name), drawn)


def _tabulate(evidence: Evidence, told: Sequence[_Tested]) -> Markup:
    """Return the numbers behind the pictures."""
    rows: list[list[object]] = []
    for k, group in enumerate(told):
        if k == 0 or told[k - 1].grouping is not group.grouping:
            rows.append([group.grouping.name])
        rows.append(
            [
                group.label,
                f"{group.test.n:,}",
                html.percent(group.test.share),
                html.number(float(evidence.width[group.rows].mean())),
                html.probability(group.p),
            ]
        )
    heads = ["Group", "Rows", "Covered", "Mean width", "p, raised"]
    return html.table("Coverage by group", heads, rows)
