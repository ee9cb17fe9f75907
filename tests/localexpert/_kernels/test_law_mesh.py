"""Meshes of spline laws: their weights, cuts and scores."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from localexpert._kernels.law_mesh import (
    cut_panels,
    mesh_crps,
    mesh_moments,
    truncated_score,
)
from localexpert.curves.base_cdf import BaseCDF
from localexpert.laws import SplineLaw

NONE = np.empty((2, 0))


def law_of(bounds=(-np.inf, np.inf)):
    """Two nearly normal rows, the second steep."""
    t = np.linspace(-1.5, 1.5, 7)
    base = BaseCDF(t, t, np.ones(7))
    knots, slopes = np.array([-1.0, 1.0]), np.array([[1.0, 1.0], [6.0, 6.0]])
    return SplineLaw(
        [0.0, 1.0], [1.0, 2.0], knots, knots * slopes, slopes, base, bounds
    )


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (-0.5, 3.0), (0.9, 1.1)])
def test_scores_and_densities_are_those_of_the_law(bounds):
    law = law_of(bounds)
    (y, dy, scores, log_density), ends = law.mesh(NONE, NONE, with_density=True)
    np.testing.assert_allclose(ndtr(scores), law.cdf(y), atol=1e-9)
    np.testing.assert_allclose(log_density, law.logpdf(y), atol=1e-6)
    np.testing.assert_allclose((np.exp(log_density) * dy).sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(dy.sum(axis=1), np.diff(ends)[:, 0], rtol=1e-4)
    assert (np.diff(y, axis=1) >= 0.0).all()
    assert law.mesh(NONE, NONE)[0].shape[0] == 3


def test_a_jump_is_integrated_exactly_at_a_cut():
    law = law_of()
    cuts = np.array([[0.3, -0.2], [1.05, 1.4]])
    (y, dy, _), ends = law.mesh(cuts, NONE)
    for c in range(2):
        above = (dy * (y > cuts[:, c : c + 1])).sum(axis=1)
        np.testing.assert_allclose(above, ends[:, 1] - cuts[:, c], rtol=1e-9)


def test_kinks_cut_wide_panels_only():
    law = law_of()
    plain = law.mesh(NONE, NONE)[0]
    kinked = law.mesh(NONE, np.full((2, 1), 4.0))[0]
    assert kinked.shape[2] == plain.shape[2] + 5
    x = np.linspace(0.0, 12.0, 60_001)
    y = np.array([x, 1.0 + x / 3.0])
    above = law.sf(y)
    bent = np.maximum(-stats.norm.ppf(np.maximum(above, 1e-300)) - 4.0, 0.0) * above
    expected = np.trapezoid(bent, y, axis=1)
    errors = []
    for kinks in (NONE, np.full((2, 1), 4.0)):
        (_, dy, scores), _ = law.mesh(NONE, kinks)
        got = (dy * np.maximum(scores - 4.0, 0.0) * ndtr(-scores)).sum(axis=1)
        errors.append(np.abs(got / expected - 1.0).max())
    assert errors[1] < 2e-3 < errors[0]


def test_integrals_of_a_normal_row():
    law = law_of()
    at = np.array([[0.4], [1.2]])
    (y, dy, scores), ends = law.mesh(at, NONE)
    levels = ndtr(scores), ndtr(-scores)
    crps, below, above = mesh_crps(y, dy, *levels, ends, at)
    np.testing.assert_allclose(crps, law.crps(at), rtol=1e-6)
    parts = law.partial_means(at)
    np.testing.assert_allclose([below, above], parts, rtol=1e-6)
    got = mesh_moments(law.base.curve, law.rows, y, dy, *levels, at[:, 0])
    np.testing.assert_allclose(got, law.moments(), rtol=1e-4, atol=1e-6)


def test_beyond_the_mesh_the_rest_is_added():
    law = law_of((-0.5, 3.0))
    at = np.array([[-5.0, 7.0], [-2.0, 3.5]])
    (y, dy, scores), ends = law.mesh(at, NONE)
    got = mesh_crps(y, dy, ndtr(scores), ndtr(-scores), ends, at)
    np.testing.assert_allclose(got[0], law.crps(at), rtol=1e-6)
    np.testing.assert_allclose(got[1:], law.partial_means(at), rtol=1e-6, atol=1e-9)


def test_cuts_become_borders():
    borders, which = np.array([0.0, 1.0, 2.0]), np.array([4, 5])
    out, marks = cut_panels(borders, which, np.array([-1.0, 0.0, 1.0, 1.5, 1.5, 3.0]))
    np.testing.assert_array_equal(out, [0.0, 1.0, 1.5, 2.0])
    np.testing.assert_array_equal(marks, [4, -1, -1])


@pytest.mark.parametrize("z", [-1.9, 0.0, 2.5])
def test_truncated_score_is_the_probit_of_the_truncated_cdf(z):
    low, high = -2.0, 3.0
    mass = ndtr(high) - ndtr(low)
    expected = stats.norm.ppf((ndtr(z) - ndtr(low)) / mass)
    assert truncated_score(z, low, high, np.log(mass)) == pytest.approx(expected)
    assert truncated_score(low, low, high, np.log(mass)) == -np.inf
    assert truncated_score(high, low, high, np.log(mass)) == np.inf
