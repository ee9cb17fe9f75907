"""Kernels of the spline law on a few rows; the law's own tests do many."""

import numpy as np
import pytest
from scipy.stats import norm

from localexpert._kernels.law_crps import spline_crps
from localexpert._kernels.law_moments import (
    spline_entropy,
    spline_mode,
    spline_moments,
    spline_nodes,
    spline_scan,
)
from localexpert._kernels.law_panels import R, T, Z, fill_nodes, reach, row_panels
from localexpert._kernels.law_spline import (
    log_density_at,
    score_at,
    spline_cdf,
    spline_logpdf,
    spline_quantiles,
)
from localexpert.curves.base_cdf import BaseCDF
from localexpert.laws import SplineLaw
from tests.open_kernels import open_kernels

(
    fill_nodes,
    reach,
    row_panels,
    log_density_at,
    score_at,
) = open_kernels(fill_nodes, reach, row_panels, log_density_at, score_at)

INF = np.inf
KNOTS = np.array([-1.5, 0.0, 1.5])
VALUES = np.array([[-1.5, 0.0, 1.5], [-4.0, -3.5, 6.0], [-0.5, 1.0, 2.0]])
SLOPES = np.array([[1.0, 1.0, 1.0], [0.9, 0.5, 6.0], [1.0, 0.8, 0.95]])
BOUNDS = [(-INF, INF), (-2.0, 4.0), (9.0, INF), (-INF, -9.0)]
every_bound = pytest.mark.parametrize("bounds", BOUNDS, ids=str)


def make_law(bounds=(-INF, INF), shapes=(-0.1, 0.15)):
    levels = np.linspace(-1.4, 1.4, 5)
    base = BaseCDF(np.sinh(levels), levels, 1.0 / np.cosh(levels), shapes)
    return SplineLaw(
        [0.0, 1.0, -2.0], [1.0, 2.0, 0.7], KNOTS, VALUES, SLOPES, base, bounds
    )


def trapezoid(law, n=4001):
    """Fine grids (3, n) of y over each row's support, and F, 1 - F and f there."""
    y = spline_quantiles(
        law.base.curve, law.rows, np.tile(np.linspace(-8.0, 8.0, n), (3, 1))
    )
    cdf, sf = (
        spline_cdf(law.base.curve, law.rows, y, upper) for upper in (False, True)
    )
    return y, cdf, sf, np.exp(spline_logpdf(law.base.curve, law.rows, y))


def integrate(y, values):
    return (0.5 * (values[:, 1:] + values[:, :-1]) * np.diff(y, axis=1)).sum(axis=1)


def test_scores_and_densities_of_a_row():
    law = make_law()
    curve, rows = law.base.curve, law.rows
    for y in (-3.0, 0.2, 40.0):
        t = float(law.base.t((y - 1.0) / 2.0))
        z = score_at(curve, rows, 1, y)
        asked = np.array([[0.0], [y], [0.0]])
        assert law.cdf(asked)[1, 0] == pytest.approx(norm.cdf(z))
        expected = law.logpdf(asked)[1, 0]
        assert log_density_at(curve, rows, 1, t) == pytest.approx(expected)


@every_bound
def test_cdf_density_and_quantiles_agree(bounds):
    law = make_law(bounds)
    y, cdf, sf, pdf = trapezoid(law, 1001)
    np.testing.assert_allclose(cdf[:, 500], 0.5, atol=1e-12)
    np.testing.assert_allclose(cdf + sf, 1.0, atol=1e-12)
    inner = slice(200, 800)
    scores = np.linspace(-8.0, 8.0, 1001)[inner]
    np.testing.assert_allclose(
        cdf[:, inner], np.tile(norm.cdf(scores), (3, 1)), atol=1e-9
    )
    slope = np.diff(cdf[:, inner], axis=1) / np.diff(y[:, inner], axis=1)
    middle = 0.5 * (pdf[:, 1:] + pdf[:, :-1])[:, inner]
    np.testing.assert_allclose(slope, middle[:, :-1], rtol=0.1)


