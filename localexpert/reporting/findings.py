"""`Finding`: what the figures show, in words; and the tests behind the words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import binomtest, norm

from calibration.typing import Float64Array
from localexpert.reporting.markup import LEAST_P, Markup, element, show, show_percent

# Below this probability of as much or more by chance, a difference is spoken of.
SIGNIFICANT = 0.01

_MARKS = {"warning": "Warning", "note": "Note", "fine": "Fine"}


@dataclass(frozen=True)
class Finding:
    """One thing that a reader should know.

    Parameters
    ----------
    kind : {"warning", "note", "fine"}
    text : str
    """

    kind: Literal["warning", "note", "fine"]
    text: str

    def render(self) -> Markup:
        """Return it as an item of a list; its kind is told by a word, not a colour."""
        mark = element("b", f"{_MARKS[self.kind]}:")
        return element("li", mark, " ", self.text, class_=self.kind)


def render_findings(findings: Sequence[Finding]) -> Markup:
    """Return findings as a list, warnings first."""
    order = list(_MARKS)
    ranked = sorted(findings, key=lambda finding: order.index(finding.kind))
    items = [finding.render() for finding in ranked]
    return element("ul", *items, class_="findings")


@dataclass(frozen=True)
class CoverageTest:
    """How many of n outcomes their intervals covered, and how many should be.

    Parameters
    ----------
    n : int
    hits : float
        Not a whole number where some outcomes have probability of their own and are
        covered in part.
    coverage : float
        Nominal.
    between : int, optional
        How many lay between the ends of their intervals, or on them.
    """

    n: int
    hits: float
    coverage: float
    between: int | None = None

    @property
    def share(self) -> float:
        """Share of outcomes covered."""
        return self.hits / self.n

    @property
    def p_value(self) -> float:
        """Probability of a share at least as unlikely if forecasts were right.

        Where outcomes are covered in part, the sum varies less than the binomial law
        says (Hoeffding 1956), so the test errs on the side of silence.
        """
        return float(binomtest(round(self.hits), self.n, self.coverage).pvalue)

    @property
    def verdict(self) -> Literal["right", "narrow", "wide"]:
        """What the intervals are, as far as the outcomes tell; of one, nothing."""
        if self.n == 1 or self.p_value >= SIGNIFICANT:
            return "right"
        return "narrow" if self.share < self.coverage else "wide"

    def sentence(self) -> str:
        """Return the finding in words."""
        digits = 0 if self.coverage * 100 % 1 < 1e-9 else 1
        nominal = show_percent(self.coverage, digits)
        if self.n == 1:
            where = "inside" if self.hits else "outside of"
            return (
                f"The outcome of the only row fell {where} its {nominal} interval; "
                "one row cannot be tested."
            )
        inside = show_percent(self.share)
        told = f"{inside} of {self.n:,} outcomes fell inside the {nominal} intervals"
        if self.between is not None and self.between != self.hits:
            # Of values that repeat an interval takes more than its share.
            between = show_percent(self.between / self.n)
            told = (
                f"{between} of {self.n:,} outcomes lay between the ends of the "
                f"{nominal} intervals or on them; counted by the share of a repeated "
                f"value that lies inside, as right forecasts hold {nominal}, it was "
                f"{inside}"
            )
        chance = f"binomial test, {show_p(self.p_value)}"
        end = {
            "right": f"which chance alone may explain ({chance})",
            "narrow": f"fewer than should: the intervals are too narrow ({chance})",
            "wide": f"more than should: the intervals are too wide ({chance})",
        }
        return f"{told}, {end[self.verdict]}."


def lean_and_spread(pit: Float64Array) -> list[tuple[str, float]]:
    """Say what PIT values (n,) lean to, and its p-value, by their first two moments.

    For uniform values, their mean has variance 1 / 12n, and the mean of squared
    distances from 1/2 has mean 1/12 and variance 1 / 180n.
    """
    n = len(pit)
    # In standard errors: a uniform u has variance 1 / 12, (u - 1/2)^2 has 1 / 180.
    lean = (pit.mean() - 0.5) * np.sqrt(12.0 * n)
    spread = (np.mean((pit - 0.5) ** 2) - 1.0 / 12.0) * np.sqrt(180.0 * n)
    return [
        ("too low" if lean > 0 else "too high", float(2.0 * norm.sf(abs(lean)))),
        ("too narrow" if spread > 0 else "too wide", float(2.0 * norm.sf(abs(spread)))),
    ]


def adjust_holm(p_values: Sequence[float]) -> Float64Array:
    """Return p-values of m tests such that one that is true is seldom rejected.

    Holm (1979): the k-th smallest is multiplied by m - k + 1, and none is less than
    one before it.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    raised = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(raised, 1.0)[np.argsort(order)]


def show_p(p_value: float) -> str:
    """Return a p-value with its sign, without digits that mean nothing."""
    if p_value < LEAST_P:
        return f"p < {LEAST_P:.4f}"
    return f"p = {show(p_value, 2)}"
