"""Recalibrated laws against brute force: CDFs mapped by scipy, sums on fine grids."""

import pickle

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from localexpert.curves.base_cdf import BaseCDF
from localexpert.laws import DiscreteLaw, MixedLaw, SplineLaw
from localexpert.laws.recalibrated import recalibrate_law
from localexpert.laws.score_map import ProbitMap
from tests.fuzz.laws import draw_law

INF = np.inf
N_ROWS = 4
GRID = np.linspace(-13.0, 13.0, 12_001)


def spline_law(kind, bounds=(-INF, INF), shape=0.1):
    """Rows of one shape, shifted, scaled, sharpened and a little bent."""
    rng = np.random.default_rng(3)
    draws = {
        "gaussian": rng.normal(size=4000),
        "skewed": rng.gamma(2.0, size=4000),
        "bimodal": np.append(rng.normal(-3, 0.6, 2000), rng.normal(2, 1.0, 2000)),
    }[kind]
    base = BaseCDF.fit(draws)
    base = BaseCDF(base.points, base.levels, base.slopes, (shape, shape))
    knots = np.linspace(-2.0, 2.0, 9)
    bend = 0.15 * rng.normal(size=(N_ROWS, 1)) * np.sin(2.0 * knots)
    steep = np.array([[1.0], [1.3], [0.9], [2.5]])
    values = rng.normal(size=(N_ROWS, 1)) * 0.4 + steep * knots + bend
    chords = np.diff(values, axis=1) / np.diff(knots)
    slopes = np.column_stack([chords[:, :1], chords])
    slopes[:, 1:-1] = np.minimum(chords[:, :-1], chords[:, 1:])
    slopes[:, [0, -1]] = np.maximum(slopes[:, [0, -1]], 0.9)
    center, scale = np.array([0.0, 5.0, -2.0, 0.5]), np.array([1.0, 3.0, 0.1, 2.0])
    return SplineLaw(center, scale, knots, values, slopes, base, bounds)


def mixed_law(kind="skewed", atoms=(0.0, 2.5)):
    masses = np.array([[0.3, 0.1], [0.05, 0.0], [0.6, 0.2], [0.0, 0.02]])
    return MixedLaw(atoms, masses, spline_law(kind), [0.1, 0.2])


LAWS = {
    "gaussian": lambda: spline_law("gaussian"),
    "skewed": lambda: spline_law("skewed"),
    "bimodal": lambda: spline_law("bimodal"),
    "bounded": lambda: spline_law("gaussian", (-1.5, 9.0)),
    "mixed": mixed_law,
    "mixed bimodal": lambda: mixed_law("bimodal"),
    "rain": lambda: mixed_law(atoms=(-1e6, 0.5)),
}
every_law = pytest.mark.parametrize("name", LAWS)