def test_infinite_values_and_levels():
    law = make_law((-2.0, 40.0))
    curve, rows = law.base.curve, law.rows
    y = np.tile([-INF, -2.1, 41.0, INF], (3, 1))
    assert (spline_cdf(curve, rows, y, False) == [0.0, 0.0, 1.0, 1.0]).all()
    assert (spline_logpdf(curve, rows, y) == -INF).all()
    ends = spline_quantiles(curve, rows, np.tile([-INF, INF], (3, 1)))
    assert (ends == [-2.0, 40.0]).all()
    free = make_law()
    assert (spline_logpdf(free.base.curve, free.rows, y[:, [0, 3]]) == -INF).all()


def test_bounds_that_cut_off_next_to_nothing_count_in_the_tails():
    free = make_law()
    low, high = (float(free.ppf_scores(np.full((3, 1), z))[0, 0]) for z in (-8.5, 8.6))
    law = make_law((low, high))
    assert law.rows.log_mass[0] == 0.0
    scores = np.tile([-8.4, -8.0, -6.0, -3.0, 3.0, 6.0, 8.0, 8.5], (3, 1))
    y = free.ppf_scores(scores)
    under, over = norm.cdf(scores[0]), norm.sf(scores[0])
    np.testing.assert_allclose(law.cdf(y)[0], under - norm.cdf(-8.5), rtol=1e-11)
    np.testing.assert_allclose(law.sf(y)[0], over - norm.sf(8.6), rtol=1e-11)
    back = law.ppf_scores(scores[:, :4])
    np.testing.assert_allclose(law.cdf(back)[0], under[:4], rtol=1e-11)


def reach_of(curve, rows, i, order, side):
    end, sign = (0, -1.0) if side == 0 else (-1, 1.0)
    slope = rows.slopes[i, end]
    center = sign * (slope * rows.knots[end] - rows.values[i, end])
    start = max(-rows.high[i] if side == 0 else rows.low[i], 0.0)
    return reach(curve.shapes[side], slope, center, start, float(order))


@every_bound
def test_panels_cover_the_support_without_a_knot_inside(bounds):
    law = make_law(bounds)
    curve, rows, panels = law.base.curve, law.rows, law.panels
    inner = np.concatenate([KNOTS, law.base.levels])
    shared = 0
    for i in range(3):
        borders, which = row_panels(curve, rows, panels, i, 1.0)
        assert (np.diff(borders) > 0.0).all()
        inside = (inner > borders[0]) & (inner < borders[-1])
        assert np.isin(inner[inside], borders).all()
        z = np.array(
            [
                score_at(curve, rows, i, law.center[i] + law.scale[i] * r)
                for r in law.base.inverse(borders)
            ]
        )
        assert np.diff(z).max() <= 1.5 * np.maximum(1.0, 0.2 * np.abs(z).max()) + 1e-9
        if np.isinf(bounds).all():
            assert z[0] == pytest.approx(-reach_of(curve, rows, i, 1, 0), rel=1e-6)
            assert z[-1] == pytest.approx(reach_of(curve, rows, i, 1, 1), rel=1e-6)
        at = fill_nodes(curve, rows, panels, i, borders, which)
        for q in range(0, at.shape[1], 7):
            y = law.center[i] + law.scale[i] * at[R, q]
            assert at[R, q] == pytest.approx(float(law.base.inverse(at[T, q])))
            assert at[Z, q] == pytest.approx(score_at(curve, rows, i, y), abs=1e-9)
        shared += (which >= 0).sum()
    assert shared > 0


def test_reach_grows_with_order_and_offset():
    law = make_law()
    curve, rows = law.base.curve, law.rows
    assert reach_of(curve, rows, 0, 1, 0) == pytest.approx(np.sqrt(72.0))
    near, far = (reach_of(curve, rows, 0, order, 1) for order in (1, 4))
    assert np.sqrt(72.0) < near < far
    # Row 2 ends in a line through (1.5, 2): it lies to the left of z = t.
    center = 0.95 * 1.5 - 2.0
    kappa = 4 * 0.15 / 0.95**2
    expected = np.sqrt(72.0 / (1.0 - kappa)) + max(kappa * center / (1.0 - kappa), 0.0)
    assert reach_of(curve, rows, 2, 4, 1) == pytest.approx(expected)
    steep = make_law(shapes=(0.0, 0.9))
    assert reach_of(steep.base.curve, steep.rows, 0, 4, 1) == 37.0


