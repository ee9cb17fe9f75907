"""Sums of members at common values, and inverse curves, against scipy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import BSpline, CubicHermiteSpline
from scipy.optimize import brentq
from scipy.special import ndtr

from localexpert._kernels.law_pool import invert_rows, member_sums
from localexpert.law.basis import Basis
from tests.localexpert._kernels.test_law_curve import BASES, draw_rows


@pytest.mark.parametrize("probit", [False, True])
@pytest.mark.parametrize("basis", BASES.values(), ids=BASES)
def test_sums_are_those_of_members(
    basis: Basis, probit: bool, rng: np.random.Generator
) -> None:
    rows = draw_rows(rng, basis)
    c, weights = rows.coefficients, np.array([0.3, 0.0, 1.0, 0.7])
    # Values in between, at the ends, and beyond on either side.
    u = np.hstack([rng.uniform(c[:, :1], c[:, -1:], (4, 30)), c[:, [0, -1]]])
    u = np.sort(np.hstack([u, c[:, :1] - 3.0, c[:, -1:] + 3.0]), axis=1)
    start = rng.normal(size=(3, *u.shape))
    sums = start.copy()
    member_sums(basis.shared, c, rows.slopes, weights, u, probit, sums)
    assert_array_equal((sums - start)[:, weights == 0.0], 0.0)
    for i in np.flatnonzero(weights):
        spline, far = BSpline(basis.knots, c[i], 3), 8.0 + 3.0 / rows.slopes[i]
        inner = [brentq(lambda z, s=spline, a=a: s(z) - a, -8, 8) for a in u[i, 2:-2]]
        z = np.clip([-far[0], -8.0, *inner, 8.0, far[1]], -37.0, 37.0)
        added = (sums - start)[:, i] / weights[i]
        rate = 1.0 / spline(np.array(inner), 1)
        if probit:
            assert_allclose(added[0], z, atol=1e-9)
        else:
            assert_allclose(added[:2], [ndtr(z), ndtr(-z)], atol=1e-9)
            rate = rate * np.exp(-0.5 * np.square(inner))
        assert_allclose(added[2, 2:-2], rate, rtol=1e-6, atol=1e-12)


def test_inverse_curves_pass_through_points_and_increase(
    rng: np.random.Generator,
) -> None:
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


def test_inverse_curves_at_ties_and_beyond_their_ends() -> None:
    z = np.array([[0.0, 1.0, 1.0, 1.0, 2.0]])
    u = np.array([[0.0, 1.0, 2.0, 3.0, 4.0]])
    rate = np.array([[1.0, 1.0, 0.0, 1.0, 1.0]])
    got = invert_rows(z, u, rate, np.array([-5.0, 0.5, 1.0, 1.5, 9.0]))[0]
    assert_allclose(got, [0.0, 0.5, 3.0, 3.5, 4.0])
