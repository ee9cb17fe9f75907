"""The spline law against brute force, and against laws whose moments are known."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp, ndtri_exp

from localexpert.curves.base_cdf import BaseCDF
from localexpert.laws import SplineLaw

INF = np.inf
N_ROWS = 14
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


class Mixture:
    """Two normal laws, with the functions of scipy's that `trace` asks for."""

    parts = (0.4, stats.norm(-2.0, 0.5)), (0.6, stats.norm(1.0, 1.0))

    def __getattr__(self, name):
        if not name.startswith("log"):
            raise AttributeError(name)
        return lambda x: logsumexp(
            [np.log(w) + getattr(law, name)(x) for w, law in self.parts], axis=0
        )

    def rvs(self, size, random_state):
        first = random_state.uniform(size=size) < 0.4
        draws = [law.rvs(size, random_state=random_state) for _, law in self.parts]
        return np.where(first, *draws)

    def stats(self, moments):
        assert moments == "mvsk"
        raw = [sum(w * law.moment(k) for w, law in self.parts) for k in range(1, 5)]
        m, s, t, f = raw
        c2, c3 = s - m**2, t - 3 * m * s + 2 * m**3
        c4 = f - 4 * m * t + 6 * m**2 * s - 3 * m**4
        return m, c2, c3 / c2**1.5, c4 / c2**2 - 3


TARGETS = {
    "normal": stats.norm(1.0, 2.0),
    "skewed": stats.skewnorm(5.0),
    "gumbel": stats.gumbel_r(),
    "bimodal": Mixture(),
    "t5": stats.t(5),
    "t8": stats.t(8),
}
every_target = pytest.mark.parametrize("name", TARGETS)


def curve_of(target, base, t):
    """Probits of the target's CDF and their slope at the levels t."""
    r = base.inverse(t)
    below, above = target.logcdf(r), target.logsf(r)
    z = np.where(below < above, ndtri_exp(below), -ndtri_exp(above))
    slope = np.exp(target.logpdf(r) - stats.norm.logpdf(z)) / base.derivative(r)
    return z, slope


def base_of(target, seed=1):
    """The curve of a sample, with the tails of a t law where the target is one."""
    base = BaseCDF.fit(target.rvs(size=5000, random_state=np.random.default_rng(seed)))
    if getattr(target, "args", ()) and target.dist.name == "t":
        shape = 1.0 / target.args[0]
        return BaseCDF(base.points, base.levels, base.slopes, (shape, shape))
    return base


def trace(target, n_knots=800, reach=30.0, bounds=(-INF, INF)):
    """One row whose CDF is the target's at many knots, dense in the middle."""
    base = base_of(target)
    knots = reach * np.sinh(np.linspace(-3.5, 3.5, n_knots)) / np.sinh(3.5)
    r = base.inverse(knots)
    knots = knots[(target.logcdf(r) > -500.0) & (target.logcdf(r) < 0.0)]
    z, slope = curve_of(target, base, knots)
    chords = np.diff(z) / np.diff(knots)
    limit = 3.0 * np.minimum(
        np.append(chords, chords[-1]), np.append(chords[0], chords)
    )
    slope = np.clip(slope, 1e-3, limit)
    return SplineLaw([0.0], [1.0], knots, z[None], slope[None], base, bounds)


def random_law(rng, n=N_ROWS, n_knots=25, bounds=(-INF, INF), shape=0.1):
    """Rows of all kinds: flat and steep, shifted and scaled, with kinks."""
    base = BaseCDF.fit(rng.standard_t(8, 2000))
    base = BaseCDF(base.points, base.levels, base.slopes, (shape, shape))
    knots = np.sort(rng.uniform(-2.2, 2.2, n_knots))
    steps = rng.gamma(0.4, size=(n, n_knots - 1)) * np.diff(knots) * 2.0
    steps *= np.exp(rng.normal(size=(n, 1)))
    values = np.cumsum(np.column_stack([rng.normal(-2.0, 1.0, n), steps]), axis=1)
    chords = np.diff(values, axis=1) / np.diff(knots)
    slopes = 2.0 * np.minimum(
        np.column_stack([chords[:, :1], chords]),
        np.column_stack([chords, chords[:, -1:]]),
    )
    slopes[:, [0, -1]] = np.clip(slopes[:, [0, -1]], 1.0, 4.0)
    first = np.maximum(
        steps[:, [0, -1]], slopes[:, [0, -1]] * 0.4 * np.diff(knots)[[0, -1]]
    )
    values[:, 1:] += first[:, :1] - steps[:, :1]
    values[:, -1:] += first[:, 1:] - steps[:, -1:]
    center, scale = rng.normal(size=n) * 10.0, np.exp(rng.normal(size=n))
    return SplineLaw(center, scale, knots, values, slopes, base, bounds)


