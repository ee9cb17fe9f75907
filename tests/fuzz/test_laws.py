"""Laws of all kinds, drawn at random, against integrals by brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from localexpert.curves.base_cdf import BaseCDF, law_of_curves
from localexpert.law.basis import chords_beside, harmonic_slopes
from localexpert.law.join import pool_laws
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, clip, cut, map_levels, recentre
from tests.fuzz.cases import pick

ROWS = 2
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
# Scores of the borders of panels: all that floats can tell from 0 and 1, to where pools
# cut scores off.
SCORES = np.union1d(np.linspace(-37.5, 37.5, 76), np.linspace(-12.0, 12.0, 121))


def draw_law(rng):
    """Return a law of two rows."""
    kinds = [spline, jagged, bounded, recalibrated, pooled]
    kinds += [mixed, discrete, clipped, moved, mapped]
    return pick(rng, *kinds)(rng)


def draw_frame(rng):
    """Return a centre and a scale in units from tiny to huge."""
    scale = 10.0 ** rng.integers(-6, 7)
    return scale * rng.normal(scale=10.0 ** rng.integers(0, 5)), scale


def draw_base(rng):
    """Return a base curve fitted to a sample of some kind."""
    n = int(rng.integers(2, 300))
    samples = [
        rng.normal(size=n),
        rng.standard_t(3, size=n),
        rng.lognormal(size=n),
        np.round(rng.normal(size=n), 1),
        rng.choice([-1.0, 1.0], size=n) + 0.1 * rng.normal(size=n),
    ]
    return BaseCDF.fit(samples[rng.integers(len(samples))])


def spline(rng, frame=None):
    """Rows of curves as fits make them, in frames of any size."""
    knots = np.linspace(*rng.uniform([-2.5, 0.5], [-0.5, 2.5]), int(rng.integers(2, 9)))
    rises = np.diff(knots) * rng.gamma(5.0, 0.2, size=(ROWS, len(knots) - 1))
    return make_spline(rng, knots, rises, None, frame)


def jagged(rng):
    """Steep, flat and bent curves, as no fit would make them."""
    n_knots = int(rng.integers(2, 9))
    knots = np.sort(rng.choice(np.arange(-30, 31), n_knots, replace=False)) / 10.0
    rises = np.diff(knots) * rng.gamma(0.7, size=(ROWS, n_knots - 1)) / 0.7
    flat = rng.uniform(size=rises[:, 1:-1].shape) < 0.2
    rises[:, 1:-1] = np.where(flat, 1e-6, 1.0) * (rises[:, 1:-1] + 1e-6)
    return make_spline(rng, knots, rises, rng.uniform(0.0, 2.9, size=(ROWS, n_knots)))


def make_spline(rng, knots, rises, shares, frame=None):
    """Return the law of curves with these rises, and slopes as shares of the chords."""
    base = draw_base(rng)
    center, scale = draw_frame(rng) if frame is None else frame
    least = 0.4 * np.diff(knots)  # room for end slopes that keep four moments finite
    rises[:, :1] = np.maximum(rises[:, :1], least[:1])
    rises[:, -1:] = np.maximum(rises[:, -1:], least[-1:])
    values = np.cumsum(np.column_stack([rng.normal(knots[0], 0.5, ROWS), rises]), 1)
    slopes = slopes_of(knots, values, shares)
    for end, slope in zip((0, -1), base.least_slopes(), strict=True):
        slopes[:, end] = np.clip(slopes[:, end], max(slope, 0.3), 3.0)
    centers = center + scale * rng.normal(0.0, 0.3, ROWS)
    scales = scale * np.exp(rng.normal(0.0, 0.3, ROWS))
    return law_of_curves(centers, scales, LevelMap(knots, values, slopes), base)


def slopes_of(knots, values, shares=None):
    """Return slopes that keep curves increasing: mild ones, or shares of the chords."""
    beside = chords_beside(knots, values)
    beside = np.where(np.isfinite(beside), beside, 1.0)
    if shares is not None:
        return shares * beside
    if len(knots) > 2:
        chords = np.diff(values) / np.diff(knots)
        beside[..., 1:-1] = harmonic_slopes(np.diff(knots), chords)
    return beside


def bounded(rng):
    """A law of curves cut off where some of every row is left."""
    law = pick(rng, spline, jagged)(rng)
    return cut(law, *draw_bounds(rng, law))


def clipped(rng):
    """A law of curves that is clipped: mild ones, for they are read anew."""
    law = spline(rng)
    width = np.ptp(law.ppf(np.tile([0.4, 0.6], (ROWS, 1))))
    return clip(law, *draw_bounds(rng, law), width)


def draw_bounds(rng, law):
    """Return bounds, one of them perhaps infinite, that hold some of every row."""
    levels = np.sort(rng.uniform(-4.0, 4.0, 2))
    ends = law.ppf_scores(np.tile(levels, (ROWS, 1)))
    low, high = ends[:, 0].max(), ends[:, 1].min()
    if low >= high:
        low, high = ends[:, 0].min(), ends[:, 1].max()
    open_end = rng.integers(3)
    return (-np.inf if open_end == 1 else low), (np.inf if open_end == 2 else high)


def draw_map(rng):
    """Return a map of levels: one for all rows, or one for each."""
    knots = np.linspace(*rng.uniform([-2.5, 0.5], [-0.5, 2.5]), int(rng.integers(2, 7)))
    shape = () if rng.uniform() < 0.5 else (ROWS,)
    steps = np.diff(knots) * rng.gamma(5.0, 0.2, (ROWS, len(knots) - 1))
    start = rng.normal(knots[0], 0.5, (ROWS, 1))
    values = np.cumsum(np.column_stack([start, steps]), axis=1)
    maps = [LevelMap.through(knots, row, slopes_of(knots, row)) for row in values]
    return LevelMap.by_row(maps, np.arange(ROWS)) if shape else maps[0]


def smooth(rng):
    """Return a law without jumps."""
    return pick(rng, spline, bounded, recalibrated, pooled)(rng)


def recalibrated(rng):
    """A spline law, bounded or not, after a map."""
    law = spline(rng) if rng.uniform() < 0.5 else bounded(rng)
    return map_levels(law, draw_map(rng))


def pooled(rng):
    """Two or three laws joined in both ways, in some rows one without weight.

    Far apart, a probit pool lies where no member does.
    """
    center, scale = draw_frame(rng)
    members = []
    for _ in range(int(rng.integers(2, 4))):
        near = center + scale * rng.normal(0.0, 3.0), scale * np.exp(rng.normal())
        members.append(spline(rng, frame=near))
    weights = rng.dirichlet(np.ones(len(members)), ROWS)
    if rng.uniform() < 0.2:
        weights[0] = np.eye(len(members))[0]
    law = pool_laws(members, weights, str(rng.choice(["linear", "probit"])))
    return law if rng.uniform() < 0.6 else map_levels(law, draw_map(rng))


def mixed(rng):
    """A smooth law beside values of positive probability, in some rows without one."""
    law = smooth(rng)
    scores = rng.normal(size=(ROWS, int(rng.integers(1, 4))))
    atoms = np.unique(np.clip(law.ppf_scores(scores)[0], *law.support))
    masses = rng.dirichlet(np.ones(len(atoms) + 1), ROWS)[:, 1:]
    kind = rng.integers(4)
    if kind == 0:
        masses[0] = 0.0
    elif kind == 1:
        masses /= masses.sum(axis=1, keepdims=True)
    width = np.diff(law.ppf(np.tile([0.4, 0.6], (ROWS, 1))), axis=1).mean()
    return Law(law.curve, atoms, masses, np.full(len(atoms), width))


def discrete(rng):
    """Some values, a few of them sure or impossible in a row."""
    center, scale = draw_frame(rng)
    n = int(rng.integers(1, 9))
    values = np.unique(center + scale * np.round(rng.normal(0.0, 5.0, n), 1))
    rows = rng.dirichlet(np.full(len(values), 0.7), ROWS)
    if rng.uniform() < 0.2:
        rows[0] = np.eye(len(values))[0]
    return Law.discrete(values, rows)


def moved(rng):
    """A law moved so that its means are others, as a stacker does."""
    law = pick(rng, spline, bounded, pooled, mixed, discrete)(rng)
    centres = law.moments()[:, :2]
    centres[~np.isfinite(centres)] = 0.0
    wanted = centres[:, 0] + 0.3 * rng.normal(size=ROWS) * np.sqrt(centres[:, 1])
    return recentre(law, np.clip(wanted, *law.support))


def mapped(rng):
    """A law with jumps after a map, as a recalibration does."""
    return map_levels(pick(rng, mixed, discrete, clipped)(rng), draw_map(rng))


def kinks_of(law):
    """Return the values of y (n, m) between which the CDF is smooth."""
    atoms = np.tile(law.clipped.atoms, (len(law), 1))
    if law.curve is None:
        return atoms
    breaks = law.curve.basis.shared.breaks
    z = np.tile(np.union1d(breaks, SCORES), (len(law), 1))
    return np.hstack([atoms, law.curve.values(z)])


class Panels:
    """Nodes and weights of sums over y that are integrals, whatever the law."""

    def __init__(self, law, cuts):
        ends = [end for end in law.support if np.isfinite(end)]
        ends = np.tile(ends, (len(law), 1))
        held = law.ppf_scores(np.tile(SCORES, (len(law), 1)))
        # A map beside atoms has kinks at the end of its scores: at infinity there is
        # nothing to be cut.
        kinks = np.clip(kinks_of(law), held[:, :1], held[:, -1:])
        borders = np.hstack([cuts, held, kinks, ends])
        borders = np.clip(np.sort(borders, axis=1), *law.support)
        width = np.diff(borders)[:, :, None]
        y = borders[:, :-1, None] + 0.5 * width * (1.0 + NODES)
        self.y = y.reshape(len(law), -1)
        self.dy = (0.5 * width * WEIGHTS).reshape(len(law), -1)
        self.cdf, self.sf = law.cdf(self.y), law.sf(self.y)
        self.borders, self.ends = borders, borders[:, [0, -1]]

    def beside(self, density, y):
        """Return integrals of a density (n, m) at the nodes below and above borders y.

        By panels, for nodes may be rounded to a border that is a few floats away.
        """
        mass = (density * self.dy).reshape(len(y), -1, len(NODES)).sum(axis=2)
        low = self.borders[:, :-1] < y[:, None]
        return (mass * low).sum(axis=1), (mass * ~low).sum(axis=1)

    def losses(self, y):
        """Return CRPS and both partial means at y (n,), integrals of the CDF alone."""
        below, at = self.y < y[:, None], self.dy
        under = np.where(below, self.cdf, 0.0)
        over = np.where(below, 0.0, self.sf)
        # Beyond the panels the CDF is 0 or 1.
        low = np.maximum(self.ends[:, 0] - y, 0.0)
        high = np.maximum(y - self.ends[:, 1], 0.0)
        crps = (at * (under**2 + over**2)).sum(axis=1) + low + high
        return crps, (at * under).sum(axis=1) + high, (at * over).sum(axis=1) + low


SHARE = 0.2
FINE_SCORES = np.linspace(-12.0, 12.0, 24_001)
pytestmark = pytest.mark.slow

EPSILON = np.finfo(np.float64).eps


def test_law(seed):
    rng = np.random.default_rng(seed)
    law = draw_law(rng)
    levels = np.sort(np.append(rng.uniform(size=(ROWS, 6)), [[1e-12], [1.0]], axis=1))
    inner = law.ppf(levels)
    spread = spread_of(law)
    inner[~np.isfinite(inner)] = 0.0
    outer = inner + spread[:, None] * rng.standard_t(2, size=inner.shape)
    jumps = np.tile(law.clipped.atoms, (ROWS, 1))
    y = np.sort(np.hstack([inner, outer, jumps]), axis=1)
    tails = law.ppf_scores(tail_scores(law))
    panels = Panels(law, np.hstack([y, tails]))
    check_probabilities(law, y)
    check_quantiles(law, levels)
    check_tails(law, panels, tails)
    check_losses(law, y, panels, spread)
    check_whole_rows(law)


def spread_of(law):
    """Return how far apart values are (n,), of which sums have an error of a share."""
    spread = np.ptp(law.ppf(np.tile([0.1, 0.9], (ROWS, 1))), axis=1)
    if is_mixed(law):
        # Of nine tenths at one value nothing is apart, but the rest of it still is.
        rest = law.clipped.rest * spread_of(Law.smooth(law.clipped.curve))
        return np.maximum(spread, rest)
    return spread


def is_mixed(law):
    """Return whether a law has values of positive probability beside curves."""
    return law.curve is not None and law.has_jumps


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
    atoms = law.clipped.masses
    values = np.tile(law.clipped.atoms, (ROWS, 1))
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
            size = 1e-12 * np.abs(y).max(axis=1) + 2e-3 * spread
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
    share = np.exp(-0.5 * FINE_SCORES**2)
    share /= share.sum()
    y = law.ppf_scores(np.tile(FINE_SCORES, (ROWS, 1)))
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
