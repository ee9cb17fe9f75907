"""Laws of sums over rows: closed forms, brute force, and draws."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from localexpert import PredictiveDistribution, concatenate
from localexpert.law.totals import lattice_step
from tests.forecasts import beside, of_values
from tests.forecasts import normal as make_normal

WEIGHTS = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
CENTER, SCALE = np.arange(5.0) - 1.0, np.linspace(0.5, 3.0, 5)


@pytest.fixture
def normal():
    return make_normal(CENTER, SCALE), stats.norm(CENTER, SCALE)


def make_coins(n, p=0.3):
    return of_values([0.0, 1.0], np.tile([1 - p, p], (n, 1)))


def make_rain():
    smooth = PredictiveDistribution.from_scipy(stats.gamma(1.5, scale=SCALE))
    return beside(smooth, [0.0], np.full((5, 1), 0.6), [0.1])


def test_far_tails_of_sums_of_normals(normal):
    dist, ref = normal
    want = stats.norm(WEIGHTS @ ref.mean(), np.sqrt(WEIGHTS**2 @ ref.var()))
    total = dist.total(WEIGHTS)
    assert_allclose([total.skew(), total.kurtosis()], 0.0, atol=1e-6)
    # A tail of a millionth to a hundredth of itself.
    low, high = want.ppf([1e-6, 1.0 - 1e-6])
    assert_allclose(total.sf(high), 1e-6, rtol=0.01)
    assert_allclose(total.cdf(low), 1e-6, rtol=0.01)


def test_sums_of_coins_are_binomial():
    total = make_coins(40).total()
    k = np.arange(41)
    assert total.law.is_discrete
    assert_allclose(total.cdf_at(k)[0], stats.binom(40, 0.3).cdf(k), atol=1e-13)
    assert_allclose([total.mean()[0], total.var()[0]], [12.0, 8.4], rtol=1e-12)
    # Many rows: the grid is a window around the mean.
    many = make_coins(30_000).total()
    want = stats.binom(30_000, 0.3)
    at = want.ppf([1e-9, 0.1, 0.5, 0.9, 1.0 - 1e-9])
    assert_allclose(many.cdf_at(at)[0], want.cdf(at), atol=1e-11)
    assert_allclose(many.mean(), 9000.0)


@pytest.mark.parametrize(
    ("values", "weights"),
    [
        ([0.0, 1.0, 2.0], [1.0, 1.0, 1.0]),
        ([-1.0, 0.5, 2.0], [0.1, -0.1, 0.3]),
        ([0.0, 1.0, 3.5], [1.0, np.pi, -np.sqrt(2.0)]),
        ([1e6, 1e6 + 1, 1e6 + 2], [1.0, 2.0, -1.0]),
    ],
)
def test_discrete_sums_are_all_sums(values, weights, rng):
    rows = rng.dirichlet(np.ones(3), size=3)
    rows[0, 1], rows[0] = 0.0, rows[0] / (1.0 - rows[0, 1])
    rows[0] /= rows[0].sum()
    total = of_values(values, rows).total(weights)
    sums, masses = [], []
    for at in itertools.product(range(3), repeat=3):
        sums.append(sum(w * values[j] for w, j in zip(weights, at, strict=True)))
        masses.append(np.prod(rows[range(3), at]))
    sums, masses = np.array(sums), np.array(masses)
    for z in sums:
        near = np.abs(sums - z) < 1e-9 * max(1.0, np.abs(sums).max())
        assert_allclose(total.pmf(z), masses[near].sum(), atol=1e-14)
    assert_allclose(total.mean(), masses @ sums, rtol=1e-12, atol=1e-12)


def test_steps_of_lattices():
    assert lattice_step(np.array([0.0, 0.3, 0.5, 1.1])) == pytest.approx(0.1)
    assert lattice_step(np.array([7.0, 7.0])) == 1.0
    assert lattice_step(np.array([0.0, 1.0, np.pi])) is None
    assert lattice_step(np.array([0.1 + 0.2, 0.3, 0.6])) == pytest.approx(0.3)


def test_sums_of_rain_keep_the_chance_of_none():
    rain = make_rain()
    total = rain.total()
    assert_allclose(total.pmf(0.0), 0.6**5, rtol=1e-9)
    assert_allclose(total.mean(), rain.mean().sum(), rtol=1e-9)
    assert_allclose(total.var(), rain.var().sum(), rtol=1e-9)
    y = rain.rvs(200_000, random_state=2).sum(axis=1)
    at = np.quantile(y, [0.2, 0.5, 0.9, 0.99])
    assert_allclose(total.cdf_at(at)[0], [(y <= a).mean() for a in at], atol=4e-3)
    # Beside a row without atoms there are none.
    both = concatenate([rain, make_normal([0.0])]).total()
    assert_allclose(both.pmf(0.0), 0.0, atol=1e-12)


def test_groups_are_totals_in_the_order_of_their_labels(normal):
    dist, _ = normal
    total = dist.total(groups=["b", "a", "b", "c", "a"], weights=[1, 1, 2, 1, 0])
    m = dist.mean()
    assert_allclose(total.mean(), [m[1], m[0] + 2.0 * m[2], m[3]])
    alone = dist[[0, 2]].total([1.0, 2.0])
    assert_allclose(total[1].cdf_at([0.3, 1.0]), alone.cdf_at([0.3, 1.0]), atol=1e-12)
    nothing = dist.total(weights=np.zeros(5))
    assert_array_equal(nothing.mean(), [0.0])
    assert_array_equal(nothing.pmf(0.0), [1.0])
    coins = make_coins(6).total(groups=[0, 0, 0, 1, 1, 2])
    assert_allclose(coins.mean(), [0.9, 0.6, 0.3])
    assert_allclose(coins.pmf(2.0), [3 * 0.09 * 0.7, 0.09, 0.0], atol=1e-14)


def test_moments_that_do_not_exist_stay_so():
    heavy = PredictiveDistribution.from_scipy(stats.t(1.7, [0.0, 1.0, 5.0]))
    total = heavy.total()
    assert np.isfinite(total.mean()).all()
    assert_array_equal(total.var(), [np.inf])
    assert_allclose(total.mean(), heavy.mean().sum())
    y = heavy.rvs(100_000, random_state=0).sum(axis=1)
    at = np.quantile(y, [0.05, 0.5, 0.95])
    assert_allclose(total.cdf_at(at)[0], [0.05, 0.5, 0.95], atol=0.01)


@pytest.mark.parametrize("rho", [-0.2, 0.3, 1.0])
def test_correlated_normals(normal, rho):
    dist, ref = normal
    s = ref.std()
    variance = rho * s.sum() ** 2 + (1.0 - rho) * (s @ s)
    want = stats.norm(ref.mean().sum(), np.sqrt(variance))
    total = dist.total(correlation=rho, random_state=0)
    assert_allclose(total.mean(), want.mean(), rtol=1e-12)
    assert_allclose(total.var(), variance, rtol=1e-6)
    z = want.ppf([0.01, 0.1, 0.5, 0.9, 0.99])
    assert_allclose(total.cdf_at(z)[0], want.cdf(z), atol=5e-3)
    matrix = np.full((5, 5), rho) + (1.0 - rho) * np.eye(5)
    same = dist.total(WEIGHTS, correlation=matrix, random_state=0)
    assert_allclose(same.var(), (WEIGHTS * s) @ matrix @ (WEIGHTS * s), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"weights": [1.0]}, ValueError, "`weights` must have one for each of the 5"),
        ({"weights": [1, 2, 3, 4, np.nan]}, ValueError, "`weights` must be finite"),
        ({"groups": [1, 2]}, ValueError, "`groups` must have a label for each of"),
        ({"groups": [1, 2, 3, 4, np.nan]}, ValueError, "`groups` must not be missing"),
        ({"groups": [1, "a", None, 2, 2]}, ValueError, "`groups` must not be missing"),
        ({"correlation": 1.5}, ValueError, "`correlation` must lie in"),
        ({"correlation": -0.5}, ValueError, "`correlation` of 5 rows must be at least"),
        ({"correlation": np.eye(3)}, ValueError, "`correlation` must have shape"),
        ({"correlation": 2 * np.eye(5)}, ValueError, "must be 1 on its diagonal"),
        ({"correlation": np.tri(5)}, ValueError, "`correlation` must be symmetric"),
        (
            {"correlation": 1.9 * np.eye(5) - 0.9},
            ValueError,
            "`correlation` must have no negative eigenvalue",
        ),
        (
            {"groups": np.array([1, "a", 2, 2, 2], dtype=object)},
            TypeError,
            "`groups` must be labels of one kind",
        ),
    ],
)
def test_totals_refuse(normal, arguments, error, message):
    with pytest.raises(error, match=message):
        normal[0].total(**arguments)
    with pytest.raises(ValueError, match="`total` needs at least one row"):
        normal[0][:0].total()
