"""Forecasts given an interval, hazards, restricted means: by integrals and by draws."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from localexpert import PredictiveDistribution
from tests.localexpert.law.kinds import FORECASTS, SMOOTH, every, places_of

# Levels between which each row is cut; the first cut of each pair is the median.
CUTS = [(0.5, 1.0), (0.0, 0.5), (0.3, 0.9), (0.995, 1.0), (0.0, 0.02)]


LOG_4 = np.log(4.0)


def _ends(dist, cut):
    """Return quantiles of each row, infinite for levels of 0 and 1."""
    low = dist.ppf(cut[0]) if cut[0] > 0.0 else np.full(3, -np.inf)
    high = dist.ppf(cut[1]) if cut[1] < 1.0 else np.full(3, np.inf)
    return low, high


@pytest.mark.parametrize("cut", CUTS)
@every
def test_probabilities_are_shares(name, cut):
    dist = FORECASTS[name]
    low, high = _ends(dist, cut)
    given = dist.given(lower=low, upper=high)
    held = dist.prob_between(low, high)
    for y in places_of(dist.law).T:
        want = dist.prob_between(low, np.minimum(y, high)) / held
        assert_allclose(given.cdf(y), want, atol=2e-4 if dist.law.curve else 1e-12)
        expected = np.where((y >= low) & (y <= high), dist.pmf(y) / held, 0.0)
        assert_allclose(given.pmf(y), expected, atol=2e-4)
    if name in SMOOTH:
        y = given.quantiles(np.linspace(0.02, 0.98, 9)).T
        assert_allclose(given.logpdf(y), dist.logpdf(y) - np.log(held), atol=2e-3)
    ends = given.quantiles([0.0, 1e-6, 0.5, 1.0 - 1e-6, 1.0])
    assert (ends >= low[:, None] - 1e-9).all()
    assert (ends <= high[:, None] + 1e-9).all()


@pytest.mark.parametrize(("start", "width"), [(0.0, 1.0), (100.0, 1.0), (-1e3, 5.0)])
def test_next_to_a_bound_that_stays_a_density_is_known(start, width):
    dist = PredictiveDistribution.from_scipy(stats.uniform([start], width))
    at = start + 0.3 * width
    for given, share in ((dist.given(lower=at), 0.7), (dist.given(upper=at), 0.3)):
        assert_allclose(given.entropy(), np.log(share * width), atol=1e-4)
        region = np.diff(given.hdi_regions(0.8)[0]).sum()
        assert region == pytest.approx(0.8 * share * width, rel=1e-3)


@pytest.mark.parametrize(
    ("law", "ends", "mean", "sd"),
    [
        (stats.pareto(1.0), {"lower": -5.0}, np.inf, np.inf),
        (stats.pareto(1.0), {"lower": 2.0}, np.inf, np.inf),
        (stats.pareto(1.0), {"upper": 2.0}, LOG_4, np.sqrt(2.0 - LOG_4**2)),
        (stats.pareto(0.1), {"lower": 2.0}, np.inf, np.inf),
        (stats.cauchy(), {"lower": 0.0}, np.inf, np.nan),
        (stats.cauchy(), {"upper": 0.0}, -np.inf, np.nan),
        (stats.cauchy(), {}, np.nan, np.nan),
        (stats.t(2.0), {"lower": 0.0}, np.sqrt(2.0), np.inf),
    ],
)
def test_moments_are_missing_where_a_heavy_tail_stays(law, ends, mean, sd):
    given = PredictiveDistribution.from_scipy(law).given(**ends)
    assert_allclose([given.mean()[0], given.std()[0]], [mean, sd], rtol=1e-3)


@every
def test_hazard_and_restricted_mean(name):
    dist = FORECASTS[name]
    y = dist.ppf([[0.1], [0.6], [0.9]])
    at_least = dist.sf(y) + dist.pmf(y)
    assert_allclose(dist.hazard(y), dist.pdf(y) / at_least, rtol=1e-9)
    # E min(Y, limit) = limit - E max(limit - Y, 0).
    assert_allclose(dist.restricted_mean(y), y - dist.partial_means(y)[0], rtol=1e-9)
    assert np.isnan(dist.hazard(1e6)).all() or (dist.sf(1e6) > 0.0).any()


def test_labels_stay_and_rows_differ():
    dist = replace(FORECASTS["discrete"], labels=np.array(["a", "b", "c"]))
    given = dist.given(lower=[1.0, -np.inf, -np.inf], upper=[np.inf, 1.0, np.inf])
    assert given.labels is not None
    assert_allclose(given.masses, [[0, 0.625, 0.375], [0, 1, 0], [0, 1, 0]], atol=1e-15)


def test_refusals():
    dist = FORECASTS["counts"]
    for lower, upper in [(2.2, 2.8), (3.0, 1.0), (-5.0, -1.0)]:
        with pytest.raises(ValueError, match=r"`lower` must hold some of the prob.*0"):
            dist.given(lower=lower, upper=upper)
    with pytest.raises(ValueError, match="`upper` must be a number or have one for"):
        dist.given(upper=np.ones((2, 3)))
    with pytest.raises(ValueError, match="`lower` must not be NaN"):
        dist.given(lower=np.nan)
