"""The marginal curve: any sample, smooth, monotone, with tails that go on."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from localexpert.curves.base_cdf import BaseCDF


def make_samples():
    rng = np.random.default_rng(0)
    normal = rng.normal(size=3000)
    return {
        "two": np.array([0.0, 1.0]),
        "three": np.array([5.0, 5.0, 7.0]),
        "normal": 3.0 + 2.0 * normal,
        "tiny": 1e-12 * normal[:12],
        "huge": 1e12 + 1e6 * normal[:500],
        "skew": rng.exponential(size=1500) ** 2,
        "cauchy": rng.standard_cauchy(1000),
        "uniform": rng.uniform(size=800),
        "ties": np.round(normal),
        "mostly zero": np.where(rng.uniform(size=3000) < 0.9, 0.0, normal),
        "constant": np.full(50, 7.5),
        "zero": np.zeros(5),
        "outlier": np.append(normal[:200], 1e9),
    }


SAMPLES = make_samples()
every_sample = pytest.mark.parametrize("name", SAMPLES)


def spread_of(base):
    return base.points[-1] - base.points[0]


@every_sample
def test_any_sample_gives_an_increasing_finite_curve(name):
    base = BaseCDF.fit(SAMPLES[name])
    middle, spread = base.points[len(base.points) // 2], spread_of(base)
    far = np.geomspace(1e-3, 1e6, 400)
    r = middle + spread * np.concatenate([-far[::-1], np.linspace(-1, 1, 801), far])
    r = np.unique(r)
    t = base.t(r)
    assert np.isfinite(t).all()
    assert (np.diff(t) >= 0.0).all()
    assert (np.diff(t[:: len(t) // 50]) > 0.0).all()
    assert (base.derivative(r) > 0.0).all()
    assert np.isfinite(base.derivative(r)).all()


@every_sample
def test_inverse_is_exact(name):
    base = BaseCDF.fit(SAMPLES[name])
    t = np.linspace(-30.0, 30.0, 2001)
    r = base.inverse(t)
    assert np.isfinite(r).all()
    # A value of r is known to its last bit, so t to that bit times the slope.
    resolution = base.derivative(r) * np.spacing(np.abs(r) + np.abs(base.points[20]))
    assert (np.abs(base.t(r) - t) <= 1e-10 + 4.0 * resolution).all()


LAWS = {
    "normal": stats.norm(1.0, 3.0),
    "laplace": stats.laplace(),
    "t5": stats.t(5),
    "gumbel": stats.gumbel_r(),
}


@pytest.mark.parametrize("name", LAWS)
def test_close_to_the_truth_and_closer_with_more_data(name):
    law = LAWS[name]
    losses = []
    for n in (50, 500, 20000):
        gaps = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            base = BaseCDF.fit(law.rvs(size=n, random_state=rng))
            y = law.rvs(size=20000, random_state=rng)
            log_density = stats.norm.logpdf(base.t(y)) + np.log(base.derivative(y))
            gaps.append(np.mean(law.logpdf(y) - log_density))
        losses.append(np.median(gaps))
    # Divergence from the truth; that of a normal with fitted moments is 1 / n.
    assert losses[0] < 0.15
    assert losses[1] < 0.02
    assert losses[2] < 0.002


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
    np.testing.assert_allclose(one, BaseCDF.fit(np.repeat(x, weight)).t(r), atol=1e-6)
    order = rng.permutation(n)
    again = BaseCDF.fit(x[order], weight[order]).t(r)
    np.testing.assert_allclose(one, again, atol=1e-9)


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
        np.testing.assert_allclose(got, stats.norm.logsf(level) - hazard, rtol=1e-9)
        np.testing.assert_allclose(base.inverse(t), end + sign * x, rtol=1e-9)
        step = 1e-6 * (1.0 + x)
        rise = base.t(end + sign * (x + step)) - t
        rate = base.derivative(end + sign * (x + 0.5 * step))
        np.testing.assert_allclose(rate, sign * rise / step, rtol=1e-4)


def test_infinity_and_points_that_overflow():
    base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], (0.2, 0.0))
    ends = np.array([-np.inf, np.inf])
    np.testing.assert_array_equal(base.t(ends), ends)
    np.testing.assert_array_equal(base.inverse(ends), ends)
    np.testing.assert_array_equal(base.derivative(ends), [0.0, 0.0])
    assert np.isfinite(base.inverse([-1e4, 1e4])).all()
