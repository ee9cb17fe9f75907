"""`FitReport` and `FitCheck`: what a fit chose, and whether the fit is good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from scipy.stats import kstest

from calibration._validation import setting
from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.data.training_rows import draw_evenly, effective_rows
from localexpert.data.unseen import warn_user
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.law import Law
from localexpert.partial.scores import pit_values

# At most this many rows are checked. Fewer than the second number tell nothing.
_MOST_ROWS, _FEWEST_ROWS = 2000, 30
# Rows of less weight, as a share of the greatest, count for nothing.
_NOTHING = 1e-6
# Forecasts count as wrong if the p-value of their levels is below the first number and
# their coverage is off by at least the second.
_LEVEL, _LEAST_OFF = 1e-4, 0.03
# Fewer draws are too few for a smooth law.
_FEWEST_DRAWS = 10
# A loss to climatology counts if it is more than this many standard errors.
_ERRORS = 2.0

_SILENT: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def unjudged() -> Iterator[None]:
    """Do not warn of poor forecasts of fits inside, because the caller judges."""
    with setting(_SILENT, True):
        yield


@dataclass(frozen=True)
class FitCheck:
    """How good the out-of-fold forecasts are, measured on 2000 rows at most.

    Parameters
    ----------
    n : int
        Number of rows that were checked; with weights, of rows of equal weight that
        tell as much.
    coverage_50, coverage_90 : float
        Share of targets in the central intervals.
    pit : float
        p-value of the test of uniform PIT values.
    crps, climatology : float
        Mean CRPS, and that of the targets' own distribution.
    error : float
        Standard error of the difference.
    mean, target : float
        Mean of the forecasts' means, and of the targets.
    log_score, log_climatology : float
        Mean log score of the forecasts, and that of the targets' own law, which has
        seen the targets. The log score is the negative log density; for an atom the
        density is its mass over its cell. NaN if the targets' own law would come from
        fewer than 10 values.
    """

    n: int
    coverage_50: float
    coverage_90: float
    pit: float
    crps: float
    climatology: float
    error: float
    mean: float
    target: float
    log_score: float
    log_climatology: float

    @classmethod
    def of(
        cls,
        ask: Callable[[Rows], PredictiveDistribution],
        y: Float64Array,
        weight: Float64Array,
        seed: int,
    ) -> FitCheck:
        """Check forecasts of rows that the models have not seen.

        Parameters
        ----------
        ask : function of an ndarray of int
            It returns the distributions of the rows at these places, of the n rows.
        y, weight : ndarrays of shape (n,)
        seed : int
            Draws the rows.
        """
        rows = np.flatnonzero(weight > _NOTHING * weight.max(initial=0.0))
        share = weight[rows] / weight[rows].sum()
        if len(rows) > _MOST_ROWS:
            equal, rng = bool((share == share[0]).all()), np.random.default_rng(seed)
            drawn = rng.choice(rows, _MOST_ROWS, not equal, None if equal else share)
            rows, times = np.unique(drawn, return_counts=True)
            share = times / _MOST_ROWS
        n, some, came = effective_rows(share), ask(rows), y[rows]
        crps = some.crps(came)
        gain = crps - _climatology(came, share)
        error = 0.0
        if len(rows) > 1:
            error = float(np.sqrt(share @ (gain - share @ gain) ** 2 / (n - 1.0)))
        pit = draw_evenly(pit_values(came, some, seed), share)
        return cls(
            n=int(np.ceil(n - 1e-6)),
            coverage_50=float(share @ some.covered(came, 0.5)),
            coverage_90=float(share @ some.covered(came, 0.9)),
            pit=float(kstest(pit, "uniform").pvalue),
            crps=float(share @ crps),
            climatology=float(share @ (crps - gain)),
            error=error,
            mean=float(share @ some.mean()),
            target=float(share @ came),
            log_score=float(-share @ some.logpdf(came)),
            log_climatology=_log_score_of_own_law(some.law, came, share),
        )

    @property
    def problems(self) -> list[str]:
        """What is wrong, in words. The list is empty if nothing is wrong."""
        found = []
        if self.n < _FEWEST_ROWS:
            found.append(f"{self.n} rows tell little")
        off = max(abs(self.coverage_50 - 0.5), abs(self.coverage_90 - 0.9))
        if self.pit < _LEVEL and off >= _LEAST_OFF:
            found.append(
                f"50 and 90 % intervals hold {self.coverage_50:.0%} and "
                f"{self.coverage_90:.0%} of the targets (PIT test: p = {self.pit:.0e})"
            )
        if self.crps - self.climatology > _ERRORS * self.error:
            found.append(
                f"the CRPS is {self.crps:.4g}, and {self.climatology:.4g} of the "
                "targets' own distribution, which knows no features"
            )
        return found

    def warn(self) -> None:
        """Warn once of everything that is wrong."""
        if self.problems and not _SILENT.get():
            problems = "; ".join(self.problems)
            warn_user(f"forecasts out of fold are not good: {problems}.")

    def __str__(self) -> str:
        """Return a line for each figure."""
        share = 1.0 - self.crps / self.climatology if self.climatology > 0.0 else 0.0
        side = "more" if round(share, 2) < 0.0 else "less"
        lines = {
            "rows": f"{self.n}",
            "coverage": f"50 %: {self.coverage_50:.1%}, 90 %: {self.coverage_90:.1%}",
            "PIT test": f"p = {self.pit:.2g}",
            "CRPS": f"{self.crps:.4g}, {abs(share):.0%} {side} than climatology "
            f"({self.climatology:.4g})",
            "log score": f"{self.log_score:.4g}, of climatology "
            f"{self.log_climatology:.4g}",
            "mean": f"{self.mean:.4g}, of targets {self.target:.4g}",
        }
        return "\n".join(f"{name:12s} {text}" for name, text in lines.items())


def one_draw_each(rows: Rows, weight: Float64Array, seed: int) -> Float64Array:
    """Return weights (m,) of draws that leave each row one, drawn by their weights.

    Draws of one row are no independent targets. The one that is left has the weight of
    all of them.
    """
    drawn = np.random.default_rng(seed).exponential(size=len(rows))
    with np.errstate(divide="ignore"):
        order = np.lexsort((drawn / weight, rows))
    _, first, place = np.unique(rows[order], return_index=True, return_inverse=True)
    alone = np.zeros(len(rows))
    alone[order[first]] = np.bincount(place, weight[order])
    return alone


def _climatology(y: Float64Array, share: Float64Array) -> Float64Array:
    """Return the CRPS of each target (n,) if the other targets are its forecast."""
    if len(y) < 2:
        return np.full(len(y), np.inf)
    order = np.argsort(y, kind="stable")
    z, w = y[order], share[order]
    upto, others = np.cumsum(w * z), 1.0 - w
    # Sums of w_j |z_i - z_j| over j, from the sums below and above.
    away = z * (2.0 * np.cumsum(w) - 1.0) - 2.0 * upto + upto[-1]
    out = np.empty(len(y))
    # These are the pairs of the other rows: all pairs, less those with the row itself.
    pairs = (w @ away - 2.0 * w * away) / others
    out[order] = (away - 0.5 * pairs) / others
    return out


def _log_score_of_own_law(law: Law, y: Float64Array, share: Float64Array) -> float:
    """Return the mean log score of targets by their own law, with the same cells."""
    at = y[:, None] == law.atoms
    if law.curve is None or law.step > 0.0:
        # All values share one extra row, as in the forecasts.
        counts = effective_rows(share) * (share @ at) + 1.0 / len(law.atoms)
        own = Law.discrete(law.atoms, counts[None] / counts.sum())
    else:
        smooth = ~at.any(axis=1)
        rest = draw_evenly(y[smooth], share[smooth])
        if len(rest) < _FEWEST_DRAWS:
            return np.nan
        drawn = PredictiveDistribution.from_samples(rest[None], kind="smooth").law
        own = Law(drawn.curve, law.atoms, (share @ at)[None], law.widths)
    return float(-own.logpdf(y[None])[0] @ share)


@dataclass(frozen=True)
class FitReport:
    """What a fit chose, and what the alternatives scored.

    Parameters
    ----------
    target : {"continuous", "discrete", "mixed"}
    choices : dict
        The choices of each stage. They hold only numbers and names, ready for JSON.
    """

    target: str
    choices: dict[str, Any]

    def add(self, stage: str, choices: dict[str, Any]) -> FitReport:
        """Return a report with one more stage."""
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