def bent_map(n_knots=9, seed=0, roughness=0.3):
    rng = np.random.default_rng(seed)
    knots = np.linspace(-2.4, 2.4, n_knots)
    chords = np.exp(roughness * rng.normal(size=n_knots - 1))
    values = np.concatenate([[0.0], np.cumsum(chords * np.diff(knots))])
    values -= values[n_knots // 2] - 0.2
    beside = np.concatenate([chords[:1], chords, chords[-1:]])
    slopes = 2.0 / (1.0 / beside[:-1] + 1.0 / beside[1:])
    return ProbitMap.through(knots, values, slopes)


MAPS = {"bent": bent_map(), "rough": bent_map(31, 1, 0.2)}
every_map = pytest.mark.parametrize("map_name", MAPS)


def mapped(one, scores):
    """h(scores) by scipy; tails are proportional beyond the knots."""
    scores = np.asarray(scores, dtype=float)
    inside = np.clip(scores, one.knots[0], one.knots[-1])
    h = CubicHermiteSpline(one.knots, one.values, one.slopes)(inside)
    for side, end in ((1, 0), (-1, -1)):
        out = side * scores < side * one.knots[end]
        factor = log_ndtr(side * one.values[end]) - log_ndtr(side * one.knots[end])
        h = np.where(out, side * ndtri_exp(log_ndtr(side * scores) + factor), h)
    return h


def true_cdf(law, one, y, side="cdf"):
    """G(F(y)) or G(F(y-)); where F is near 1 from 1 - F."""
    jump = law.cdf(y) - law.cdf_left(y) if side == "left" else 0.0
    low, high = law.cdf(y) - jump, law.sf(y) + jump
    return ndtr(mapped(one, np.where(low < high, ndtri(low), -ndtri(high))))


class Brute:
    """One recalibrated law on a fine grid of y, with both sides of each jump."""

    def __init__(self, law, one, extra=None):
        atoms = np.array([]) if isinstance(law, SplineLaw) else law.atoms
        smooth = law if isinstance(law, SplineLaw) else law.continuous
        n = len(law)
        grid = smooth.ppf_scores(np.tile(GRID, (n, 1)))
        points = [grid, np.tile(np.repeat(atoms, 2), (n, 1))]
        points += [] if extra is None else [np.repeat(extra, 2, axis=1)]
        y = np.hstack(points)
        first = np.zeros(y.shape, dtype=bool)
        first[:, grid.shape[1] :: 2] = True
        order = np.lexsort((~first, y), axis=1)
        self.y = np.take_along_axis(y, order, 1)
        first = np.take_along_axis(first, order, 1)
        left = true_cdf(law, one, self.y, "left")
        self.cdf = np.where(first, left, true_cdf(law, one, self.y))

    def moments(self):
        mass = np.diff(self.cdf, axis=1)
        middle = 0.5 * (self.y[:, 1:] + self.y[:, :-1])
        mean = (mass * middle).sum(axis=1)
        away = middle - mean[:, None]
        return np.column_stack([mean, *((mass * away**k).sum(1) for k in (2, 3, 4))])

    def integral(self, function):
        """Of function(F, y > y left of a cell) over y, by trapezes."""
        lower = function(self.cdf[:, :-1], self.y[:, :-1])
        upper = function(self.cdf[:, 1:], self.y[:, :-1])
        return (0.5 * (lower + upper) * np.diff(self.y, axis=1)).sum(axis=1)


def in_deviations(moments):
    return moments / moments[:, 1:2] ** (0.5 * np.arange(1, 5))


@every_law
@every_map
def test_cdf_and_sf_are_the_map_of_the_laws(name, map_name):
    law, one = LAWS[name](), MAPS[map_name]
    new = recalibrate_law(law, one)
    y = law.ppf(np.tile(np.linspace(1e-4, 1.0 - 1e-4, 401), (len(law), 1)))
    expected, left = true_cdf(law, one, y), true_cdf(law, one, y, "left")
    # Beside atoms the far tails of the continuous part are followed to first order.
    atol = 1e-7 if law.has_jumps else 1e-11
    np.testing.assert_allclose(new.cdf(y), expected, atol=atol)
    np.testing.assert_allclose(new.sf(y), 1.0 - expected, atol=atol)
    np.testing.assert_allclose(new.cdf_left(y), left, atol=atol)


@every_law
@every_map
def test_ppf_is_the_inverse(name, map_name):
    new = recalibrate_law(LAWS[name](), MAPS[map_name])
    q = np.tile(np.linspace(1e-5, 1.0 - 1e-5, 999), (len(new), 1))
    y = new.ppf(q)
    assert (np.diff(y, axis=1) >= 0.0).all()
    # P(Y < Q(q)) <= q <= P(Y <= Q(q)), equal where there is no jump.
    assert (new.cdf(y) >= q - 1e-6).all()
    assert (new.cdf_left(y) <= q + 1e-6).all()
    if not new.has_jumps:
        np.testing.assert_allclose(new.cdf(y), q, atol=1e-6)


@every_law
@every_map
def test_density_is_that_of_the_cdf(name, map_name):
    law, one = LAWS[name](), MAPS[map_name]
    new = recalibrate_law(law, one)
    brute = Brute(law, one)
    away = np.zeros(brute.y.shape)
    if new.has_jumps:  # step off the atoms, where the density is mass / width
        at_atom = np.isin(brute.y, law.atoms)
        away[at_atom] = 1e-6
        held = new.masses.sum(axis=1)
        atoms = np.tile(new.atoms, (len(new), 1))
        density = np.where(new.masses > 0, new.masses / new.widths, new.pdf(atoms))
        np.testing.assert_allclose(new.pdf(atoms), density, rtol=1e-9)
    else:
        held = 0.0
    f = new.pdf(brute.y + away)
    total = (0.5 * (f[:, 1:] + f[:, :-1]) * np.diff(brute.y, axis=1)).sum(axis=1)
    np.testing.assert_allclose(total + held, 1.0, atol=2e-4)


@every_law
@every_map
def test_crps_and_partial_means_equal_brute_force(name, map_name, rng):
    law, one = LAWS[name](), MAPS[map_name]
    new = recalibrate_law(law, one)
    n = len(new)
    for level in (rng.uniform(size=(n, 1)), np.full((n, 1), 0.999)):
        at = new.ppf(level)
        brute = Brute(law, one, at)
        inside = [
            brute.integral(function)
            for function in (
                lambda F, x, at=at: np.where(x < at, F**2, (1.0 - F) ** 2),
                lambda F, x, at=at: np.where(x < at, F, 0.0),
                lambda F, x, at=at: np.where(x < at, 0.0, 1.0 - F),
            )
        ]
        np.testing.assert_allclose(new.crps(at)[:, 0], inside[0], rtol=1e-4)
        below, above = new.partial_means(at)
        np.testing.assert_allclose(below[:, 0], inside[1], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(above[:, 0], inside[2], rtol=1e-4, atol=1e-6)


@every_law
@every_map
def test_moments_and_expectations_equal_brute_force(name, map_name):
    law, one = LAWS[name](), MAPS[map_name]
    new = recalibrate_law(law, one)
    got, expected = new.moments(), Brute(law, one).moments()
    shift = np.abs(got[:, 0] - expected[:, 0]) / np.sqrt(expected[:, 1])
    assert shift.max() < 1e-3
    got, expected = in_deviations(got)[:, 1:], in_deviations(expected)[:, 1:]
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)
    y, weights = new.nodes()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-9)
    shift = np.abs((y * weights).sum(axis=1) - new.moments()[:, 0])
    assert (shift < 2e-3 * np.sqrt(new.moments()[:, 1])).all()


