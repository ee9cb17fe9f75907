"""Sections on single rows: examples of forecasts, and their risks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from localexpert.plots.forecast import plot_forecast
from localexpert.reporting import markup as html
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.markup import Markup, show
from localexpert.reporting.pictures import picture
from localexpert.reporting.subject import Subject
from localexpert.risk import risk_table

_MOST_FEATURES = 8
_RISK_LEVEL = 0.95
# Share of rows whose outcomes pass the value that chances are given for.
_HIGH = 0.9


def choose_examples(evidence: Evidence) -> dict[str, int]:
    """Return different rows by what they are examples of, as far as rows reach.

    By the width of the interval a sure, a middling and an unsure forecast; by the
    CRPS the best and the worst.
    """
    by_width = np.argsort(evidence.width, kind="stable")
    by_loss = np.argsort(evidence.crps, kind="stable")
    middle = len(evidence) // 2
    orders = {
        "worst": by_loss[::-1],
        "best": by_loss,
        "sure": by_width,
        "unsure": by_width[::-1],
        "middling": np.roll(by_width, -middle),
    }
    taken: dict[str, int] = {}
    for name, order in orders.items():
        left = [int(row) for row in order if row not in taken.values()]
        if left:
            taken[name] = left[0]
    names = ("sure", "middling", "unsure", "best", "worst")
    return {name: taken[name] for name in names if name in taken}


def write_examples(
    evidence: Evidence, subject: Subject, ranking: Sequence[int]
) -> Markup:
    """Return the section on forecasts of single rows."""
    chosen = choose_examples(evidence)
    names = subject.rows or evidence.labels
    return html.section(
        "Examples of forecasts",
        html.paragraph(
            "A sure, a middling and an unsure forecast by the width of their "
            "intervals, and the ones that came closest and went farthest by the CRPS. "
            "Shaded is where an outcome was likeliest to fall."
        ),
        *(_draw(evidence, name, row, names[row]) for name, row in chosen.items()),
        _tabulate(evidence, chosen, names, ranking),
    )


def write_risk(evidence: Evidence, subject: Subject) -> Markup:
    """Return the section on risks of a few rows, from narrow to wide forecasts."""
    title = "Risk of some rows"
    names = subject.rows or evidence.labels
    rows = list(choose_examples(evidence).values())
    value = float(np.quantile(evidence.y, _HIGH, method="inverted_cdf"))
    try:
        risks = risk_table(
            evidence.dist[rows],
            levels=[_RISK_LEVEL],
            thresholds=[value],
            coverage=evidence.coverage,
        )
    except ImportError as error:
        return html.section(title, html.paragraph(f"There is no table: {error}"))
    heads = ["Row", *(str(name) for name in risks.columns[:-1])]
    cells = risks.to_numpy(dtype=np.float64)
    body = [
        [
            names[row],
            *(html.number(v) for v in line[:-1]),
            html.percent(line[-1]),
        ]
        for row, line in zip(rows, cells, strict=True)
    ]
    return html.section(
        title,
        html.paragraph(
            f"The value at risk (VaR) is passed with {show(100 - 100 * _RISK_LEVEL)} % "
            "probability; the expected shortfall (ES) is the mean of what may come "
            "beyond it. The last column is the chance to pass "
            f"{show(value)}, which one in ten of these outcomes did."
        ),
        html.table("Risk by the forecasts", [*heads, f"P(Y > {show(value)})"], body),
    )


def _draw(evidence: Evidence, name: str, row: int, row_name: str) -> Markup:
    """Return the picture of one forecast."""
    y = float(evidence.y[row])
    low, high = evidence.interval[row]
    told = (
        f"{name.capitalize()}, row {row_name}: the "
        f"{show(100 * evidence.coverage)} % interval is {show(low)} to {show(high)}, "
        f"the outcome {show(y)}."
    )

    looks: dict[str, Any] = {"what": "density", "coverage": evidence.coverage, "y": y}
    return picture(
        lambda ax: plot_forecast(evidence.dist, row, ax=ax, **looks),
        f"Density of a forecast. {told}",
        told,
        size=(5.0, 2.5),
    )


def _tabulate(
    evidence: Evidence,
    chosen: dict[str, int],
    names: Sequence[str],
    ranking: Sequence[int],
) -> Markup:
    """Return numbers of the examples, and what was known of them."""
    rows = list(chosen.values())
    median, (low, high) = evidence.dist[rows].median(), evidence.interval[rows].T
    lines: list[list[object]] = [
        ["Row", *(names[row] for row in rows)],
        ["Outcome", *(html.number(v) for v in evidence.y[rows])],
        ["Median", *(html.number(v) for v in median)],
        ["Interval from", *(html.number(v) for v in low)],
        ["Interval to", *(html.number(v) for v in high)],
        ["Outcome's level (PIT)", *(html.number(v, 3) for v in evidence.pit[rows])],
        ["CRPS", *(html.number(v) for v in evidence.crps[rows])],
    ]
    for j in ranking[:_MOST_FEATURES]:
        lines.append([evidence.names[j], *evidence.columns[j].take(rows).texts()])
    heads = ["Forecast", *(name.capitalize() for name in chosen)]
    return html.table("The examples, and their most important features", heads, lines)
