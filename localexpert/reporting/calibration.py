"""The section on calibration: four pictures, and what each shows here."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom, kstest, spearmanr

from localexpert.plots.calibration import plot_pit, plot_quantile_reliability
from localexpert.plots.sharpness import plot_sharpness
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.findings import SIGNIFICANT, describe_pit, show_p
from localexpert.reporting.markup import Markup, element, paragraph, section, show
from localexpert.reporting.pictures import picture

_LEVELS = np.linspace(0.05, 0.95, 19)
# Fewer rows make bars of single outcomes.
_ROWS_A_BAR = 10


def write_calibration(evidence: Evidence) -> Markup:
    """Return the section."""
    return section(
        "Calibration",
        paragraph(
            "Are events that are forecast with 80 % seen in 80 of 100 cases? Forecasts "
            "should be calibrated first, and then as sharp as they can be."
        ),
        paragraph(evidence.test_coverage().sentence(evidence.coverage)),
        element("h3", "Where outcomes fall in their forecasts"),
        _draw_pit(evidence),
        element("h3", "Outcomes below each quantile"),
        _draw_reliability(evidence),
        element("h3", "Do wide forecasts mean large errors?"),
        _draw_sharpness(evidence),
    )


def _draw_pit(evidence: Evidence) -> Markup:
    test = kstest(evidence.pit, "uniform")
    shown = (
        f"{describe_pit(evidence.pit)} Test of a flat histogram (Kolmogorov-Smirnov): "
        f"{show_p(float(test.pvalue))}."
    )
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


def _draw_reliability(evidence: Evidence) -> Markup:
    n = len(evidence)
    share = np.searchsorted(np.sort(evidence.pit), _LEVELS, "right") / n
    worst = int(np.argmax(np.abs(share - _LEVELS)))
    low, high = (binom.ppf(q, n, _LEVELS) / n for q in (0.05, 0.95))
    out = int(((share < low) | (share > high)).sum())
    shown = (
        f"Here the largest gap is at the {show(100 * _LEVELS[worst], 3)} % quantile, "
        f"below which {show(100 * share[worst], 3)} % of outcomes lie; {out} of "
        f"{len(_LEVELS)} points are outside of the band, where right forecasts have "
        "one in ten."
    )

    shared: dict[str, Any] = {"difference": True, "random_state": evidence.seed}
    y, dist = evidence.y, evidence.dist
    return picture(
        lambda ax: plot_quantile_reliability(y, dist, ax=ax, **shared),
        f"Share of outcomes below the quantiles, less their levels. {shown}",
        "How many more outcomes lie below each quantile than should: above the line "
        "quantiles are too high, below it too low. A curve that rises from left to "
        f"right belongs to intervals that are too wide. {shown}",
    )


def _draw_sharpness(evidence: Evidence) -> Markup:
    spread = evidence.dist.std()
    error = np.abs(evidence.y - evidence.dist.median())

    shown = _say_sharpness(spread, error)
    return picture(
        lambda ax: plot_sharpness(evidence.y, evidence.dist, ax=ax),
        f"Absolute errors against the standard deviations of forecasts. {shown}",
        "Errors against the spread that was forecast: means (dots) should lie on the "
        "crosses, what forecasts expected of their own errors, and rise from left to "
        f"right. {shown}",
    )


def _say_sharpness(spread: Any, error: Any) -> str:
    """Say how much spreads differ, and whether errors follow them."""
    low, high = np.quantile(spread, [0.05, 0.95])
    if len(error) < 3 or np.ptp(spread) <= 1e-9 * spread.max() or np.ptp(error) == 0:
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
