"""Hermite pieces against scipy's spline and a general root finder."""

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator
from scipy.optimize import brentq

from localexpert._kernels import hermite
from tests.open_kernels import open_kernels

curve_at, curve_inverse, find_segment, piece_at, piece_inverse = open_kernels(
    hermite.curve_at,
    hermite.curve_inverse,
    hermite.find_segment,
    hermite.piece_at,
    hermite.piece_inverse,
)


@pytest.fixture
def curve(rng):
    knots = np.cumsum(rng.uniform(0.1, 1.0, 12))
    values = np.cumsum(rng.exponential(size=12))
    slopes = PchipInterpolator(knots, values).derivative()(knots)
    slopes[[0, -1]] = 0.4, 0.7
    return knots, values, slopes


def test_values_and_slopes_equal_scipy_with_lines_beyond(curve):
    knots, values, slopes = curve
    spline = CubicHermiteSpline(knots, values, slopes)
    x = np.linspace(knots[0], knots[-1], 500)
    got = np.array([curve_at(*curve, one) for one in x])
    np.testing.assert_allclose(got[:, 0], spline(x), rtol=1e-12)
    np.testing.assert_allclose(got[:, 1], spline(x, 1), atol=1e-11)
    assert curve_at(*curve, knots[0] - 2.0) == (values[0] - 0.8, 0.4)
    assert curve_at(*curve, knots[-1] + 3.0) == pytest.approx((values[-1] + 2.1, 0.7))


def test_inverse_equals_a_root_finder(curve):
    knots, values, slopes = curve
    spline = CubicHermiteSpline(knots, values, slopes)
    goals = np.linspace(values[0], values[-1], 202)[1:-1]
    expected = [
        brentq(lambda x, y=y: spline(x) - y, knots[0], knots[-1], xtol=1e-15)
        for y in goals
    ]
    got = [curve_inverse(*curve, y) for y in goals]
    np.testing.assert_allclose(got, expected, rtol=1e-11)
    back = [curve_at(*curve, x)[0] for x in got]
    np.testing.assert_allclose(back, goals, rtol=1e-13)


@pytest.mark.parametrize("slopes", [(0.0, 0.0), (3.0, 0.0), (0.0, 3.0), (2.1, 2.1)])
def test_pieces_at_the_edge_of_monotonicity(slopes):
    for goal in np.concatenate([np.linspace(0, 1, 101), [1e-14, 1 - 1e-14]]):
        share = piece_inverse(1.0, *slopes, 1.0, goal)
        assert piece_at(1.0, *slopes, 1.0, share)[0] == pytest.approx(goal, abs=1e-13)
    assert piece_inverse(0.0, 0.0, 0.0, 1.0, 0.0) == 0.0
    assert piece_inverse(1.0, *slopes, 1.0, 2.0) == 1.0
