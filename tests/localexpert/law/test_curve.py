"""Curves, their knots, lattices, and near values, against loops and scipy."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import PchipInterpolator

from localexpert.law.basis import STANDARD, basis_of, harmonic_slopes
from localexpert.law.curve import fill_ends, read_curve
from localexpert.law.lattice import Lattice
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, clip, map_levels
from localexpert.law.steps import merge_near_values, near_runs
from tests.forecasts import beside, normal
from tests.localexpert.law.kinds import LEVELS

FREE = np.full(200, np.inf)
BENT = LevelMap.through(
    np.array([-1.0, 0.0, 1.0]), np.array([-1.1, 0.2, 1.3]), np.array([1.1, 1.2, 1.1])
)
BASES = [STANDARD, basis_of(np.repeat([-8.0, -1.0, 0.5, 1.0, 8.0], [4, 2, 1, 2, 4]))]


@pytest.mark.parametrize("basis", BASES)
def test_curves_go_through_what_is_read(basis, rng):
    g = basis.greville
    bends = g + 0.3 * np.sin(rng.uniform(0.2, 0.6, (200, 1)) * g) + rng.normal()
    found = read_curve(bends, -FREE, FREE, basis=basis)
    assert_allclose(found.values(np.tile(g, (200, 1))), bends, atol=1e-12)
    assert_allclose(basis.read(basis.solve(bends)), bends, atol=1e-12)
    # Straight lines have their own values as coefficients.
    lines = 2.0 + 0.5 * np.tile(g, (200, 1))
    assert_allclose(read_curve(lines, -FREE, FREE, basis=basis).coefficients, lines)
    # Where coefficients would fall others are taken.
    steps = rng.exponential(size=lines.shape) ** 4
    steep = np.cumsum(steps * (rng.uniform(size=steps.shape) < 0.5), axis=1)
    assert (np.diff(basis.solve(steep)) < 0.0).any()
    risen = read_curve(steep, -FREE, FREE, basis=basis)
    assert (np.diff(risen.coefficients) >= 0).all()


def test_coordinates_lost_to_rounding_are_on_a_line():
    want = np.array([np.arange(9.0), 2.0 * np.arange(9.0)])
    lost = want.copy()
    lost[:, :2], lost[:, -2:] = -np.inf, np.inf
    assert_allclose(fill_ends(lost), want)


def ordered_pair(rng):
    """Return laws of 200 rows, each row of the second greater everywhere."""
    powers = rng.exponential(size=(200, STANDARD.size)), rng.uniform(0.5, 4.0, (200, 1))
    steps = np.power(*powers)
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
def test_rows_that_are_read_plainly_keep_their_order(step, rng):
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


def test_a_lattice_of_many_steps_is_as_dense_as_its_curve():
    smooth = normal([0.0, 300.0], [1000.0, 200.0])
    law = replace(smooth.law, known=None, step=1.0)
    assert_array_equal(law.mode(), [0.0, 300.0])
    for region, (center, sd) in zip(
        law.densest_regions(np.full(2, 0.5)), ([0, 1000], [300, 200]), strict=True
    ):
        assert_allclose(region, [[center - 0.674 * sd, center + 0.674 * sd]], atol=20.0)
    assert_allclose(law.entropy(), smooth.entropy(), atol=1e-3)
    clipped = replace(normal([500.0], 500.0).law, known=None, step=1.0, ends=(0, 9e9))
    assert clipped.mode() == 0.0


def test_values_far_from_the_curve_of_a_lattice_are_not_joined():
    atoms, masses = np.array([-700.0, 0.0, 7.0, 40.0]), np.array([[0.1, 0.3, 0.2, 0.3]])
    law = replace(beside(normal([900.0], 5.0), atoms, masses).law, step=1.0)
    assert_allclose(law.moments()[:, 0], (atoms * masses).sum() + 90.0)
    assert_allclose(law.mode(), 0.0)
    assert_array_equal(law.densest_regions(np.array([0.55]))[0], [[0, 0], [40, 40]])


def test_values_far_in_one_row_and_near_in_another():
    curve = normal([0.0, 4990.0, 5200.0], [1000.0, 1500.0, 40.0]).law
    own = {"atoms": np.array([-9500.0, 4000.0, 5001.0]), "masses": np.full((3, 3), 0.1)}
    law = replace(curve, step=1.0, known=None, widths=np.ones(3), **own)
    values = np.tile(np.arange(-9600.0, 20_000.0), (3, 1))
    masses, upto = law.mass_at(values), law.cdf(values)
    assert_allclose(law.moments()[:, 0], (masses * values).sum(axis=1), atol=1e-4)
    for y in (4000.0, 5001.0, 123.0):
        want = ((upto - (values >= y)) ** 2).sum(axis=1)
        assert_allclose(law.crps(np.full((3, 1), y))[:, 0], want, rtol=2e-5)


KNOTS = np.array([0.0, 1.0, 3.0, 4.0])


def test_harmonic_slopes_are_those_of_pchip(rng):
    values = np.cumsum(rng.exponential(size=(5, 4)), axis=1)
    steps = np.diff(KNOTS)
    want = PchipInterpolator(KNOTS, values, axis=1).derivative()(KNOTS[1:-1])
    assert_allclose(harmonic_slopes(steps, np.diff(values) / steps), want)


THIRD = 0.1 + 0.2  # one float above .3


def test_sums_are_the_numbers_they_stand_for():
    tenths = np.arange(1, 1001) / 10
    y = np.concatenate([tenths, tenths, np.cumsum(np.full(1000, 0.1))])
    assert_array_equal(merge_near_values(y, np.ones(3000)), np.tile(tenths, 3))
    few = np.array([0.3, THIRD, 0.7])
    heavier = merge_near_values(few, np.array([1.0, 2.0, 1.0]))
    assert_array_equal(heavier, [THIRD, THIRD, 0.7])
    assert merge_near_values(few, np.array([1.0, 0.0, 1.0])) is few


@pytest.mark.parametrize(
    ("values", "n_runs"),
    [
        ([0.3, THIRD], 1),
        ([0.0, 0.1 + 0.2 - 0.3, 0.1, 0.2], 3),
        ([-THIRD, -0.3, 0.1], 2),
        ([0.1, 0.2, 0.3, 1e12], 4),
        ([1.0, 2.0, 9.97e36], 3),
        ([1e-300, 2e-300, 3e-300], 3),
        (1e15 + np.arange(60) / 8, 60),
        (1e9 + np.append(np.arange(50) * 5e-4, 1e36), 51),
        ([7.0], 1),
        ([], 0),
    ],
)
def test_only_rounding_is_near(values, n_runs):
    assert len(np.unique(near_runs(np.asarray(values)))) == n_runs


@pytest.mark.parametrize(
    ("step", "offset", "values"),
    [
        (0.1, 0.05, [0.05, 0.15, 0.25, 0.35]),
        (0.09999999999999998, 0.0, [0.0, 0.1, 0.2, 0.3]),
        (0.01, 1234.56, [1234.56, 1234.57, 1234.58, 1234.59]),
        (np.pi, 1.0, 1.0 + np.pi * np.arange(4.0)),
        (1e-5, 1e3, 1e3 + 1e-5 * np.arange(4.0)),
    ],
)
def test_values_of_lattices_are_decimals_as_they_are_written(step, offset, values):
    assert_array_equal(Lattice(step, offset).values(np.arange(4.0)), values)
