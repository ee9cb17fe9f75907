"""The base curve and its tails against scipy's distributions."""

import numpy as np
import pytest
from scipy.stats import genpareto, norm

from localexpert._kernels.base_curve import (
    cumulative_hazard,
    hazard,
    hazard_inverse,
    level_at,
    levels_at,
    point_at,
    points_at,
)
from localexpert.curves.base_cdf import BaseCDF
from tests.open_kernels import open_kernels

(
    cumulative_hazard,
    hazard,
    hazard_inverse,
    level_at,
    point_at,
) = open_kernels(cumulative_hazard, hazard, hazard_inverse, level_at, point_at)

SHAPES = [-0.5, -0.2, 0.0, 1e-12, 0.1, 0.2, 1.0]


@pytest.mark.parametrize("shape", [0.0, 1e-9, 0.1, 0.2])
def test_tails_of_positive_shape_are_generalised_pareto(shape):
    law = genpareto(shape, scale=1.7)
    for x in np.geomspace(1e-6, 30.0, 60):
        expected = -law.logsf(x)
        assert cumulative_hazard(x, 1.7, shape) == pytest.approx(expected, rel=1e-6)
        rate = np.exp(law.logpdf(x) - law.logsf(x))
        assert hazard(x, 1.7, shape) == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_hazard_is_the_slope_and_its_inverse_inverts(shape):
    for x in np.geomspace(1e-8, 1e6, 60):
        h = cumulative_hazard(x, 2.0, shape)
        assert hazard_inverse(h, 2.0, shape) == pytest.approx(x, rel=1e-10)
        step = 1e-5 * x
        slope = (cumulative_hazard(x + step, 2.0, shape) - h) / step
        assert hazard(x, 2.0, shape) == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_curve_is_smooth_increasing_and_inverted(shape):
    levels = np.linspace(-1.4, 1.4, 9)
    points = np.sinh(levels)
    base = BaseCDF(points, levels, 1.0 / np.cosh(levels), (shape, shape))
    r = np.concatenate([-np.geomspace(1e6, 1e-3, 200), np.geomspace(1e-3, 1e6, 200)])
    t, slope = levels_at(base.curve, r)
    assert (np.diff(t) > 0.0).all()
    assert np.isfinite(t).all()
    assert (slope > 0.0).all()
    numeric = (base.t(r + 1e-6 * abs(r)) - base.t(r - 1e-6 * abs(r))) / (2e-6 * abs(r))
    np.testing.assert_allclose(slope, numeric, rtol=1e-4)
    back, rate = points_at(base.curve, t)
    np.testing.assert_allclose(back, r, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(rate * slope, 1.0, rtol=1e-9)
    # On either side of a join value and slope are the same.
    for end in points[[0, -1]]:
        before, after = (level_at(base.curve, end + gap) for gap in (-1e-9, 1e-9))
        np.testing.assert_allclose(before, after, rtol=1e-7)


def test_survival_in_the_tail_is_share_times_the_tail_law():
    base = BaseCDF([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [1.0] * 3, (0.0, 0.2))
    scale = norm.sf(1.0) / norm.pdf(1.0)
    x = np.array([0.5, 2.0, 50.0])
    upper = norm.sf(1.0) * genpareto(0.2, scale=scale).sf(x)
    np.testing.assert_allclose(norm.sf(base.t(1.0 + x)), upper, rtol=1e-10)
    lower = norm.sf(1.0) * np.exp(-x / scale)
    np.testing.assert_allclose(norm.cdf(base.t(-1.0 - x)), lower, rtol=1e-10)


def test_infinity_and_points_that_overflow():
    base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], (0.2, 0.2))
    assert level_at(base.curve, np.inf) == (np.inf, 0.0)
    assert level_at(base.curve, -np.inf) == (-np.inf, 0.0)
    assert point_at(base.curve, np.inf)[0] == np.inf
    assert point_at(base.curve, -np.inf)[0] == -np.inf
    assert np.isfinite(point_at(base.curve, 1e4)[0])
