"""The normal distribution's kernels against scipy, in both far tails."""

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr, ndtri_exp
from scipy.stats import norm

from localexpert._kernels import normal
from tests.open_kernels import open_kernels

log_normal_pdf, normal_cdf, safe_log, upper_point = open_kernels(
    normal.log_normal_pdf, normal.normal_cdf, normal.safe_log, normal.upper_point
)
log_normal_cdf, normal_hazard = normal.log_normal_cdf, normal.normal_hazard

POINTS = np.concatenate([np.linspace(-60, 60, 241), [-1e6, -1e3, -36.0, 36.0, 1e3]])


def apply(kernel, *arguments):
    return np.array([kernel(*map(float, row)) for row in zip(*arguments, strict=True)])


def test_cdf_and_density_equal_scipy():
    np.testing.assert_allclose(
        apply(normal_cdf, POINTS), ndtr(POINTS), rtol=1e-13, atol=1e-300
    )
    density = apply(log_normal_pdf, POINTS)
    np.testing.assert_allclose(density, norm.logpdf(POINTS), rtol=1e-14)


def test_log_cdf_equals_scipy_however_far_out():
    expected = log_ndtr(POINTS)
    np.testing.assert_allclose(
        apply(log_normal_cdf, POINTS), expected, rtol=1e-13, atol=1e-300
    )
    assert log_normal_cdf(-np.inf) == -np.inf
    assert log_normal_cdf(np.inf) == 0.0


def test_hazard_is_the_slope_of_the_log_survival():
    z = np.concatenate([np.linspace(-5, 60, 131), [1e3, 1e6]])
    expected = np.exp(norm.logpdf(z[z < 30]) - log_ndtr(-z[z < 30]))
    hazard = apply(normal_hazard, z)
    np.testing.assert_allclose(hazard[z < 30], expected, rtol=1e-11)
    # Between z and z + 1 / z, Gordon (1941).
    far = z >= 30
    assert (hazard[far] > z[far]).all()
    assert (hazard[far] <= z[far] + 1 / z[far]).all()
    near = normal_hazard(35.999999)
    assert normal_hazard(36.000001) == pytest.approx(near, rel=1e-7)


def test_upper_point_inverts_the_log_survival():
    log_sf = -np.concatenate([np.geomspace(np.log(2.0), 1e12, 200), [np.log(2.0)]])
    z = apply(upper_point, log_sf)
    assert (z >= 0.0).all()
    near = log_sf > -1e3
    np.testing.assert_allclose(
        z[near], -ndtri_exp(log_sf[near]), rtol=1e-11, atol=1e-15
    )
    np.testing.assert_allclose(apply(log_normal_cdf, -z), log_sf, rtol=1e-12)
    assert upper_point(-np.inf) == np.inf


def test_logarithm_of_zero():
    assert safe_log(0.0) == -np.inf
    assert safe_log(2.0) == np.log(2.0)
