"""`FitReport`: what a fit chose on its way."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class FitReport:
    """What was chosen, and what the alternatives scored.

    Parameters
    ----------
    target : {"continuous", "discrete", "mixed"}
    choices : dict
        By stage, numbers and names only, ready for JSON.
    """

    target: str
    choices: dict[str, Any]

    def add(self, stage: str, choices: dict[str, Any]) -> FitReport:
        """Return a report with one stage more."""
        return FitReport(self.target, {**self.choices, stage: choices})

    def __str__(self) -> str:
        """Return one line per stage, with what was chosen there."""
        return "\n".join(f"{stage:12s} {chosen}" for stage, chosen in self._stages())

    def _repr_html_(self) -> str:
        """Return a table with one row per stage, for notebooks."""
        rows = "".join(
            f"<tr><th>{escape(stage)}</th>"
            f'<td style="text-align: left">{escape(chosen)}</td></tr>'
            for stage, chosen in self._stages()
        )
        return f"<table><caption>Chosen by fit</caption>{rows}</table>"

    def _stages(self) -> list[tuple[str, str]]:
        chosen = [(stage, _chosen(found)) for stage, found in self.choices.items()]
        return [("target", self.target), *chosen]

    def summary(self) -> dict[str, Any]:
        """Return everything as one dictionary."""
        return {"target": self.target, **self.choices}


def _chosen(choices: Any) -> str:
    """Return what a stage chose, with what the alternatives scored."""
    if not isinstance(choices, dict):
        return str(choices)
    if "cure" in choices:
        share = f"{100.0 * choices['mass']:.2g}% of the mass out of fold lies"
        return f"{share} where y never is; {choices['cure']} keeps it out"
    if "copies" in choices:
        return f"{choices['copies']} rows are equal to others in all features: one fold"
    parts = [str(choices[key]) for key in ("kind", "chosen") if key in choices]
    for key in ("weights", "losses", "rmse", "rmse_of_mean"):
        value = choices.get(key)
        if isinstance(value, dict) and value:
            inner = ", ".join(f"{name} {x:.4g}" for name, x in value.items())
            parts.append(f"{key}: {inner}")
        elif value is not None and not isinstance(value, dict):
            parts.append(f"{key} {value:.4g}")
    if choices.get("left out"):
        parts.append(f"no time for {', '.join(choices['left out'])}")
    return "; ".join(parts) or ", ".join(map(str, choices))