def gauss_panels(law, extra=(), reach=36.0):
    """Borders and nodes (n, m, 16) in y that no kink of any row lies inside."""
    scores = np.concatenate([np.linspace(-reach, reach, 145), np.linspace(-8, 8, 65)])
    borders = [law.ppf_scores(np.tile(np.unique(scores), (len(law), 1)))]
    r = np.concatenate([law.base.points, law.base.inverse(law.knots)])
    borders.append(law.center[:, None] + law.scale[:, None] * r)
    borders += [np.asarray(e, dtype=float).reshape(len(law), -1) for e in extra]
    edges = np.clip(np.sort(np.hstack(borders), axis=1), *law.bounds)
    width = np.diff(edges, axis=1)[:, :, None]
    return edges[:, :-1, None] + width * 0.5 * (1.0 + NODES), 0.5 * width * WEIGHTS


def integrate(law, *functions, y=None, reach=36.0):
    """Integrals of function(x, F, S, f) over the support of every row."""
    extra = () if y is None else (y,)
    x, weights = gauss_panels(law, extra, reach)
    flat = x.reshape(len(law), -1)
    parts = [m(flat).reshape(x.shape) for m in (law.cdf, law.sf, law.pdf)]
    return [(weights * function(x, *parts)).sum(axis=(1, 2)) for function in functions]


def brute_moments(law):
    origin = law.ppf(np.full((len(law), 1), 0.5))[:, :, None]

    def away(power):
        def term(x, _F, _S, f):
            out = f
            for _ in range(power):  # from the small factor up: nothing overflows
                out = out * (x - origin)
            return out

        return term

    m1, m2, m3, m4 = integrate(law, *(away(power) for power in (1, 2, 3, 4)))
    return np.column_stack(
        [
            origin[:, 0, 0] + m1,
            m2 - m1**2,
            m3 - 3 * m1 * m2 + 2 * m1**3,
            m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4,
        ]
    )


def in_deviations(moments):
    """Moments over powers of the standard deviation, so that errors are relative."""
    return moments / moments[:, 1:2] ** (0.5 * np.arange(1, 5))


@every_target
def test_moments_of_known_laws(name):
    target = TARGETS[name]
    mean, variance, skew, kurtosis = target.stats(moments="mvsk")
    m = trace(target).moments()[0]
    assert m[0] == pytest.approx(mean, abs=1e-5 * np.sqrt(variance))
    assert m[1] == pytest.approx(variance, rel=1e-5)
    assert m[2] / m[1] ** 1.5 == pytest.approx(skew, abs=1e-5)
    assert m[3] / m[1] ** 2 == pytest.approx(kurtosis + 3.0, rel=1e-4)


@every_target
def test_densities_and_quantiles_of_known_laws(name):
    target = TARGETS[name]
    law = trace(target)
    x = target.rvs(size=300, random_state=np.random.default_rng(5))
    np.testing.assert_allclose(law.logpdf(x[None])[0], target.logpdf(x), atol=1e-2)
    np.testing.assert_allclose(np.log(law.cdf(x[None])[0]), target.logcdf(x), atol=1e-4)
    np.testing.assert_allclose(np.log(law.sf(x[None])[0]), target.logsf(x), atol=1e-4)


