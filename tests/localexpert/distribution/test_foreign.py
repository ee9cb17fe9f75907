"""Distributions made of quantiles, draws, bins and laws of scipy."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from calibration import CalibrationWarning
from localexpert import PredictiveDistribution

LEVELS = np.arange(1, 10) / 10
from_quantiles = PredictiveDistribution.from_quantiles
from_samples = PredictiveDistribution.from_samples
from_bins = PredictiveDistribution.from_bins
from_scipy = PredictiveDistribution.from_scipy


def crps_of_draws(draws, y):
    near = np.abs(draws - y[:, None]).mean(axis=1)
    apart = np.abs(draws[:, :, None] - draws[:, None]).mean(axis=(1, 2))
    return near - 0.5 * apart


class TestQuantiles:
    def test_that_cross_are_put_in_order(self):
        rows = [[1.0, 2.0, 3.0], [5.0, 4.0, 6.0]]
        with pytest.warns(
            CalibrationWarning,
            match="`values` fall along a row in 1 of 2 rows, the first of them row 1",
        ):
            dist = from_quantiles(rows, [0.2, 0.5, 0.8])
        assert_allclose(dist.quantiles([0.2, 0.5, 0.8])[1], [4.0, 5.0, 6.0], rtol=1e-9)
        # By rounding alone is not worth a warning.
        rows = np.array([[0.1 + 0.2, 0.3, 0.4]])
        dist = from_quantiles(rows, [0.2, 0.5, 0.8])
        assert_allclose(dist.quantiles([0.2, 0.5, 0.8]), rows, rtol=1e-6)

    @pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
    @pytest.mark.parametrize("shift", [0.0, 1.0, -1e6])
    def test_that_tie_are_steep_parts(self, scale, shift):
        rows = np.array([[0.0, 0.0, 0.0, 1.0, 3.0], [2.0] * 5, [0.0] * 5])
        rows = scale * (rows + shift)
        levels = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
        dist = from_quantiles(rows, levels)
        ranges = np.ptp(rows, axis=1, keepdims=True)
        size = np.abs(rows).max(axis=1, keepdims=True) + ranges
        missed = np.abs(dist.quantiles(levels) - rows)
        assert (missed <= 1e-5 * size + 1e-6 * (size == 0)).all()
        assert np.isfinite(dist.logpdf(rows[:, 0])).all()
        assert np.isfinite(dist.crps(rows[:, 0])).all()
        assert dist.cdf(rows[0, 4] * np.ones(3))[0] == pytest.approx(0.9, abs=1e-5)

    def test_tails_beyond_ties_stay_wide(self):
        dist = from_quantiles([[0.0, 1.0, 2.0, 2.0]], [0.1, 0.5, 0.8, 0.9])
        assert dist.ppf(0.99)[0] > 2.19
        assert -dist.logpdf(2.5)[0] < 12.0

    def test_bounds_hold_the_tails(self):
        rows = np.array([[0.5, 1.0, 4.0], [0.0, 0.0, 2.0]])
        dist = from_quantiles(rows, [0.1, 0.5, 0.9], bounds=(0.0, None))
        assert_array_equal(dist.cdf(0.0), [0.0, 0.0])
        assert (dist.rvs(1000, random_state=0) >= 0.0).all()
        assert_allclose(dist.quantiles([0.1, 0.5, 0.9]), rows, atol=1e-5)
        with pytest.warns(CalibrationWarning, match="`values` lie beyond `bounds` in"):
            dist = from_quantiles([[-1.0, 1.0, 4.0]], [0.1, 0.5, 0.9], bounds=(0, 10))
        assert_allclose(dist.quantiles([0.1, 0.5, 0.9]), [[0.0, 1.0, 4.0]], atol=1e-5)

    def test_containers_and_types(self, frozen):
        rows = [[1, 2, 4], [0, 5, 6]]
        want = from_quantiles(rows, [0.1, 0.5, 0.9]).quantiles([0.3])
        for given in (np.float32(rows), pd.DataFrame(rows), np.asfortranarray(rows)):
            got = from_quantiles(given, pd.Series([0.1, 0.5, 0.9]))
            assert_allclose(got.quantiles([0.3]), want, rtol=1e-6)
        assert len(from_quantiles(np.empty((0, 3)), [0.1, 0.5, 0.9])) == 0
        assert from_quantiles([[1.0, 2.0]], [0.25, 0.75]).mean() == pytest.approx(1.5)
        from_quantiles(frozen([[1.0, 1.0, 2.0]]), frozen([0.1, 0.5, 0.9]))

    @pytest.mark.parametrize(
        ("values", "levels", "message"),
        [
            ([[1.0]], [0.5], "`levels` must be two or more, .* got 0.5 alone"),
            ([[1.0, 2.0]], [0.5, 1.0], r"`levels` must lie in \(0, 1\), got 1"),
            ([[1.0, 2.0]], [0.5, 0.5], "`levels` must increase strictly"),
            ([[1.0, 2.0, 3.0]], [0.1, 0.9], "column for each of the 2 levels, got sh"),
            ([1.0, 2.0], [0.1, 0.9], r"`values` must have two dimensions, .* \(2,\)"),
            ([[1.0, 2.0], [np.nan, 2.0]], [0.1, 0.9], "got nan in row 1, column 0"),
            ([["a", "b"]], [0.1, 0.9], "`values` must be numeric"),
        ],
    )
    def test_what_is_refused(self, values, levels, message):
        with pytest.raises((TypeError, ValueError), match=message):
            from_quantiles(values, levels)
        with pytest.raises(ValueError, match=r"`bounds` must be .* low < high"):
            from_quantiles([[1.0, 2.0]], [0.1, 0.9], bounds=(3.0, 1.0))


class TestSamples:
    def test_any_draws_can_be_taken_as_they_are(self, rng):
        counts, y = rng.poisson(rng.uniform(0.5, 6.0, (40, 1)), (40, 60)), np.arange(40)
        assert_allclose(from_samples(counts).crps(y), crps_of_draws(counts, y))
        draws, y = rng.normal(size=(30, 25)), rng.normal(size=30)
        dist = from_samples(draws, kind="discrete")
        assert_allclose(dist.crps(y), crps_of_draws(draws, y), atol=1e-12)
        smooth = from_samples(draws)
        assert smooth.law.is_smooth
        assert_allclose(smooth.crps(y).mean(), dist.crps(y).mean(), rtol=0.05)

    def test_bounds_and_constant_rows(self, rng):
        draws = np.vstack([rng.exponential(0.01, (3, 200)), np.full((1, 200), 7.0)])
        dist = from_samples(draws, bounds=(0.0, None))
        assert_array_equal(dist.cdf(0.0), np.zeros(4))
        assert dist.mean()[3] == pytest.approx(7.0)
        assert from_samples(np.full((2, 5), 7.0)).pmf(7.0).tolist() == [1.0, 1.0]

    @pytest.mark.parametrize(
        ("samples", "parameters", "message"),
        [
            ([1.0, 2.0], {}, r"`samples` must have two dimensions, the draws of each"),
            ([[]], {}, r"`samples` must hold draws, got shape \(1, 0\)"),
            ([[1.0, np.nan]], {}, "must be finite, got nan in row 0, column 1"),
            ([[1.0, 2.0]], {"kind": "smooth"}, "at least 10 draws .* got 2"),
            ([[1.0, 2.0]], {"kind": "kde"}, "`kind` must be one of 'auto', 'smooth'"),
            ([[1.0, 2.0]], {"bounds": 3.0}, "`bounds` must be a pair"),
            (
                np.arange(32_000.0).reshape(3200, 10),
                {"kind": "discrete"},
                '`kind` must not be "discrete" for 32000 val',
            ),
        ],
    )
    def test_what_is_refused(self, samples, parameters, message):
        with pytest.raises(ValueError, match=message):
            from_samples(samples, **parameters)


class TestBins:
    def test_the_histogram_comes_back(self, rng):
        edges = np.sort(rng.normal(0.0, 3.0, 31))
        shares = rng.dirichlet(np.ones(30), 50)
        dist = from_bins(edges, shares)
        inner = np.linspace(edges[0], edges[-1], 200)
        upto = np.hstack([np.zeros((50, 1)), shares.cumsum(axis=1)])
        want = np.stack([np.interp(inner, edges, row) for row in upto])
        assert_allclose(dist.cdf_at(inner), want, atol=0.012)
        middles = 0.5 * (edges[1:] + edges[:-1])
        assert_allclose(dist.mean(), shares @ middles, atol=0.02 * np.ptp(edges))
        assert_array_equal(dist.cdf_at(edges[[0, -1]]), [[0.0, 1.0]] * 50)

    @pytest.mark.parametrize(
        ("edges", "shares", "message"),
        [
            ([0.0], [[1.0]], "`edges` must be two or more, got 1"),
            ([0.0, 0.0], [[1.0]], "`edges` must increase strictly"),
            ([0.0, 1.0], [[0.5]], "`probabilities` must sum to 1 in every row"),
            ([0.0, 1.0], [[0.5, 0.5]], "`probabilities` must have shape"),
            ([0.0, 1.0, 2.0], [[0.5, np.nan]], "got nan in row 0, column 1"),
        ],
    )
    def test_what_is_refused(self, edges, shares, message):
        with pytest.raises(ValueError, match=message):
            from_bins(edges, shares)


def _frozen_by_hand(loc, scale):
    frozen = stats.norm()
    frozen.kwds = {"loc": np.array(loc), "scale": np.array(scale)}
    return frozen


class TestScipy:
    def test_parameters_however_they_are_given(self, rng):
        loc, scale = rng.normal(size=6), rng.uniform(1.0, 2.0, 6)
        want = stats.norm(loc, scale).ppf(0.3)
        for frozen in (
            stats.norm(loc, scale),
            stats.norm(loc=loc, scale=scale),
            stats.norm(loc, scale=pd.Series(scale)),
            stats.norm(loc[:, None], scale[:, None]),
        ):
            assert_allclose(from_scipy(frozen).ppf(0.3), want, rtol=1e-9)
        alone = from_scipy(stats.norm(2.0), 5)
        assert_allclose(alone.mean(), np.full(5, 2.0), rtol=1e-12)
        assert len(from_scipy(stats.norm())) == 1
        assert len(from_scipy(stats.norm(loc), 6)) == 6
        assert len(from_scipy(stats.norm(loc[:0]))) == 0
        shaped = from_scipy(stats.beta(2.0, [3.0, 4.0], scale=10.0))
        assert_allclose(shaped.mean(), [4.0, 10.0 / 3.0])

    @pytest.mark.parametrize(
        ("frozen", "n", "message"),
        [
            (stats.norm, None, r"stats.norm\(loc, scale\), got norm_gen"),
            (
                stats.norm(0.0, [1, -1]),
                None,
                "`norm` has a law, got loc=0, scale=-1",
            ),
            (
                stats.poisson([-1.0, 2.0]),
                None,
                "`poisson` has a law, got -1, 0 in",
            ),
            (_frozen_by_hand([1, 2], [1, 2, 3]), None, "of one length, got shapes"),
            (stats.norm(np.zeros((2, 3))), None, r"of shape \(n,\), got shape"),
            (stats.norm([0.0, 1.0]), 3, "be the length of the parameters, 2, got 3"),
            (stats.poisson([1.0, 1e9]), None, "must take at most 10000 values"),
        ],
    )
    def test_what_is_refused(self, frozen, n, message):
        with pytest.raises((TypeError, ValueError), match=message):
            from_scipy(frozen, n)
