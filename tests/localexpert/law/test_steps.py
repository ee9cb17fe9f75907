"""Steps from law to law: levels and values mapped, bounds, and given means."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import digamma, expit, logit, ndtr, ndtri, polygamma

from localexpert import PredictiveDistribution
from localexpert.law.level_map import (
    LevelMap,
    clip,
    cut,
    fold,
    log_rate,
    map_levels,
    recentre,
)
from localexpert.law.transform import ValueMap, lattice_as_atoms, transform_law
from tests.forecasts import beside, normal
from tests.localexpert.law import kinds

X = np.array([-1.0, 0.0, 1.0])
BENT = LevelMap.through(X, np.array([-1.1, 0.2, 1.3]), np.array([1.1, 1.2, 1.1]))
WIDE = LevelMap.through(X, np.array([-0.7, 0.0, 0.8]), np.array([0.7, 0.8, 0.8]))


@kinds.every
def test_the_identity_returns_the_very_same_law(name):
    law = kinds.KINDS[name]
    assert map_levels(law, LevelMap.line(0.0)) is law
    assert map_levels(law, LevelMap.through(X, X, np.ones(3))) is law
    bent = LevelMap.through(X, X, np.array([1.0, 0.5, 1.0]))
    assert map_levels(law, bent) is not law


@pytest.mark.parametrize("number", [(0, 0, 0), (1, 0, 1)], ids=["one", "each its own"])
@kinds.every
def test_levels_are_mapped(name, number):
    law, levels = kinds.KINDS[name], LevelMap.by_row([BENT, WIDE], np.array(number))
    found = map_levels(law, levels)
    y = kinds.places_of(law)
    # Between 91 scores curves are not exact; those beside atoms have kinks there.
    bar = 1e-12 if name == "discrete" else 1e-3
    for left in (False, True):
        below, above = law.levels(y, left=left)
        got = found.levels(y, left=left)
        assert_allclose(got[0], levels(below), rtol=0.0, atol=bar)
        assert_allclose(got[1], 1.0 - levels(1.0 - above), rtol=0.0, atol=bar)
    assert found.support == law.support
    both = map_levels(law.take([2]), levels.take([2]))
    assert_allclose(both.cdf(y[2:]), found.cdf(y)[2:], atol=1e-12)


@kinds.every
def test_ten_maps_there_and_back_do_not_widen_a_law(name):
    law = found = kinds.KINDS[name]
    for _ in range(10):
        found = map_levels(found, LevelMap.line(0.3, 1.2))
        found = map_levels(found, LevelMap.line(-0.25, 1.0 / 1.2))
    before, after = law.moments(), found.moments()
    sd = np.sqrt(before[:, 1])
    # Beside atoms a curve has kinks, where each reading leaves something.
    bar = 2e-4 if name == "mixed" else 1e-4
    assert_allclose(after[:, 0], before[:, 0], rtol=0.0, atol=bar * sd.max())
    assert_allclose(np.sqrt(after[:, 1]), sd, rtol=bar, atol=1e-6)
    if name in kinds.SMOOTH:
        error = (found.ppf(kinds.LEVELS) - law.ppf(kinds.LEVELS)) / sd[:, None]
        assert_allclose(error, 0.0, atol=2e-3)


def test_maps_of_levels_themselves(rng):
    p = np.append(rng.uniform(size=20), [0.0, 1e-300, 1e-12, 1.0])
    assert_allclose(LevelMap.line(0.4, 1.5)(p), ndtr(0.4 + 1.5 * ndtri(p)), rtol=1e-10)
    z = np.linspace(-9.0, 9.0, 181)[None]
    h, log_slopes = BENT.forward(z)
    assert_allclose(BENT.inverse(h), z, atol=1e-9)
    # Beyond a further piece at each end the slope is 1.
    assert_allclose(log_slopes[np.abs(z) > 2.0], 0.0, atol=1e-12)
    assert_allclose(h[0, [0, -1]], [-9.1, 9.3])
    assert BENT.take(slice(0, 1)) is BENT


def test_moments_that_do_not_exist_do_not_come_to_be():
    law = PredictiveDistribution.from_scipy(stats.t([1.0, 1.5, 3.5])).law
    before, after = law.moments(), map_levels(law, WIDE).moments()
    assert_array_equal(np.isfinite(before), np.isfinite(after))


@pytest.mark.parametrize(("atom", "slope"), [(0.0, 0.3), (-5.0, 1.6)])
def test_modes_beside_atoms_are_where_there_is_probability(atom, slope):
    # A tail of steps that rounding made flat is no peak. Atoms are in wide cells.
    levels = LevelMap.line(0.0, slope)
    law = beside(normal([0.3], 1.0), [atom], np.array([[0.3]]), [9.0]).law
    y = np.linspace(-4.0, 4.0, 8001)[None]
    y = y[:, np.abs(y[0] - atom) > 1e-3]
    scores = law.scores(y)
    density = law.logpdf(y) + log_rate(scores, *levels.forward(scores))
    mode = map_levels(law, levels).mode()[0]
    assert abs(mode) < 4.0
    assert density.max() - np.interp(mode, y[0], density[0]) < 0.1


@kinds.every
def test_modes_are_the_likeliest_values_or_where_the_density_is_greatest(name):
    dist = kinds.FORECASTS[name]
    levels = np.tile(np.linspace(1e-4, 1.0 - 1e-4, 5001)[:, None], 3)
    y = np.vstack([dist.ppf(levels), np.tile(dist.atoms[:, None], 3)])
    all_values = name in {*kinds.LATTICES, "discrete"}
    asked = dist.pmf if all_values else dist.logpdf
    if name != "share":  # of which a density is infinite at the bound
        assert (asked(dist.mode()) >= asked(y).max(axis=0) - 1e-5).all()


@kinds.every
@pytest.mark.parametrize("step", [-0.3, 0.0, 0.3])
def test_means_are_those_asked_for(name, step):
    law = kinds.KINDS[name]
    mean, variance = law.moments()[:, :2].T
    goal = mean + step * np.sqrt(variance)
    goal = np.where(goal > law.support[0], goal, mean)
    moved = recentre(law, goal)
    bar = 1e-6 if name not in kinds.LATTICES else 1e-3
    assert_allclose(moved.moments()[:, 0], goal, atol=bar)
    if name == "smooth":
        shift = (goal - mean)[:, None]
        want = law.ppf(kinds.LEVELS) + shift
        assert_allclose(moved.ppf(kinds.LEVELS), want, rtol=1e-12)
        return
    assert moved.support == law.support
    alone = recentre(law.take([1]), goal[[1]])
    assert_allclose(alone.moments()[0], moved.moments()[1], rtol=1e-9, atol=1e-12)


def test_what_cannot_be_reached_is_approached():
    far = recentre(kinds.KINDS["discrete"], np.array([9.0, -9.0, 3.0])).moments()[:, 0]
    assert_allclose(far, [5.0, 1.0, 1.0], atol=0.02)


CURVED = ValueMap(
    lambda y: y + 0.5 * np.sqrt(1.0 + y * y),
    lambda z: (2.0 * z - np.sqrt(z * z + 0.75)) / 1.5,
)


@kinds.every
def test_levels_stay_with_values(name):
    law = kinds.KINDS[name]
    found, y = transform_law(law, CURVED), kinds.places_of(law)
    for method in ("cdf", "cdf_left"):
        got = getattr(found, method)(CURVED.func(y))
        assert_allclose(got, getattr(law, method)(y), rtol=0.0, atol=1e-3)
    want = CURVED.func(law.ppf(kinds.LEVELS))
    assert_allclose(found.ppf(kinds.LEVELS), want, atol=2e-3)
    if name == "mixed":
        sides = CURVED.func(np.array([[-0.05, 0.05], [0.95, 1.05]]))
        assert_allclose(found.widths, np.diff(sides)[:, 0])
        with pytest.raises(ValueError, match="`func` must be finite wherever the"):
            transform_law(law, ValueMap(np.log, np.exp))


def test_an_affine_function_rounds_ends_as_it_does_values():
    func = ValueMap(lambda y: 0.4 * y + 3.0, lambda z: (z - 3.0) / 0.4)
    for high in np.linspace(0.5, 1.5, 21):
        law = PredictiveDistribution.from_scipy(stats.uniform([0.1], high - 0.1)).law
        ends = np.array([law.support])
        found = transform_law(law, func).logpdf(func.forward(ends))
        assert_allclose(found, law.logpdf(ends) - np.log(0.4), atol=1e-9)
        clipped, end = clip(normal([0.0]).law, -0.1, high, 0.1), np.array([[high]])
        found = transform_law(clipped, func)
        for method in ("cdf", "cdf_left", "mass_at"):
            got = getattr(found, method)(func.forward(end))
            assert_allclose(got, getattr(clipped, method)(end), rtol=1e-9)


@pytest.mark.parametrize(
    ("func", "inverse"),
    [
        (np.exp, np.log),
        (np.expm1, np.log1p),
        (np.sinh, np.arcsinh),
        (lambda f: (f - 32.0) * 5.0 / 9.0, lambda c: c * 9.0 / 5.0 + 32.0),
    ],
)
def test_values_stay_where_they_were_before_they_were_mapped(func, inverse):
    values = np.array([0.1, 0.3, 3.0, 9.7, 14.29, 1234.56])
    x, masses = inverse(values), np.full((1, 6), 0.1)
    for dist in (
        PredictiveDistribution.from_arrays(atoms=x, masses=masses / 0.6),
        beside(normal(x[2:3]), x, masses, 0.01 * np.diff(x, append=x[-1] + 1.0)),
    ):
        assert_array_equal(dist.transform(func, inverse).atoms, values)
    clipped = PredictiveDistribution(clip(normal(x[2:3]).law, x[2], x[3], 0.1))
    assert clipped.transform(func, inverse).law.support == (3.0, 9.7)
    assert clipped.transform(func, inverse).ppf(1e-6) == 3.0


@pytest.mark.parametrize("shape", [stats.gamma(0.1), stats.beta(0.1, 0.5)])
def test_values_next_to_a_bound_may_become_one(shape):
    dist = PredictiveDistribution.from_scipy(shape)
    for shift in (20.0, 1e9):
        moved = dist.transform(partial(np.add, shift), partial(np.add, -shift))
        for method in ("mean", "median", "mode"):
            away = getattr(moved, method)() - shift
            assert_allclose(away, getattr(dist, method)(), atol=1e-6)
        assert_allclose(moved.entropy(), dist.entropy(), atol=1e-6)
    squares = dist.transform(lambda y: (y + 1.0) ** 2, lambda z: np.sqrt(z) - 1.0)
    assert_allclose(squares.cdf(1.44), dist.cdf(0.2), atol=1e-4)
    for func in (np.negative, np.rint, np.zeros_like, lambda y: np.minimum(y, 0.1)):
        with pytest.raises(ValueError, match="`func` must increase strictly"):
            dist.transform(func, lambda z: z)


def test_shares_that_rounding_puts_at_1_have_log_odds():
    shares = stats.beta([2.0], 0.4)
    found = PredictiveDistribution.from_scipy(shares).transform(logit, expit)
    # Log-odds of a share are a difference of logarithms of two gamma variables.
    assert_allclose(found.mean(), digamma(2.0) - digamma(0.4), rtol=1e-4)
    assert_allclose(found.var(), polygamma(1, 2.0) + polygamma(1, 0.4), rtol=1e-3)
    levels = np.array([1e-6, 0.01, 0.5, 0.9, 0.999])
    assert_allclose(found.quantiles(levels)[0], logit(shares.ppf(levels)), atol=1e-3)


@pytest.mark.parametrize("name", kinds.LATTICES)
def test_affine_functions_of_a_lattice_are_exact_far_out(name):
    law = kinds.KINDS[name]
    y = np.hstack([kinds.places_of(law), law.offset + law.step * np.full((3, 1), 90.0)])
    found = transform_law(law, ValueMap(lambda y: 3.0 * y + 2.0, lambda z: (z - 2) / 3))
    assert found.step == pytest.approx(3.0 * law.step)
    for method in ("cdf", "cdf_left", "sf"):
        got = getattr(found, method)(3.0 * y + 2.0)
        assert_allclose(got, getattr(law, method)(y), rtol=1e-9, atol=1e-300)
    assert_allclose(found.logpdf(3.0 * y + 2.0), law.logpdf(y) - np.log(3.0))
    with pytest.raises(ValueError, match="`inverse` must undo `func`"):
        transform_law(law, ValueMap(lambda y: 3.0 * y, lambda z: z))
    assert len(transform_law(law.take(slice(0)), ValueMap(np.exp, np.log))) == 0


def test_long_tails_of_many_rows_join_the_same_values():
    center = np.linspace(0.0, 60.0, 200)
    smooth = PredictiveDistribution.from_scipy(stats.t(3.5, center, 20.0))
    arrays = smooth.to_arrays() | {"step": 1.0, "moments": None}
    dist = PredictiveDistribution.from_arrays(**arrays)
    moved = dist.transform(np.arcsinh, np.sinh)
    assert_allclose(moved.mean(), dist.expect(np.arcsinh), atol=1e-5)
    assert_allclose(moved.cdf(np.arcsinh(33.5)), dist.cdf(33.5), rtol=1e-9)
    total = dist.total()
    assert_allclose(total.mean(), center.sum(), atol=1e-3 * total.std()[0])
    assert_allclose(total.var(), dist.var().sum(), rtol=1e-3)


@pytest.mark.parametrize("kind", ["atom", "end"])
def test_values_of_their_own_stay_where_long_tails_are_joined(kind):
    rows, far = 60, 54321.0
    center, spread = np.linspace(0.0, 3000.0, rows), np.linspace(500.0, 30000.0, rows)
    law = PredictiveDistribution.from_scipy(stats.norm(center, spread)).law
    own = {"atoms": np.array([far]), "masses": np.full((rows, 1), 0.3)}
    own = own | {"widths": np.ones(1)} if kind == "atom" else {"ends": (-np.inf, far)}
    dist = PredictiveDistribution(replace(law, step=1.0, known=None, **own))
    moved = dist.transform(np.cbrt, lambda z: z**3)
    near = moved.prob_between(np.cbrt(far - 0.5), np.cbrt(far + 0.5))
    # Values beside it may be joined with an end, as it is far out.
    assert_allclose(near, dist.pmf(far), atol=2e-3)
    assert_allclose(moved.sf(np.cbrt(far) + 1e-9), dist.sf(far), atol=2e-3)


# Bounds that hold some of every row; of a lattice they are its values.
INNER = {
    "share": (0.2, 0.7),
    "discrete": (0.5, 5.0),
    "lattice": (-0.9, 2.1),
    "counts": (1.0, 4.0),
}
sides = pytest.mark.parametrize("open_side", [None, 0, 1], ids=["both", "high", "low"])


def ends_of(name, open_side):
    low, high = INNER.get(name, (-0.75, 2.25))
    return -np.inf if open_side == 0 else low, np.inf if open_side == 1 else high


@sides
@kinds.every
def test_what_is_cut_off_is_made_whole(name, open_side):
    law = kinds.KINDS[name] if name != "clipped" else kinds.KINDS["clipped"].clipped
    low, high = ends_of(name, open_side)
    found, y = cut(law, low, high), np.clip(kinds.places_of(law), low, high)
    below = law.cdf_left(np.full((3, 1), low))
    whole = law.cdf(np.full((3, 1), high)) - below
    for method in ("cdf", "cdf_left"):
        want = np.clip((getattr(law, method)(y) - below) / whole, 0.0, 1.0)
        assert_allclose(getattr(found, method)(y), want, rtol=0.0, atol=1e-3)
    assert found.support[0] >= low
    assert found.support[1] <= high


@sides
@pytest.mark.parametrize("name", [name for name in kinds.KINDS if name != "discrete"])
def test_what_is_clipped_is_at_the_bounds(name, open_side):
    law, (low, high) = kinds.KINDS[name], ends_of(name, open_side)
    found, y = clip(law, low, high, 0.2), kinds.places_of(law)
    want = np.where(y < low, 0.0, np.where(y >= high, 1.0, law.cdf(y)))
    assert_allclose(found.cdf(y), want, rtol=0.0, atol=1e-12)
    levels = np.tile((np.arange(200_000) + 0.5) / 200_000, (3, 1))
    every_y = law.ppf(levels)
    values, sd = np.clip(every_y, low, high), every_y.std(axis=1)
    mean, variance = found.moments()[:, :2].T
    assert_allclose((mean - values.mean(axis=1)) / sd, 0.0, atol=1e-3)
    assert_allclose(np.sqrt(variance) / sd, values.std(axis=1) / sd, atol=2e-3)
    at = np.clip(y, low, high)[:, ::3]
    losses = np.abs(values[:, None] - at[:, :, None]).mean(axis=2)
    spread = (values * (2.0 * levels - 1.0)).mean(axis=1)
    error = found.crps(at) - (losses - spread[:, None])
    assert_allclose(error / sd[:, None], 0.0, atol=2e-3)
    if name not in kinds.LATTICES and np.isfinite(low):
        end = np.full((3, 1), low)
        assert_allclose(found.pdf(end), law.cdf(end) / 0.2, rtol=1e-6)


@kinds.every
def test_bounds_that_hold_all_change_nothing(name):
    law = kinds.KINDS[name]
    assert clip(law, *law.support, 1.0) is clip(law, -np.inf, np.inf, 1.0) is law
    if name != "discrete":
        assert cut(law, -np.inf, np.inf) is law


@sides
@pytest.mark.parametrize("power", [1.0, 2.0])
@kinds.smooth
def test_what_lies_beyond_is_laid_inside(name, power, open_side):
    law, (low, high) = kinds.KINDS[name], ends_of(name, open_side)
    found = fold(law, low, high, power)
    p = np.linspace(0.001, 0.999, 99)
    want, outside = law.ppf(np.tile(p, (3, 1))), np.zeros((2, 3, 1))
    for side, (end, above) in enumerate([(low, 0), (high, 1)]):
        outside[side] = law.levels(np.full((3, 1), end))[above]
    for side, (end, level) in enumerate([(low, p), (high, 1.0 - p)]):
        most = 0.5 * (1.0 + outside[side] - outside[1 - side])
        upto = np.minimum(2.0 * outside[side], most)
        if np.isfinite(end) and (upto > 0.0).any():
            far = law.ppf(1.0 - upto if side else upto)
            share = (level / np.maximum(upto, 1e-300)) ** power
            want = np.where(level < upto, end + (far - end) * share, want)
    # There are kinks, which curves of 91 scores round off.
    assert_allclose(found.cdf(want), np.tile(p, (3, 1)), rtol=0.0, atol=0.012)
    assert found.support[0] >= low
    assert found.support[1] <= high
    assert fold(law, -np.inf, np.inf, power) is law


def test_a_row_beyond_a_bound_is_laid_at_it():
    law = normal(np.array([-50.0, 1.0]), np.array([1.0, 1.0])).law
    y = fold(law, 0.0, np.inf, 1.0).ppf(np.tile([0.01, 0.5, 0.99], (2, 1)))
    assert_allclose(y[0], 0.005, atol=0.005)
    assert_allclose(y[1, 1:], law.ppf(np.tile([0.5, 0.99], (2, 1)))[1], rtol=1e-3)


@pytest.mark.parametrize("ends", [(0.3, np.inf), (-np.inf, 0.6)])
def test_laws_far_from_0_are_laid_inside_alike(ends):
    laws = [
        PredictiveDistribution.from_scipy(stats.uniform([at])).law for at in (0, 1e3)
    ]
    near, far = fold(laws[0], *ends, 1.0), fold(laws[1], *np.add(ends, 1e3), 1.0)
    assert_allclose(far.entropy(), near.entropy(), atol=1e-6)


def test_bounds_without_any_probability_are_refused():
    with pytest.raises(ValueError, match="`bounds` must hold some of the probability"):
        cut(kinds.KINDS["smooth"], 400.0, 500.0)


@pytest.mark.parametrize("scale", [30.0, 300.0, 3000.0])
def test_wide_lattices_are_sums_over_their_values(scale):
    curve = PredictiveDistribution.from_scipy(stats.gamma(2.0, scale=[scale])).law
    law = replace(curve, step=0.1, known=None, ends=(0.3, np.inf))
    dist, y = PredictiveDistribution(law), np.arange(3, int(400 * scale)) / 10.0
    p, upto = dist.pmf(y[:, None])[:, 0], dist.cdf(y[:, None])[:, 0]
    mean, median = p @ y, dist.median()
    assert_allclose(dist.mean(), mean, rtol=1e-8)
    assert_allclose(dist.var(), p @ (y - mean) ** 2, rtol=2e-6)
    assert_allclose(dist.expected_abs_error(), p @ np.abs(y - median), rtol=1e-8)
    assert_allclose(dist.expected_crps(), 0.1 * upto @ (1.0 - upto), rtol=5e-6)
    atoms = dist.transform(np.arcsinh, np.sinh)
    assert_allclose(atoms.mean(), p @ np.arcsinh(y), rtol=1e-5)
    # The values are decimals as they are written.
    assert np.isin(dist.ppf(np.linspace(0.01, 0.9, 90)[:, None]), y).all()
    found = lattice_as_atoms(law)
    assert np.isin(found.atoms[found.masses[0] > 0.0], y).all()