def test_crps_of_the_normal_is_its_closed_form():
    law = trace(TARGETS["normal"])
    y = np.array([[-9.0, -1.0, 0.5, 1.0, 3.3, 12.0]])
    z = (y - 1.0) / 2.0
    pdf, cdf = stats.norm.pdf(z), stats.norm.cdf(z)
    expected = 2.0 * (z * (2.0 * cdf - 1.0) + 2.0 * pdf - 1.0 / np.sqrt(np.pi))
    np.testing.assert_allclose(law.crps(y), expected, rtol=1e-6)


BOUNDS = [
    (-INF, INF),
    (-12.0, INF),
    (-30.0, 4.0),
    (2.0, 3.0),
    (25.0, INF),
    (-INF, -40.0),
]
every_bound = pytest.mark.parametrize("bounds", BOUNDS, ids=str)


@every_bound
def test_density_integrates_to_one(rng, bounds):
    law = random_law(rng, bounds=bounds)
    (mass,) = integrate(law, lambda _x, _F, _S, f: f)
    np.testing.assert_allclose(mass, 1.0, atol=1e-6)


@every_bound
def test_crps_and_partial_means_equal_brute_force(rng, bounds):
    law = random_law(rng, bounds=bounds)
    inner = law.ppf(rng.uniform(size=(N_ROWS, 1)))
    y = np.hstack([inner, rng.normal(size=(N_ROWS, 1)) * 20.0])
    scores, (below, above) = law.crps(y), law.partial_means(y)
    for j in range(2):
        at = y[:, j, None, None]
        # Outside the support the CDF is 0 or 1: that part by hand.
        low, high = bounds
        outside = np.maximum(low - y[:, j], 0.0), np.maximum(y[:, j] - high, 0.0)
        inner = integrate(
            law,
            lambda x, F, S, _f, at=at: np.where(x < at, F**2, S**2),
            lambda x, F, _S, _f, at=at: np.where(x < at, F, 0.0),
            lambda x, _F, S, _f, at=at: np.where(x < at, 0.0, S),
            y=y[:, j],
        )
        np.testing.assert_allclose(scores[:, j], inner[0] + sum(outside), rtol=2e-5)
        np.testing.assert_allclose(
            below[:, j], inner[1] + outside[1], rtol=2e-5, atol=1e-6
        )
        np.testing.assert_allclose(
            above[:, j], inner[2] + outside[0], rtol=2e-5, atol=1e-6
        )


@every_bound
@pytest.mark.parametrize("shape", [-0.2, 0.0, 0.15])
def test_moments_equal_brute_force(rng, bounds, shape):
    law = random_law(rng, bounds=bounds, shape=shape)
    law = law.take(np.isfinite(law.moments()).all(axis=1))
    assert len(law) >= 4
    got, expected = law.moments(), brute_moments(law)
    shift = got[:, 0] - expected[:, 0]
    assert (np.abs(shift) < 1e-4 * np.sqrt(expected[:, 1])).all()
    np.testing.assert_allclose(
        in_deviations(got)[:, 1:], in_deviations(expected)[:, 1:], rtol=1e-3, atol=1e-3
    )


