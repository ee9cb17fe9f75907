"""What laws say of themselves against integrals over their CDF and density."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.law import Law
from tests.fuzz.laws import ROWS, Panels, draw_law, jumps_of

SHARE = 0.35
SCORES = np.linspace(-12.0, 12.0, 24_001)
pytestmark = pytest.mark.slow

EPSILON = np.finfo(np.float64).eps
OF_VALUES = ("cdf", "cdf_left", "sf", "logpdf", "crps", "partial_means")


# Sums of a row may be added in another order beside other rows.
ROUNDING = {"rtol": 1e-10, "atol": 0.0}


def test_law(seed):
    rng = np.random.default_rng(seed)
    law = draw_law(rng)
    levels = np.sort(np.append(rng.uniform(size=(ROWS, 6)), [[1e-12], [1.0]], axis=1))
    inner = law.ppf(levels)
    spread = spread_of(law)
    inner[~np.isfinite(inner)] = 0.0
    outer = inner + spread[:, None] * rng.standard_t(2, size=inner.shape)
    jumps = np.broadcast_to(jumps_of(law), (ROWS, len(jumps_of(law))))
    y = np.sort(np.hstack([inner, outer, jumps]), axis=1)
    tails = law.ppf_scores(tail_scores(law))
    panels = Panels(law, np.hstack([y, tails]))
    check_probabilities(law, y)
    check_quantiles(law, levels)
    check_tails(law, panels, tails)
    check_losses(law, y, panels, spread)
    check_whole_rows(law)
    check_intervals(law, float(rng.uniform(0.05, 0.98)))
    check_draws(law, seed)
    check_copies(law, y, levels)


def spread_of(law):
    """Return how far apart values are (n,), of which sums have an error of a share."""
    spread = np.ptp(law.ppf(np.tile([0.1, 0.9], (ROWS, 1))), axis=1)
    if is_mixed(law):
        # Of nine tenths at one value nothing is apart, but the rest of it still is.
        whole = law.clipped if law.is_clipped else law
        return np.maximum(spread, whole.rest * spread_of(Law.smooth(whole.curve)))
    return spread


def is_mixed(law):
    """Return whether a law has values of positive probability beside curves."""
    return law.curve is not None and law.has_jumps


def masses_of(law):
    """Return the probabilities of `jumps_of`, (n, V)."""
    return law.clipped.masses if law.is_clipped else law.masses


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
    assert law.is_discrete or (log_density[outside] == -np.inf).all()
    if not law.has_jumps:
        inside = (y > low) & (y < high)
        assert np.isfinite(log_density[inside]).all()


def check_quantiles(law, levels):
    scores = np.tile(np.linspace(-8.0, 8.0, 17), (ROWS, 1))
    # Scores are rounded, and where bounds leave little of a curve so is every level.
    rounding = 1e-12 if is_mixed(law) else 1e-14
    for y, below, above in (
        (law.ppf(levels), levels, 1.0 - levels),
        (law.ppf_scores(scores), ndtr(scores), ndtr(-scores)),
    ):
        assert (np.diff(y, axis=1) >= 0.0).all()
        low, high = law.support
        assert ((y >= low) & (y <= high)).all()
        # A quantile is a float, and known no better than the centre of its row.
        middle = law.ppf_scores(np.zeros(y.shape))
        size = np.maximum(np.abs(np.where(np.isfinite(y), y, 0.0)), np.abs(middle))
        step = 4.0 * EPSILON * size
        lower, upper = y - step, y + step
        assert (law.cdf(upper) >= below * (1.0 - 1e-6) - rounding).all()
        assert (law.cdf_left(lower) <= below * (1.0 + 1e-6) + rounding).all()
        # Beside a bound or a jump upper tails are differences.
        plain = np.isinf(law.support).all() and not law.has_jumps
        slack = 1e-300 if plain else rounding
        assert (law.sf(upper) <= above * (1.0 + 1e-6) + slack).all()
        if not law.has_jumps:
            assert (law.sf(lower) >= above * (1.0 - 1e-6) - slack).all()


def tail_scores(law):
    """Return the scores (n, 5) at which both tails are looked at."""
    # Beyond five deviations what is mapped beside atoms is so to first order only.
    far = 3.0 if is_mixed(law) else 8.0
    return np.tile([-far, -3.0, 0.0, 3.0, far], (ROWS, 1))


def check_tails(law, panels, tails):
    """Small tails keep their digits: they are the density's integral to the end."""
    if law.is_discrete:
        return
    density = np.exp(law.logpdf(panels.y))
    atoms = masses_of(law)
    values = np.tile(jumps_of(law), (ROWS, 1))
    for y in tails.T:
        at = y[:, None]
        under, over = panels.beside(density, y)
        over += np.where(values > at, atoms, 0.0).sum(axis=1)
        under += np.where(values <= at, atoms, 0.0).sum(axis=1)
        slack = 1e-12 if is_mixed(law) else 1e-300
        if np.isfinite(law.support).any():
            # How far a value is from a bound is rounded twice.
            step = 4.0 * np.spacing(np.abs(panels.y)).max()
            slack = 1e-12 + step * density.max()
        # The density of a clipped law is that of a curve read anew.
        share = 0.1 if law.is_clipped else 2e-2
        assert_allclose(law.sf(at)[:, 0], over, rtol=share, atol=slack)
        assert_allclose(law.cdf(at)[:, 0], under, rtol=share, atol=slack)


