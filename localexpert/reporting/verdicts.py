"""What outcomes say of forecasts: coverage, calibration, value at risk, promises."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, xlogy
from scipy.stats import binomtest, chi2, kstest, norm

from calibration.typing import Float64Array
from localexpert.distribution.answers import ExpectedMean
from localexpert.distribution.predictive import PredictiveDistribution

# Below this probability of as much or more by chance, a difference is spoken of.
SIGNIFICANT = 0.01
# Of fewer rows tests see gross faults only.
VERY_FEW = 30
# Standard errors to the end of an interval of 95 %.
_ERRORS = float(ndtri(0.975))


@dataclass(frozen=True)
class CoverageTest:
    """How many of n outcomes lay in their intervals, and how many should.

    Parameters
    ----------
    n : int
    inside : int
        Outcomes between the ends of their intervals, or on them.
    hits : float
        The same corrected for jumps: of a value with probability of its own, the share
        that the interval takes. Right forecasts have `coverage` of these.
    coverage : float
        Nominal.
    """

    n: int
    inside: int
    hits: float
    coverage: float

    @property
    def literal(self) -> float:
        """Share of outcomes between the ends of their intervals."""
        return self.inside / self.n

    @property
    def share(self) -> float:
        """Share of outcomes that is covered, corrected for jumps."""
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


@dataclass(frozen=True, eq=False)
class Calibration:
    """Tests of the intervals and of the PIT values, in one voice.

    Parameters
    ----------
    test : CoverageTest
    pit : ndarray of shape (n,)
        PIT values.
    """

    test: CoverageTest
    pit: Float64Array

    @cached_property
    def flat_p(self) -> float:
        """p-value of a flat histogram of PIT values (Kolmogorov-Smirnov)."""
        return float(kstest(self.pit, "uniform").pvalue)

    @cached_property
    def moments(self) -> list[tuple[str, float]]:
        """What PIT values lean to, and the p-value, by their first two moments.

        The mean of n uniform values has variance 1 / 12n; the mean of their squared
        distances from 1/2 has mean 1/12 and variance 1 / 180n.
        """
        n = len(self.pit)
        lean = (self.pit.mean() - 0.5) * np.sqrt(12.0 * n)
        square = np.mean((self.pit - 0.5) ** 2)
        spread = (square - 1.0 / 12.0) * np.sqrt(180.0 * n)
        side, width = "low" if lean > 0 else "high", "narrow" if spread > 0 else "wide"
        tails = 2.0 * norm.sf(np.abs([lean, spread]))
        # A word on the spread must not deny what is said of the intervals.
        around = {"narrow": "wide", "wide": "narrow"}[width] == self.test.verdict
        width = f"{width} around their medians" if around else width
        return list(zip((f"too {side}", f"too {width}"), tails.tolist(), strict=True))

    @cached_property
    def faults(self) -> list[str]:
        """What forecasts are as a whole, "too low" for instance; empty if right."""
        if self.test.n == 1:
            return []
        found = [word for word, p in self.moments if p < SIGNIFICANT]
        return found or (["not calibrated"] if self.flat_p < SIGNIFICANT else [])

    @property
    def verdict(self) -> str:
        """What stands on the card of the intervals."""
        if self.test.n == 1:
            return "one row tells nothing"
        if self.test.verdict != "right":
            return f"too {self.test.verdict}"
        if self.faults:
            return "right in number, but see below"
        return "too few rows to tell" if self.test.n < VERY_FEW else "as it should be"


@dataclass(frozen=True)
class BackTest:
    """How often outcomes passed their value at risk, and whether chance explains it.

    Parameters
    ----------
    level : float
        Of the value at risk, .95 for instance.
    n : int
    passed : int
    chance : float
        Mean probability that forecasts gave to it: 1 - level, or less at jumps.
    kupiec : float
        Of as many, the p-value (Kupiec 1995, likelihood ratio).
    independence : float
        Of rows in their order having no effect on the next one, the p-value; 1 where
        there is nothing to compare (Christoffersen 1998).
    conditional : float
        Of both together, the p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.reporting import BackTest
    >>> passed = np.arange(100) % 10 == 0
    >>> round(BackTest.of(passed, 0.95, 0.05).kupiec, 3)
    0.042
    """

    level: float
    n: int
    passed: int
    chance: float
    kupiec: float
    independence: float
    conditional: float

    @classmethod
    def of(cls, passed: NDArray[np.bool_], level: float, chance: float) -> BackTest:
        """Test whether outcomes passed as often as with some probability.

        Parameters
        ----------
        passed : ndarray of bool, shape (n,)
            Which outcomes passed their value at risk, in the order of rows.
        level, chance : float
            Of the value at risk, and the probability of passing it.

        Returns
        -------
        BackTest
        """
        n, x = len(passed), int(passed.sum())
        often = 2.0 * (_likelihood(n - x, x, x / n) - _likelihood(n - x, x, chance))
        # Pairs of neighbours: by whether the first passed, and then the second.
        first, second = passed[:-1], passed[1:]
        pairs = [[int((first == a)[second == b].sum()) for b in (0, 1)] for a in (0, 1)]
        (n00, n01), (n10, n11) = pairs
        alike = _likelihood(n00 + n10, n01 + n11, _share(n00 + n10, n01 + n11))
        apart = sum(_likelihood(no, yes, _share(no, yes)) for no, yes in pairs)
        runs = 2.0 * (apart - alike)
        tails = chi2.sf([often, runs, often + runs], [1, 1, 2])
        return cls(level, n, x, chance, *map(float, np.minimum(tails, 1.0)))

    @property
    def share(self) -> float:
        """Share of outcomes that passed."""
        return self.passed / self.n


def _likelihood(no: int, yes: int, p: float) -> float:
    """Return the log-likelihood of a share."""
    return float(xlogy(no, 1.0 - p) + xlogy(yes, p))


def _share(no: int, yes: int) -> float:
    return yes / (no + yes) if no + yes else 0.0


@dataclass(frozen=True)
class Promise:
    """The mean loss of some rows, as forecasts expected it and as it came.

    Parameters
    ----------
    expected : ExpectedMean
        With the interval that should hold 95 % of means.
    realised : float
    p_value : float
        Probability of a mean at least as far off, if outcomes came from the
        forecasts; 1 where losses are not finite or certain.
    """

    expected: ExpectedMean
    realised: float
    p_value: float

    @classmethod
    def of(cls, y: Float64Array, dist: PredictiveDistribution, loss: str) -> Promise:
        """Return the expected and the realised "crps" or "abs_error" of outcomes."""
        expected = dist.expected_mean(loss)
        losses = dist.crps(y) if loss == "crps" else np.abs(y - dist.median())
        realised = float(losses.mean())
        reach = expected.high - expected.mean
        known = np.isfinite(reach) and reach > 0.0
        away = abs(realised - expected.mean) / reach if known else 0.0
        return cls(expected, realised, float(2.0 * ndtr(-away * _ERRORS)))