def test_the_mode_lies_beside_a_jump_whose_place_is_rounded():
    # The density of this row falls, jumps up and falls on; its kink is two steps of a
    # float from where the jump is computed.
    law = draw_law(np.random.default_rng(6266))
    y = law.ppf(np.tile(np.linspace(0.2, 0.35, 20_001), (len(law), 1)))
    tall = law.logpdf(law.mode()[:, None])
    assert (tall >= law.logpdf(y).max(axis=1, keepdims=True) - 1e-6).all()


@every_law
def test_entropy_mode_and_regions(name):
    law, one = LAWS[name](), MAPS["bent"]
    new = recalibrate_law(law, one)
    y = Brute(law, one).y
    f = new.pdf(new.mode()[:, None])
    assert (f >= new.pdf(y).max(axis=1, keepdims=True) * (1.0 - 1e-4)).all()
    if not new.has_jumps:
        log_f, mass = new.logpdf(y), np.diff(new.cdf(y), axis=1)
        held = np.where(mass > 0.0, 0.5 * (log_f[:, 1:] + log_f[:, :-1]), 0.0)
        np.testing.assert_allclose(new.entropy(), -(mass * held).sum(1), atol=2e-3)
    for i, region in enumerate(new.densest_regions(np.full(len(new), 0.8))):
        row = new.take([i])
        ends = region.ravel()[None]
        inside = row.cdf(ends)[:, 1::2] - row.cdf_left(ends)[:, ::2]
        if not new.has_jumps:
            assert inside.sum() == pytest.approx(0.8, abs=0.01)
    found = new.shortest_interval(0.8)
    assert (new.cdf(found)[:, 1] - new.cdf_left(found)[:, 0] >= 0.8 - 1e-6).all()
    central = new.ppf(np.tile([0.1, 0.9], (len(new), 1)))
    assert (np.diff(found) <= np.diff(central) * (1.0 + 1e-6)).all()


