"""Curves of laws against B-splines of scipy, with bounds, flat parts and far ends."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.special import expit, log_ndtr, ndtr
from scipy.stats import norm

from localexpert._kernels.law_curve import (
    Rows,
    curve_densities,
    curve_scores,
    curve_values,
)
from localexpert.law.basis import STANDARD, Basis, basis_of

Floats = NDArray[np.float64]

FEW = [-8.0] * 4 + [-1.0, -1.0, 0.0, 0.5, 2.0, 2.0] + [8.0] * 4
BASES = {"standard": STANDARD, "few": basis_of(np.array(FEW))}
BOUNDS = np.array([[-np.inf, np.inf], [2.0, np.inf], [-np.inf, 3.0], [-1.0, 4.0]])
every_basis = pytest.mark.parametrize("basis", BASES.values(), ids=BASES)


def draw_rows(
    rng: np.random.Generator, basis: Basis, *, flat: float = 0.0, n: int = 4
) -> Rows:
    """Return rows with bounds of each kind, and a share of coefficients alike."""
    rises = rng.exponential(size=(n, basis.size))
    rises *= rng.uniform(size=rises.shape) >= flat
    c = np.cumsum(rises, axis=1)
    c = rng.normal(size=(n, 1)) + 5.0 * (2.0 * c / c[:, -1:] - 1.0)
    low, high = BOUNDS[np.arange(n) % 4].T.copy()
    return Rows(c, rng.uniform(0.1, 1.0, (n, 2)), low, high)


def follow(basis: Basis, rows: Rows, z: Floats) -> tuple[Floats, Floats]:
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
def test_values_and_back(basis: Basis, n: int, rng: np.random.Generator) -> None:
    rows = draw_rows(rng, basis, n=n)
    z = np.sort(np.append(rng.uniform(-8.0, 8.0, 300), basis.shared.breaks))
    y, log_slopes = curve_values(basis.shared, rows, np.tile(z, (n, 1)))
    want, slopes = follow(basis, rows, z)
    assert_allclose(y, want, rtol=1e-12, atol=1e-12)
    assert_allclose(log_slopes, np.log(slopes), rtol=0.0, atol=1e-8)
    back, log_density = curve_densities(basis.shared, rows, y)
    assert_array_equal(curve_scores(basis.shared, rows, y), back)
    # How far a float is from a bound tells the score to so many digits only.
    room = 1e-9 + 4.0 * np.spacing(np.abs(y) + 4.0) * np.exp(-log_slopes)
    assert (np.abs(back - z) <= room).all()
    near, own = np.abs(z) < 5.0, norm.logpdf(z) - log_slopes
    assert_allclose(log_density[:, near], own[:, near], rtol=0.0, atol=1e-5)


@every_basis
def test_beyond_the_breaks_there_are_lines_and_uniform_laws(
    basis: Basis, rng: np.random.Generator
) -> None:
    rows = draw_rows(rng, basis)
    z = np.tile([-20.0, -9.0, 9.0, 20.0], (4, 1))
    y = curve_values(basis.shared, rows, z)[0]
    c, slopes = rows.coefficients[0], rows.slopes[0]
    lines = [c[0] + slopes[0] * (z[0, :2] + 8.0), c[-1] + slopes[1] * (z[0, 2:] - 8.0)]
    assert_allclose(y[0], np.concatenate(lines), rtol=1e-13)
    ends = follow(basis, rows, np.array([-8.0, 8.0]))[0]
    share = np.exp(log_ndtr(z[0, :2]) - log_ndtr(-8.0))
    assert_allclose(y[1, :2] - 2.0, (ends[1, 0] - 2.0) * share, atol=1e-15)
    assert_allclose(3.0 - y[2, 2:], (3.0 - ends[2, 1]) * share[::-1], atol=1e-15)
    middles = np.column_stack([0.5 * (ends[:, 0] + rows.low)] * 2)[[1, 3]]
    part = Rows(*(array[[1, 3]] for array in rows))
    found, log_density = curve_densities(basis.shared, part, middles)
    assert_allclose(log_ndtr(found), log_ndtr(-8.0) - np.log(2.0))
    gaps = (ends[:, :1] - rows.low[:, None])[[1, 3]]
    assert_allclose(log_density, np.tile(log_ndtr(-8.0) - np.log(gaps), 2))


@every_basis
def test_at_bounds_and_beyond(basis: Basis, rng: np.random.Generator) -> None:
    rows = draw_rows(rng, basis)
    # A bound next to which floats tell nothing of the curve.
    rows.coefficients[1] -= 60.0
    y = np.column_stack([BOUNDS[:, 0] - 1.0, BOUNDS, BOUNDS[:, 1] + 1.0])
    z, log_density = curve_densities(basis.shared, rows, y)
    assert_array_equal(z, np.tile([-np.inf, -np.inf, np.inf, np.inf], (4, 1)))
    assert (log_density[:, [0, 3]] == -np.inf).all()
    # At a bound the density is neither 0 nor infinite, at infinity it is 0.
    assert_array_equal(np.isfinite(log_density[:, 1:3]), np.isfinite(BOUNDS))


@every_basis
def test_flat_parts_have_a_finite_density(
    basis: Basis, rng: np.random.Generator
) -> None:
    rows = draw_rows(rng, basis, flat=0.7)
    rows.coefficients[0] = 1.5  # one value alone
    z = np.tile(np.linspace(-7.5, 7.5, 301), (4, 1))
    y, log_slopes = curve_values(basis.shared, rows, z)
    assert np.isfinite(log_slopes).all()
    assert (np.diff(y) >= 0.0).all()
    back, log_density = curve_densities(basis.shared, rows, y)
    assert np.isfinite(log_density).all()
    assert_allclose(curve_values(basis.shared, rows, back)[0], y, rtol=1e-12)
    # A jump from 0 to 1: below the value next to nothing, above it nearly all.
    around = np.tile([1.5 - 1e-3, 1.5 + 1e-3], (4, 1))
    levels = ndtr(curve_scores(basis.shared, rows, around))[0]
    assert_allclose(levels, [0.0, 1.0], atol=1e-15)
