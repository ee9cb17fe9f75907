"""`Judgement`: what all tests of calibration say together, in one voice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import binom, kstest

from calibration.typing import Float64Array
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.findings import (
    SIGNIFICANT,
    CoverageTest,
    lean_and_spread,
    show_p,
)
from localexpert.reporting.markup import count, show

# Of fewer rows tests see gross faults only.
VERY_FEW = 30
_LEVELS = np.linspace(0.05, 0.95, 19)
# Probability of the band that quantiles are drawn with, at each level by itself.
_BAND = 0.9
_DRAWS = 9_999


@dataclass(frozen=True, eq=False)
class Judgement:
    """Tests of the intervals, the PIT values and the quantiles.

    Parameters
    ----------
    test : CoverageTest
    pit : ndarray of shape (n,)
        PIT values, sorted.
    seed : int
        Of the draws that the test of the quantiles is made by.
    """

    test: CoverageTest
    pit: Float64Array
    seed: int

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.pit)

    @cached_property
    def flat_p(self) -> float:
        """p-value of a flat histogram of PIT values (Kolmogorov-Smirnov)."""
        return float(kstest(self.pit, "uniform").pvalue)

    @cached_property
    def shares(self) -> Float64Array:
        """Share of outcomes below the quantile of each level, shape (19,)."""
        return np.searchsorted(self.pit, _LEVELS, "right") / self.n

    @cached_property
    def points_out(self) -> int:
        """Number of levels whose share of outcomes is outside of its band."""
        low, high = _band(self.n)
        below = np.round(self.shares * self.n)
        return int(((below < low) | (below > high)).sum())

    @cached_property
    def points_p(self) -> float:
        """Probability that right forecasts have as many levels outside, or more.

        Levels are counted on the same rows, so how many go together is drawn.
        """
        cells = np.diff(np.concatenate([[0.0], _LEVELS, [1.0]]))
        rng = np.random.default_rng([self.seed, self.n])
        below = rng.multinomial(self.n, cells, size=_DRAWS)[:, :-1].cumsum(axis=1)
        low, high = _band(self.n)
        out = ((below < low) | (below > high)).sum(axis=1)
        return float((1 + (out >= self.points_out).sum()) / (_DRAWS + 1))

    @cached_property
    def leanings(self) -> list[str]:
        """What forecasts are as a whole, "too high" for instance, with p-values."""
        if self.n == 1:
            return []
        told = []
        for word, p in lean_and_spread(self.pit):
            if p < SIGNIFICANT:
                told.append(f"{self._place(word)} ({show_p(p)})")
        return told

    @cached_property
    def faults(self) -> list[str]:
        """What the tests of whole forecasts reject, in words; empty if nothing."""
        if self.n == 1:
            return []
        if self.leanings:
            return self.leanings
        if self.flat_p < SIGNIFICANT:
            return [f"not calibrated (PIT values, {show_p(self.flat_p)})"]
        if self.points_p < SIGNIFICANT:
            return [f"not calibrated (quantiles, {show_p(self.points_p)})"]
        return []

    @property
    def verdict(self) -> str:
        """What stands on the card of the intervals."""
        if self.n == 1:
            return "one row tells nothing"
        words = {"narrow": "too narrow", "wide": "too wide"}
        if self.test.verdict != "right":
            return words[self.test.verdict]
        if self.faults:
            return "right in number, but see below"
        return "too few rows to tell" if self.n < VERY_FEW else "as it should be"

    def sentences(self) -> list[str]:
        """Return the headline's words on calibration."""
        told = [self.test.sentence()]
        if self.n == 1:
            return told
        if self.faults:
            told.append(f"As a whole, forecasts are {' and '.join(self.faults)}.")
        elif self.test.verdict != "right":
            told.append("Tests of whole forecasts see no other fault.")
        if self.n < VERY_FEW:
            told.append(f"Tests of only {count(self.n, 'row')} see gross faults only.")
        return told

    def describe_pit(self) -> str:
        """Say what the histogram of PIT values shows."""
        if self.n == 1:
            return (
                f"Here there is one row, whose outcome fell at {show(self.pit[0], 3)}: "
                "one value says nothing of calibration."
            )
        flat = f"Test of a flat histogram (Kolmogorov-Smirnov): {show_p(self.flat_p)}."
        if self.leanings:
            told = " and ".join(self.leanings)
            return f"Here forecasts are, on the whole, {told}. {flat}"
        return (
            "Here neither their mean nor their spread differs from a flat "
            f"histogram's by more than chance explains. {flat}"
        )

    def describe_quantiles(self) -> str:
        """Say how many outcomes lie below quantiles, and if chance explains it."""
        if self.n == 1:
            return "Here there is one row, which says nothing of calibration."
        worst = int(np.argmax(np.abs(self.shares - _LEVELS)))
        chance = (
            "chance does not explain"
            if self.points_p < SIGNIFICANT
            else ("chance alone may explain")
        )
        return (
            f"Here the largest gap is at the {show(100 * _LEVELS[worst], 3)} % "
            f"quantile, below which {show(100 * self.shares[worst], 3)} % of outcomes "
            f"lie. Of {len(_LEVELS)} points {self.points_out} "
            f"{'is' if self.points_out == 1 else 'are'} outside of the band, which "
            f"{chance} ({show_p(self.points_p)}; neighbours go together)."
        )

    def _place(self, word: str) -> str:
        """Return a word on the spread such that it does not deny the intervals'."""
        sides = {"too wide": "narrow", "too narrow": "wide"}
        if sides.get(word) == self.test.verdict:
            return f"{word} around their medians"
        return word


def judge(evidence: Evidence) -> Judgement:
    """Test the forecasts of a report."""
    test = evidence.test_coverage()
    return Judgement(test, np.sort(evidence.pit), evidence.seed)


def _band(n: int) -> tuple[Float64Array, Float64Array]:
    """Return the least and greatest number of outcomes in the band at each level."""
    tail = 0.5 * (1.0 - _BAND)
    low: Float64Array = np.asarray(binom.ppf(tail, n, _LEVELS))
    high: Float64Array = np.asarray(binom.ppf(1.0 - tail, n, _LEVELS))
    return low, high
