"""All shapes that broadcast against the rows, asked of a law at once and row by row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, poisson

from localexpert import DiscreteLaw, PredictiveDistribution, pool
from localexpert.distribution.predictive import check_distribution, check_outcomes

N = 5
METHODS = ("cdf", "sf", "pdf", "logpdf", "crps", "log_score", "pit", "pmf", "covered")


def mixed(_):
    """Zeros beside a normal law."""
    smooth = PredictiveDistribution.from_scipy(norm([2.0, 0.5], 1.0)).law
    quantiles = PredictiveDistribution.from_quantiles(
        smooth.ppf(np.tile(np.linspace(0.01, 0.99, 99), (2, 1))),
        np.linspace(0.01, 0.99, 99),
    )
    zeros = PredictiveDistribution(DiscreteLaw([0.0], np.ones((2, 1))))
    return pool([zeros, quantiles], [0.3, 0.7])


LAWS = {
    "coin": lambda _: PredictiveDistribution(DiscreteLaw([0.0, 1.0], [[0.5, 0.5]])),
    "poisson": lambda _: PredictiveDistribution.from_scipy(poisson([0.1, 2.0, 50.0])),
    "values": lambda rng: PredictiveDistribution(
        DiscreteLaw([-1.0, 0.1 + 0.2, 7.0], rng.dirichlet(np.ones(3), size=20))
    ),
    "mixed": mixed,
    "smooth": lambda _: PredictiveDistribution.from_scipy(norm([0.0, 9.0], [1.0, 3])),
}


@pytest.fixture
def dist(rng):
    rows = rng.dirichlet(np.ones(4), size=N)
    return PredictiveDistribution(DiscreteLaw([0.0, 0.3, 0.5, 1.0], rows))


@pytest.mark.parametrize("shape", [(), (N,), (1,), (3, 1), (3, N), (2, 3, N), (0, N)])
@pytest.mark.parametrize("method", [*METHODS, "ppf", "partial_means"])
def test_every_shape_is_answered_entry_by_entry(dist, method, shape, rng):
    values = rng.uniform(size=shape)
    got = np.asarray(getattr(dist, method)(values))
    whole = np.broadcast_shapes(shape, (N,))
    several = 2 if method == "partial_means" else 1
    got = got.reshape(several, *whole)
    for place in np.ndindex(whole):
        one = dist[place[-1]]
        value = np.broadcast_to(values, whole)[place]
        want = np.ravel(getattr(one, method)(value))
        assert_allclose(got[(slice(None), *place)], want, rtol=1e-12)


def test_no_rows_are_asked_without_complaint(dist):
    none = dist[:0]
    assert none.cdf(0.3).shape == (0,)
    assert none.cdf(np.zeros((3, 1))).shape == (3, 0)
    assert none.quantiles([0.1, 0.9]).shape == (0, 2)


def test_partial_means_are_the_parts_of_the_absolute_error(dist):
    y = np.array([[0.2], [0.5]])
    below, above = dist.partial_means(y)
    expected = [dist.expect(lambda x, at=at: abs(x - at)) for at in y[:, 0]]
    assert_allclose(below + above, expected)
    assert_allclose(below - above, y - dist.mean())


@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("name", LAWS)
def test_true_forecasts_cover_what_they_say(name, coverage, rng):
    forecast = LAWS[name](rng)
    n_draws = 20_000
    # One draw from each of equally probable parts: nearly without noise.
    u = (np.arange(n_draws) + rng.uniform(size=n_draws)) / n_draws
    y = forecast.ppf(np.tile(u[:, None], (1, len(forecast))))
    covered = forecast.covered(y, coverage)
    assert ((covered >= 0.0) & (covered <= 1.0)).all()
    assert_allclose(covered.mean(axis=0), coverage, atol=3.0 / n_draws)
    # As PIT values that are drawn from jumps, within the levels.
    pit = forecast.pit(y, random_state=1)
    inside = np.abs(pit - 0.5) < 0.5 * coverage
    error = 3.0 / np.sqrt(n_draws)
    assert_allclose(inside.mean(axis=0), covered.mean(axis=0), atol=error)


def test_what_a_value_is_covered_by(dist):
    coin = LAWS["coin"](None)
    assert coin.covered(1.0, 0.5)[0] == 0.5
    # Beside values with probability, and beyond them: inside or outside.
    assert_array_equal(coin.covered([[-0.1], [0.5], [1.1]])[:, 0], [0.0, 1.0, 0.0])
    certain = PredictiveDistribution(DiscreteLaw([3.0], [[1.0]]))
    assert_allclose(certain.covered([[3.0], [2.0]], 0.8)[:, 0], [0.8, 0.0])
    sure = PredictiveDistribution(DiscreteLaw([0.0, 1.0, 2.0], [[0.02, 0.96, 0.02]]))
    assert_allclose(sure.covered(1.0, 0.97), [1.0])
    assert_allclose(sure.covered(2.0, 0.97), [0.25])
    smooth = LAWS["smooth"](None)
    low, high = smooth.interval(0.6).T
    y = np.stack([low, high, np.nextafter(low, -9.0), np.nextafter(high, 99.0)])
    assert_array_equal(smooth.covered(y, 0.6), [[1, 1], [1, 1], [0, 0], [0, 0]])
    assert dist[:0].covered(0.3).shape == (0,)
    with pytest.raises(ValueError, match=r"`coverage` must lie in \(0, 1\), got 90"):
        dist.covered(0.3, 90)
    with pytest.raises(ValueError, match="`y` must be finite, got inf"):
        dist.covered(np.inf)


@pytest.mark.parametrize("tail", ["upper", "lower"])
def test_tail_measures_take_a_level_for_each_row(dist, tail, rng):
    levels = rng.uniform(0.1, 0.9, size=(3, N))
    for method in (dist.value_at_risk, dist.expected_shortfall):
        whole = method(levels, tail)
        assert whole.shape == (3, N)
        for j, i in np.ndindex(3, N):
            assert whole[j, i] == method(float(levels[j, i]), tail)[i]


@pytest.mark.parametrize(
    ("level", "error", "message"),
    [
        (1.0, ValueError, r"`level` must lie in \(0, 1\), got 1\.0"),
        ("high", TypeError, "`level` must be a real number, got 'high'"),
        ([0.5] * 4 + [1.5], ValueError, r"`level` must lie in \(0, 1\), got 1\.5"),
        ([0.5, 0.5], ValueError, "`level` must broadcast against the 5 rows"),
    ],
)
def test_levels_that_are_refused(dist, level, error, message):
    with pytest.raises(error, match=message):
        dist.value_at_risk(level)


def test_what_is_no_forecast_is_named(dist):
    assert check_distribution(dist) is dist
    with pytest.raises(TypeError, match="`f` must be a PredictiveDistribution, got l"):
        check_distribution([1.0], "f")
    assert_array_equal(check_outcomes(range(N), dist), np.arange(5.0))
    with pytest.raises(
        ValueError, match="`y_true` must be as long as dist, got 1 and 5"
    ):
        check_outcomes([1.0], dist, "y_true")
