"""Curves of the marginal and through probabilities: smooth, increasing, with tails."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad
from scipy.interpolate import BSpline, CubicHermiteSpline, make_smoothing_spline
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from localexpert.curves.base_cdf import BaseCDF, law_of_curves
from localexpert.curves.spline import (
    ProbitSpline,
    RawSpline,
    curvature_matrix,
    extend_tails,
    increase_probabilities,
    ordered_spline,
    smooth_rows,
)

T = ndtri(np.arange(1, 26) / 26)
BUILDERS = [
    *map(ProbitSpline, (0.0, 0.3, np.inf)),
    *map(RawSpline, ("pchip", "smoothing_spline")),
    RawSpline("smoothing_spline", df=5.5),
]
everyone = pytest.mark.parametrize("builder", BUILDERS, ids=repr)


@everyone
@pytest.mark.parametrize("k", [1, 2, 3, 25])
def test_curves_increase_whatever_the_probabilities(rng, builder, k):
    t = np.sort(rng.normal(size=k))
    p = rng.uniform(size=(50, k))
    p[0], p[1] = 0.0, 1.0
    curves = builder.build(p, t, 500)
    fine = np.linspace(curves.knots[0], curves.knots[-1], 2000)
    assert (np.diff(follow(curves, fine)) > 0.0).all()
    assert_allclose(curves.slopes[:, [0, -1]], 1.0)


def follow(curves, t):
    """Return the curves at t between the end knots."""
    parts = curves.knots, curves.values, curves.slopes
    return CubicHermiteSpline(*parts, axis=1)(t)


@pytest.mark.parametrize("k", [1, 2, 5, 25])
@pytest.mark.parametrize("smoothing", [0.0, 0.2, np.inf])
def test_rows_in_order_at_thresholds_are_in_order_everywhere(rng, smoothing, k):
    for t in (T[:k], np.sort(3.0 * rng.normal(size=k))):
        p = np.sort(rng.uniform(size=(100, k)) ** rng.uniform(0.1, 5.0, (100, 1)))
        p[:3] = [[0.0], [0.5], [1.0]]
        more = rng.choice([0.0, 0.01, 0.5], size=(100, 1)) * rng.uniform(size=(100, k))
        # Experts' answers need not increase: their order must hold all the same.
        q = np.minimum(p + more, 1.0)[:, rng.permutation(k) if k < 5 else slice(None)]
        q = np.maximum(p, q)
        low, high = (ProbitSpline(smoothing).build(x, t, 500, (0, 1.2)) for x in (p, q))
        fine = np.linspace(low.knots[0], low.knots[-1], 4000)
        assert (follow(low, fine) - follow(high, fine)).max() < 1e-11
        # Beyond the knots they are parallel lines.
        assert_allclose(low.slopes[:, 0], 1.0)
        assert_allclose(low.slopes[:, -1], 1.2)
        assert_allclose(high.slopes[:, [0, -1]], [[1.0, 1.2]] * 100)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_a_straight_line_is_left_alone(smoothing):
    lines = np.array([[1.5, 0.3], [0.95, -0.5], [1.0, 0.0]])
    p = ndtr(lines[:, :1] * T + lines[:, 1:])
    curves = ProbitSpline(smoothing).build(p, T, 10**6)
    inner = np.linspace(-0.35, 0.35, 50)
    expected = lines[:, :1] * inner + lines[:, 1:]
    assert_allclose(follow(curves, inner), expected, atol=1e-12)
    # The marginal itself is left alone in its tails, too.
    wide = np.linspace(-3.4, 3.4, 50)
    assert_allclose(follow(curves, wide)[2], wide, atol=1e-12)


def test_coefficients_are_means_of_broken_lines(rng):
    t = np.sort(rng.normal(size=40))
    z = np.cumsum(rng.uniform(size=(3, 40)), axis=1)
    curves = ordered_spline(z, t, 0.2, (0.0, 0.0))
    knots = curves.knots
    gap = 0.5 * np.diff(knots).min()
    z, t = extend_tails(z, t, knots[knots < t[0] - gap], knots[knots > t[-1] + gap])
    # By quadrature, in the middle of many small cells.
    share = (np.arange(2_000) + 0.5) / 1_000 - 1.0
    hat = (1.0 - np.abs(share)) / 1_000
    places = (knots[1:-3] + knots[2:-2] + knots[3:-1])[:, None] / 3.0
    at = places + 0.5 * (knots[3:-1] - knots[1:-3])[:, None] * share
    means = np.stack([np.interp(at, t, row) @ hat for row in z], axis=1)
    fine = np.linspace(knots[3], knots[-4], 500)
    expected = BSpline(knots, means, 3)(fine).T
    assert_allclose(follow(curves, fine), expected, atol=1e-5)


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
        assert_allclose(ours, best, atol=2e-3)


PLACES = np.cumsum(1.0 + 3.0 * np.abs(np.sin(np.arange(25.0))))


def smoother(lam):
    """Return scipy's smoothing spline of weight lam as a matrix, (25, 25)."""
    unit = np.eye(len(PLACES))
    columns = [make_smoothing_spline(PLACES, y, lam=lam)(PLACES) for y in unit]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("df", [2.5, 10, 20])