@every_law
def test_the_identity_gives_the_same_numbers(name, rng):
    law = LAWS[name]()
    new = recalibrate_law(law, ProbitMap.identity())
    q = rng.uniform(size=(len(law), 7))
    y = law.ppf(q)
    for method in ("cdf", "sf", "cdf_left", "logpdf", "crps"):
        got, expected = getattr(new, method)(y), getattr(law, method)(y)
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-9, err_msg=method)
    np.testing.assert_allclose(new.ppf(q), y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(new.moments(), law.moments(), rtol=2e-5, atol=1e-9)
    np.testing.assert_allclose(new.entropy(), law.entropy(), atol=1e-3)


@pytest.mark.parametrize("name", ["gaussian", "skewed", "bimodal"])
def test_entropy_where_densities_jump(name):
    one = ProbitMap([-1.03, -0.2, 1.07], [-1.5, 0.4, 0.9], [0.3, 0.9, 0.6])
    new = recalibrate_law(LAWS[name](), one)
    scores = np.linspace(-8.3, 8.3, 40_002)
    at = new.ppf_scores(np.tile(0.5 * (scores[1:] + scores[:-1]), (N_ROWS, 1)))
    want = -(np.diff(ndtr(scores)) * new.logpdf(at)).sum(axis=1)
    # The cell in which the density jumps is worth 2e-5.
    np.testing.assert_allclose(new.entropy(), want, atol=4e-5)


def test_a_discrete_law_stays_one():
    rows = np.array([[0.2, 0.5, 0.3, 0.0], [1e-9, 0.0, 0.4, 0.6 - 1e-9]])
    law, one = DiscreteLaw([0.0, 1.0, 3.0, 7.0], rows), MAPS["bent"]
    new = recalibrate_law(law, one)
    assert type(new) is DiscreteLaw
    upto = ndtr(mapped(one, ndtri(law.cumulative)))
    np.testing.assert_allclose(new.cumulative, upto, atol=1e-12)
    assert (new.probabilities[rows == 0.0] == 0.0).all()
    # A small probability is small relative to itself: G there is a power law.
    expected = ndtr(mapped(one, ndtri(1e-9)))
    assert new.probabilities[1, 0] == pytest.approx(expected, rel=1e-6)
    same = recalibrate_law(law, ProbitMap.identity())
    np.testing.assert_allclose(same.probabilities, rows, rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize("y", [1e3, -1e3, 1e9])
@pytest.mark.parametrize("name", [name for name in LAWS if name != "bounded"])
def test_far_out_the_density_changes_by_a_constant_factor(name, y):
    law = LAWS[name]()
    new = recalibrate_law(law, MAPS["bent"])
    at = np.full((len(law), 1), y)
    got, before = new.logpdf(at), law.logpdf(at)
    assert np.isfinite(got).all()
    one = MAPS["bent"]
    side = -np.sign(y)
    end = 0 if y < 0 else -1
    expected = log_ndtr(side * one.values[end]) - log_ndtr(side * one.knots[end])
    # Beside atoms the factor is that of 5 deviations of the continuous part.
    atol = 3.0 if law.has_jumps else 1e-9
    np.testing.assert_allclose(got - before, expected, atol=atol)


def test_which_moments_are_finite_does_not_change():
    law = spline_law("gaussian", shape=0.45)
    new = recalibrate_law(law, MAPS["rough"])
    finite = np.isfinite(law.moments())
    assert not finite.all()
    assert finite[:, 0].all()
    np.testing.assert_array_equal(np.isfinite(new.moments()), finite)


@pytest.mark.parametrize("name", ["skewed", "mixed"])
def test_rows_are_taken_with_their_maps(name):
    law, number = LAWS[name](), np.array([0, 1, 1, 0])
    maps = [bent_map(9, seed) for seed in (0, 5)]
    new = recalibrate_law(law, ProbitMap.by_row(maps, number))
    y = law.ppf(np.tile([0.1, 0.4, 0.8], (4, 1)))
    for i in range(4):
        alone = recalibrate_law(law.take([i]), maps[number[i]])
        for law_i in (new.take([i]), pickle.loads(pickle.dumps(new)).take([i])):
            np.testing.assert_allclose(law_i.cdf(y[i : i + 1]), alone.cdf(y[i : i + 1]))
            np.testing.assert_allclose(law_i.crps(y[i : i + 1]), new.crps(y)[i : i + 1])
    assert len(new.take(slice(1, 3))) == 2
    assert new.support == law.support


def test_rows_and_columns_beyond_a_part_are_all_computed():
    one = spline_law("skewed")
    law = one.take(np.arange(1100) % N_ROWS)
    new = recalibrate_law(law, MAPS["bent"])
    y = law.ppf(np.tile(np.linspace(0.01, 0.99, 20), (len(law), 1)))
    scores = new.crps(y)
    np.testing.assert_array_equal(scores[:4], scores[1024:1028])
    np.testing.assert_allclose(scores[:4, 17:18], new.crps(y[:, 17:18])[:4], rtol=1e-6)
    np.testing.assert_array_equal(new.moments()[:4], new.moments()[1096:])
    assert len(recalibrate_law(law.take(slice(0, 0)), MAPS["bent"]).moments()) == 0


def test_a_row_without_continuous_part_is_left_with_its_atoms():
    law = MixedLaw(
        [0.0, 1.0], [[0.4, 0.6], [0.2, 0.8 - 1e-11]] * 2, spline_law("skewed"), [1, 1]
    )
    new = recalibrate_law(law, MAPS["bent"])
    first = ndtr(mapped(MAPS["bent"], ndtri(np.array([0.4, 0.2]))))
    np.testing.assert_allclose(new.masses[:2, 0], first, rtol=1e-8)
    assert np.isfinite(new.crps(np.zeros((4, 1)))).all()
    assert np.isfinite(new.moments()).all()


@pytest.mark.parametrize("side", [-1, 1])
def test_a_map_changes_levels_of_any_shape(side):
    one = MAPS["bent"]
    p = np.array([[0.0, 0.2], [0.5, 1.0]])
    np.testing.assert_allclose(one(p), ndtr(mapped(one, ndtri(p))), atol=1e-12)
    far = np.array([[side * 30.0]])
    assert one.inverse(one.forward(far)[0])[0, 0] == pytest.approx(side * 30.0)


@pytest.mark.parametrize(
    ("knots", "values", "slopes", "message"),
    [
        ([0.0, 1.0], [0.0, 0.0], [1.0, 1.0], "`values` must increase strictly, got a"),
        ([0.0, 1.0], [0.0, 0.2], [1.0, 1.0], "`slopes` must be positive and at most 3"),
        ([0.0, 1.0], [0.0, 1.0], [1.0, 0.0], "`slopes` must be positive and at most 3"),
        ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0], "`knots` must increase strictly"),
    ],
)
def test_maps_that_are_refused(knots, values, slopes, message):
    with pytest.raises(ValueError, match=message):
        ProbitMap(knots, values, slopes)


