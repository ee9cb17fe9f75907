"""Forecasts made of arrays, quantiles, draws, bins and laws of scipy."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from calibration import CalibrationWarning
from localexpert import PredictiveDistribution, concatenate
from tests.localexpert.distribution.contract_cases import forecast_of

from_quantiles = PredictiveDistribution.from_quantiles
from_samples = PredictiveDistribution.from_samples
from_bins = PredictiveDistribution.from_bins
from_scipy = PredictiveDistribution.from_scipy
from_arrays = PredictiveDistribution.from_arrays
CURVES = forecast_of("norm").coefficients
THREE = [0.1, 0.5, 0.9]


def test_quantiles_that_cross_are_put_in_order_and_those_beyond_bounds_on_them():
    crossed = [[1.0, 2.0, 3.0], [5.0, 4.0, 6.0]]
    words = "`values` fall along a row in 1 of 2 rows, the first of them row 1"
    with pytest.warns(CalibrationWarning, match=words):
        dist = from_quantiles(crossed, THREE)
    assert_allclose(dist.quantiles(THREE)[1], [4.0, 5.0, 6.0], rtol=1e-9)
    with pytest.warns(CalibrationWarning, match="`values` lie beyond `bounds` in"):
        dist = from_quantiles([[-1.0, 1.0, 4.0]], THREE, bounds=(0, 10))
    assert_allclose(dist.quantiles(THREE), [[0.0, 1.0, 4.0]], atol=1e-5)
    # Rounding alone is not worth a warning.
    near = np.array([[0.1 + 0.2, 0.3, 0.4]])
    assert_allclose(from_quantiles(near, THREE).quantiles(THREE), near, rtol=1e-6)
    rows = np.array([[0.5, 1.0, 4.0], [0.0, 0.0, 2.0]])
    held = from_quantiles(rows, THREE, bounds=(0.0, None))
    assert_array_equal(held.cdf(0.0), [0.0, 0.0])
    assert (held.rvs(1000, random_state=0) >= 0.0).all()
    assert_allclose(held.quantiles(THREE), rows, atol=1e-5)
    # Ties on a bound beside a much wider range.
    rows, levels = np.array([[0.0, 0.0, 1.0, 100.0]]), [0.05, 0.5, 0.75, 0.95]
    held = from_quantiles(rows, levels, bounds=(0.0, None))
    assert_allclose(held.quantiles(levels), rows, atol=1e-4)
    held = from_quantiles(-rows[:, ::-1], levels, bounds=(None, 0.0))
    assert_allclose(held.quantiles(levels), -rows[:, ::-1], atol=1e-4)


def test_many_rows_take_little_memory_on_the_way(rng):
    rows = np.sort(rng.normal(size=(12_000, 3)), axis=1)
    few = from_quantiles(rows[-5:], THREE)
    tracemalloc.start()
    dist = from_quantiles(rows, THREE)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * kept
    assert_array_equal(dist.quantiles(THREE)[-5:], few.quantiles(THREE))


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("shift", [0.0, 1.0, -1e6])
def test_quantiles_that_tie_are_steep_parts(scale, shift):
    rows = np.array([[0.0, 0.0, 0.0, 1.0, 3.0], [2.0] * 5, [0.0] * 5])
    rows, levels = scale * (rows + shift), np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    dist = from_quantiles(rows, levels)
    ranges = np.ptp(rows, axis=1, keepdims=True)
    size = np.abs(rows).max(axis=1, keepdims=True) + ranges
    missed = np.abs(dist.quantiles(levels) - rows)
    assert (missed <= 1e-5 * size + 1e-6 * (size == 0)).all()
    assert np.isfinite(dist.logpdf(rows[:, 0])).all()
    assert np.isfinite(dist.crps(rows[:, 0])).all()
    assert dist.cdf(rows[0, 4] * np.ones(3))[0] == pytest.approx(0.9, abs=1e-5)


def test_tails_beyond_ties_stay_wide():
    dist = from_quantiles([[0.0, 1.0, 2.0, 2.0]], [0.1, 0.5, 0.8, 0.9])
    assert dist.ppf(0.99)[0] > 2.19
    assert -dist.logpdf(2.5)[0] < 12.0


def test_containers_and_types(frozen):
    rows = [[1, 2, 4], [0, 5, 6]]
    want = from_quantiles(rows, THREE).quantiles([0.3])
    for given in (np.float32(rows), pd.DataFrame(rows), np.asfortranarray(rows)):
        got = from_quantiles(frozen(given), pd.Series(THREE))
        assert_allclose(got.quantiles([0.3]), want, rtol=1e-6)
    assert len(from_quantiles(np.empty((0, 3)), THREE)) == 0
    assert from_quantiles([[1.0, 2.0]], [0.25, 0.75]).mean() == pytest.approx(1.5)


def crps_of_draws(draws, y):
    near = np.abs(draws - y[:, None]).mean(axis=1)
    apart = np.abs(draws[:, :, None] - draws[:, None]).mean(axis=(1, 2))
    return near - 0.5 * apart


def test_any_draws_can_be_taken_as_they_are(rng):
    counts, y = rng.poisson(rng.uniform(0.5, 6.0, (40, 1)), (40, 60)), np.arange(40)
    assert_allclose(from_samples(counts).crps(y), crps_of_draws(counts, y))
    draws, y = rng.normal(size=(30, 25)), rng.normal(size=30)
    dist, smooth = from_samples(draws, kind="discrete"), from_samples(draws)
    assert_allclose(dist.crps(y), crps_of_draws(draws, y), atol=1e-12)
    assert smooth.law.is_smooth
    assert_allclose(smooth.crps(y).mean(), dist.crps(y).mean(), rtol=0.05)
    # Within bounds, and rows of one value.
    rows = np.vstack([rng.exponential(0.01, (3, 200)), np.full((1, 200), 7.0)])
    held = from_samples(rows, bounds=(0.0, None))
    assert_array_equal(held.cdf(0.0), np.zeros(4))
    assert held.mean()[3] == pytest.approx(7.0)
    assert from_samples(np.full((2, 5), 7.0)).pmf(7.0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("law", "shortfall"), [(stats.t(4), 9.686), (stats.norm(), 3.367)]
)
def test_many_draws_show_their_tails(law, shortfall):
    dist = from_samples([law.rvs(100_000, random_state=1)])
    assert dist.value_at_risk(0.999)[0] == pytest.approx(law.ppf(0.999), rel=0.04)
    assert dist.expected_shortfall(0.999)[0] == pytest.approx(shortfall, rel=0.05)


def test_histograms_come_back(rng):
    edges, shares = np.sort(rng.normal(0.0, 3.0, 31)), rng.dirichlet(np.ones(30), 50)
    dist, inner = from_bins(edges, shares), np.linspace(edges[0], edges[-1], 200)
    upto = np.hstack([np.zeros((50, 1)), shares.cumsum(axis=1)])
    want = np.stack([np.interp(inner, edges, row) for row in upto])
    assert_allclose(dist.cdf_at(inner), want, atol=0.012)
    middles = 0.5 * (edges[1:] + edges[:-1])
    assert_allclose(dist.mean(), shares @ middles, atol=0.02 * np.ptp(edges))
    assert_array_equal(dist.cdf_at(edges[[0, -1]]), [[0.0, 1.0]] * 50)


LOC, SCALE = np.array([-1.0, 0.0, 3.0]), np.array([1.0, 2.0, 0.5])


@pytest.mark.parametrize(
    "frozen",
    [
        stats.norm(LOC, SCALE),
        stats.norm(loc=LOC, scale=SCALE),
        stats.norm(LOC, scale=pd.Series(SCALE)),
        stats.norm(LOC[:, None], SCALE[:, None]),
    ],
)
def test_parameters_of_scipy_however_they_are_given(frozen):
    want = stats.norm(LOC, SCALE).ppf(0.3)
    assert_allclose(from_scipy(frozen).ppf(0.3), want, rtol=1e-9)
    assert_allclose(from_scipy(stats.gamma(2.0), 4).mean(), [2.0] * 4, rtol=1e-6)
    for law in (stats.norm, stats.poisson):
        assert len(from_scipy(law(np.empty(0)))) == 0


def by_hand(loc, scale):
    frozen = stats.norm()
    frozen.kwds = {"loc": np.array(loc), "scale": np.array(scale)}
    return frozen


def arrays(**given):
    return from_arrays(**{"coefficients": CURVES, **given})


FALLS = np.array(CURVES)
FALLS[1, 40] = FALLS[1, 39] - 0.5
TWO, MANY = [[1.0, 2.0]], np.arange(32_000.0).reshape(3200, 10)
HALVES = stats.rv_discrete(values=([0, 0.5, 1], [0.2, 0.5, 0.3]))()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_quantiles([[1.0]], [0.5]), "`levels` must be two .* 0.5 alone"),
        (lambda: from_quantiles(TWO, [0.5, 1.0]), r"`levels` must lie in .*, got 1"),
        (lambda: from_quantiles(TWO, [0.5, 0.5]), "`levels` must increase strictly"),
        (lambda: from_quantiles(TWO, THREE), "column for each of the 3 levels, got sh"),
        (lambda: from_quantiles(TWO[0], THREE), r"two dimensions, .* \(2,\)"),
        (lambda: from_quantiles([[1, 2, np.nan]], THREE), "got nan in row 0, column 2"),
        (lambda: from_quantiles(TWO, [0.1, 0.9], bounds=(3, 1)), "`bounds` .* < high"),
        (lambda: from_samples(TWO[0]), "two dimensions, the draws of each"),
        (lambda: from_samples([[]]), r"`samples` must hold draws, got shape \(1, 0\)"),
        (lambda: from_samples([[1.0, np.nan]]), "finite, got nan in row 0, column 1"),
        (lambda: from_samples(TWO, kind="smooth"), "at least 10 draws .* got 2"),
        (lambda: from_samples(MANY, kind="discrete"), "`kind` must not .* got 32000 "),
        (lambda: from_bins([0.0], [[1.0]]), "`edges` must be two or more, got 1"),
        (lambda: from_bins([0.0, 0.0], [[1.0]]), "`edges` must increase strictly"),
        (lambda: from_bins([0, 1], [[0.5]]), "`probabilities` must sum to 1 in every"),
        (lambda: from_bins([0, 1], [[0.5, 0.5]]), "`probabilities` must have shape"),
        (lambda: from_scipy(stats.norm(0.0, [1, -1])), "a law, got loc=0, scale=-1"),
        (lambda: from_scipy(stats.poisson([-1, 2])), "`poisson` has .* mu=-1, loc=0"),
        (lambda: from_scipy(by_hand([1, 2], [1, 2, 3])), "of one length, got shapes"),
        (lambda: from_scipy(stats.norm(np.zeros((2, 3)))), r"of shape \(n,\), got"),
        (lambda: from_scipy(stats.norm([0, 1]), 3), "of the parameters, 2, got"),
        (lambda: from_scipy(stats.poisson([1, 1e9])), "must take at most 10000 values"),
        (lambda: from_scipy(HALVES), r"in steps of 1, .* got 0\.5 of the .* in row 0"),
        (lambda: from_scipy(stats.poisson([1, 4], [0, 0.5])), "got 0 of the .* row 1"),
        (lambda: arrays(coefficients=FALLS), "must not fall along a row, .* column 39"),
        (lambda: arrays(coefficients=CURVES[:, 1:]), "`coefficients` must have shape"),
        (lambda: arrays(bounds=(1.0, 0.0)), "low end below the high one"),
        (lambda: arrays(bounds=[0.0]), r"must have shape \(2,\) or \(3, 2"),
        (lambda: arrays(slopes=[[1, 0]] * 3), "must be positive, got 0"),
        (lambda: arrays(atoms=[0], masses=[[0.5]]), "as long as"),
        (lambda: from_arrays(atoms=[0, 1], masses=[[1.0]]), "`masses` must have"),
        (lambda: from_arrays(atoms=[0], masses=[[0.9]]), "`masses` must sum to 1 in"),
        (lambda: from_arrays(atoms=[1, 0], masses=[[0.5, 0.5]]), "must increase stric"),
        (
            lambda: from_arrays(atoms=[0], masses=[[1.0]], widths=[0.0]),
            "`widths` must be positive",
        ),
        (from_arrays, "`atoms` must be given where there are"),
    ],
)
def test_refusals(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_curves_need_coefficients_alone():
    dist = from_arrays(coefficients=CURVES)
    assert_array_equal(dist.median(), forecast_of("norm").median())
    wide = from_arrays(coefficients=CURVES, bounds=(0.0, np.inf))
    assert_allclose(wide.median(), np.exp(dist.median()))
    both = from_arrays(coefficients=CURVES, atoms=[0.0], masses=[[0.5]] * 3)
    assert_allclose(both.pmf(0.0), [0.5] * 3)


def test_atoms_beyond_the_ends_are_at_them():
    given = {"atoms": [0.0, 5.0], "masses": [[0.2, 0.1]] * 3, "ends": (-0.5, 2.0)}
    dist = from_arrays(coefficients=CURVES, **given)
    assert_array_equal(dist.pmf(0.0), 0.2)
    assert_array_equal(dist.pmf(5.0), 0.0)
    beyond = 0.7 * from_arrays(coefficients=CURVES).sf(2.0)
    assert_allclose(dist.pmf(2.0), 0.1 + beyond, atol=1e-12)
    assert_allclose(dist.pmf(2.0), dist.prob_between(2.0, 2.0), atol=1e-12)


def test_equal_knots_are_one_basis_however_many_others_there_were():
    levels = np.array([0.1, 0.35, 0.9])
    quantiles = np.array([[0.0, 1.0, 5.0]])
    first = from_quantiles(quantiles, levels)
    for k in range(80):
        from_quantiles(quantiles, levels + 1e-4 * k)
    joined = concatenate([first, from_quantiles(quantiles, levels)])
    assert_allclose(joined.quantiles(levels), quantiles[[0, 0]], atol=1e-9)
    assert_array_equal(joined.coefficients[0], first.coefficients[0])
