"""Laws of all kinds, drawn at random, and integrals over them by brute force."""

from functools import partial

import numpy as np

from localexpert.curves.base_cdf import BaseCDF, law_of_curves
from localexpert.law.basis import chords_beside, harmonic_slopes
from localexpert.law.join import pool_laws
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, clip, cut, map_levels, recentre
from localexpert.law.transform import ValueMap, transform_law
from tests.fuzz.cases import pick

ROWS = 2
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
# Scores of the borders of panels: all that floats can tell from 0 and 1, to where pools
# cut scores off.
SCORES = np.union1d(np.linspace(-37.5, 37.5, 76), np.linspace(-12.0, 12.0, 121))


def draw_law(rng):
    """Return a law of two rows."""
    kinds = (
        spline,
        jagged,
        bounded,
        recalibrated,
        pooled,
        mixed,
        discrete,
        clipped,
        moved,
        mapped,
        transformed,
    )
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


def spline(rng, frame=None, base=None):
    """Rows of curves as fits make them, in frames of any size."""
    knots = np.linspace(*rng.uniform([-2.5, 0.5], [-0.5, 2.5]), int(rng.integers(2, 9)))
    rises = np.diff(knots) * rng.gamma(5.0, 0.2, size=(ROWS, len(knots) - 1))
    return make_spline(rng, knots, rises, None, frame, base)


def jagged(rng):
    """Steep, flat and bent curves, as no fit would make them."""
    n_knots = int(rng.integers(1, 9))
    knots = np.sort(rng.choice(np.arange(-30, 31), n_knots, replace=False)) / 10.0
    rises = np.diff(knots) * rng.gamma(0.7, size=(ROWS, n_knots - 1)) / 0.7
    flat = rng.uniform(size=rises[:, 1:-1].shape) < 0.2
    rises[:, 1:-1] = np.where(flat, 1e-6, 1.0) * (rises[:, 1:-1] + 1e-6)
    return make_spline(rng, knots, rises, rng.uniform(0.0, 2.9, size=(ROWS, n_knots)))


def make_spline(rng, knots, rises, shares, frame=None, base=None):
    """Return the law of curves with these rises, and slopes as shares of the chords."""
    base = draw_base(rng) if base is None else base
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


def transformed(rng):
    """A law of any kind whose values are mapped: bent about its middle, or stretched.

    No tail gets heavier by it, so that the moments which the law has stay finite.
    """
    law = pick(rng, spline, jagged, bounded, recalibrated, pooled, mixed, discrete)(rng)
    low, middle, high = law.ppf(np.tile([0.1, 0.5, 0.9], (ROWS, 1))).mean(axis=0)
    width = high - low if high > low else 1.0
    bent = ValueMap(
        partial(_bend, middle=middle, width=width),
        partial(_unbend, middle=middle, width=width),
    )
    stretched = ValueMap(partial(_stretch, factor=3.0), partial(_stretch, factor=1 / 3))
    return transform_law(law, pick(rng, bent, stretched))


def _bend(y, middle, width):
    return middle + width * np.arcsinh((y - middle) / width)


def _unbend(z, middle, width):
    return middle + width * np.sinh((z - middle) / width)


def _stretch(y, factor):
    return factor * y


def jumps_of(law):
    """Return the values of positive probability, (V,)."""
    return law.clipped.atoms if law.is_clipped else law.atoms


def kinks_of(law):
    """Return the values of y (n, m) between which the CDF is smooth."""
    atoms = np.tile(jumps_of(law), (len(law), 1))
    if law.curve is None:
        return atoms
    breaks = law.curve.basis.shared.breaks
    z = np.tile(np.union1d(breaks, SCORES), (len(law), 1))
    return np.hstack([atoms, law.curve.values(z)])


def quantiles(law):
    """Return quantiles of all sizes, (n, m)."""
    return law.ppf_scores(np.tile(SCORES, (len(law), 1)))


class Panels:
    """Nodes and weights of sums over y that are integrals, whatever the law."""

    def __init__(self, law, cuts):
        ends = [end for end in law.support if np.isfinite(end)]
        ends = np.tile(ends, (len(law), 1))
        held = quantiles(law)
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
        return np.where(low, mass, 0.0).sum(axis=1), np.where(low, 0.0, mass).sum(
            axis=1
        )

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
