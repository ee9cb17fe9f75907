"""Expected and realised losses, of all rows and by group."""

from __future__ import annotations

from collections.abc import Sequence

from localexpert.reporting import markup as html
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.findings import SIGNIFICANT, adjust_holm, show_p
from localexpert.reporting.groups import Grouping
from localexpert.reporting.markup import Section, show
from localexpert.reporting.promise import KeptPromise

_LABELS = {"crps": "CRPS", "abs_error": "Absolute error of the median"}


def write_expectation(evidence: Evidence, groupings: Sequence[Grouping]) -> Section:
    """Return the section on losses as they were forecast and as they came."""
    whole = {loss: promise.over() for loss, promise in evidence.promises.items()}
    by_group = _over_groups(evidence, groupings)
    raised = adjust_holm([kept.p_value for _, _, kept in by_group]).tolist()
    heads = ["Rows", "Number", "Expected", "95 % interval", "Realised", "p"]
    rows: list[list[object]] = [
        _cells(f"All, {_LABELS[loss]}", kept, kept.p_value)
        for loss, kept in whole.items()
    ]
    last = ""
    for (name, label, kept), p in zip(by_group, raised, strict=True):
        if name != last:
            rows.append([f"{name}, CRPS"])
        rows.append(_cells(label, kept, p))
        last = name
    return html.section(
        "Expected and realised",
        html.paragraph(
            "A forecast says what its own error will be, before any outcome is known: "
            "the mean over outcomes drawn from it. Of later rows that is all one has; "
            "here it stands beside what came. Intervals hold 95 % of the means of as "
            "many independent rows if the forecasts are right; p-values of groups are "
            "raised by Holm's method for their number."
        ),
        html.paragraph(_say_whole(whole["crps"])),
        html.table("Losses as expected and as realised", heads, rows),
    )


def _over_groups(
    evidence: Evidence, groupings: Sequence[Grouping]
) -> list[tuple[str, str, KeptPromise]]:
    """Return the CRPS of each group, with the names of grouping and group."""
    promise = evidence.promises["crps"]
    return [
        (one.name, label, promise.over(one.group == g))
        for one in groupings
        for g, label in enumerate(one.labels)
    ]


def _cells(label: str, kept: KeptPromise, p: float) -> list[object]:
    told = kept.expected
    return [
        label,
        f"{told.n_rows:,}",
        html.number(told.mean),
        f"{show(told.low)} to {show(told.high)}",
        html.number(kept.realised),
        html.probability(p),
    ]


def _say_whole(kept: KeptPromise) -> str:
    """Say whether the CRPS of all rows is as the forecasts promised."""
    told = (
        f"The forecasts expected a CRPS of {show(kept.expected.mean)}, and it was "
        f"{show(kept.realised)}"
    )
    if kept.p_value >= SIGNIFICANT:
        return (
            f"{told}: no further apart than chance explains ({show_p(kept.p_value)})."
        )
    more = kept.realised > kept.expected.mean
    why = "they are surer than they should be" if more else "they are too cautious"
    return f"{told}, {show_p(kept.p_value)}: {why}, or these rows are of another kind."