@every_bound
def test_moments_crps_entropy_equal_the_trapezoidal_rule(bounds):
    law = make_law(bounds, shapes=(-0.1, 0.02))
    curve, rows, panels = law.base.curve, law.rows, law.panels
    y, cdf, sf, pdf = trapezoid(law)
    mean = integrate(y, y * pdf)
    away = y - mean[:, None]
    spread = np.sqrt(integrate(y, away**2 * pdf))
    got = spline_moments(curve, rows, panels)
    np.testing.assert_allclose(got[:, 0], mean, atol=1e-3 * spread.max())
    for k in (2, 3, 4):
        expected = integrate(y, away**k * pdf) / spread**k
        np.testing.assert_allclose(
            got[:, k - 1] / spread**k, expected, rtol=2e-3, atol=2e-3
        )
    log_pdf = np.log(np.where(pdf > 0.0, pdf, 1.0))
    np.testing.assert_allclose(
        spline_entropy(curve, rows, panels), -integrate(y, pdf * log_pdf), atol=2e-3
    )
    x = y[:, [1200, 2000, 2900]].copy()
    crps, below, above = spline_crps(curve, rows, panels, x)
    for j in range(3):
        under = y <= x[:, j : j + 1]
        expected = integrate(y, np.where(under, cdf**2, sf**2))
        np.testing.assert_allclose(crps[:, j], expected, rtol=2e-3)
        np.testing.assert_allclose(
            below[:, j], integrate(y, np.where(under, cdf, 0.0)), rtol=5e-3, atol=1e-5
        )
        np.testing.assert_allclose(
            above[:, j], integrate(y, np.where(under, 0.0, sf)), rtol=5e-3, atol=1e-5
        )


def test_crps_beyond_the_panels_grows_with_the_distance():
    law = make_law()
    y = np.tile([-1e4, -2e4, 1e4, 2e4], (3, 1))
    crps, below, above = spline_crps(law.base.curve, law.rows, law.panels, y)
    np.testing.assert_allclose(crps[:, 1] - crps[:, 0], 1e4)
    np.testing.assert_allclose(crps[:, 3] - crps[:, 2], 1e4)
    assert (below[:, :2] == 0.0).all()
    assert (above[:, 2:] == 0.0).all()
    mean = spline_moments(law.base.curve, law.rows, law.panels)[:, 0]
    np.testing.assert_allclose(below[:, 2], 1e4 - mean, rtol=1e-6)
    np.testing.assert_allclose(above[:, 0], 1e4 + mean, rtol=1e-6)


@every_bound
def test_mode_nodes_and_scan(bounds):
    law = make_law(bounds)
    curve, rows, panels = law.base.curve, law.rows, law.panels
    mode = spline_mode(curve, rows, panels)
    y, log_density, cdf = spline_scan(curve, rows, panels)
    np.testing.assert_allclose(spline_logpdf(curve, rows, y), log_density, atol=1e-6)
    np.testing.assert_allclose(spline_cdf(curve, rows, y, False), cdf, atol=1e-9)
    at_mode = spline_logpdf(curve, rows, mode[:, None])[:, 0]
    assert (at_mode >= log_density.max(axis=1) - 1e-9).all()
    values, weights = spline_nodes(curve, rows, panels)
    mean = spline_moments(curve, rows, panels)[:, 0]
    np.testing.assert_allclose((values * weights).sum(axis=1), mean, rtol=1e-9)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (0.24, [True, True, True, True]),
        (0.3, [True, True, True, False]),
        (0.4, [True, True, False, False]),
        (0.6, [True, False, False, False]),
        (1.0, [False, False, False, False]),
    ],
)
def test_moments_that_do_not_exist(shape, expected):
    one = np.ones((1, 1))
    for shapes in ((shape, 0.0), (0.0, shape), (shape, shape)):
        base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], shapes)
        law = SplineLaw([0.0], [1.0], [0.0], 0.0 * one, one, base)
        m = spline_moments(base.curve, law.rows, law.panels)[0]
        assert np.isfinite(m).tolist() == expected
        if not expected[0] and shapes[0] != shapes[1]:
            assert m[0] == (INF if shapes[1] else -INF)
