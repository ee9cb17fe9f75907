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
from localexpert.reporting.columns import MISSING, Column
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.findings import (
    SIGNIFICANT,
    CoverageTest,
    adjust_holm,
    show_p,
)
from localexpert.reporting.markup import Markup, show
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
            labels = [show(value) for value in distinct]
            group = np.searchsorted(distinct, values)
        else:
            edges = np.unique(np.quantile(known, np.linspace(0.0, 1.0, _N_BINS + 1)))
            ends = [show(edge, 3) for edge in edges]
            labels = [f"{low} to <{high}" for low, high in pairwise(ends)]
            labels[-1] = labels[-1].replace("<", "")
            group = np.searchsorted(edges[1:-1], values, "right")
        group[missing] = len(labels)
        met, group = np.unique(group, return_inverse=True)
        return cls(name, [[*labels, MISSING][g] for g in met], group)


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


def write_groups(evidence: Evidence, groupings: Sequence[Grouping]) -> Markup:
    """Return the section on coverage by group."""
    if not groupings:
        return html.section("Coverage by group", html.paragraph("There are no groups."))
    tests = [_test_groups(evidence, one) for one in groupings]
    flat = [test for some in tests for test in some]
    adjusted = adjust_holm([test.p_value for test in flat])
    figures = [
        part
        for one, some in zip(groupings, tests, strict=True)
        for part in _draw(evidence, one, some)
    ]
    return html.section(
        "Coverage by group",
        html.paragraph(
            "Intervals that hold on average may be too narrow for some rows and too "
            "wide for others. Each dot is the share of a group's outcomes inside, and "
            "its bar the 95 % range in which the true share may lie; it should reach "
            "the dashed line",
            ", or the short upright mark, which is what forecasts expect themselves "
            "where values repeat."
            if evidence.dist.law.has_jumps
            else ".",
        ),
        html.paragraph(_say_groups(groupings, tests, adjusted)),
        *figures,
        _tabulate(evidence, groupings, tests, adjusted),
    )


def _read_groups(evidence: Evidence, groups: Any) -> list[tuple[str, Column]]:
    """Return the columns to group by, with their names."""
    if isinstance(groups, Mapping):
        return [
            (str(name), _read_values(values, len(evidence)))
            for name, values in groups.items()
        ]
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        msg = (
            "`groups` must be a list of column names or a mapping of names to arrays, "
            f"got {type(groups).__name__}."
        )
        raise TypeError(msg)
    found = []
    for name in groups:
        if str(name) not in evidence.names:
            msg = (
                f"`groups` must name columns of `X`, {list(evidence.names)}, "
                f"got {name!r}."
            )
            raise ValueError(msg)
        found.append((str(name), evidence.columns[evidence.names.index(str(name))]))
    return found


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


def _test_groups(evidence: Evidence, grouping: Grouping) -> list[CoverageTest]:
    return [
        evidence.test_coverage(grouping.group == g) for g in range(len(grouping.labels))
    ]


def _say_groups(
    groupings: Sequence[Grouping], tests: list[list[CoverageTest]], adjusted: Any
) -> str:
    """Name the groups whose coverage is off by more than chance."""
    names = [f"{one.name} {name}" for one in groupings for name in one.labels]
    flat = [test for some in tests for test in some]
    off = [
        f"{name} ({show(100 * test.share, 3)} %, {show_p(float(p))})"
        for name, test, p in zip(names, flat, adjusted, strict=True)
        if p < SIGNIFICANT
    ]
    how = "binomial tests, p-values raised by Holm's method for their number"
    if not off:
        return (
            f"In none of the {len(names)} groups does the coverage differ from what "
            f"it should be by more than chance explains ({how})."
        )
    return (
        f"In {len(off)} of {len(names)} groups the coverage differs from what it "
        f"should be by more than chance explains ({how}): {'; '.join(off)}."
    )


def _draw(
    evidence: Evidence, grouping: Grouping, tests: list[CoverageTest]
) -> list[Markup]:
    """Return a heading and the picture of one grouping."""
    # Numbered, for the picture sorts names by coverage where their order is not told.
    shares = ", ".join(
        f"{name} {show(100 * test.share, 3)} %"
        for name, test in zip(grouping.labels, tests, strict=True)
    )
    place = grouping.group.astype(np.float64)

    def draw(ax: Any) -> None:
        plot_coverage(
            evidence.y, evidence.dist, place, coverage=evidence.coverage, ax=ax
        )
        named = [
            f"{label(name)} ({test.n})"
            for name, test in zip(grouping.labels, tests, strict=True)
        ]
        ax.set_yticks(np.arange(len(named)), named)
        ax.get_legend().remove()  # it is wider than a phone; words say the same

    height = min(1.3 + 0.3 * len(tests), 6.0)
    return [
        html.element("h3", "By ", grouping.name),
        picture(
            draw,
            f"Coverage of the intervals by {grouping.name}: {shares}.",
            html.escape(f"By {grouping.name}; numbers of rows in brackets."),
            size=(5.0, height),
        ),
    ]


def _tabulate(
    evidence: Evidence,
    groupings: Sequence[Grouping],
    tests: list[list[CoverageTest]],
    adjusted: Any,
) -> Markup:
    """Return the numbers behind the pictures."""
    width = evidence.interval[:, 1] - evidence.interval[:, 0]
    raised = iter(adjusted)
    rows = [
        [
            f"{one.name}: {name}",
            f"{test.n:,}",
            html.percent(test.share),
            html.number(float(width[one.group == g].mean())),
            html.number(float(next(raised)), 2),
        ]
        for one, some in zip(groupings, tests, strict=True)
        for g, (name, test) in enumerate(zip(one.labels, some, strict=True))
    ]
    return html.table(
        "Coverage by group",
        ["Group", "Rows", "Covered", "Mean width", "p, raised"],
        rows,
    )
