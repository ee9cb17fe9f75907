"""Forecasts of every kind of law, for all tests of risk."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from localexpert import (
    BaseCDF,
    DiscreteLaw,
    MixedLaw,
    PredictiveDistribution,
    ProbitMap,
    RecalibratedLaw,
    SplineLaw,
)

N = 5
INF = np.inf
CENTER, SCALE = np.arange(N) - 1.0, np.linspace(0.5, 3.0, N)


def make_normal(bounds=(-INF, INF)):
    """Rows whose CDF is the normal one between -9 and 9 deviations."""
    levels = np.linspace(-1.4, 1.4, 5)
    base = BaseCDF(levels, levels, np.ones(5), (-0.2, -0.2))
    tail = np.linspace(1.4, 9.0, 300)
    knots = np.concatenate([-tail[::-1], np.linspace(-1.2, 1.2, 7), tail])
    values = base.inverse(knots)
    slopes = np.tile(1.0 / base.derivative(values), (N, 1))
    return SplineLaw(
        CENTER, SCALE, knots, np.tile(values, (N, 1)), slopes, base, bounds
    )


def make_wavy():
    """Rows with steep and flat stretches, two peaks among them."""
    base = BaseCDF.fit(np.random.default_rng(7).gumbel(size=1000))
    knots = np.array([-1.5, -0.5, 0.0, 0.4, 1.5])
    steps = np.array([1.0, 0.1, 1.3, 0.6]) * np.linspace(0.5, 1.5, N)[:, None]
    values = np.cumsum(np.hstack([np.full((N, 1), -1.2), steps]), axis=1)
    chords = np.diff(values, axis=1) / np.diff(knots)
    slopes = np.minimum(np.c_[chords[:, :1], chords], np.c_[chords, chords[:, -1:]])
    return SplineLaw(CENTER, SCALE, knots, values, slopes, base)


def make_discrete():
    probabilities = np.random.default_rng(1).dirichlet(np.ones(4), size=N)
    return DiscreteLaw([0.0, 1.0, 2.0, 5.0], probabilities)


LAWS = {
    "normal": make_normal,
    "bounded": lambda: make_normal(bounds=(-2.0, INF)),
    "wavy": make_wavy,
    "recalibrated": lambda: RecalibratedLaw(
        make_normal(), ProbitMap([-1.0, 1.0], [-1.3, 1.0], [1.0, 1.3])
    ),
    "discrete": make_discrete,
    "mixed": lambda: MixedLaw(
        [-1.0, 0.0], np.c_[np.linspace(0, 0.3, N), np.linspace(0.1, 0.6, N)],
        make_normal(), [0.1, 0.1],
    ),
}  # fmt: skip


@pytest.fixture(params=LAWS)
def forecast(request):
    """A forecast of each kind in turn."""
    return PredictiveDistribution(LAWS[request.param]())


@pytest.fixture
def make():
    """A function that makes the forecast of a named kind."""
    return lambda name: PredictiveDistribution(LAWS[name]())


@pytest.fixture
def normal():
    """A normal forecast, and the same of scipy."""
    return PredictiveDistribution(make_normal()), stats.norm(CENTER, SCALE)


@pytest.fixture
def brute_force():
    """The expectation as a sum over very many scores, from the quantiles alone.

    Function maps values (k,) and a row's number to (k,). It may jump or bend at
    `breaks` (n, b).
    """
    grid = np.linspace(-8.5, 8.5, 20_001)

    def expect(forecast, function, breaks):
        out = []
        for i in range(len(forecast)):
            law = forecast.law.take([i])
            # Cells end where the quantiles may jump, too: at any value of an atom.
            at = np.r_[breaks[i], -1.0, 0.0, 1.0, 2.0, 5.0][None]
            jumps = ndtri(np.c_[law.cdf(at), law.cdf_left(at)][0]).clip(-8.5, 8.5)
            edges = np.unique(np.r_[grid, jumps])
            middles = 0.5 * (edges[:-1] + edges[1:])
            out.append(
                np.diff(ndtr(edges)) @ function(law.ppf_scores(middles[None])[0], i)
            )
        return np.array(out)

    return expect
