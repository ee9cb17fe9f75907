"""Curves of laws against scipy: bounds, flat parts, far ends, and rows made to rise."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import BSpline, CubicHermiteSpline, PchipInterpolator
from scipy.optimize import isotonic_regression
from scipy.special import expit, log_ndtr, ndtr
from scipy.stats import norm

from localexpert._kernels.law_curve import follow_curves, increase_rows, invert_rows
from localexpert.law.basis import STANDARD, basis_of
from localexpert.law.curve import Curve
from localexpert.law.level_map import LevelMap

FEW = [-8.0] * 4 + [-1.0, -1.0, 0.0, 0.5, 2.0, 2.0] + [8.0] * 4
BASES = {"standard": STANDARD, "few": basis_of(np.array(FEW))}
BOUNDS = np.array([[-np.inf, np.inf], [2.0, np.inf], [-np.inf, 3.0], [-1.0, 4.0]])
every_basis = pytest.mark.parametrize("basis", BASES.values(), ids=BASES)


def draw_rows(rng, basis, *, flat=0.0, n=4):
    """Return rows with bounds of each kind, and a share of coefficients alike."""
    rises = rng.exponential(size=(n, basis.size))
    rises *= rng.uniform(size=rises.shape) >= flat
    c = np.cumsum(rises, axis=1)
    c = rng.normal(size=(n, 1)) + 5.0 * (2.0 * c / c[:, -1:] - 1.0)
    low, high = BOUNDS[np.arange(n) % 4].T.copy()
    return Curve(basis, c, rng.uniform(0.1, 1.0, (n, 2)), low, high)


def follow(basis, rows, z):
    """Return y and dy/dz at scores (k,) between the ends, (n, k) both, by scipy."""
    spline = BSpline(basis.knots, rows.coefficients, 3, axis=1)
    low, high, u = rows.low[:, None], rows.high[:, None], spline(z)
    with np.errstate(invalid="ignore", over="ignore"):
        share, width = expit(u), high - low
        y = [low + width * share, low + np.exp(u), high - np.exp(-u), u]
        rate = [width * share * (1.0 - share), np.exp(u), np.exp(-u), 1.0 + 0.0 * u]
        left, right = np.isfinite(low), np.isfinite(high)
        kind = [left & right, left, right, True]
        return np.select(kind, y), spline(z, 1) * np.select(kind, rate)


@every_basis
@pytest.mark.parametrize("n", [1, 4])
def test_values_and_back(basis, n, rng):
    rows = draw_rows(rng, basis, n=n)
    z = np.sort(np.append(rng.uniform(-8.0, 8.0, 300), basis.shared.breaks))
    y, got = rows.follow(np.tile(z, (n, 1)))
    log_slopes = np.log(got)
    want, slopes = follow(basis, rows, z)
    assert_allclose(y, want, rtol=1e-12, atol=1e-12)
    assert_allclose(log_slopes, np.log(slopes), rtol=0.0, atol=1e-8)
    back, log_density = rows.densities(y)
    order = rng.permutation(len(z))
    assert_array_equal(rows.scores(y[:, order]), back[:, order])
    # How far a float is from a bound tells the score to so many digits only.
    room = 1e-9 + 4.0 * np.spacing(np.abs(y) + 4.0) * np.exp(-log_slopes)
    assert (np.abs(back - z) <= room).all()
    near, own = np.abs(z) < 5.0, norm.logpdf(z) - log_slopes
    assert_allclose(log_density[:, near], own[:, near], rtol=0.0, atol=1e-5)


@every_basis
def test_beyond_the_breaks_there_are_lines_and_uniform_laws(basis, rng):
    rows = draw_rows(rng, basis)
    z = np.tile([-20.0, -9.0, 9.0, 20.0], (4, 1))
    y = rows.values(z)
    c, slopes = rows.coefficients[0], rows.slopes[0]
    lines = [c[0] + slopes[0] * (z[0, :2] + 8.0), c[-1] + slopes[1] * (z[0, 2:] - 8.0)]
    assert_allclose(y[0], np.concatenate(lines), rtol=1e-13)
    ends = follow(basis, rows, np.array([-8.0, 8.0]))[0]
    share = np.exp(log_ndtr(z[0, :2]) - log_ndtr(-8.0))
    assert_allclose(y[1, :2] - 2.0, (ends[1, 0] - 2.0) * share, atol=1e-15)
    assert_allclose(3.0 - y[2, 2:], (3.0 - ends[2, 1]) * share[::-1], atol=1e-15)
    middles = np.column_stack([0.5 * (ends[:, 0] + rows.low)] * 2)[[1, 3]]
    found, log_density = rows.take(np.array([1, 3])).densities(middles)
    assert_allclose(log_ndtr(found), log_ndtr(-8.0) - np.log(2.0))
    gaps = (ends[:, :1] - rows.low[:, None])[[1, 3]]
    assert_allclose(log_density, np.tile(log_ndtr(-8.0) - np.log(gaps), 2))


@every_basis
def test_at_bounds_and_beyond(basis, rng):
    rows = draw_rows(rng, basis)
    # A bound next to which floats tell nothing of the curve.
    rows.coefficients[1] -= 60.0
    y = np.column_stack([BOUNDS[:, 0] - 1.0, BOUNDS, BOUNDS[:, 1] + 1.0])
    z, log_density = rows.densities(y)
    assert_array_equal(z, np.tile([-np.inf, -np.inf, np.inf, np.inf], (4, 1)))
    assert (log_density[:, [0, 3]] == -np.inf).all()
    # At a bound the density is neither 0 nor infinite, at infinity it is 0.
    assert_array_equal(np.isfinite(log_density[:, 1:3]), np.isfinite(BOUNDS))


@every_basis
def test_flat_parts_have_finite_density(basis, rng):
    rows = draw_rows(rng, basis, flat=0.7)
    rows.coefficients[0] = 1.5  # one value alone
    z = np.tile(np.linspace(-7.5, 7.5, 301), (4, 1))
    y, slopes = rows.follow(z)
    assert np.isfinite(np.log(slopes)).all()
    assert (np.diff(y) >= 0.0).all()
    back, log_density = rows.densities(y)
    assert np.isfinite(log_density).all()
    assert_allclose(rows.values(back), y, rtol=1e-12)
    # A jump from 0 to 1: below the value next to nothing, above it nearly all.
    around = np.tile([1.5 - 1e-3, 1.5 + 1e-3], (4, 1))
    levels = ndtr(rows.scores(around))[0]
    assert_allclose(levels, [0.0, 1.0], atol=1e-15)


def test_the_inverse_does_not_depend_on_what_is_asked_with_it():
    # Rounding at the first coefficient is greater than all values in the middle.
    g = STANDARD.greville
    c, slopes = (np.sign(g) * 10.0 ** (9.0 * np.abs(g)))[None], np.ones((1, 2))
    u = np.append(0.9 * c[0], 0.0)
    for order in (np.argsort(u), np.arange(len(u)), np.argsort(-u)):
        at = np.ascontiguousarray(u[order])
        found = follow_curves(STANDARD.shared, c, slopes, at[None], inverse=True)
        alone = [
            follow_curves(STANDARD.shared, c, slopes, at[None, j : j + 1], inverse=True)
            for j in range(len(at))
        ]
        for got, want in zip(found, zip(*alone, strict=True), strict=True):
            assert_array_equal(got[0], np.hstack(want)[0])


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("m", [2, 9])
def test_hermite_maps_and_inverses(n, m, rng):
    knots = np.cumsum(rng.uniform(0.1, 1.0, m)) - 2.0
    values = np.cumsum(rng.exponential(size=(n, m)), axis=1) - 3.0
    slopes = PchipInterpolator(knots, values, axis=1).derivative()(knots) + 1e-3
    z = np.tile(np.append(np.linspace(-9.0, 9.0, 400), knots), (5, 1))
    levels = LevelMap(knots, values, slopes)
    got, log_slopes = levels.forward(z)
    heights, rates = (np.broadcast_to(part, (5, m)) for part in (values, slopes))
    spline = CubicHermiteSpline(knots, heights, rates, axis=1)
    outer, inside = spline(knots[[0, -1]], 1), np.clip(z[0], knots[0], knots[-1])
    below, above = np.minimum(z[0] - knots[0], 0.0), np.maximum(z[0] - knots[-1], 0.0)
    want = spline(inside) + outer[:, :1] * below + outer[:, 1:] * above
    assert_allclose(got, want, rtol=1e-11, atol=1e-12)
    assert_allclose(np.exp(log_slopes), spline(inside, 1), rtol=1e-8)
    assert_allclose(levels.inverse(got), z, atol=1e-8)


def test_inverse_curves_go_through_points_and_rise(rng):
    z, u = np.cumsum(rng.exponential(size=(2, 5, 12)), axis=2)
    # Rates far too flat, too, where slopes of the inverse are cut.
    rate = rng.uniform(0.5, 1.5, z.shape) * 10.0 ** rng.integers(-3, 3, z.shape)
    for i in range(5):
        goals = np.linspace(z[i, 0], z[i, -1], 301)
        got = invert_rows(z, u, rate, goals)[i]
        assert (np.diff(got) >= -1e-12).all()
        assert_allclose(invert_rows(z, u, rate, z[i])[i], u[i], rtol=1e-12)
        for k in range(11):
            most = 3.0 * (u[i, k + 1] - u[i, k]) / (z[i, k + 1] - z[i, k])
            ends = np.minimum(1.0 / rate[i, k : k + 2], most)
            piece = CubicHermiteSpline(z[i, k : k + 2], u[i, k : k + 2], ends)
            held = (goals >= z[i, k]) & (goals <= z[i, k + 1])
            assert_allclose(got[held], piece(goals[held]), rtol=1e-9)


def test_inverse_curves_at_ties_and_beyond_their_ends():
    z = np.array([[0.0, 1.0, 1.0, 1.0, 2.0]])
    u = np.array([[0.0, 1.0, 2.0, 3.0, 4.0]])
    rate = np.array([[1.0, 1.0, 0.0, 1.0, 1.0]])
    got = invert_rows(z, u, rate, np.array([-5.0, 0.5, 1.0, 1.5, 9.0]))[0]
    assert_allclose(got, [0.0, 0.5, 3.0, 3.5, 4.0])


GRID = np.linspace(-8.0, 8.0, 400_001)


@pytest.mark.parametrize("flat", [0.0, 0.6])
@every_basis
def test_integrals_are_sums_over_a_fine_grid(basis, flat, rng):
    rows = draw_rows(rng, basis, flat=flat)
    values = follow(basis, rows, GRID)[0]
    # Within, at both ends, beyond them, and beyond bounds.
    inner = values[:, ::80_000]
    ends = values[:, [0, -1]] + [-1.5, 2.5]
    y = np.hstack([inner, 0.5 * (inner[:, 1:] + inner[:, :-1]), ends])
    out, spread = rows.integrals(y)
    below, above = ndtr(GRID), ndtr(-GRID)
    powers = below, below**2, above, above**2
    for i, own in enumerate(values):
        dy = np.diff(own)
        sd = own[240_000] - own[160_000]
        parts = [np.append(0.0, np.cumsum(0.5 * dy * (p[1:] + p[:-1]))) for p in powers]
        under, over = np.maximum(y[i] - own[-1], 0.0), np.maximum(own[0] - y[i], 0.0)
        for k, part in enumerate(parts):
            want = np.interp(y[i], own, part)
            want = want + under if k < 2 else part[-1] - want + over
            assert_allclose(out[k, i], want, rtol=2e-5, atol=2e-6 * sd)
        both = below * above
        want = (0.5 * dy * (both[1:] + both[:-1])).sum()
        assert spread[i] == pytest.approx(want, rel=1e-5)


@every_basis
def test_moments_are_sums_over_nodes(basis, rng):
    rows = draw_rows(rng, basis)
    rows.coefficients[0] += 1e8  # where digits are lost
    z = basis.panels.z
    y, shares = rows.nodes()
    assert_allclose(y, follow(basis, rows, z)[0], rtol=1e-12, atol=1e-12)
    mean = y @ shares
    want = [mean, *((y - mean[:, None]) ** k @ shares for k in (2, 3, 4))]
    assert_allclose(rows.moments(), np.column_stack(want), rtol=1e-6)
    # Without bounds by products of B-splines.
    rows.coefficients[0] -= 1e8
    endless = np.full(len(rows), np.inf)
    free = replace(rows, low=-endless, high=endless)
    assert_allclose(free.moments(2), free.moments()[:, :2], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("least", [0.0, 0.3])
@pytest.mark.parametrize("k", [1, 2, 5, 25])
def test_rows_that_are_to_rise_are_isotonic_regressions(rng, k, least):
    """They are so of what is left when the least rises are taken away."""
    values = np.round(rng.normal(size=(40, k)), 1)
    weights, rises = rng.uniform(0.1, 2, k), least * rng.uniform(size=k - 1)
    floor = np.cumsum(np.append(0.0, rises))
    got = increase_rows(values, weights, rises)
    for row, out in zip(values, got, strict=True):
        want = isotonic_regression(row - floor, weights=weights).x + floor
        assert_allclose(out, want, atol=1e-12)
