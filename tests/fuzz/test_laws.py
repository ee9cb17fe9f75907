"""What laws say of themselves against integrals over their CDF and density."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.laws import DiscreteLaw, MixedLaw
from tests.fuzz.laws import ROWS, Panels, draw_law, jumps_of

SHARE = 0.35
pytestmark = pytest.mark.slow

OF_VALUES = ("cdf", "cdf_left", "sf", "logpdf", "crps", "partial_means")


# Sums of a row may be added in another order beside other rows.
ROUNDING = {"rtol": 1e-10, "atol": 0.0}


def test_law(seed):
    rng = np.random.default_rng(seed)
    law = draw_law(rng)
    levels = np.sort(np.append(rng.uniform(size=(ROWS, 6)), [[1e-12], [1.0]], axis=1))
    inner = law.ppf(levels)
    spread = np.ptp(law.ppf(np.tile([0.1, 0.9], (ROWS, 1))), axis=1)
    inner[~np.isfinite(inner)] = 0.0
    outer = inner + spread[:, None] * rng.standard_t(2, size=inner.shape)
    jumps = np.broadcast_to(jumps_of(law), (ROWS, len(jumps_of(law))))
    y = np.sort(np.hstack([inner, outer, jumps]), axis=1)
    panels = Panels(law, y)
    check_probabilities(law, y)
    check_quantiles(law, levels)
    check_tails(law, panels)
    check_losses(law, y, panels, spread)
    check_whole_rows(law, panels)
    check_intervals(law, float(rng.uniform(0.05, 0.98)))
    check_draws(law, seed)
    check_copies(law, y, levels)


def check_probabilities(law, y):
    at = np.hstack([np.full((ROWS, 1), -np.inf), y, np.full((ROWS, 1), np.inf)])
    below, left, above = law.cdf(at), law.cdf_left(at), law.sf(at)
    assert (np.diff(below, axis=1) >= -1e-14).all()
    assert (np.diff(above, axis=1) <= 1e-14).all()
    for values in (below, left, above):
        assert ((values >= 0.0) & (values <= 1.0)).all()
    assert (left <= below + 1e-14).all()
    assert_allclose(below + above, 1.0, rtol=0.0, atol=1e-12)
    assert_allclose(below[:, [0, -1]], np.tile([0.0, 1.0], (ROWS, 1)), atol=1e-300)
    if not law.has_jumps:
        assert_array_equal(left, below)
    log_density, (low, high) = law.logpdf(y), law.support
    assert not np.isnan(log_density).any()
    assert (log_density < np.inf).all()
    outside = (y < low) | (y > high)
    # Values of a discrete law have cells that reach beyond the outermost.
    assert isinstance(law, DiscreteLaw) or (log_density[outside] == -np.inf).all()
    if not law.has_jumps:
        assert np.isfinite(log_density[(y > low) & (y < high)]).all()


def check_quantiles(law, levels):
    scores = np.tile(np.linspace(-8.0, 8.0, 17), (ROWS, 1))
    for y, below, above in (
        (law.ppf(levels), levels, 1.0 - levels),
        (law.ppf_scores(scores), ndtr(scores), ndtr(-scores)),
    ):
        assert (np.diff(y, axis=1) >= 0.0).all()
        low, high = law.support
        assert ((y >= low) & (y <= high)).all()
        # A quantile is a float: its neighbours are as good.
        upper, lower = np.nextafter(y, np.inf), np.nextafter(y, -np.inf)
        for _ in range(3):
            upper, lower = np.nextafter(upper, np.inf), np.nextafter(lower, -np.inf)
        assert (law.cdf(upper) >= below * (1.0 - 1e-6) - 1e-14).all()
        assert (law.cdf_left(lower) <= below * (1.0 + 1e-6) + 1e-14).all()
        assert (law.sf(upper) <= above * (1.0 + 1e-6) + 1e-14).all()
        if not law.has_jumps:
            assert (law.sf(lower) >= above * (1.0 - 1e-6)).all()
            assert (law.sf(upper) <= above * (1.0 + 1e-6) + 1e-300).all()


def check_tails(law, panels):
    """Small tails keep their digits: they are the density's integral to the end."""
    if isinstance(law, DiscreteLaw):
        return
    mass = np.exp(law.logpdf(panels.y)) * panels.dy
    atoms = law.masses if isinstance(law, MixedLaw) else np.zeros((ROWS, 0))
    values = np.tile(jumps_of(law), (ROWS, 1))
    scores = np.tile([-6.0, -3.0, 0.0, 3.0, 6.0, 8.0], (ROWS, 1))
    for y in law.ppf_scores(scores).T:
        at = y[:, None]
        over = np.where(panels.y > at, mass, 0.0).sum(axis=1)
        over += np.where(values > at, atoms, 0.0).sum(axis=1)
        under = np.where(panels.y < at, mass, 0.0).sum(axis=1)
        under += np.where(values <= at, atoms, 0.0).sum(axis=1)
        assert_allclose(law.sf(at)[:, 0], over, rtol=5e-3, atol=1e-300)
        assert_allclose(law.cdf(at)[:, 0], under, rtol=5e-3, atol=1e-300)