@every_bound
def test_ppf_and_cdf_are_inverse_and_increasing(rng, bounds):
    law = random_law(rng, bounds=bounds)
    q = np.tile(
        np.concatenate([[1e-6], np.linspace(0.001, 1.0, 200)[:-1]]), (N_ROWS, 1)
    )
    y = law.ppf(q)
    np.testing.assert_allclose(law.cdf(y), q, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(law.sf(y), 1.0 - q, rtol=1e-6, atol=1e-9)
    assert (np.diff(y, axis=1) >= 0.0).all()
    ends = law.ppf(np.tile([0.0, 1.0], (N_ROWS, 1)))
    assert (ends == bounds).all()
    grid = np.tile(np.linspace(-60.0, 60.0, 2001), (N_ROWS, 1))
    assert (np.diff(law.cdf(grid), axis=1) >= 0.0).all()
    assert (np.diff(law.sf(grid), axis=1) <= 0.0).all()
    np.testing.assert_allclose(law.cdf(grid) + law.sf(grid), 1.0, atol=1e-12)


@every_bound
def test_density_is_the_derivative_of_the_cdf(rng, bounds):
    law = random_law(rng, bounds=bounds)
    y = law.ppf(rng.uniform(0.01, 0.99, size=(N_ROWS, 30)))
    step = 1e-6 * law.scale[:, None] * np.ones_like(y)
    low, high = np.maximum(y - step, bounds[0]), np.minimum(y + step, bounds[1])
    slope = (law.cdf(high) - law.cdf(low)) / (high - low)
    np.testing.assert_allclose(law.pdf(y), slope, rtol=2e-3, atol=1e-6)


@every_bound
def test_entropy_equals_brute_force(rng, bounds):
    law = random_law(rng, bounds=bounds)

    def loss(_x, _F, _S, f):
        return -f * np.log(np.where(f > 0.0, f, 1.0))

    (expected,) = integrate(law, loss)
    np.testing.assert_allclose(law.entropy(), expected, atol=2e-3)


@every_bound
def test_mode_is_the_greatest_density(rng, bounds):
    law = random_law(rng, bounds=bounds)
    x = gauss_panels(law)[0].reshape(N_ROWS, -1)
    highest = law.logpdf(x).max(axis=1)
    at_mode = law.logpdf(law.mode()[:, None])[:, 0]
    assert (at_mode >= highest - 1e-6).all()


@pytest.mark.parametrize("bounds", [(-INF, INF), (-30.0, 4.0)], ids=str)
def test_nodes_integrate_functions(rng, bounds):
    law = random_law(rng, bounds=bounds, shape=0.05)
    y, weights = law.nodes()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    spread = np.sqrt(law.moments()[:, 1])
    for function in (
        lambda x: np.hypot(x, 9.0),
        lambda x: np.arctan(x / 10.0),
        lambda x: x * x,
    ):
        (expected,) = integrate(law, lambda x, _F, _S, f, g=function: g(x) * f)
        got = (weights * function(y)).sum(axis=1)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3 * spread.min())


def test_steep_rows_are_cut_finer():
    base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0])
    knots = np.array([-1.0, 0.0, 0.01, 1.0])
    values = np.array([[-40.0, -10.0, 10.0, 40.0]])
    slopes = np.array([[30.0, 60.0, 60.0, 30.0]])
    law = SplineLaw([0.0], [1.0], knots, values, slopes, base)
    y = np.array([[0.004, 0.0061, 0.3]])
    np.testing.assert_allclose(law.moments(), brute_moments(law), rtol=1e-6, atol=1e-14)
    expected = [
        integrate(
            law,
            lambda x, F, S, _f, one=one: np.where(x < one, F**2, S**2),
            y=np.array([one]),
        )[0][0]
        for one in y[0]
    ]
    np.testing.assert_allclose(law.crps(y)[0], expected, rtol=1e-6)


def test_moments_that_do_not_exist():
    one = np.ones((1, 1))
    base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], (0.0, 0.3))

    def moments(slope, bounds=(-INF, INF)):
        law = SplineLaw([0.0], [1.0], [0.0], 0.0 * one, slope * one, base, bounds)
        return law.moments()[0]

    # Finite below slope^2 / 0.3: 3.3, 2.7, 1.6, 0.8.
    assert np.isfinite(moments(1.2)).all()
    m = moments(1.0)
    assert np.isfinite(m[:3]).all()
    assert m[3] == INF
    m = moments(0.9)
    assert np.isfinite(m[:2]).all()
    assert np.isnan(m[2])
    assert moments(0.7)[1] == INF
    m = moments(0.5)
    assert m[0] == INF
    assert np.isnan(m[1:]).all()
    assert np.isfinite(moments(0.5, bounds=(-INF, 100.0))).all()


def test_two_heavy_tails_have_no_mean():
    one = np.ones((1, 1))
    base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], (0.3, 0.3))
    law = SplineLaw([0.0], [1.0], [0.0], 0.0 * one, 0.5 * one, base)
    assert np.isnan(law.moments()).all()
    assert np.isfinite(law.crps(np.array([[3.0]]))).all()