def test_a_raw_curve_has_the_degrees_of_freedom_that_are_asked_for(rng, df):
    p = rng.uniform(size=(4, 25))
    curve = RawSpline("smoothing_spline", df).curve(p, PLACES)
    log = brentq(lambda log: np.trace(smoother(np.exp(log))) - df, -25, 25)
    fine = np.linspace(PLACES[0], PLACES[-1], 400)
    for row, ours in zip(p, curve(fine), strict=True):
        theirs = make_smoothing_spline(PLACES, row, lam=np.exp(log))
        assert_allclose(ours, theirs(fine), atol=1e-7)


def test_raw_curves_at_the_ends_of_what_is_asked_for(rng):
    p = np.sort(rng.uniform(size=(4, 25)), axis=1)
    line = RawSpline("smoothing_spline", df=2).curve(p, PLACES)(PLACES)
    slope, start = np.polyfit(PLACES, p.T, 1)[:, :, None]
    assert_allclose(line, start + slope * PLACES, atol=1e-7)
    for every in (RawSpline("pchip"), RawSpline("smoothing_spline", df=40)):
        assert_allclose(every.curve(p, PLACES)(PLACES), p, atol=1e-9)
    with pytest.raises(ValueError, match=r"`df` must lie in \[2, inf\), got 1"):
        RawSpline("smoothing_spline", df=1)
    with pytest.raises(ValueError, match="`method` must be one of 'pchip', 'smooth"):
        RawSpline("linear")


@pytest.mark.parametrize("method", [("pchip",), ("smoothing_spline", 10)])
def test_the_law_follows_the_raw_curve(rng, method):
    y = np.exp(rng.normal(size=4000))
    base = BaseCDF.fit(y)
    cuts = np.quantile(y, np.arange(1, 26) / 26)
    spline, t = RawSpline(*method), base.t(cuts)
    # Rows whose density is positive and smooth, then such with flat pieces.
    shift, width = rng.uniform(-0.3, 0.3, (40, 1)), rng.uniform(0.8, 1.2, (40, 1))
    smooth = ndtr((np.log(cuts) - shift) / width)
    flat = np.round(8.0 * smooth + rng.uniform(-0.4, 0.4, smooth.shape)) / 8.0
    for p, inner, most in ((smooth, slice(60, -60), 1e-3), (flat, slice(None), 0.04)):
        curves = spline.build(p, t, 4000, base.least_slopes(), base.inverse)
        law = law_of_curves(np.zeros(40), np.ones(40), curves, base)
        # The same number of places between all thresholds.
        places = np.interp(np.linspace(0.0, 24.0, 481), np.arange(25.0), cuts)
        raw = spline.curve(increase_probabilities(p, 4000), cuts)(places)
        found = law.cdf(np.tile(places, (40, 1)))
        rising = increase_probabilities(raw, 4000)
        assert np.abs(found - rising)[:, inner].max() < most


