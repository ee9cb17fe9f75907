"""Curves through probabilities: smooth, increasing, straight where they should be."""

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline, make_smoothing_spline
from scipy.special import ndtr, ndtri

from localexpert.curves.spline import (
    LEAST_TAIL_SLOPE,
    MOST_TAIL_SLOPE,
    ProbitSpline,
    RawSpline,
    clip_bound,
    curvature_matrix,
    increase_probabilities,
    probit_precision,
    smooth_rows,
    smoother_matrix,
)

T = ndtri(np.arange(1, 26) / 26)
BUILDERS = [
    ProbitSpline(0.0),
    ProbitSpline(0.3),
    ProbitSpline(np.inf),
    RawSpline("pchip"),
    RawSpline("smoothing_spline"),
]
everyone = pytest.mark.parametrize("builder", BUILDERS, ids=repr)


@everyone
@pytest.mark.parametrize("k", [1, 2, 3, 25])
def test_curves_increase_whatever_the_probabilities(rng, builder, k):
    t = np.sort(rng.normal(size=k))
    p = rng.uniform(size=(50, k))
    p[0], p[1] = 0.0, 1.0
    curves = builder.build(p, t, 500)
    fine = np.linspace(t[0] - 3, t[-1] + 3, 2000)
    for values, slopes in zip(curves.values, curves.slopes, strict=True):
        g = CubicHermiteSpline(curves.knots, values, slopes)
        inside = fine[(fine > curves.knots[0]) & (fine < curves.knots[-1])]
        assert (np.diff(g(inside)) > 0).all()
    ends = curves.slopes[:, [0, -1]]
    assert ((ends >= LEAST_TAIL_SLOPE) & (ends <= MOST_TAIL_SLOPE)).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 10.0, np.inf])
def test_a_straight_line_is_left_alone(smoothing):
    lines = np.array([[1.5, 0.3], [0.95, -0.5]])
    p = ndtr(lines[:, :1] * T + lines[:, 1:])
    curves = ProbitSpline(smoothing).build(p, T, 10**6)
    inner = np.abs(ndtri(p)) < 3.09
    got = curves.values[:, 4:-4]
    np.testing.assert_allclose(got[inner], ndtri(p)[inner], atol=0.02)


@everyone
def test_interpolators_pass_through_and_smoothers_come_near(rng, builder):
    p = np.sort(rng.uniform(0.05, 0.95, size=(20, 25)), axis=1)
    curves = builder.build(p, T, 10_000)
    at = [
        CubicHermiteSpline(curves.knots, v, s)(T)
        for v, s in zip(curves.values, curves.slopes, strict=True)
    ]
    error = np.abs(ndtr(at) - p).max()
    exact = builder in (ProbitSpline(0.0), RawSpline("pchip"))
    assert error < (2e-2 if exact else 0.5)


def test_smoother_is_scipys_smoothing_spline(rng):
    t = np.sort(rng.normal(size=12))
    weights, z = rng.uniform(0.5, 2, 12), rng.normal(size=12)
    ours = smoother_matrix(t, weights, 0.7) @ z
    theirs = make_smoothing_spline(t, z, w=weights, lam=0.7)(t)
    np.testing.assert_allclose(ours, theirs, atol=1e-8)


def test_rows_are_smoothed_by_generalised_cross_validation(rng):
    z = 2.0 * T - 1.5 * rng.normal(size=(60, 1)) + 0.3 * rng.normal(size=(60, 25))
    p = ndtr(z)
    values, vectors = np.linalg.eigh(curvature_matrix(T))
    weights = np.exp(np.linspace(-14.0, 12.0, 4001))[:, None]
    f = weights * np.maximum(values, 0.0) / (1.0 + weights * np.maximum(values, 0.0))
    for row, ours in zip(p, smooth_rows(T, p), strict=True):
        c = vectors.T @ row
        scores = ((f * c) ** 2).sum(axis=1) / f.sum(axis=1) ** 2
        best = vectors @ ((1.0 - f[scores.argmin()]) * c)
        np.testing.assert_allclose(ours, best, atol=2e-3)


@everyone
@pytest.mark.parametrize("p_first", [0.002, 0.3, 0.995])
def test_beyond_the_thresholds_rows_keep_the_shape_of_the_marginal(builder, p_first):
    t = ndtri([0.1, 0.3, 0.6, 0.9])
    p = np.array([[p_first, 0.996, 0.997, 0.998]])
    curves = builder.build(p, t, 10_000)
    g = CubicHermiteSpline(curves.knots, curves.values[0], curves.slopes[0])
    for share in (0.35, 0.1, 0.02):
        inside = ndtr(g(ndtri(0.1 * share))) / ndtr(g(t[0]))
        assert inside == pytest.approx(share)
        outside = ndtr(-g(-ndtri(0.1 * share))) / ndtr(-g(t[-1]))
        assert outside == pytest.approx(share)


def test_of_three_points_rounding_does_not_choose_the_smoothing(rng):
    # One way to bend: by cross-validation all weights are equal, so the least is best.
    t, p = np.array([-1.0, 0.3, 1.2]), np.sort(rng.uniform(size=(200, 3)), axis=1)
    np.testing.assert_allclose(smooth_rows(t, p), p, atol=2e-3)


def test_infinite_smoothing_is_the_limit():
    weights = probit_precision(T)
    line = np.column_stack([np.ones(len(T)), T])
    limit = (
        line
        @ np.linalg.lstsq(np.sqrt(weights)[:, None] * line, np.diag(weights**0.5))[0]
    )
    for smoothing in (1e10, 1e16, 1e300, np.inf):
        smoother = smoother_matrix(T, weights, smoothing)
        np.testing.assert_allclose(smoother, limit, atol=1e-8)


def test_heavy_smoothing_is_that_of_the_textbook():
    weights = probit_precision(T)
    system = np.diag(weights) + 1e4 * curvature_matrix(T)
    expected = np.linalg.solve(system, np.diag(weights))
    ours = smoother_matrix(T, weights, 1e4)
    np.testing.assert_allclose(ours, expected, atol=1e-8)


def test_smoothing_takes_noise_off(rng):
    truth = ndtr(1.3 * T - 0.2)
    noisy = truth + 0.04 * rng.normal(size=(300, 25))
    errors = [
        np.mean(
            (ndtr(ProbitSpline(s).build(noisy, T, 10**4).values[:, 4:-4]) - truth) ** 2
        )
        for s in (0.0, 1.0)
    ]
    assert errors[1] < 0.6 * errors[0]


def test_probabilities_are_clipped_to_what_rows_can_say():
    assert clip_bound(100) == pytest.approx(1 / 202)
    assert clip_bound(10**6) == 1e-3
    p = increase_probabilities(np.array([[0.0, 0.5, 0.4, 1.0]]), 9)
    np.testing.assert_allclose(p, [[0.05, 0.45, 0.45, 0.95]])


def test_inputs_are_not_modified(rng):
    p = rng.uniform(size=(3, 25))
    before = p.copy()
    p.setflags(write=False)
    ProbitSpline(0.1).build(p, T, 100)
    np.testing.assert_array_equal(p, before)