def test_laws_that_are_refused():
    with pytest.raises(TypeError, match="`law` must be a Law, got str"):
        recalibrate_law("law", MAPS["bent"])
    rows = ProbitMap.by_row([bent_map()], np.zeros(3, dtype=int))
    with pytest.raises(ValueError, match="`p` must be as long as the map, got 2 and 3"):
        rows(np.array([0.1, 0.2]))
    with pytest.raises(ValueError, match="`p` must"):
        bent_map()([1.5])


@pytest.mark.parametrize("shift", [4.5, 6.0])
def test_a_law_in_the_tail_of_the_one_that_is_mapped(shift):
    """Beside a bound, where panels for the law that is mapped are far too wide."""
    law = spline_law("gaussian", bounds=(-INF, 0.2)).take(slice(0, 1))
    scores = ProbitMap([-4.0, 4.0], [-4.0 - shift, 4.0 - shift], [1.0, 1.0])
    moved = recalibrate_law(law, scores)
    y = moved.ppf(np.array([[0.1, 0.5, 0.9]]))
    width = float(np.ptp(y))
    grid = 0.2 - np.geomspace(1e-6 * width, 1e6 * width, 100_001)[::-1]
    grid = np.append(grid, 0.2)
    cdf, steps = moved.cdf(grid[None])[0], np.diff(grid)
    middle = 0.5 * (cdf[1:] + cdf[:-1])
    below, above = moved.partial_means(y)
    under = [(steps * middle)[grid[1:] <= value].sum() for value in y[0]]
    over = [(steps * (1.0 - middle))[grid[1:] > value].sum() for value in y[0]]
    np.testing.assert_allclose(below[0], under, rtol=5e-3, atol=2e-3 * width)
    np.testing.assert_allclose(above[0], over, rtol=5e-3, atol=2e-3 * width)
    mass = np.diff(cdf)
    held = mass > 0.0
    entropy = -(mass * np.log(np.where(held, mass, 1.0) / steps)).sum()
    np.testing.assert_allclose(moved.entropy(), entropy, atol=5e-3)