@pytest.mark.parametrize("p_first", [0.002, 0.1, 0.3, 0.995])
def test_beyond_the_thresholds_rows_keep_the_shape_of_the_marginal(p_first):
    t = ndtri([0.1, 0.3, 0.6, 0.9])
    z = ndtri([[p_first, 0.996, 0.997, 0.998]])
    shares = np.array([0.02, 0.1, 0.35])
    below, above = ndtri(0.1 * shares), -ndtri(0.1 * shares[::-1])
    more, places = extend_tails(z, t, below, above)
    assert_array_equal(places, np.concatenate([below, t, above]))
    moved = ndtr(z[0, 0] + below - t[0])
    assert_allclose(ndtr(more[0, :3]), np.minimum(p_first * shares, moved), rtol=1e-9)
    moved = ndtr(-(z[0, -1] + above - t[-1]))
    want = np.minimum(0.002 * shares[::-1], moved)
    assert_allclose(ndtr(-more[0, -3:]), want, rtol=1e-9)


DRAWN = np.random.default_rng(0)
NORMAL = DRAWN.normal(size=3000)
SAMPLES = {
    "two": np.array([0.0, 1.0]),
    "three": np.array([5.0, 5.0, 7.0]),
    "normal": 3.0 + 2.0 * NORMAL,
    "tiny": 1e-12 * NORMAL[:12],
    "huge": 1e12 + 1e6 * NORMAL[:500],
    "skew": DRAWN.exponential(size=1500) ** 2,
    "cauchy": DRAWN.standard_cauchy(1000),
    "uniform": DRAWN.uniform(size=800),
    "ties": np.round(NORMAL),
    "mostly zero": np.where(DRAWN.uniform(size=3000) < 0.9, 0.0, NORMAL),
    "constant": np.full(50, 7.5),
    "zero": np.zeros(5),
    "outlier": np.append(NORMAL[:200], 1e9),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_any_sample_gives_an_increasing_finite_curve_with_an_exact_inverse(name):
    base = BaseCDF.fit(SAMPLES[name])
    middle, spread = base.points[len(base.points) // 2], np.ptp(base.points)
    far = np.geomspace(1e-3, 1e6, 400)
    r = middle + spread * np.concatenate([-far[::-1], np.linspace(-1, 1, 801), far])
    r = np.unique(r)
    t = base.t(r)
    assert np.isfinite(t).all()
    assert (np.diff(t) >= 0.0).all()
    assert (np.diff(t[:: len(t) // 50]) > 0.0).all()
    assert (base.derivative(r) > 0.0).all()
    assert np.isfinite(base.derivative(r)).all()
    t = np.linspace(-30.0, 30.0, 2001)
    r = base.inverse(t)
    assert np.isfinite(r).all()
    # A value of r is known to its last bit, so t to that bit times the slope.
    resolution = base.derivative(r) * np.spacing(np.abs(r) + np.abs(base.points[20]))
    assert (np.abs(base.t(r) - t) <= 1e-10 + 4.0 * resolution).all()


@pytest.mark.parametrize(("n", "most"), [(50, 0.15), (500, 0.02), (20_000, 0.002)])
@pytest.mark.parametrize(
    "law", [stats.norm(1.0, 3.0), stats.laplace(), stats.t(5), stats.gumbel_r()]
)
def test_close_to_the_truth_and_closer_with_more_data(law, n, most):
    gaps = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        base = BaseCDF.fit(law.rvs(size=n, random_state=rng))
        y = law.rvs(size=20_000, random_state=rng)
        log_density = stats.norm.logpdf(base.t(y)) + np.log(base.derivative(y))
        gaps.append(np.mean(law.logpdf(y) - log_density))
    # Divergence from the truth; that of a normal with fitted moments is 1 / n.
    assert np.median(gaps) < most


def test_tail_shapes_follow_the_data(rng):
    heavy = BaseCDF.fit(rng.standard_t(3, 50_000), max_shape=0.5)
    assert heavy.shapes == pytest.approx((1 / 3, 1 / 3), abs=0.12)
    assert BaseCDF.fit(rng.standard_t(2, 50_000)).shapes == pytest.approx((0.2, 0.2))
    exponential = BaseCDF.fit(rng.exponential(size=50_000))
    assert exponential.shapes[1] == pytest.approx(0.0, abs=0.05)
    assert -0.4 < BaseCDF.fit(rng.normal(size=50_000)).shapes[0] < -0.1
    # Few values beyond the join say little, so the tail is near exponential.
    few = BaseCDF.fit(stats.t(1).ppf((np.arange(30) + 0.5) / 30))
    assert abs(few.shapes[1]) < 0.15


@pytest.mark.parametrize("n", [40, 3000])
def test_integer_weights_are_repetitions(rng, n):
    x = rng.normal(size=n).round(3)
    weight = rng.integers(0, 4, n)
    r = np.linspace(-6.0, 6.0, 200)
    one = BaseCDF.fit(x, weight).t(r)
    assert_allclose(one, BaseCDF.fit(np.repeat(x, weight)).t(r), atol=1e-6)
    order = rng.permutation(n)
    again = BaseCDF.fit(x[order], weight[order]).t(r)
    assert_allclose(one, again, atol=1e-9)


def test_least_slopes_keep_four_moments():
    base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], (-0.2, 0.2))
    lower, upper = base.least_slopes()
    assert lower == 0.0
    assert upper**2 / 0.2 > 4.0
    survival = quad(
        lambda r: r**3 * stats.norm.sf(upper * base.t(r)), 1.0, np.inf, limit=500
    )[0]
    assert np.isfinite(survival)


@pytest.mark.parametrize("shape", [-0.5, -0.2, 0.0, 1e-9, 0.1, 0.2, 1.0])
def test_tails_have_the_hazard_that_is_stated(shape):
    base = BaseCDF([-1.0, 1.0], [-1.5, 1.0], [1.0, 0.5], (shape, shape))
    for end, sign, slope, level in ((-1.0, -1.0, 1.0, 1.5), (1.0, 1.0, 0.5, 1.0)):
        scale = 1.0 / (
            slope * np.exp(stats.norm.logpdf(level) - stats.norm.logsf(level))
        )
        x = np.geomspace(1e-6, 30.0, 60)
        hazard = x / scale - 0.5 * shape * (x / scale) ** 2
        if shape > 0.0:
            hazard = -stats.genpareto(shape, scale=scale).logsf(x)
        t = base.t(end + sign * x)
        got = stats.norm.logsf(sign * t)
        assert_allclose(got, stats.norm.logsf(level) - hazard, rtol=1e-9)
        assert_allclose(base.inverse(t), end + sign * x, rtol=1e-9)
        step = 1e-6 * (1.0 + x)
        rise = base.t(end + sign * (x + step)) - t
        rate = base.derivative(end + sign * (x + 0.5 * step))
        assert_allclose(rate, sign * rise / step, rtol=1e-4)


def test_infinity_and_points_that_overflow():
    base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], (0.2, 0.0))
    ends = np.array([-np.inf, np.inf])
    assert_array_equal(base.t(ends), ends)
    assert_array_equal(base.inverse(ends), ends)
    assert_array_equal(base.derivative(ends), [0.0, 0.0])
    assert np.isfinite(base.inverse([-1e4, 1e4])).all()