# The error, as a share of the whole, that sums may have.
SLACK = 2e-3


def check_losses(law, y, panels, spread):
    crps, (below, above) = law.crps(y), law.partial_means(y)
    for j in range(y.shape[1]):
        wanted = panels.losses(y[:, j])
        got = crps[:, j], below[:, j], above[:, j]
        for value, want in zip(got, wanted, strict=True):
            size = 1e-12 * np.abs(y).max(axis=1) + 1e-3 * spread
            slack = SLACK * (np.abs(want) + size)
            assert (np.abs(value - want) <= slack).all(), (value, want)
            assert (value >= 0.0).all()


def check_whole_rows(law):
    moments, entropy, mode = law.moments(), law.entropy(), law.mode()
    low, high = law.support
    assert ((mode >= low) & (mode <= high)).all()
    assert (moments[:, [1, 3]] >= 0.0)[np.isfinite(moments[:, [1, 3]])].all()
    _, weights = law.nodes()
    assert (weights >= 0.0).all()
    assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-6)
    # Sums over very many scores, where floats of values may tell nothing.
    share = np.exp(-0.5 * SCORES**2)
    share /= share.sum()
    y = law.ppf_scores(np.tile(SCORES, (ROWS, 1)))
    log_density = law.logpdf(y)
    wide = np.ptp(y[:, [5000, -5000]], axis=1)[:, None]
    around = mode[:, None] + wide * np.array([-1e-6, 0.0, 1e-6])
    tall = law.logpdf(around).max(axis=1)
    # Peaks of less than a thousandth of the probability may be missed.
    held = np.quantile(log_density[:, 8000:-8000], 0.999, axis=1)
    # Of values alone the likeliest counts.
    assert law.is_discrete or (tall >= held - 0.05).all(), (tall, held)
    assert_allclose(entropy, -log_density @ share, rtol=0.0, atol=5e-3)
    mean = y @ share
    sd = np.sqrt((y - mean[:, None]) ** 2 @ share)
    known = np.isfinite(moments).all(axis=1)
    size = 1e-12 * np.abs(mean)
    assert (np.abs(moments[:, 0] - mean) <= SLACK * sd + size)[known].all()
    assert (np.abs(np.sqrt(moments[:, 1]) - sd) <= SLACK * sd + size)[known].all()


def check_intervals(law, coverage):
    dist = PredictiveDistribution(law)
    low, high = dist.hdi(coverage).T
    # A clipped law is read anew for this.
    slack = 1e-3 if law.is_clipped else 1e-7
    assert (dist.prob_between(low, high) >= coverage - slack).all()
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