def test_far_out_nothing_breaks(rng):
    law = random_law(rng)
    y = law.center[:, None] + law.scale[:, None] * np.array([[-1e6, -1e4, 1e4, 1e6]])
    assert (law.cdf(y)[:, 2:] == 1.0).any()
    assert np.isfinite(law.logpdf(y)).all()
    assert np.isfinite(law.pdf(y)).all()
    np.testing.assert_allclose(law.crps(y), np.abs(y - law.moments()[:, :1]), rtol=1e-2)
    ends = np.tile([-INF, INF], (N_ROWS, 1))
    assert (law.cdf(ends) == [0.0, 1.0]).all()
    assert (law.sf(ends) == [1.0, 0.0]).all()
    assert (law.pdf(ends) == 0.0).all()


def test_tails_have_full_relative_accuracy():
    law = trace(TARGETS["normal"])
    x = 1.0 + 2.0 * np.array([[-30.0, -20.0, -10.0, 10.0, 20.0, 30.0]])
    np.testing.assert_allclose(
        np.log(law.sf(x)[0, 3:]), stats.norm.logsf([10, 20, 30]), rtol=1e-4
    )
    np.testing.assert_allclose(
        np.log(law.cdf(x)[0, :3]), stats.norm.logcdf([-30, -20, -10]), rtol=1e-4
    )
    scores = np.array([[-30.0, 30.0]])
    np.testing.assert_allclose(law.ppf_scores(scores), 1.0 + 2.0 * scores, rtol=1e-3)


def test_bounds_with_nearly_no_mass_leave_an_exponential():
    base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], (-0.2, -0.2))
    one = np.ones((1, 1))
    law = SplineLaw([0.0], [1.0], [0.0], 0.0 * one, 30.0 * one, base, (2.0, INF))
    low = law.rows.low[0]
    assert low > 50.0
    mean, variance = law.moments()[0, :2]
    assert 0.0 < mean - 2.0 < 0.01
    assert np.sqrt(variance) == pytest.approx(mean - 2.0, rel=0.01)
    assert law.mode()[0] == 2.0
    assert law.cdf(np.array([[2.0]])) == 0.0
    assert law.logpdf(np.array([[2.0]])).item() == pytest.approx(
        -np.log(mean - 2.0), abs=0.01
    )
    assert law.logpdf(np.array([[1.9999]])) == -INF


def test_outside_the_bounds(rng):
    law = random_law(rng, bounds=(-5.0, 5.0))
    y = np.tile([-6.0, 6.0], (N_ROWS, 1))
    assert (law.cdf(y) == [0.0, 1.0]).all()
    assert (law.sf(y) == [1.0, 0.0]).all()
    assert (law.pdf(y) == 0.0).all()
    inner = law.crps(np.tile([-5.0, 5.0], (N_ROWS, 1)))
    np.testing.assert_allclose(law.crps(y), inner + 1.0, rtol=1e-12)
    assert np.isfinite(law.logpdf(np.tile([-5.0, 5.0], (N_ROWS, 1)))).all()


def test_shortest_interval_beats_all_others(rng):
    law = random_law(rng)
    found = law.shortest_interval(0.8)
    held = np.diff(law.cdf(found))
    np.testing.assert_allclose(held, 0.8, atol=1e-9)
    starts = np.tile(np.linspace(0.0, 0.2, 2001)[1:-1], (N_ROWS, 1))
    best = (law.ppf(starts + 0.8) - law.ppf(starts)).min(axis=1)
    assert (found[:, 1] - found[:, 0] <= best * (1.0 + 1e-3)).all()


def test_densest_regions_hold_the_coverage_above_one_level(rng):
    law = random_law(rng)
    regions = law.densest_regions(np.full(N_ROWS, 0.7))
    assert max(len(region) for region in regions) > 1
    for i, region in enumerate(regions):
        row = law.take([i])
        ends = row.cdf(region.reshape(1, -1)).reshape(-1, 2)
        assert np.diff(ends, axis=1).sum() == pytest.approx(0.7, abs=0.01)
        assert (np.diff(region.ravel()) > 0.0).all()
        shortest = law.shortest_interval(0.7)[i]
        assert np.diff(region, axis=1).sum() <= np.diff(shortest)[0] * 1.05


