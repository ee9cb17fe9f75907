"""Density levels and crossings against regions that are known."""

import numpy as np
import pytest
from scipy.stats import norm

from localexpert._kernels.regions import density_levels, level_crossings


def test_level_of_a_normal_density():
    y = np.linspace(-8.0, 8.0, 2001)
    rows = norm.logpdf(y)[None], norm.cdf(y)[None]
    for coverage in (0.1, 0.5, 0.9, 0.999):
        (level,) = density_levels(*rows, np.array([coverage]))
        end = norm.ppf(0.5 + 0.5 * coverage)
        assert level == pytest.approx(norm.logpdf(end), abs=2e-3)
        region = level_crossings(y, rows[0][0], level)
        np.testing.assert_allclose(region, [[-end, end]], atol=2e-3)


def test_edges_of_the_scan_and_densities_of_zero():
    y = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    log_density = np.array([0.0, 0.0, -np.inf, -np.inf, 0.5])
    np.testing.assert_allclose(
        level_crossings(y, log_density, -1.0), [[0, 1.5], [3.5, 4]]
    )
    assert level_crossings(y, log_density, 1.0).shape == (0, 2)
    np.testing.assert_array_equal(level_crossings(y, 0.0 * y, -1.0), [[0.0, 4.0]])
