"""The base curve and its tails against scipy's distributions."""

import numpy as np
import pytest
from scipy.stats import genpareto

from localexpert._kernels import base_curve
from localexpert.curves.base_cdf import BaseCDF
from tests.open_kernels import open_kernels

cumulative_hazard, hazard, hazard_inverse, level_at, point_at = open_kernels(
    base_curve.cumulative_hazard,
    base_curve.hazard,
    base_curve.hazard_inverse,
    base_curve.level_at,
    base_curve.point_at,
)

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


def test_infinity_and_points_that_overflow():
    base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], (0.2, 0.2))
    assert level_at(base.curve, np.inf) == (np.inf, 0.0)
    assert level_at(base.curve, -np.inf) == (-np.inf, 0.0)
    assert point_at(base.curve, np.inf) == np.inf
    assert point_at(base.curve, -np.inf) == -np.inf
    assert np.isfinite(point_at(base.curve, 1e4))
