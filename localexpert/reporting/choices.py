"""The section on the model: what it chose on the way, and how its experts did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from localexpert.distribution.predictors import find_forecaster
from localexpert.experts.report import ExpertReport
from localexpert.learn.fit_report import FitReport
from localexpert.plots.experts import plot_expert_report
from localexpert.plots.thresholds import plot_threshold_reliability
from localexpert.reporting import markup as html
from localexpert.reporting.chosen import describe_areas, describe_choices
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.markup import Markup, Section, count
from localexpert.reporting.pictures import picture
from localexpert.reporting.subject import Subject

_TITLE = "What the model chose on the way"
# Reliability is drawn for this many thresholds.
_N_THRESHOLDS = 4
_MOST_LINES = 120


def write_choices(evidence: Evidence, subject: Subject, *, expanded: bool) -> Section:
    """Return the section."""
    model = find_forecaster(evidence.model)
    report = getattr(model, "report_", None)
    if not isinstance(report, FitReport):
        words = f"A {type(model).__name__} keeps no record of choices."
        return html.section(_TITLE, html.paragraph(words))
    lines = [[name, _show_leaf(leaf)] for name, leaf in _walk(report.summary())]
    told = describe_choices(
        report, f"Target ({subject.target})" if subject.target else "Target"
    )
    parts: list[object] = [
        html.paragraph(
            "Everything was chosen out of fold, on training rows that the part in "
            "question had not seen. Losses are of the candidates; less is better."
        ),
        html.element("ul", *(html.element("li", sentence) for sentence in told)),
        *_draw_experts(model, report, subject),
        html.element("h3", "All figures"),
        html.details(
            f"{count(len(lines), 'line')}, what was weighed against what",
            html.table("Choices and losses", ["Stage", "Value"], lines[:_MOST_LINES]),
            expanded=expanded,
        ),
    ]
    if len(lines) > _MOST_LINES:
        parts.append(html.paragraph(f"And {len(lines) - _MOST_LINES} lines more."))
    return html.section(_TITLE, *parts)


def _draw_experts(model: Any, report: FitReport, subject: Subject) -> list[Markup]:
    """Return pictures of a regressor's experts, where it has some."""
    experts = getattr(model, "expert_report_", None)
    if not isinstance(experts, ExpertReport):
        return []
    n = len(experts.thresholds)
    picked = np.unique(np.linspace(0, n - 1, _N_THRESHOLDS + 2)[1:-1].round())
    numbers = [int(k) for k in picked] if n > 2 else list(range(n))
    auc, ece = experts.auc, experts.calibration_error.mean()
    before = experts.calibration_error_raw.mean()
    told = (
        f"Mean calibration error {before:.3f} before and {ece:.3f} after calibration; "
        f"area under the curve {auc.min():.2f} to {auc.max():.2f}."
    )
    columns = min(len(numbers), 2)
    shape = (-(-len(numbers) // columns), columns)
    words = (
        "Probabilities of experts against the shares that came true, out of fold. "
        "Calibrated ones lie on the diagonal."
    )
    near = describe_areas(report, auc)
    drawn = [
        picture(
            lambda axes: plot_expert_report(experts, axes=axes),
            f"Figures of {n} experts by threshold. {told}",
            f"Each expert answers whether {subject.target or 'the target'} is below a "
            f"threshold{_say_coordinate(report)}. {told}",
            size=(5.6, 6.4),
            panels=(3, 2),
            wide=True,
        ),
    ]
    # An odd number of panels would leave one of the grid empty.
    if shape[0] * shape[1] == len(numbers):
        reliability = picture(
            lambda axes: plot_threshold_reliability(model, numbers=numbers, axes=axes),
            f"Reliability of {len(numbers)} experts. {words}",
            words,
            size=(5.2, 2.7 * shape[0]),
            panels=shape,
            wide=True,
        )
        drawn.append(reliability)
    return [
        html.element("h3", "The experts"),
        *([html.paragraph(near)] if near else []),
        html.element("div", *drawn, class_="pictures"),
    ]


def _say_coordinate(report: FitReport) -> str:
    """Say what thresholds are measured in, where it is not the target itself."""
    frame = report.choices.get("frame")
    kind = frame.get("kind") if isinstance(frame, Mapping) else None
    return {
        "center": ", which is told as the distance from the centre",
        "standardize": ", which is told as the distance from the centre in units of "
        "the scale",
    }.get(str(kind), "")


def _walk(tree: Mapping[Any, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Return the leaves of nested dictionaries with the names on the way."""
    for name, value in tree.items():
        here = f"{path}{name}"
        if isinstance(value, Mapping):
            yield from _walk(value, f"{here}: ")
        elif name != "seconds":  # how long a part took is no choice
            yield here, value


def _show_leaf(value: Any) -> object:
    """Return a number with few digits, and anything else as its text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return html.number(value)
