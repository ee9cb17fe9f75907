"""What a forecast is asked: shapes, refusals, losses that it expects of itself."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.stats import norm

from localexpert import concatenate
from localexpert.distribution.answers import loss_variances
from localexpert.distribution.predictive import (
    PredictiveDistribution,
    check_distribution,
    check_outcomes,
    mass_below_zero,
)
from tests.forecasts import normal, of_values
from tests.localexpert.distribution.contract_cases import CASES, forecast_of
from tests.localexpert.law.kinds import FORECASTS

SMOOTH, MIXED, DISCRETE = map(FORECASTS.get, ("smooth", "mixed", "discrete"))
N, INF = 3, np.inf
OF_VALUES = ("cdf", "sf", "pdf", "logpdf", "crps", "log_score", "pit", "pmf", "covered")
SUMMARIES = ("mean", "var", "std", "skew", "kurtosis", "median", "mode", "entropy")
every = pytest.mark.parametrize("name", CASES)


@pytest.mark.parametrize("n", [1, N])
@pytest.mark.parametrize("shape", [(), (N,), (1,), (4, 1), (4, N), (2, 4, N), (0, N)])
@pytest.mark.parametrize("method", [*OF_VALUES, "ppf", "partial_means"])
def test_every_shape_is_answered_entry_by_entry(method, shape, n, rng):
    values = rng.uniform(size=shape).round(1)
    whole = np.broadcast_shapes(shape, (n,))
    several = 2 if method == "partial_means" else 1
    for dist in (DISCRETE[:n], MIXED[:n], SMOOTH[:n]):
        got = np.asarray(getattr(dist, method)(values)).reshape(several, *whole)
        for place in np.ndindex(whole):
            value = np.broadcast_to(values, whole)[place]
            want = np.ravel(getattr(dist[place[-1] % n], method)(value))
            assert_allclose(got[(slice(None), *place)], want, rtol=1e-12)


@every
def test_no_rows_give_empty_answers(name):
    none = forecast_of(name)[:0]
    for method in (*OF_VALUES, "ppf"):
        assert getattr(none, method)(0.5).shape == (0,)
        assert getattr(none, method)(np.full((3, 1), 0.5)).shape == (3, 0)
    assert {getattr(none, method)().shape for method in SUMMARIES} == {(0,)}
    assert none.expect(np.square).shape == (0,)
    assert none.interval().shape == none.hdi().shape == (0, 2)
    assert none.hdi_regions() == []
    assert none.rvs(4).shape == (4, 0)
    assert none.quantiles([0.1, 0.9]).shape == none.cdf_at([0.0, 1.0]).shape == (0, 2)
    assert [part.shape for part in none.partial_means(1.0)] == [(0,), (0,)]
    assert len(none.transform(np.cbrt, lambda z: z**3)) == 0


@every
def test_regions_of_highest_density(name):
    dist = forecast_of(name)
    regions = dist.hdi_regions(0.6)
    assert len(regions) == 3
    low, high = dist.hdi(0.6).T
    for i, region in enumerate(regions):
        assert (np.diff(region.ravel()) >= 0.0).all()
        held = dist[i].prob_between(region[:, :1], region[:, 1:]).sum()
        assert held >= 0.59
        if CASES[name].smooth:
            assert held <= 0.61
            # No shorter set holds as much; of steps of a histogram nearly none.
            length = np.diff(region).sum()
            assert length <= (high - low)[i] * (1.0 + (0.02 if name != "bins" else 0.1))


@pytest.mark.parametrize("coverage", [0.1, 0.5, 0.9])
def test_regions_of_flat_and_steep_densities_hold_what_is_asked(coverage):
    flat = stats.uniform([2.0], 3.0), stats.trapezoid([0.3], [0.7])
    # Or without bounds at 0.
    steep = stats.gamma([0.05]), stats.gamma([0.4]), stats.beta([0.2], 5.0)
    for frozen in (*flat, *steep):
        dist = PredictiveDistribution.from_scipy(frozen)
        (region,) = dist.hdi_regions(coverage)
        held = dist.prob_between(region[:, :1], region[:, 1:]).sum()
        assert held == pytest.approx(coverage, abs=0.01)
        # What rounding leaves of the density does not cut it into many.
        assert len(region) <= 3


def test_immutable_and_shown():
    assert repr(MIXED) == "PredictiveDistribution(n=3, smooth beside 2 values)"
    with pytest.raises(FrozenInstanceError, match="law"):
        DISCRETE.law = None
    # Without spread there is no skew.
    sure = of_values([1.0, 2.0], [[1.0, 0.0]])
    assert sure.std() == sure.skew() == sure.kurtosis() == 0.0
    # By 1 / sqrt(p) and 1 / p, of which no power fits into a number.
    rare = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=[[1.0, 1e-250]])
    assert_allclose([rare.skew(), rare.kurtosis()], [[1e125], [1e250]])
    # Far targets have finite scores.
    far = np.array([[1e5], [1e3], [-1.5]])
    for dist in (DISCRETE, SMOOTH, MIXED):
        assert (dist.cdf(far)[0] == 1.0).all()
        assert np.isfinite(dist.crps(far)).all()
        assert np.isfinite(dist.log_score(far)).all() or dist is DISCRETE


@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.9, 0.999])
def test_true_forecasts_cover_what_they_say(coverage, rng):
    coin = of_values([0.0, 1.0], [[0.5, 0.5]])
    counts = PredictiveDistribution.from_scipy(stats.poisson([0.1, 2.0, 50.0]))
    n_draws = 20_000
    # One draw from each of equally probable parts: nearly without noise.
    u = (np.arange(n_draws) + rng.uniform(size=n_draws)) / n_draws
    for dist in (coin, counts, DISCRETE, MIXED, SMOOTH):
        y = dist.quantiles(u).T
        covered = dist.covered(y, coverage)
        assert ((covered >= 0.0) & (covered <= 1.0)).all()
        assert_allclose(covered.mean(axis=0), coverage, atol=3.0 / n_draws)


def test_what_a_value_is_covered_by():
    coin = of_values([0.0, 1.0], [[0.5, 0.5]])
    assert coin.covered(1.0, 0.5)[0] == 0.5
    # Beside values with probability, and beyond them: inside or outside.
    assert_array_equal(coin.covered([[-0.1], [0.5], [1.1]])[:, 0], [0.0, 1.0, 0.0])
    certain = of_values([3.0], [[1.0]])
    assert_allclose(certain.covered([[3.0], [2.0]], 0.8)[:, 0], [0.8, 0.0])
    sure = of_values([0.0, 1.0, 2.0], [[0.02, 0.96, 0.02]])
    assert_allclose(sure.covered([[1.0], [2.0]], 0.97)[:, 0], [1.0, 0.25])
    low, high = SMOOTH.interval(0.6).T
    y = np.stack([low, high, np.nextafter(low, -INF), np.nextafter(high, INF)])
    want = np.tile([[1.0], [1.0], [0.0], [0.0]], N)
    assert_array_equal(SMOOTH.covered(y, 0.6), want)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SMOOTH.cdf(np.zeros(4)), "`y` must broadcast against the 3 rows"),
        (lambda: SMOOTH.crps(INF), "`y` must be finite, got inf"),
        (lambda: SMOOTH.covered(INF), "`y` must be finite, got inf"),
        (lambda: SMOOTH.ppf(1.5), r"`q` must lie in \[0, 1\], got 1\.5"),
        (lambda: SMOOTH.quantiles([0.5, -0.1]), r"`levels` must lie in \[0, 1\]"),
        (lambda: SMOOTH.quantiles([[0.5, 0.1]]), "`levels` must have shape"),
        (lambda: SMOOTH.value_at_risk([0.5, 0.5, 2]), r"must lie in \(0, 1\), got 2"),
        (lambda: SMOOTH.value_at_risk([0.5, 0.5]), "`level` must broadcast against"),
        (lambda: SMOOTH.expect(np.sum), "`func` must return an array of the shape"),
        (lambda: PredictiveDistribution(3), "`law` must be a Law, got int"),
        (lambda: check_distribution([1.0], "f"), "`f` must be a Predictive.*, got"),
        (lambda: check_outcomes([1.0], SMOOTH, "y"), "`y` must be as long as dist"),
        (lambda: SMOOTH[N], "out of bounds"),
        (lambda: SMOOTH[np.zeros((2, 1), int)], "`rows` must be indices of one dim"),
        (SMOOTH[:0].expected_mean, "needs at least one row, got none"),
        (lambda: SMOOTH.transform(lambda y: y[0], np.log), "an array of the shape it"),
        (lambda: SMOOTH.transform(float, np.log), "`func` must take an array and retu"),
        (lambda: SMOOTH.to_frame(quantiles=[1.5]), r"`quantiles` must .* 1\], got 1"),
        (lambda: SMOOTH.to_frame(interval=1.0), r"`interval` must lie in .*, got 1"),
        (lambda: SMOOTH.to_frame(risk=[0.9, 95]), r"`risk` must lie in .*, got 95"),
        (lambda: SMOOTH.to_frame(index=[1]), "`index` must have .* each of the 3 "),
        (lambda: concatenate(SMOOTH), "`dists` must be a list of Predictive"),
        (lambda: concatenate([SMOOTH, np.zeros(3)]), "got ndarray at position 1"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        call()


def test_forecasts_and_outcomes_are_returned_as_they_are():
    assert check_distribution(SMOOTH) is SMOOTH
    assert_array_equal(check_outcomes(range(N), SMOOTH), np.arange(3.0))


# Two rows, of which one has a fifth of its mass below 0.
BELOW = of_values([-1.0, 0.0, 2.0], [[0.2, 0.6, 0.2], [0.1, 0.1, 0.8]])


@pytest.mark.parametrize(
    ("rows", "y", "weight", "mass"),
    [
        ([0, 1], [0.0, 2.0], [1.0, 2.0], 0.4 / 3.0),
        # A row that stands for none does not count, wherever its target is.
        ([0, 1], [-1.0, 2.0], [0.0, 1.0], 0.1),
        ([0, 1], [-1.0, 2.0], None, None),
    ],
)
def test_mass_below_zero_where_no_target_was(rows, y, weight, mass):
    assert mass_below_zero(BELOW[rows], y, weight) == pytest.approx(mass)
    with pytest.raises(ValueError, match="`y` must be as long as dist, got 3 and 2"):
        mass_below_zero(BELOW, [0.0, 1.0, 2.0])


@pytest.mark.parametrize("loss", ["crps", "abs_error"])
@pytest.mark.parametrize("name", ["norm", "gamma2", "rain", "poisson"])
def test_draws_have_the_loss_that_was_expected(name, loss):
    dist = forecast_of(name)
    draws = dist.rvs(4000, 0)
    found = dist.crps(draws) if loss == "crps" else np.abs(draws - dist.median())
    rows = dist.expected_crps() if loss == "crps" else dist.expected_abs_error()
    errors = found.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(found.mean(axis=0) - rows) < 4.0 * errors + 1e-12).all()
    variances = loss_variances(dist.law, loss, rows)
    assert_allclose(variances, found.var(axis=0), rtol=0.15, atol=1e-12)


@every
def test_the_expected_crps_is_the_mean_over_levels(name):
    dist = forecast_of(name)
    levels = (np.arange(20_000) + 0.5)[:, None] / 20_000
    mean = dist.crps(dist.ppf(levels)).mean(axis=0)
    assert_allclose(dist.expected_crps(), mean, rtol=2e-3)


def test_the_interval_is_that_of_a_sum():
    """Of the normal law the mean absolute error is known, and its variance."""
    told = normal(np.zeros(100)).expected_mean("abs_error", coverage=0.9)
    sd = np.sqrt((1.0 - 2.0 / np.pi) / 100)
    assert told.n_rows == 100
    assert told.mean == pytest.approx(np.sqrt(2.0 / np.pi), rel=1e-4)
    assert told.high - told.mean == pytest.approx(norm.ppf(0.95) * sd, rel=0.05)
    assert told.mean - told.low == pytest.approx(told.high - told.mean)


def test_forecasts_cannot_be_written_to():
    for dist in (DISCRETE, PredictiveDistribution.from_scipy(stats.norm([0.0, 1.0]))):
        before = dist.mean().copy()
        dist.mean()[...] = 1e9
        for array in (dist.atoms, dist.masses, dist.coefficients):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0.0
        for array in dist.to_arrays().values():
            np.multiply(array, 7.0, out=array) if isinstance(array, np.ndarray) else 0
        np.testing.assert_array_equal(dist.mean(), before)


@pytest.mark.parametrize("bounds", [None, (0.0, None), (0.0, 100.0)])
def test_quantiles_on_a_bound_do_not_make_a_heavy_tail(bounds):
    values, levels = [[0, 0, 0, 0, 5.0]], [0.05, 0.25, 0.5, 0.75, 0.95]
    dist = PredictiveDistribution.from_quantiles(values, levels, bounds=bounds)
    assert dist.ppf(0.95)[0] == pytest.approx(5.0)
    assert 7.0 < dist.ppf(0.99)[0] < 13.0
    assert 0.4 < dist.mean()[0] < 0.9


def test_the_spread_of_correlated_totals_does_not_depend_on_the_origin():
    dist = PredictiveDistribution.from_scipy(stats.norm(1e9 + np.zeros(3), 1.0))
    total = dist.total(correlation=0.9, random_state=0)
    assert total.std()[0] == pytest.approx(np.sqrt(3 + 6 * 0.9), rel=1e-3)


def test_values_at_the_ends_of_floats_warn_of_nothing():
    """Values of exp(t(3)) span all floats, and have no mean."""
    rows = PredictiveDistribution.from_scipy(stats.t(3, [3.0, 4.0]))
    heavy = rows.transform(np.exp, np.log)
    assert_array_equal([heavy.mean(), heavy.std()], np.inf)
    assert_allclose(heavy.entropy(), rows.entropy() + [3.0, 4.0], atol=0.05)
    # The density of y is that of log y, over y.
    assert (heavy.mode() < 1e-100).all()
