"""The section on features: what forecasts lose without each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from localexpert.data.table import take_rows
from localexpert.data.unseen import unseen_silently
from localexpert.explain import PermutationImportance, permutation_importance
from localexpert.plots.importance import plot_importance
from localexpert.reporting import markup as html
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.markup import Markup, Section
from localexpert.reporting.pictures import label, picture

# Permutations of a feature, and of each of more features than _MANY.
_REPEATS, _FEWER_REPEATS, _MANY = 3, 2, 60
# Rows that are forecast in all, so that many features do not take minutes.
_MOST_FORECASTS = 60_000
_LEAST_ROWS = 50
_MOST_SHOWN = 15
# Characters of a name beside the heat map.
_LONGEST = 22
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class Importance:
    """Importance of the features on a sample of rows.

    Parameters
    ----------
    told : PermutationImportance
    n_rows, n_repeats : int
    """

    told: PermutationImportance
    n_rows: int
    n_repeats: int

    @property
    def ranking(self) -> Sequence[int]:
        """Features by the increase of the CRPS, the greatest first."""
        return [int(j) for j in np.argsort(-self.told.crps, kind="stable")]


@unseen_silently()
def measure_importance(
    evidence: Evidence, most_rows: int, verbose: bool | int = 0
) -> Importance | None:
    """Permute every feature on a sample of at most so many rows; None below two."""
    p = len(evidence.names)
    repeats = _REPEATS if p <= _MANY else _FEWER_REPEATS
    affordable = _MOST_FORECASTS // (repeats * p)
    n = min(len(evidence), most_rows, max(affordable, _LEAST_ROWS))
    if n < 2:
        return None
    rng = np.random.default_rng(evidence.seed)
    rows = np.sort(rng.choice(len(evidence), n, replace=False))
    told = permutation_importance(
        evidence.model,
        take_rows(evidence.X, rows),
        evidence.y[rows],
        levels=_LEVELS,
        n_repeats=repeats,
        random_state=evidence.seed,
        verbose=verbose,
    )
    return Importance(told, n, repeats)


def write_importance(evidence: Evidence, importance: Importance | None) -> Section:
    """Return the section."""
    title = "Which features matter"
    if importance is None:
        words = "It was not measured, on one row or because none were to be taken."
        return html.section(title, html.paragraph(words))
    told, n = importance.told, importance.n_rows
    whole = "all" if n == len(evidence) else f"{n:,} of the {len(evidence):,}"
    names, base = told.feature_names, told.baseline[0]
    shown = importance.ranking[:_MOST_SHOWN]
    part = f", the first {len(shown)} of {len(names)} features"
    some = part if len(shown) < len(names) else ""
    rows = [
        [
            names[j],
            html.number(float(told.crps[j]), 3),
            html.number(float(told.standard_errors[j, 0]), 1),
            html.percent(float(told.crps[j]) / base) if base else "",
        ]
        for j in shown
    ]
    return html.section(
        title,
        html.paragraph(
            "How much worse forecasts get when the values of a feature change rows "
            f"({whole} rows, {importance.n_repeats} permutations). A feature that "
            "others can stand in for seems to matter less than it does."
        ),
        _draw(importance),
        html.table(
            f"Increase of the CRPS{some}",
            ["Feature", "Increase", "Standard error", "Of the CRPS"],
            rows,
        ),
    )


def _draw(importance: Importance) -> Markup:
    """Return a heat map: features by quantiles."""
    told = importance.told
    shown = importance.ranking[:_MOST_SHOWN]
    first = told.feature_names[shown[0]]

    def draw(ax: Any) -> None:
        plot_importance(
            told.pinball[shown],
            features=[label(told.feature_names[j], _LONGEST) for j in shown],
            columns=[f"{100 * level:g}%" for level in told.levels],
            sort=False,
            label="Increase of loss",
            ax=ax,
        )
        ax.set_xlabel("Quantile")

    return picture(
        draw,
        f"Importance of {len(shown)} features for five quantiles. The greatest for "
        f"whole forecasts is {first}.",
        "Increase of the loss of each quantile: a feature may matter for the high ones "
        "only, such as one that tells how uncertain an outcome is.",
        size=(5.0, 1.4 + 0.28 * len(shown)),
    )
