"""Laws of increasing functions: closed forms, draws, and refusals."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from localexpert.curves.base_cdf import BaseCDF
from localexpert.laws import DiscreteLaw, MixedLaw, SplineLaw
from localexpert.laws.pooled_law import PooledLaw
from localexpert.laws.recalibrated import RecalibratedLaw, recalibrate_law
from localexpert.laws.recentred import recentre
from localexpert.laws.transform_law import transform_law
from localexpert.laws.transformed import TransformedLaw
from localexpert.laws.value_map import ExpLess, LogOf, ValueMap
from tests.localexpert.distribution.test_predictive import make_normal
from tests.localexpert.laws.test_recalibrated import bent_map, spline_law

EXP = ValueMap(np.exp, np.log)
ARCSINH = ValueMap(np.arcsinh, np.sinh)
LEVELS = np.tile(np.linspace(0.01, 0.99, 9), (3, 1))


def heavy_law():
    """Two rows whose tails have no more than four moments or so."""
    base = BaseCDF.fit(stats.t(3).rvs(3000, random_state=0))
    one = np.ones((2, 1))
    return SplineLaw([0.0, 1.0], [1.0, 0.3], [0.0], 0.0 * one, one, base)


@pytest.fixture
def normal():
    """Return rows of normal laws, of deviations up to 1.75, and the same of scipy."""
    return make_normal(5)[0].take(slice(0, 3)), stats.norm(
        np.arange(3) - 1.0, np.linspace(0.5, 3.0, 5)[:3]
    )


@pytest.mark.parametrize("derivative", [None, np.exp])
def test_exp_of_normal_is_log_normal(normal, derivative):
    law, ref = normal
    m, s = ref.mean(), ref.std()
    want = stats.lognorm(s, scale=np.exp(m))
    got = transform_law(law, ValueMap(np.exp, np.log, derivative))
    assert isinstance(got, TransformedLaw)
    assert got.support == (0.0, np.inf)
    z = np.array([[0.01, 0.5, 1.0, 4.0, 20.0]] * 3)
    at = z.T
    assert_allclose(got.cdf(z).T, want.cdf(at), rtol=1e-9)
    assert_allclose(got.sf(z).T, want.sf(at), rtol=1e-9)
    assert_allclose(got.logpdf(z).T, want.logpdf(at), rtol=1e-7, atol=1e-7)
    assert_allclose(got.ppf(LEVELS).T, want.ppf(LEVELS.T), rtol=1e-9)
    mean, c2, _, _ = got.moments().T
    assert_allclose(mean, want.mean(), rtol=1e-9)
    assert_allclose(c2, want.var(), rtol=1e-7)
    assert_allclose(got.moments()[:2, 2:], _central(want)[:2], rtol=1e-4)
    assert_allclose(got.entropy(), want.entropy(), atol=1e-8)
    assert_allclose(got.mode(), np.exp(m - s * s), rtol=1e-4)
    assert_allclose(got.crps(z).T, _crps_log_normal(at, m, s), rtol=1e-8)
    below, above = got.partial_means(z)
    shift = np.log(at)
    beyond = want.mean() * stats.norm.cdf((m + s * s - shift) / s)
    beyond -= at * stats.norm.cdf((m - shift) / s)
    assert_allclose(above.T, beyond, atol=1e-9)
    assert_allclose((above - below).T, want.mean() - at, rtol=1e-9)


def _central(ref):
    """Return third and fourth central moments (n, 2)."""
    skew, kurtosis = ref.stats("sk")
    return np.column_stack([skew * ref.std() ** 3, (kurtosis + 3.0) * ref.var() ** 2])


def _crps_log_normal(y, m, s):
    w = (np.log(y) - m) / s
    lost = stats.norm.cdf(w - s) + stats.norm.cdf(s / np.sqrt(2.0)) - 1.0
    return y * (2.0 * stats.norm.cdf(w) - 1.0) - 2.0 * np.exp(m + s * s / 2) * lost


def test_what_cannot_be_has_no_probability(normal):
    got = transform_law(normal[0], EXP)
    z = np.tile([-np.inf, -3.0, 0.0, np.inf], (3, 1))
    assert_array_equal(got.cdf(z), np.tile([0.0, 0.0, 0.0, 1.0], (3, 1)))
    assert_array_equal(got.sf(z), np.tile([1.0, 1.0, 1.0, 0.0], (3, 1)))
    assert_array_equal(got.pdf(z), np.zeros((3, 4)))
    assert_array_equal(got.ppf(np.tile([0.0, 1.0], (3, 1))), [[0.0, np.inf]] * 3)
    mean = got.moments()[:, [0]]
    assert_allclose(got.partial_means(z[:, 1:2])[1], mean + 3.0, rtol=1e-9)


def test_moments_that_do_not_exist_are_not_numbers():
    got = transform_law(heavy_law(), EXP)
    assert_array_equal(got.moments(), [[np.inf, np.nan, np.nan, np.nan]] * 2)
    z = np.ones((2, 1))
    assert_array_equal(got.partial_means(z)[1], [[np.inf]] * 2)
    assert_array_equal(got.crps(z), [[np.inf]] * 2)
    assert np.isfinite(got.partial_means(z)[0]).all()
    # A tail of index 5 cubed has one of 5/3: a mean, and no variance.
    cubed = ValueMap(lambda x: x**3, np.cbrt, lambda x: 3.0 * x**2)
    moments = transform_law(heavy_law(), cubed).moments()
    assert np.isfinite(moments[:, 0]).all()
    assert_array_equal(moments[:, 1:], [[np.inf, np.nan, np.nan]] * 2)


@pytest.mark.parametrize("values", [ARCSINH, ValueMap(np.cbrt, lambda z: z**3)])
def test_agrees_with_draws(values, rng):
    got = transform_law(heavy_law(), values)
    y = got.ppf_scores(rng.standard_normal((2, 200_000)))
    assert_allclose(got.moments()[:, 0], y.mean(axis=1), atol=0.01)
    assert_allclose(got.moments()[:, 1], y.var(axis=1), rtol=0.02)
    z = np.array([[-0.5, 1.0], [0.3, 2.0]])
    half = np.abs(y[:, ::2] - y[:, 1::2]).mean(axis=1, keepdims=True) / 2.0
    miss = np.stack([np.abs(y - at[:, None]).mean(axis=1) for at in z.T], axis=1)
    assert_allclose(got.crps(z), miss - half, atol=0.01)
    assert_allclose(got.entropy(), -got.logpdf(y).mean(axis=1), atol=0.01)
    low, high = got.shortest_interval(0.8).T
    inside = (y >= low[:, None]) & (y <= high[:, None])
    assert_allclose(inside.mean(axis=1), 0.8, atol=0.01)
    for row, region in zip(y, got.densest_regions(np.full(2, 0.6)), strict=True):
        held = ((row[:, None] >= region[:, 0]) & (row[:, None] <= region[:, 1])).any(1)
        assert held.mean() == pytest.approx(0.6, abs=0.02)


def test_bounds_where_the_slope_has_no_end():
    law, _ = make_normal(3, bounds=(0.0, np.inf))
    got = transform_law(law, ValueMap(np.sqrt, np.square))
    assert got.support == (0.0, np.inf)
    z = np.tile([-1.0, 0.0, 0.5, 1.0], (3, 1))
    assert_allclose(got.cdf(z)[:, 2:], law.cdf(np.tile([0.25, 1.0], (3, 1))))
    assert_array_equal(got.cdf(z)[:, :2], np.zeros((3, 2)))
    want = law.pdf(z**2) * 2.0 * z
    assert_allclose(got.pdf(z)[:, 2:], want[:, 2:], rtol=1e-7)
    assert_allclose(got.pdf(z)[:, :2], 0.0, atol=1e-3)
    second = got.moments()[:, 1] + got.moments()[:, 0] ** 2
    assert_allclose(second, law.moments()[:, 0], rtol=1e-8)


def test_functions_one_after_another_are_one(normal):
    law, _ = normal
    once = transform_law(law, ValueMap(np.sinh, np.arcsinh))
    back = transform_law(once, ARCSINH)
    y = np.array([[-1.0, 0.3, 4.0]] * 3)
    assert_allclose(back.cdf(y), law.cdf(y), rtol=1e-9)
    assert_allclose(back.logpdf(y), law.logpdf(y), rtol=1e-6)
    assert_allclose(back.moments(), law.moments(), rtol=1e-6, atol=1e-8)
    assert_allclose(back.crps(y), law.crps(y), rtol=1e-8)


def test_lines_move_and_stretch_the_law_itself():
    law, _ = make_normal(3, bounds=(-2.0, np.inf))
    line = ValueMap(lambda y: 3.0 * y + 1.0, lambda z: (z - 1.0) / 3.0)
    for inner in (law, RecalibratedLaw(law, bent_map())):
        got = transform_law(inner, line)
        assert type(got) is type(inner)
        assert got.support == (-5.0, np.inf)
        assert_allclose(got.ppf(LEVELS), 3.0 * inner.ppf(LEVELS) + 1.0, rtol=1e-12)
        factors = [3.0, 9.0, 27.0, 81.0]
        wanted = inner.moments() * factors + [1.0, 0.0, 0.0, 0.0]
        assert_allclose(got.moments(), wanted, rtol=1e-9)
    pool = PooledLaw([law, law], [0.3, 0.7])
    got = transform_law(pool, line)
    assert isinstance(got, PooledLaw)
    assert_allclose(got.mode(), 3.0 * pool.mode() + 1.0, rtol=1e-6)


def test_pools_are_transformed_as_their_members(normal):
    law, _ = normal
    pool = PooledLaw([law, spline_law("bimodal").take(slice(0, 3))], [0.3, 0.7])
    got = transform_law(pool, ARCSINH)
    each = [transform_law(one, ARCSINH) for one in pool.members]
    want = PooledLaw(each, [0.3, 0.7])
    z = np.array([[-1.0, 0.3, 2.0]] * 3)
    for method in ("cdf", "logpdf", "crps"):
        assert_allclose(getattr(got, method)(z), getattr(want, method)(z), rtol=1e-4)
    assert_allclose(got.moments(), want.moments(), rtol=1e-6)
    assert_allclose(got.entropy(), want.entropy(), atol=1e-4)


def test_maps_of_probabilities_and_of_values_commute():
    law = spline_law("skewed", shape=-0.05).take(slice(0, 3))
    first = recalibrate_law(transform_law(law, EXP), bent_map())
    second = transform_law(recalibrate_law(law, bent_map()), EXP)
    assert isinstance(first, TransformedLaw)
    assert_array_equal(first.ppf(LEVELS), second.ppf(LEVELS))
    bent = transform_law(law, ARCSINH)
    moved = recentre(bent, bent.moments()[:, 0] + 0.1)
    assert_allclose(moved.moments()[:, 0], bent.moments()[:, 0] + 0.1, rtol=1e-6)


def test_values_with_probability_are_mapped():
    law = DiscreteLaw([0.0, 1.0, 4.0], [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])
    got = transform_law(law, ValueMap(np.sqrt, np.square))
    assert isinstance(got, DiscreteLaw)
    assert_array_equal(got.values, [0.0, 1.0, 2.0])
    assert_array_equal(got.probabilities, law.probabilities)
    # A value that no row can take need not have an image.
    got = transform_law(law.take(np.array([1])), ValueMap(np.log, np.exp))
    assert_allclose(got.values, np.log([1.0, 4.0]))


def test_atoms_are_mapped_beside_a_smooth_rest():
    smooth, _ = make_normal(3, bounds=(0.0, np.inf))
    masses = np.array([[0.3], [0.0], [1.0]])
    law = MixedLaw([0.0], masses, smooth, [0.1])
    got = transform_law(law, ValueMap(np.log1p, np.expm1))
    assert isinstance(got, MixedLaw)
    assert_array_equal(got.atoms, [0.0])
    assert_allclose(got.widths, np.log(1.05 / 0.95))
    z = np.tile([0.0, 0.5, 2.0], (3, 1))
    assert_allclose(got.cdf(z), law.cdf(np.expm1(z)), rtol=1e-9)
    assert_allclose(got.cdf_left(z), law.cdf_left(np.expm1(z)), rtol=1e-9)
    # Half the cell of the atom lies where the root is not defined.
    got = transform_law(law, ValueMap(np.sqrt, np.square))
    assert_allclose(got.widths, 2.0 * np.sqrt(0.05))
    assert np.isfinite(got.moments()).all()


def test_rows_are_alone(normal):
    got = transform_law(normal[0], EXP)
    rows = np.array([2, 0])
    part, z = got.take(rows), np.array([[0.3, 2.0]] * 3)
    assert_array_equal(part.crps(z[rows]), got.crps(z)[rows])
    assert_array_equal(part.moments(), got.moments()[rows])
    y, masses = got.nodes()
    assert_allclose(masses.sum(axis=1), 1.0)
    assert_allclose((masses * y).sum(axis=1), got.moments()[:, 0], rtol=1e-9)
    none = transform_law(normal[0].take(slice(0, 0)), EXP)
    assert none.moments().shape == (0, 4)
    assert none.cdf(np.empty((0, 2))).shape == (0, 2)
    assert none.entropy().shape == none.mode().shape == (0,)


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_a_logarithm_that_goes_on_straight(shift):
    y = np.array([0.01, 1.0, 7.9, 8.0, 8.1, 1e3])
    log, exp = LogOf(shift, 8.0), ExpLess(shift, 8.0)
    z = log(y)
    np.testing.assert_allclose(z[:4], np.log(y[:4] + shift))
    np.testing.assert_allclose(np.diff(z[3:]), np.diff(y[3:]) / (8.0 + shift))
    np.testing.assert_allclose(exp(z), y, rtol=1e-12)
    step = 1e-6
    np.testing.assert_allclose(
        exp.derivative(z), (exp(z + step) - exp(z - step)) / (2.0 * step), rtol=1e-5
    )


def test_pickled_with_its_functions(normal):
    got = transform_law(normal[0], EXP)
    again = pickle.loads(pickle.dumps(got))
    assert_array_equal(again.moments(), got.moments())


@pytest.mark.parametrize(
    ("func", "inverse", "message"),
    [
        (np.square, np.sqrt, "`func` must increase strictly, got"),
        (np.negative, np.negative, "`func` must increase strictly, got"),
        (np.floor, np.floor, "`func` must increase strictly, got"),
        (np.log, np.exp, "`func` must be finite wherever the distribution has"),
        (np.exp, np.log1p, r"`inverse` must undo `func`, got func\("),
        (np.arcsinh, np.negative, r"`inverse` must undo `func`"),
        (lambda y: y.sum(), np.log, r"`func` must return an array of the shape"),
        (np.exp, lambda z: z[0], r"`inverse` must return an array of the shape"),
        (lambda y: y if y > 0 else -y, np.log, "`func` must take an array and return"),
    ],
)
def test_functions_that_cannot_be_are_refused(normal, func, inverse, message):
    with pytest.raises(ValueError, match=message):
        transform_law(normal[0], ValueMap(func, inverse))


def test_what_is_no_function_is_refused(normal):
    with pytest.raises(TypeError, match="`func` must be callable, got str"):
        ValueMap("exp", np.log)
    with pytest.raises(TypeError, match="`inverse` must be callable, got NoneType"):
        ValueMap(np.exp, None)
    with pytest.raises(TypeError, match="`derivative` must be callable, got int"):
        ValueMap(np.exp, np.log, 3)
    with pytest.raises(ValueError, match="`derivative` must be that of `func`, got"):
        transform_law(normal[0], ValueMap(np.exp, np.log, np.reciprocal))
    law = DiscreteLaw([0.0, 1.0], [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"`func` must be finite .* got -inf at 0"):
        transform_law(law, ValueMap(np.log, np.exp))
    with pytest.raises(ValueError, match="`func` must increase strictly"):
        transform_law(law, ValueMap(np.zeros_like, np.zeros_like))
    with pytest.raises(TypeError, match="`law` must be a law without jumps"):
        TransformedLaw(law, EXP)


@pytest.mark.parametrize("share", [0.1, 0.3341, 0.5, 0.9])
def test_members_between_which_nothing_is(normal, share):
    """Quantiles of X leap from one to the other within a panel, or between two."""
    base, one = normal[0].base, np.ones((1, 1))
    members = [
        SplineLaw([center], [scale], [0.0], 0.0 * one, one, base)
        for center, scale in ((0.0, 1.0), (15.0, 0.4))
    ]
    law = PooledLaw(members, [share, 1.0 - share], "linear")
    bend = ValueMap(lambda x: np.arcsinh(x - 7.0), lambda z: 7.0 + np.sinh(z))
    got = transform_law(law, bend)
    grid = np.linspace(-4.0, 4.0, 400_001)
    z, dz = 0.5 * (grid[1:] + grid[:-1]), grid[1] - grid[0]
    cdf = got.cdf(z[None])[0]
    y = got.ppf(np.array([[0.02, 0.5 * share, share + 0.01, 0.98]]))
    below, above = got.partial_means(y)
    under = [dz * cdf[z < value].sum() for value in y[0]]
    over = [dz * (1.0 - cdf[z >= value]).sum() for value in y[0]]
    assert_allclose(below[0], under, rtol=1e-3, atol=1e-3)
    assert_allclose(above[0], over, rtol=1e-3, atol=1e-3)
    crps = [dz * ((cdf - (z >= value)) ** 2).sum() for value in y[0]]
    assert_allclose(got.crps(y)[0], crps, rtol=1e-3, atol=1e-3)
    mean = 4.0 - dz * cdf.sum()
    assert_allclose(got.moments()[0, 0], mean, atol=1e-3)


def test_rows_of_few_and_of_many_panels_are_as_if_alone(normal):
    base, one = normal[0].base, np.ones((3, 1))
    members = [
        SplineLaw(centers, [1.0] * 3, [0.0], 0.0 * one, one, base)
        for centers in ([0.0, 0.0, 0.0], [0.0, 30.0, 8.0])
    ]
    law = transform_law(PooledLaw(members, [0.4, 0.6], "linear"), ARCSINH)
    y = law.ppf(np.tile([0.1, 0.5, 0.9], (3, 1)))
    for i in range(3):
        alone = law.take(slice(i, i + 1))
        assert_allclose(law.crps(y)[i], alone.crps(y[[i]])[0], rtol=1e-10)
        assert_allclose(law.moments()[i], alone.moments()[0], 1e-9, 1e-12)
        assert_allclose(law.entropy()[i], alone.entropy()[0], rtol=1e-9)
        assert_allclose(law.mode()[i], alone.mode()[0], rtol=1e-6)


def test_slopes_where_few_floats_are_left():
    """So near a bound rises of one or two floats agree by accident."""
    middle, width = -0.0302859, 3.6e-6
    values = ValueMap(
        lambda x: middle + width * np.arcsinh((x - middle) / width), np.tan
    )
    high = -0.030284302534843464
    away = np.geomspace(1e-14, 1e-7, 400)
    x = (high - away)[None]
    room = np.minimum(1e-9 * width + 64.0 * np.spacing(np.abs(x)), away)
    got = values.log_slope(x, room)
    want = -0.5 * np.log1p(((x - middle) / width) ** 2)
    assert_allclose(got, want, atol=0.1)
