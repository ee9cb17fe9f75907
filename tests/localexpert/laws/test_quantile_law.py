"""QuantileLaw against normal laws in closed form, and sums over a fine grid."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import ndtr, ndtri

from localexpert.laws.pooled_law import PooledLaw
from localexpert.laws.quantile_law import QuantileLaw

MEANS, SPREADS = np.array([0.0, 3.0, 1e6]), np.array([1.0, 0.1, 5.0])
LEVELS = np.array([0.05, 0.1, 0.3, 0.5, 0.8, 0.9])


def normal_law(knots=(-1.0, 0.5, 1.0)):
    knots = np.array(knots)
    return QuantileLaw.through(knots, MEANS[:, None] + SPREADS[:, None] * knots)


def skewed_law(bounds=(-np.inf, np.inf)):
    """Quantiles of a log-normal law, and of one with a nearly flat and a steep part."""
    knots = ndtri(LEVELS)
    rows = np.stack([np.exp(knots), [0.2, 0.3, 0.3001, 3.0, 3.1, 3.2]])
    return QuantileLaw.through(knots, rows, bounds)


def normal_crps(y, mean, spread):
    """Gneiting & Raftery (2007), equation 21."""
    z = (y - mean) / spread
    parts = z * (2.0 * ndtr(z) - 1.0) + 2.0 * stats.norm.pdf(z) - 1.0 / np.sqrt(np.pi)
    return spread * parts


@pytest.mark.parametrize("knots", [(-1.0, 1.0), (-1.0, 0.5, 1.0), (0.3, 0.5, 2.0, 4.0)])
def test_normal_quantiles_give_the_normal_law(knots):
    law = normal_law(knots)
    mean, spread = MEANS[:, None], SPREADS[:, None]
    z = np.tile([-9.0, -2.0, 0.0, 0.7, 5.0], (3, 1))
    y = mean + spread * z
    want = stats.norm(mean, spread)
    # What is left of so small a spread beside a large mean.
    rtol = 1e-7
    assert_allclose(law.cdf(y), want.cdf(y), rtol=rtol)
    assert_allclose(law.sf(y), want.sf(y), rtol=rtol)
    assert_allclose(law.logpdf(y), want.logpdf(y), rtol=1e-8)
    assert_allclose(law.ppf_scores(z), y, rtol=1e-12, atol=1e-12)
    assert_allclose(
        law.crps(y) / spread, normal_crps(y, mean, spread) / spread, atol=1e-9
    )
    below, above = law.partial_means(y)
    assert_allclose((above - below) / spread, -z, atol=1e-9)
    moments = law.moments()
    assert_allclose(moments[:, 0], MEANS, atol=1e-9)
    assert_allclose(
        moments[:, 1:] / SPREADS[:, None] ** [2, 3, 4], [[1, 0, 3]] * 3, atol=1e-8
    )
    assert_allclose(law.entropy(), stats.norm(MEANS, SPREADS).entropy(), rtol=1e-9)
    assert_allclose((law.mode() - MEANS) / SPREADS, 0.0, atol=1e-4)


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, np.inf), (0.1, 4.5)])
def test_integrals_are_those_of_the_cdf(bounds):
    law = skewed_law(bounds)
    y = np.tile([0.15, 0.3, 1.0, 3.15, 4.0], (2, 1))
    crps, (below, above) = law.crps(y), law.partial_means(y)
    nodes, shares = np.polynomial.legendre.leggauss(12)
    scores = np.tile(np.linspace(-9.0, 9.0, 145), (2, 1))
    for j in range(5):
        cuts = np.sort(
            np.hstack([law.ppf_scores(scores), law.values, y[:, [j]]]), axis=1
        )
        half = 0.5 * np.diff(cuts, axis=1)[:, :, None]
        x = (cuts[:, :-1, None] + half * (1.0 + nodes)).reshape(2, -1)
        dx, over = (half * shares).reshape(2, -1), x > y[:, [j]]
        miss = np.abs(law.cdf(x) - over)
        assert_allclose(crps[:, j], (dx * miss**2).sum(axis=1), atol=1e-6)
        assert_allclose(below[:, j], (dx * miss * ~over).sum(axis=1), atol=1e-6)
        assert_allclose(above[:, j], (dx * miss * over).sum(axis=1), atol=1e-6)


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, 5.0)])
def test_it_is_the_pool_of_itself(bounds):
    """The pool integrates over y, on another mesh."""
    law = skewed_law(bounds)
    pool = PooledLaw([law], [1.0], "probit")
    y = np.tile([0.15, 1.0, 4.0], (2, 1))
    assert_allclose(law.crps(y), pool.crps(y), rtol=1e-3)
    assert_allclose(law.moments(), pool.moments(), rtol=1e-2)
    assert_allclose(law.entropy(), pool.entropy(), atol=0.05)


def test_the_density_is_the_slope_of_the_cdf(rng):
    law = skewed_law((0.0, np.inf))
    y = rng.uniform(0.05, 5.0, (2, 60))
    rate = (law.cdf(y + 1e-7) - law.cdf(y - 1e-7)) / 2e-7
    assert_allclose(law.pdf(y), rate, rtol=1e-4, atol=1e-6)


def test_equal_ends_do_not_close_the_tails():
    knots = ndtri([0.1, 0.5, 0.9 - 1e-9, 0.9])
    law = QuantileLaw.through(knots, [[0.0, 1.0, 2.0, 2.0 + 1e-9]])
    # A quarter of the mean slope: one mean slope further out are four deviations.
    mean = 2.0 / (knots[-1] - knots[0])
    z = ndtri(law.cdf(np.array([[2.0 + mean]])))
    assert_allclose(z, knots[-1] + 4.0, rtol=1e-6)


def test_beyond_bounds_there_is_nothing():
    law = skewed_law((0.1, 5.0))
    y = np.tile([-1.0, 0.1, 5.0, 1e300], (2, 1))
    assert_array_equal(law.cdf(y), [[0.0, 0.0, 1.0, 1.0]] * 2)
    assert_array_equal(law.sf(y), [[1.0, 1.0, 0.0, 0.0]] * 2)
    assert_array_equal(law.logpdf(y), np.full((2, 4), -np.inf))
    assert_array_equal(law.ppf(np.tile([0.0, 1.0], (2, 1))), [[0.1, 5.0]] * 2)
    assert law.support == (0.1, 5.0)
    free = skewed_law()
    assert_array_equal(free.logpdf(np.full((2, 1), 1e300)), [[-np.inf]] * 2)
    assert_array_equal(free.cdf(np.array([[-np.inf, np.inf]] * 2)), [[0.0, 1.0]] * 2)


def test_rows_are_their_own_whatever_stands_beside(rng):
    many = np.sort(rng.normal(size=(3000, len(LEVELS))), axis=1)
    law = QuantileLaw.through(ndtri(LEVELS), many)
    y = rng.normal(size=(3000, 2))
    some = np.array([2999, 7])
    for method in ("crps", "cdf", "logpdf"):
        whole = getattr(law, method)(y)[some]
        assert_array_equal(getattr(law.take(some), method)(y[some]), whole)
    assert_array_equal(law.take(some).moments(), law.moments()[some])


def test_nothing_of_no_rows():
    law = skewed_law().take(np.arange(0))
    assert law.moments().shape == (0, 4)
    assert law.crps(np.empty((0, 2))).shape == (0, 2)
    assert law.mode().shape == (0,)


def test_pickles():
    law = skewed_law((0.0, np.inf))
    again = pickle.loads(pickle.dumps(law))
    y = np.tile([0.2, 2.0], (2, 1))
    assert_array_equal(again.cdf(y), law.cdf(y))
    assert again.bounds == law.bounds


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"knots": [0.0], "values": [[1.0]]}, "`knots` must be two or more, got 1"),
        ({"values": [[2.0, 1.0]]}, "increase strictly along a row, got 2 before 1"),
        ({"values": [[0.0, 1.0]]}, r"within \(0.0, 9.0\), got 0 in row 0"),
        ({"slopes": [[1.0, 9.0]]}, "at most 3 times the chords beside, got 9"),
        ({"slopes": [[0.0, 1.0]]}, "`slopes` must be positive .* got 0 in row 0"),
        ({"tails": [[1.0, 0.0]]}, "`tails` must be positive, got 0 in row 0"),
        ({"tails": [[1.0]]}, r"`tails` must have shape \(1, 2\)"),
    ],
)
def test_what_is_refused(changed, message):
    right = {
        "knots": [0.0, 1.0],
        "values": [[1.0, 2.0]],
        "slopes": [[1.0, 1.0]],
        "tails": [[1.0, 1.0]],
        "bounds": (0.0, 9.0),
    }
    with pytest.raises(ValueError, match=message):
        QuantileLaw(**right | changed)
