"""What a forecast is to say, by brute force, and forecasts that are to say it.

Only public names are used, so that these hold whatever class is behind a forecast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp, ndtr

from localexpert import PredictiveDistribution, concatenate, pool

Floats = NDArray[np.float64]

# Normal scores at which laws of scipy are read off; sums over them are right to 1e-7.
SCORES = np.arange(-12_000, 12_001) / 1000.0
SHARES = np.exp(-0.5 * SCORES**2) / np.exp(-0.5 * SCORES**2).sum()

from_scipy = PredictiveDistribution.from_scipy


@dataclass(frozen=True)
class Truth:
    """One row: a mixture of laws of scipy and of values with probability of their own.

    Parameters
    ----------
    parts : tuple of (float, frozen law)
        Weights and continuous laws.
    values, masses : ndarrays of shape (k,)
        Increasing values and their probabilities.
    """

    parts: tuple[tuple[float, Any], ...] = ()
    values: Floats = field(default_factory=lambda: np.empty(0))
    masses: Floats = field(default_factory=lambda: np.empty(0))

    def cdf(self, y):
        upto = np.asarray(y)[..., None] >= self.values
        smooth = [weight * law.cdf(y) for weight, law in self.parts]
        return sum(smooth, upto @ self.masses)

    @cached_property
    def nodes(self):
        """Increasing values and their probabilities, of which sums are integrals."""
        y = np.concatenate([*(_read_off(law) for _, law in self.parts), self.values])
        shares = [weight * SHARES for weight, _ in self.parts]
        order = np.argsort(y)
        return y[order], np.concatenate([*shares, self.masses])[order]

    def logpdf(self, y):
        """Return the log density of the smooth part."""
        parts = [np.log(weight) + law.logpdf(y) for weight, law in self.parts]
        return logsumexp(parts, axis=0)

    def ppf(self, q):
        """Return the least y with P(Y <= y) >= q."""
        levels = np.asarray(q, dtype=np.float64)
        ends = [law.ppf(levels) for _, law in self.parts]
        ends += [np.full(levels.shape, value) for value in self.values]
        low, high = np.min(ends, axis=0), np.max(ends, axis=0)
        for _ in range(80):
            middle = 0.5 * (low + high)
            enough = self.cdf(middle) >= levels
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        for value, mass in zip(self.values, self.masses, strict=True):
            upto = float(self.cdf(value))
            high = np.where((levels > upto - mass) & (levels <= upto), value, high)
        return np.asarray(high)

    def expect(self, func):
        """Return E func(Y)."""
        y, shares = self.nodes
        return func(y) @ shares

    def mean(self):
        return self.expect(lambda y: y)

    def std(self):
        mean = self.mean()
        return np.sqrt(self.expect(lambda y: (y - mean) ** 2))

    def entropy(self):
        """Return the expected log score; values count as cells of width 1."""
        if not self.parts:
            return stats.entropy(self.masses)
        if len(self.parts) == 1:
            return self.parts[0][1].entropy()
        return self.expect(lambda y: -self.logpdf(y))

    def losses(self, y):
        """Return E abs(Y - y) - E abs(Y - Y') / 2 and the two parts of E abs(Y - y)."""
        x, shares = self.nodes
        below = np.maximum(y[:, None] - x, 0.0) @ shares
        above = np.maximum(x - y[:, None], 0.0) @ shares
        middle = np.cumsum(shares) - 0.5 * shares
        half_distance = (2.0 * middle - 1.0) * x @ shares
        return np.stack([below + above - half_distance, below, above])

    def shortest(self, coverage):
        """Return the shortest interval that holds the coverage."""
        lower = np.linspace(0.0, 1.0 - coverage, 2001)
        if not self.parts:
            before = np.cumsum(self.masses) - self.masses
            lower = before[before <= 1.0 - coverage]
        # On the inner side of a jump, whatever rounding says.
        lows, highs = self.ppf(lower + 1e-12), self.ppf(lower + coverage - 1e-12)
        best = np.argmin(highs - lows)
        return lows[best], highs[best]


@cache
def _read_off(law):
    """Return a law's values at the normal scores, from the nearer end."""
    half = len(SCORES) // 2
    low = law.ppf(ndtr(SCORES[:half]))
    return np.concatenate([low, law.isf(ndtr(-SCORES[half:]))])


@dataclass(frozen=True)
class Bars:
    """How far answers may be off: `crps` of itself, log scores in nats, others in sd.

    `cdf` is a probability, `sd` is relative, and `quantile` is of all that are values.
    """

    crps: float = 1e-4
    log: float = 2e-3
    mean: float = 1e-4
    sd: float = 2e-3
    quantile: float = 2e-3
    entropy: float = 2e-3
    partial: float = 1e-4
    cdf: float = 1e-3


USUAL = Bars()
# Of draws and histograms, which say what they are of only so well.
LOOSE = Bars(2e-3, 0.12, 2e-3, 1e-2, 2e-2, 1e-2, 2e-3, 1e-2)
# A narrow law in a wide one: the log score at its worst quantile, not in the mean.
NARROW_BARS = replace(USUAL, quantile=8e-3, cdf=5e-3, log=1e-2)


@dataclass(frozen=True)
class Case:
    """A forecast of three rows, what is true of them, and how near it must be.

    Parameters
    ----------
    make : callable
        Makes the forecast.
    rows : tuple of Truth
    bars : Bars
    end : bool
        Whether each row has a greatest density at its lower end, or is flat.
    """

    make: Callable[[], PredictiveDistribution]
    rows: tuple[Truth, ...]
    bars: Bars = USUAL
    end: bool = False

    @property
    def smooth(self):
        return all(len(row.values) == 0 for row in self.rows)

    @property
    def discrete(self):
        return not any(row.parts for row in self.rows)

    def of_rows(self, ask):
        """Return answers of the rows, which come last."""
        return np.stack([np.asarray(ask(row), dtype=float) for row in self.rows], -1)

    def at(self, ask, y):
        """Return answers of the rows at values of their own, y (..., n)."""
        pairs = zip(self.rows, np.moveaxis(y, -1, 0), strict=True)
        return np.stack([ask(row, own) for row, own in pairs], -1)

    def std(self):
        return self.of_rows(Truth.std)


LOC = np.array([-1.0, 0.5, 20.0])
SCALE = np.array([0.3, 1.0, 5.0])
NEAR, NARROW = np.array([-1.0, 0.0, 2.0]), np.array([0.3, 0.5, 0.6])
LEVELS = np.arange(1, 100) / 100


def _alone(law):
    return Truth(parts=((1.0, law),))


def _scipy(family, *shape, end=False):
    laws = [family(*shape, loc=a, scale=b) for a, b in zip(LOC, SCALE, strict=True)]
    rows = tuple(_alone(law) for law in laws)
    return Case(lambda: from_scipy(family(*shape, loc=LOC, scale=SCALE)), rows, end=end)


NORMALS = tuple(stats.norm(a, b) for a, b in zip(LOC, SCALE, strict=True))
NORMAL_ROWS = tuple(_alone(law) for law in NORMALS)


def _normal():
    return from_scipy(stats.norm(LOC, SCALE))


def _mixture(shift, ratio, bars):
    others = stats.norm(LOC + shift * SCALE, ratio * SCALE)
    rows = [
        Truth(((0.5, law), (0.5, stats.norm(a + shift * b, ratio * b))))
        for law, a, b in zip(NORMALS, LOC, SCALE, strict=True)
    ]
    return Case(lambda: pool([_normal(), from_scipy(others)]), tuple(rows), bars)


def _quantiles():
    rows = LOC[:, None] + SCALE[:, None] * stats.norm.ppf(LEVELS)
    return PredictiveDistribution.from_quantiles(rows, LEVELS)


def _many_draws():
    # The middles of equal shares: draws without noise, in any order.
    z = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    z = np.random.default_rng(0).permutation(z)
    return PredictiveDistribution.from_samples(LOC[:, None] + SCALE[:, None] * z)


# 37 draws: no level of a hundredth is at a step of the CDF.
DRAWS = np.random.default_rng(0).poisson([[1.0], [4.0], [9.0]], (3, 37)).astype(float)


def _few_draws():
    found = [np.unique(row, return_counts=True) for row in DRAWS]
    rows = tuple(Truth((), values, counts / 37) for values, counts in found)

    make = partial(PredictiveDistribution.from_samples, DRAWS, kind="discrete")
    return Case(make, rows, Bars(*[1e-12] * 8))


def _poisson():
    values = np.arange(60.0)
    means = np.array([0.7, 4.0, 9.0])
    rows = tuple(Truth((), values, stats.poisson(m).pmf(values)) for m in means)
    return Case(lambda: from_scipy(stats.poisson(means)), rows, Bars(*[1e-9] * 8))


def _rounded(frozen, values, low=-np.inf):
    """Return the case of values (V,), each of all of a curve within a half of it."""
    smooth = from_scipy(frozen)
    arrays = smooth.to_arrays() | {"moments": None, "step": 1.0, "offset": values[0]}
    upto = smooth.cdf_at(values + 0.5)
    # The least value has all that is below.
    rows = tuple(Truth((), values, np.diff(row, prepend=0.0)) for row in upto)
    make = partial(PredictiveDistribution.from_arrays, ends=(low, np.inf), **arrays)
    return Case(make, rows, Bars(*[1e-6] * 8))


def _bins():
    # A tenth of the least deviation wide.
    edges = np.linspace(-8.0, 8.0, 534)
    laws = [stats.norm(a, b) for a, b in zip(NEAR, NARROW, strict=True)]
    shares = np.array([np.diff(law.cdf(edges)) for law in laws])
    rows = tuple(_alone(law) for law in laws)
    return Case(lambda: PredictiveDistribution.from_bins(edges, shares), rows, LOOSE)


def _rain():
    rows = [Truth(((0.7, law),), np.zeros(1), np.array([0.3])) for law in NORMALS]
    dry = PredictiveDistribution.from_samples(np.zeros((3, 1)), kind="discrete")
    return Case(lambda: pool([dry, _normal()], [0.3, 0.7]), tuple(rows))


def _exp():
    pairs = zip(NEAR, NARROW, strict=True)
    rows = tuple(_alone(stats.lognorm(b, scale=np.exp(a))) for a, b in pairs)
    logs = from_scipy(stats.norm(NEAR, NARROW))
    return Case(lambda: logs.transform(np.exp, np.log), rows)


def _parts():
    parts = [stats.norm(-2.0, 0.5), stats.gamma(2.0, 3.0, 2.0), stats.logistic(9.0)]
    rows = tuple(_alone(law) for law in parts)
    return Case(lambda: concatenate([from_scipy(law) for law in parts]), rows)


CASES = {
    "norm": _scipy(stats.norm),
    "logistic": _scipy(stats.logistic),
    "uniform": _scipy(stats.uniform, end=True),
    "t5": _scipy(stats.t, 5.0),
    "t3": _scipy(stats.t, 3.0),
    "gamma2": _scipy(stats.gamma, 2.0),
    "expon": _scipy(stats.expon, end=True),
    "lognorm1": _scipy(stats.lognorm, 1.0),
    # Up to 40 deviations, which is no end: an infinite parameter is refused.
    "truncnorm": _scipy(stats.truncnorm, 0.0, 40.0, end=True),
    "quantiles": Case(_quantiles, NORMAL_ROWS),
    "many draws": Case(_many_draws, NORMAL_ROWS, LOOSE),
    "bins": _bins(),
    "two peaks": _mixture(3.0, 1.0, USUAL),
    "narrow in wide": _mixture(0.0, 0.1, NARROW_BARS),
    "exp": _exp(),
    "concatenated": _parts(),
    "rain": _rain(),
    "poisson": _poisson(),
    "few draws": _few_draws(),
    "lattice": _rounded(stats.gumbel_r(LOC, SCALE), np.arange(-40.0, 160.0) + 0.1),
    "counts": _rounded(stats.gamma(2.0, scale=SCALE), np.arange(150.0), 0.0),
}


@cache
def forecast_of(name):
    """Return the forecast of a case, made once."""
    return CASES[name].make()