def test_bimodal_law_has_two_densest_regions():
    (region,) = trace(Mixture()).densest_regions(np.array([0.8]))
    assert region.shape == (2, 2)
    levels = trace(Mixture()).logpdf(region.reshape(1, -1))
    np.testing.assert_allclose(levels, levels[0, 0], atol=0.02)


def test_rows_are_independent_of_their_company(rng):
    law = random_law(rng)
    y = rng.normal(size=(N_ROWS, 1))
    for rows in (slice(3, 9), [5], np.arange(N_ROWS) % 2 == 0, [-1, 0]):
        part = law.take(rows)
        np.testing.assert_array_equal(part.crps(y[rows]), law.crps(y)[rows])
        np.testing.assert_array_equal(part.moments(), law.moments()[rows])
    assert len(law.take(slice(0, 0))) == 0
    assert law.take(slice(0, 0)).moments().shape == (0, 4)


def test_shapes_of_arguments(rng):
    law = random_law(rng)
    y = rng.normal(size=(N_ROWS, 3))
    for method in (law.cdf, law.sf, law.pdf, law.logpdf, law.crps):
        assert method(y).shape == (N_ROWS, 3)
        np.testing.assert_array_equal(method(y[:, 1:2]), method(y)[:, 1:2])
        np.testing.assert_array_equal(method(np.asfortranarray(y)), method(y))
    assert law.crps(y[:, :0]).shape == (N_ROWS, 0)


def test_one_row_one_knot():
    base = BaseCDF.fit([0.0, 1.0, 2.0])
    law = SplineLaw([3.0], [2.0], [0.0], [[0.0]], [[1.0]], base)
    y = np.array([[4.0]])
    assert law.cdf(y).item() == pytest.approx(stats.norm.cdf(base.t(0.5)))
    np.testing.assert_allclose(law.moments(), brute_moments(law), rtol=1e-5, atol=1e-9)


def test_frozen_and_pickled(rng, frozen):
    law = random_law(rng, bounds=(-50.0, INF))
    law = SplineLaw(
        *(
            frozen(a)
            for a in (law.center, law.scale, law.knots, law.values, law.slopes)
        ),
        law.base,
        law.bounds,
    )
    y = rng.normal(size=(N_ROWS, 1))
    law.crps(y)
    copy = pickle.loads(pickle.dumps(law))
    np.testing.assert_array_equal(copy.crps(y), law.crps(y))
    assert copy.support == (-50.0, INF)
    with pytest.raises(FrozenInstanceError, match="center"):
        law.center = y
    with pytest.raises(ValueError, match="read-only"):
        law.values[0, 0] = 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": [0.0]}, "`scale` must be positive, got 0 in row 0"),
        ({"scale": [1.0, 1.0]}, r"`scale` must have shape \(1,\), got shape \(2,\)"),
        ({"center": [np.nan]}, "`center` must be finite, got nan"),
        ({"knots": [0.0, 0.0]}, "`knots` must increase strictly, got 0 before 0"),
        ({"values": [[1.0, 0.5]]}, "`values` must not decrease along a row, got 1"),
        ({"values": [[1.0]]}, r"`values` must have shape \(1, 2\)"),
        (
            {"slopes": [[1.0, 0.0]]},
            "`slopes` must be positive at both ends, got 0 in row 0 at knot 1",
        ),
        (
            {"slopes": [[1.0, -0.5]]},
            r"`slopes` must not be negative, got -0\.5 in row 0",
        ),
        ({"slopes": [[3.1, 1.0]]}, r"`slopes` must be at most 3 times .* got 3\.1"),
        ({"bounds": (1.0, 1.0)}, r"`bounds` must be \(low, high\) with low < high"),
        ({"bounds": 3.0}, "`bounds` must be a pair"),
        ({"bounds": (0.0, np.nan)}, "with low < high"),
    ],
)
def test_refusals(change, message):
    arguments = {
        "center": [0.0],
        "scale": [1.0],
        "knots": [0.0, 1.0],
        "values": [[0.0, 1.0]],
        "slopes": [[1.0, 1.0]],
        "base": BaseCDF.fit([0.0, 1.0]),
    }
    with pytest.raises(ValueError, match=message):
        SplineLaw(**arguments | change)


