"""The section on calibration: four pictures, and what each shows here."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from localexpert.plots.calibration import plot_pit, plot_quantile_reliability
from localexpert.plots.sharpness import plot_sharpness
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.findings import SIGNIFICANT, show_p
from localexpert.reporting.judgement import Judgement
from localexpert.reporting.markup import (
    Markup,
    Section,
    element,
    paragraph,
    section,
    show,
)
from localexpert.reporting.pictures import picture
from localexpert.reporting.subject import Subject

# Fewer rows make bars of single outcomes.
_ROWS_A_BAR = 10


def write_calibration(
    evidence: Evidence, subject: Subject, judgement: Judgement
) -> Section:
    """Return the section."""
    return section(
        "Calibration",
        paragraph(
            "Are events that are forecast with 80 % seen in 80 of 100 cases? Forecasts "
            "should be calibrated first, and then as sharp as they can be."
        ),
        paragraph(judgement.test.sentence()),
        element(
            "div",
            _below("Where outcomes fall", _draw_pit(evidence, judgement)),
            _below("Outcomes below quantiles", _draw_reliability(evidence, judgement)),
            _below("Do wide forecasts err more?", _draw_sharpness(evidence, subject)),
            class_="pictures",
        ),
    )


def _below(heading: str, drawn: Markup) -> Markup:
    """Return a picture below its heading."""
    return element("div", element("h3", heading), drawn)


def _draw_pit(evidence: Evidence, judgement: Judgement) -> Markup:
    shown = judgement.describe_pit()
    bins = int(np.clip(len(evidence) // _ROWS_A_BAR, 4, 20))
    shared: dict[str, Any] = {"bins": bins, "random_state": evidence.seed}
    return picture(
        lambda ax: plot_pit(evidence.y, evidence.dist, ax=ax, **shared),
        f"Histogram of PIT values in {bins} bars. {shown}",
        "The histogram of PIT values, the levels of the forecasts at which outcomes "
        "fell, is flat if forecasts are right: a trough says that they are too "
        "narrow, a hump that they are too wide, a slope that they are too high or too "
        f"low. The band holds the bars of right forecasts. {shown}",
    )


def _draw_reliability(evidence: Evidence, judgement: Judgement) -> Markup:
    shown = judgement.describe_quantiles()
    shared: dict[str, Any] = {"difference": True, "random_state": evidence.seed}
    y, dist = evidence.y, evidence.dist
    return picture(
        lambda ax: plot_quantile_reliability(y, dist, ax=ax, **shared),
        f"Share of outcomes below the quantiles, less their levels. {shown}",
        "How many more outcomes lie below each quantile than should: above the line "
        "quantiles are too high, below it too low. A curve that rises from left to "
        f"right belongs to intervals that are too wide. {shown}",
    )


def _draw_sharpness(evidence: Evidence, subject: Subject) -> Markup:
    spread = evidence.dist.std()
    error = np.abs(evidence.y - evidence.dist.median())

    shown = _say_sharpness(spread, error)

    def draw(ax: Any) -> None:
        plot_sharpness(evidence.y, evidence.dist, ax=ax)
        ax.set_xlabel(f"{ax.get_xlabel()}{subject.scale}")
        ax.set_ylabel(f"{ax.get_ylabel()}{subject.scale}")

    return picture(
        draw,
        f"Absolute errors against the standard deviations of forecasts. {shown}",
        "Errors against the spread that was forecast: means (dots) should lie on the "
        "crosses, what forecasts expected of their own errors, and rise from left to "
        f"right. {shown}",
    )


def _say_sharpness(spread: Any, error: Any) -> str:
    """Say how much spreads differ, and whether errors follow them."""
    low, high = np.quantile(spread, [0.05, 0.95])
    if len(error) < 3:
        return "Here rows are too few to tell."
    if np.ptp(spread) <= 1e-9 * spread.max() or np.ptp(error) == 0:
        return "Here all forecasts, or all errors, are as large, so nothing is told."
    result = spearmanr(spread, error)
    told = f"rank correlation {show(float(result.statistic), 2)}"
    wide = f"{show(high / low, 2)} times as wide as" if low > 0 else "wider than"
    start = f"Here the widest twentieth of forecasts is {wide} the narrowest, and "
    size = "smaller" if result.statistic < 0 else "larger"
    how = f"are {size} where forecasts are wide"
    if result.pvalue >= SIGNIFICANT:
        how = "show no clear connection with it"
    return f"{start}errors {how} ({told}, {show_p(float(result.pvalue))})."
