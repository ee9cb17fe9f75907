"""The normal distribution's kernels against scipy, in both far tails."""

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp
from scipy.stats import norm, truncnorm

from localexpert._kernels.normal import (
    log_normal_between,
    log_normal_cdf,
    log_normal_pdf,
    log_sum,
    normal_cdf,
    normal_hazard,
    safe_log,
    upper_point,
)
from localexpert._kernels.truncation import truncated_cdf, truncated_point
from tests.open_kernels import open_kernels

(
    log_normal_between,
    log_normal_pdf,
    log_sum,
    normal_cdf,
    safe_log,
    upper_point,
    truncated_cdf,
    truncated_point,
) = open_kernels(
    log_normal_between,
    log_normal_pdf,
    log_sum,
    normal_cdf,
    safe_log,
    upper_point,
    truncated_cdf,
    truncated_point,
)

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


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1.0, 2.0), (-np.inf, 0.5), (0.3, np.inf), (-8.0, -7.0), (3.0, 3.5)],
)
def test_mass_between_two_points(low, high):
    expected = np.log(abs(ndtr(-abs(low)) - ndtr(-abs(high))))
    if low < 0 < high:
        expected = np.log(ndtr(high) - ndtr(low))
    assert log_normal_between(low, high) == pytest.approx(expected, rel=1e-12)
    assert log_normal_between(-high, -low) == pytest.approx(expected, rel=1e-12)


def test_mass_between_far_points_does_not_cancel():
    # Beyond a the law is exponential with the hazard as its rate, to first order.
    a = 1e4
    gap = 1e-4
    expected = log_ndtr(-a) + np.log(-np.expm1(-gap * normal_hazard(a)))
    assert log_normal_between(a, a + gap) == pytest.approx(expected, rel=1e-9)
    assert log_normal_between(2.0, 2.0) == -np.inf


def test_sums_of_logarithms():
    assert log_sum(np.log(2.0), np.log(3.0)) == pytest.approx(np.log(5.0))
    assert log_sum(-np.inf, 1.5) == 1.5
    assert log_sum(-np.inf, -np.inf) == -np.inf
    assert log_sum(-1e5, -1e5) == pytest.approx(-1e5 + np.log(2.0))
    assert safe_log(0.0) == -np.inf
    assert safe_log(2.0) == np.log(2.0)


ENDS = [(-np.inf, np.inf), (-1.0, np.inf), (-np.inf, -3.0), (0.5, 1.5), (6.0, 9.0)]


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_truncated_cdf_and_its_inverse(low, high):
    law = truncnorm(low, high)
    log_mass = log_normal_between(low, high)
    z = np.linspace(max(low, -6.0), min(high, 9.0), 50)
    args = [np.full(50, value) for value in (low, high, log_mass)]
    below = apply(truncated_cdf, z, *args)
    above = apply(truncated_cdf, -z, -args[1], -args[0], args[2])
    np.testing.assert_allclose(below, law.cdf(z), rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(above, law.sf(z), rtol=1e-9, atol=1e-13)
    scores = np.where(below < 0.5, ndtri(below), -ndtri(above))
    inner = np.isfinite(scores)
    back = apply(truncated_point, scores[inner], *(a[inner] for a in args))
    np.testing.assert_allclose(back, z[inner], rtol=1e-7, atol=1e-9)


def test_truncated_far_out_it_is_exponential():
    low = 500.0
    log_mass = log_normal_between(low, np.inf)
    x = np.linspace(0.0, 8.0, 9)
    above = [truncated_cdf(-(low + v / low), -np.inf, -low, log_mass) for v in x]
    np.testing.assert_allclose(above, np.exp(-x), rtol=2e-4)
    assert truncated_cdf(low, low, np.inf, log_mass) == 0.0
    assert truncated_cdf(-9.0, low, np.inf, log_mass) == 0.0
    middle = truncated_point(0.0, low, np.inf, log_mass)
    assert middle == pytest.approx(low + np.log(2.0) / low, abs=1e-5 / low)
