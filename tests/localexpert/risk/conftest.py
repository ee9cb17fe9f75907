"""Forecasts of every kind of law, for all tests of risk."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from localexpert import PitRecalibration, PredictiveDistribution, pool
from tests.forecasts import beside, normal, of_values

N = 5
CENTER, SCALE = np.arange(N) - 1.0, np.linspace(0.5, 3.0, N)


def make_normal():
    """Normal rows."""
    return normal(CENTER, SCALE)


def make_bounded():
    """Rows that end at -2."""
    levels = np.arange(1, 100) / 100
    rows = stats.truncnorm((-2.0 - CENTER) / SCALE, 40.0, CENTER, SCALE)
    quantiles = rows.ppf(levels[:, None]).T
    return PredictiveDistribution.from_quantiles(quantiles, levels, bounds=(-2.0, None))


def make_wavy():
    """Rows with steep and flat stretches, two peaks among them."""
    return pool([normal(CENTER, SCALE), normal(CENTER + 3.0 * SCALE, 0.5 * SCALE)])


def make_recalibrated():
    """Normal rows after a map that was learned."""
    past = normal(np.zeros(400))
    y = np.random.default_rng(3).gumbel(0.3, 1.0, size=400)
    return PitRecalibration(random_state=0).fit(past, y).apply(make_normal())


def make_discrete():
    """Few values."""
    probabilities = np.random.default_rng(1).dirichlet(np.ones(4), size=N)
    return of_values([0.0, 1.0, 2.0, 5.0], probabilities)


def make_mixed():
    """Normal rows beside two values."""
    masses = np.c_[np.linspace(0, 0.3, N), np.linspace(0.1, 0.6, N)]
    return beside(make_normal(), [-1.0, 0.0], masses, [0.1, 0.1])


LAWS = {
    "normal": make_normal,
    "bounded": make_bounded,
    "wavy": make_wavy,
    "recalibrated": make_recalibrated,
    "discrete": make_discrete,
    "mixed": make_mixed,
}


@pytest.fixture(params=LAWS)
def forecast(request):
    """A forecast of each kind in turn."""
    return LAWS[request.param]()


@pytest.fixture
def make():
    """A function that makes the forecast of a named kind."""
    return lambda name: LAWS[name]()


@pytest.fixture(name="normal")
def normal_and_truth():
    """A normal forecast, and the same of scipy."""
    return make_normal(), stats.norm(CENTER, SCALE)


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