def test_bounds_without_mass_are_refused():
    base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0])
    flat = [[-0.5, 0.0, 0.0, 0.5]], [[1.0, 0.0, 0.0, 1.0]]
    with pytest.raises(ValueError, match=r"`bounds` must hold some of the probability"):
        SplineLaw([0.0], [1.0], [-1.0, -0.5, 0.5, 1.0], *flat, base, (-0.2, 0.2))


def near_law(bounds):
    """Rows of bent curves between bounds."""
    rng = np.random.default_rng(5)
    base = BaseCDF.fit(rng.gamma(2.0, size=2000) - 2.0)
    knots = np.linspace(-2.0, 2.0, 9)
    values = 1.3 * knots + 0.1 * np.sin(3.0 * knots) * rng.normal(size=(4, 1))
    slopes = np.full(values.shape, 1.2)
    return SplineLaw(
        rng.normal(size=4), np.ones(4), knots, values, slopes, base, bounds
    )


@pytest.mark.parametrize("end", [2.0, 0.1, 0.0, -1.0])
@pytest.mark.parametrize("distance", 10.0 ** -np.arange(1.0, 17.0))
def test_tails_beside_a_bound_keep_their_digits(end, distance):
    nodes, weights = np.polynomial.legendre.leggauss(20)
    for side in (1.0, -1.0):
        law = near_law((-np.inf, end) if side > 0.0 else (end, np.inf))
        y = np.full((4, 1), end - side * distance)
        width = np.abs(end - y)
        shares = np.linspace(0.0, 1.0, 201)
        start = np.sort(end - side * width * shares, axis=1)
        inner = law.kinks()
        borders = np.hstack([start, np.clip(inner, start[:, :1], start[:, -1:])])
        borders.sort(axis=1)
        gaps = np.diff(borders, axis=1)[:, :, None]
        at = (borders[:, :-1, None] + 0.5 * gaps * (1.0 + nodes)).reshape(4, -1)
        want = (law.pdf(at) * (0.5 * gaps * weights).reshape(4, -1)).sum(axis=1)
        got = (law.sf(y) if side > 0.0 else law.cdf(y))[:, 0]
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_narrow_support_holds_all_probability():
    law = near_law((0.3, 0.3 + 1e-9))
    y = np.tile(0.3 + np.array([-1.0, 0.0, 0.25e-9, 0.5e-9, 1e-9, 2e-9]), (4, 1))
    cdf = law.cdf(y)
    np.testing.assert_allclose(cdf + law.sf(y), 1.0, rtol=1e-12)
    share = (y[0] - 0.3) / ((0.3 + 1e-9) - 0.3)
    np.testing.assert_allclose(
        cdf, np.tile(np.clip(share, 0.0, 1.0), (4, 1)), atol=1e-8
    )


def test_densities_are_finite_as_far_as_floats_go():
    y = np.tile([-1e308, -1e200, 1e160, 1e300, 1.7e308], (4, 1))
    for bounds in ((-np.inf, np.inf), (0.0, np.inf)):
        inside = y >= bounds[0]
        log_density = near_law(bounds).logpdf(y)
        assert np.isfinite(log_density[inside]).all()
        assert (log_density[~inside] == -np.inf).all()
    assert (near_law((0.0, np.inf)).logpdf(np.full((4, 1), np.inf)) == -np.inf).all()


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.999])
def test_regions_reach_a_bound_that_cuts_the_density_off(coverage):
    law = near_law((4.0, np.inf))
    for i, region in enumerate(law.densest_regions(np.full(4, coverage))):
        assert region[0, 0] == 4.0
        held = np.diff(law.take([i]).cdf(region), axis=1).sum()
        assert held == pytest.approx(coverage, abs=0.01)
