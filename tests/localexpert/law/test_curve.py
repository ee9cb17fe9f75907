"""Curves that are read, plain ones that keep order, and lattices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from localexpert.law.basis import STANDARD, basis_of
from localexpert.law.bounds import clip
from localexpert.law.curve import from_coordinates, read_curve, to_coordinates
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, map_levels
from tests.localexpert.law.kinds import (
    KINDS,
    LATTICES,
    LEVELS,
    Floats,
    places_of,
    smooth,
)

FREE = np.full(200, np.inf)
BENT = LevelMap.through(
    np.array([-1.0, 0.0, 1.0]), np.array([-1.1, 0.2, 1.3]), np.array([1.1, 1.2, 1.1])
)
BASES = [STANDARD, basis_of(np.repeat([-8.0, -1.0, 0.5, 1.0, 8.0], [4, 2, 1, 2, 4]))]


@pytest.mark.parametrize("basis", BASES)
def test_curves_pass_through_what_is_read(
    basis: object, rng: np.random.Generator
) -> None:
    assert basis in BASES
    own = BASES[BASES.index(basis)]  # type: ignore[arg-type]
    g = own.greville
    bends = np.sinh(rng.uniform(0.2, 1.0, (200, 1)) * g) + rng.normal(size=(200, 1))
    found = read_curve(bends, -FREE, FREE, basis=own)
    assert_allclose(found.values(np.tile(g, (200, 1)))[0], bends, rtol=1e-9, atol=1e-12)
    assert_allclose(own.read(own.solve(bends)), bends, rtol=1e-9, atol=1e-12)
    # Straight lines have their own values as coefficients.
    lines = 2.0 + 0.5 * np.tile(g, (200, 1))
    assert_allclose(read_curve(lines, -FREE, FREE, basis=own).coefficients, lines)
    z, shares = own.nodes
    assert shares.sum() == pytest.approx(1.0)
    assert_allclose([shares @ z**2, shares @ z**4], [1.0, 3.0], rtol=1e-4)


def test_coefficients_never_fall_whatever_is_read(rng: np.random.Generator) -> None:
    steps = rng.exponential(size=(200, STANDARD.size)) ** 4
    values = np.cumsum(steps * (rng.uniform(size=steps.shape) < 0.5), axis=1)
    assert (np.diff(STANDARD.solve(values)) < 0.0).any()
    curve = read_curve(values, -FREE, FREE)
    assert (np.diff(curve.coefficients) >= 0.0).all()
    assert (curve.slopes > 0.0).all()
    assert len(read_curve(values[:0], FREE[:0], FREE[:0])) == 0


@pytest.mark.parametrize("bounds", [(-np.inf, 3.0), (-1.0, np.inf), (-2.0, 5.0)])
def test_coordinates_lead_back(bounds: tuple[float, float]) -> None:
    low, high = (np.full((1, 1), end) for end in bounds)
    y = np.array([[-0.999999, -0.5, 0.0, 2.5, 2.999999]])
    u = to_coordinates(y, low, high)
    assert (np.diff(u) > 0.0).all()
    assert_allclose(from_coordinates(u, low, high), y, rtol=1e-12, atol=1e-14)
    ends = to_coordinates(np.clip([[-9.0, 9.0]], *bounds), low, high)[0]
    assert_array_equal(np.isinf(ends), np.isfinite(bounds))


def ordered_pair(rng: np.random.Generator) -> tuple[Law, Law]:
    """Return laws of 200 rows, each row of the second greater everywhere."""
    steps = rng.exponential(size=(200, STANDARD.size)) ** rng.uniform(
        0.5, 4.0, (200, 1)
    )
    values = np.cumsum(steps, axis=1) / STANDARD.size
    values -= values[:, 45:46]
    more = rng.exponential(size=steps.shape) * (rng.uniform(size=steps.shape) < 0.1)
    slopes = rng.uniform(0.1, 1.0, (200, 2))
    greater = np.maximum.accumulate(values + more, axis=1)
    curves = (
        read_curve(each, -FREE, FREE, plain=True, slopes=slopes)
        for each in (values, greater)
    )
    low, high = (Law.smooth(curve, ordered=True) for curve in curves)
    return low, high


@pytest.mark.parametrize("step", ["read", "mapped", "clipped", "both"])
def test_rows_that_are_read_plainly_keep_their_order(
    step: str, rng: np.random.Generator
) -> None:
    low, high = ordered_pair(rng)
    if step in ("mapped", "both"):
        low, high = map_levels(low, BENT), map_levels(high, BENT)
    if step in ("clipped", "both"):
        low, high = (clip(law, -0.3, 0.9, 0.1) for law in (low, high))
    q = np.tile(np.concatenate([LEVELS[0], np.linspace(0.01, 0.99, 99)]), (200, 1))
    below, above = low.ppf(q), high.ppf(q)
    sd = np.sqrt(low.moments()[:, 1:2])
    assert (below <= above + 1e-9 * sd).all()
    y = np.sort(np.hstack([below, above]), axis=1)
    assert (high.cdf(y) <= low.cdf(y) + 1e-12).all()
    assert (high.sf(y) >= low.sf(y) - 1e-12).all()
    assert (low.moments()[:, 0] <= high.moments()[:, 0] + 1e-9 * sd[:, 0]).all()


@pytest.mark.parametrize("name", LATTICES)
def test_a_lattice_is_sums_over_its_values(name: str) -> None:
    law = KINDS[name]
    assert law.curve is not None
    values = law.offset + np.arange(-300.0, 300.0) * law.step
    if np.isfinite(law.ends[0]):
        values = values[values >= law.ends[0]]
    at = np.tile(values, (3, 1))
    masses = law.cdf(at) - law.cdf_left(at)
    curve = Law.smooth(law.curve)
    edges = np.column_stack([at - 0.5 * law.step, at[:, -1:] + 0.5 * law.step])
    want = np.diff(curve.cdf(edges))
    if np.isfinite(law.ends[0]):
        want[:, 0] = curve.cdf(edges[:, 1:2])[:, 0]
    assert_allclose(masses, want, rtol=1e-9, atol=1e-15)
    assert_allclose(masses.sum(axis=1), 1.0, rtol=1e-9)
    assert_allclose(np.exp(law.logpdf(at)) * law.step, want, rtol=1e-6, atol=1e-12)
    mean = masses @ values
    variance = (masses * (values - mean[:, None]) ** 2).sum(axis=1)
    assert_allclose(law.moments()[:, :2], np.column_stack([mean, variance]), rtol=1e-6)
    y = places_of(law)
    gaps = np.abs(values[:, None] - values)
    spread = 0.5 * np.einsum("ij,jk,ik->i", masses, gaps, masses)
    distance = np.abs(y[:, :, None] - values) @ masses[:, :, None]
    assert_allclose(law.crps(y), distance[..., 0] - spread[:, None], rtol=1e-6)
    # Between its values nothing happens, and quantiles are values.
    assert_allclose(law.cdf(at + 0.3 * law.step), law.cdf(at), rtol=1e-12)
    assert_allclose(np.rint((law.ppf(LEVELS) - law.offset) / law.step) * law.step
                    + law.offset, law.ppf(LEVELS), atol=1e-12)  # fmt: skip


@smooth
def test_peaks_are_where_the_density_is_greatest(name: str) -> None:
    law = KINDS[name]
    y: Floats = law.ppf(np.tile(ndtr(np.linspace(-6.0, 6.0, 4001)), (3, 1)))
    best = law.logpdf(y).max(axis=1)
    assert (law.logpdf(law.mode()[:, None])[:, 0] >= best - 1e-6).all()