def check_losses(law, y, panels, spread):
    crps, (below, above) = law.crps(y), law.partial_means(y)
    for j in range(y.shape[1]):
        wanted = panels.losses(y[:, j])
        got = crps[:, j], below[:, j], above[:, j]
        for value, want in zip(got, wanted, strict=True):
            slack = 2e-3 * np.abs(want) + 1e-6 * spread + 1e-12 * np.abs(y[:, j])
            assert (np.abs(value - want) <= slack).all(), (value, want)
            assert (value >= 0.0).all()


def check_whole_rows(law, panels):
    moments, entropy, mode = law.moments(), law.entropy(), law.mode()
    low, high = law.support
    assert ((mode >= low) & (mode <= high)).all()
    assert (moments[:, [1, 3]] >= 0.0)[np.isfinite(moments[:, [1, 3]])].all()
    y, weights = law.nodes()
    assert (weights >= 0.0).all()
    assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-6)
    values = jumps_of(law)
    if isinstance(law, DiscreteLaw):
        y, mass = np.tile(values, (ROWS, 1)), law.probabilities
        log_density = np.where(mass > 0.0, law.logpdf(y), 0.0)
    else:
        y, log_density = panels.y, law.logpdf(panels.y)
        mass = np.exp(log_density) * panels.dy
        log_density = np.where(mass > 0.0, log_density, 0.0)
    if isinstance(law, MixedLaw):
        at = np.tile(values, (ROWS, 1))
        y, mass = np.hstack([y, at]), np.hstack([mass, law.masses])
        atoms = np.where(law.masses > 0.0, law.logpdf(at), 0.0)
        log_density = np.hstack([log_density, atoms])
    if not isinstance(law, DiscreteLaw):
        tall = law.logpdf(mode[:, None])[:, 0]
        held = np.where(mass > 0.0, log_density, -np.inf).max(axis=1)
        assert (tall >= held - 1e-3).all(), (tall, held)
    assert_allclose(entropy, -(mass * log_density).sum(axis=1), atol=5e-3)
    known = np.isfinite(moments).all(axis=1)
    mean = (mass * y).sum(axis=1)[known]
    away = y[known] - moments[known, :1]
    variance = (mass[known] * away**2).sum(axis=1)
    sd = np.sqrt(variance)
    size = 1e-12 * np.abs(mean)
    assert (np.abs(moments[known, 0] - mean) <= 2e-3 * sd + size).all()
    assert_allclose(
        np.sqrt(moments[known, 1]), sd, rtol=5e-3, atol=1e-6 * size.max(initial=0.0)
    )


def check_intervals(law, coverage):
    dist = PredictiveDistribution(law)
    low, high = dist.hdi(coverage).T
    assert (dist.prob_between(low, high) >= coverage - 1e-7).all()
    central = dist.interval(coverage)
    assert (high - low <= (central[:, 1] - central[:, 0]) * (1.0 + 1e-9)).all()
    for i, regions in enumerate(dist.hdi_regions(coverage)):
        assert (np.diff(regions.ravel()) >= 0.0).all()
        held = dist[i].prob_between(regions[:, :1], regions[:, 1:]).sum()
        assert held >= coverage - 0.02


def check_draws(law, seed):
    dist = PredictiveDistribution(law)
    draws = dist.rvs(50, seed)
    low, high = law.support
    assert np.isfinite(draws).all()
    assert ((draws >= low) & (draws <= high)).all()
    assert_array_equal(draws, dist.rvs(50, seed))
    scores = np.random.default_rng(seed).standard_normal((50, ROWS))
    assert_array_equal(draws, law.ppf_scores(np.ascontiguousarray(scores.T)).T)


def check_copies(law, y, levels):
    """Rows in another order and a pickled law say the same, to the last bit."""
    copy = pickle.loads(pickle.dumps(law))
    other, single = law.take(np.array([1, 0])), law.take(slice(1, 2))
    for name in OF_VALUES:
        said = np.asarray(getattr(law, name)(y))
        assert_array_equal(np.asarray(getattr(copy, name)(y)), said)
        swapped = np.asarray(getattr(other, name)(y[::-1]))
        assert_allclose(swapped[..., ::-1, :], said, **ROUNDING)
        alone = np.asarray(getattr(single, name)(y[1:]))
        assert_allclose(alone[..., 0, :], said[..., 1, :], **ROUNDING)
    assert_array_equal(copy.ppf(levels), law.ppf(levels))
    assert_allclose(other.ppf(levels[::-1])[::-1], law.ppf(levels), **ROUNDING)
    for name in ("moments", "entropy", "mode"):
        said = getattr(law, name)()
        assert_array_equal(getattr(copy, name)(), said)
        assert_allclose(getattr(other, name)()[::-1], said, rtol=1e-6)
        assert_allclose(getattr(single, name)()[0], said[1], rtol=1e-6)
