"""PooledLaw and pool_laws against members, dense sums and hand-made pools."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr, ndtri, xlogy

from localexpert.curves.base_cdf import BaseCDF
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.laws import DiscreteLaw, MixedLaw, SplineLaw
from localexpert.laws.join_laws import (
    can_pool_scores,
    pool_laws,
)
from localexpert.laws.pooled_law import PooledLaw
from localexpert.laws.recalibrated import RecalibratedLaw, recalibrate_law
from localexpert.laws.score_map import ProbitMap

KINDS = ("linear", "probit")
WIDER = ProbitMap([-2.0, 0.0, 2.0], [-1.6, 0.1, 1.7], [0.8, 0.85, 0.8])


def spline_law(seed, n=6):
    """Rows of a bent curve on a skewed base."""
    rng = np.random.default_rng(seed)
    base = BaseCDF.fit(rng.gamma(5.0, size=1500) - 5.0)
    knots = np.linspace(-2.0, 2.0, 5)
    values = np.cumsum(rng.uniform(0.6, 1.4, (n, 5)), axis=1)
    values -= values[:, [2]]
    slopes = rng.uniform(0.7, 1.3, (n, 5))
    center, scale = rng.normal(size=n), rng.uniform(0.5, 1.5, n)
    return SplineLaw(center, scale, knots, values, slopes, base)


@pytest.fixture(scope="module")
def laws():
    return [spline_law(seed) for seed in (1, 2, 3)]


WEIGHTS = np.array([0.5, 0.3, 0.2])


def dense(law, cuts):
    """Midpoints, steps (n, m): at 2000 scores of every member and at cuts (n, k)."""
    scores = np.tile(np.linspace(-8.2, 8.2, 2001), (len(law), 1))
    at = np.hstack([one.ppf_scores(scores) for one in law.members] + [cuts])
    at.sort(axis=1)
    return 0.5 * (at[:, 1:] + at[:, :-1]), np.diff(at, axis=1)


class TestExactly:
    def test_linear_pool_is_the_sum(self, laws, rng):
        y = rng.normal(0.0, 3.0, (6, 4))
        law = pool_laws(laws, WEIGHTS, "linear")
        for method in ("cdf", "sf", "pdf"):
            want = sum(
                w * getattr(one, method)(y)
                for w, one in zip(WEIGHTS, laws, strict=True)
            )
            assert_allclose(getattr(law, method)(y), want, rtol=1e-13)

    def test_probit_pool_is_the_sum_of_scores(self, laws, rng):
        y = rng.normal(0.0, 2.0, (6, 4))
        law = pool_laws(laws, WEIGHTS, "probit")
        z = sum(w * ndtri(one.cdf(y)) for w, one in zip(WEIGHTS, laws, strict=True))
        assert_allclose(law.cdf(y), ndtr(z), rtol=1e-10)
        assert_allclose(law.sf(y), ndtr(-z), rtol=1e-8)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("scores", [None, WIDER])
    def test_density_is_the_slope(self, laws, kind, scores, rng):
        y = rng.normal(0.0, 2.0, (6, 4))
        law = PooledLaw(laws, WEIGHTS, kind, scores)
        h = 1e-6
        slope = (law.cdf(y + h) - law.cdf(y - h)) / (2.0 * h)
        assert_allclose(law.pdf(y), slope, rtol=1e-4, atol=1e-8)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("scores", [None, WIDER])
    def test_quantiles_invert_the_cdf_in_both_tails(self, laws, kind, scores):
        law = PooledLaw(laws, WEIGHTS, kind, scores)
        z = np.tile(np.linspace(-8.0, 8.0, 33), (6, 1))
        y = law.ppf_scores(z)
        assert_allclose(law.cdf(y)[:, :17], ndtr(z)[:, :17], rtol=1e-10)
        assert_allclose(law.sf(y)[:, 16:], ndtr(-z)[:, 16:], rtol=1e-10)
        assert (np.diff(y, axis=1) > 0.0).all()

    def test_levels_zero_and_one_are_the_ends(self, laws):
        law = pool_laws(laws, WEIGHTS, "linear")
        q = np.tile([0.0, 0.5, 1.0], (6, 1))
        y = law.ppf(q)
        assert_array_equal(y[:, 0], -np.inf)
        assert_array_equal(y[:, 2], np.inf)
        assert_allclose(law.cdf(y)[:, 1], 0.5, rtol=1e-12)

    @pytest.mark.parametrize("kind", KINDS)
    def test_far_apart_members(self, kind):
        """Between two narrow members the linear pool is flat; scores meet halfway."""
        base = BaseCDF.fit(np.random.default_rng(0).normal(size=2000))
        one = np.ones((1, 1))
        pair = [
            SplineLaw([c], [0.01], [0.0], 0.0 * one, one, base) for c in (0.0, 100.0)
        ]
        law = pool_laws(pair, [0.5, 0.5], kind)
        q = np.array([[0.1, 0.49, 0.51, 0.9]])
        assert_allclose(law.cdf(law.ppf(q)), q, rtol=1e-9)

    def test_density_beside_members_that_underflow(self, laws):
        """No bump where one member's probability underflows and another's does not."""
        wide = SplineLaw(
            laws[0].center,
            40.0 * laws[0].scale,
            laws[0].knots,
            laws[0].values,
            laws[0].slopes,
            laws[0].base,
        )
        law = pool_laws([laws[0], wide], [0.9, 0.1], "probit")
        y = np.tile(np.linspace(-300.0, 300.0, 4001), (6, 1))
        mass = np.trapezoid(law.pdf(y), y, axis=1)
        assert_allclose(mass, 1.0, atol=0.02)
        far = law.pdf(np.tile(np.linspace(60.0, 300.0, 400), (6, 1)))
        assert (np.diff(far, axis=1) <= 0.0).all()


class TestIdentities:
    @pytest.mark.parametrize("kind", KINDS)
    def test_one_member_is_itself(self, laws, kind):
        assert pool_laws(laws[:1], [1.0], kind) is laws[0]
        assert pool_laws(laws, [0.0, 1.0, 0.0], kind) is laws[1]

    @pytest.mark.parametrize("kind", KINDS)
    def test_identical_members_are_one_of_them(self, laws, kind, rng):
        one = laws[0]
        law = pool_laws([one] * 3, WEIGHTS, kind)
        y = rng.normal(0.0, 2.0, (6, 3))
        for method in ("cdf", "sf", "pdf"):
            assert_allclose(getattr(law, method)(y), getattr(one, method)(y), rtol=1e-9)
        assert_allclose(law.crps(y), one.crps(y), rtol=2e-3)
        q = np.full((6, 1), 0.3)
        assert_allclose(law.ppf(q), one.ppf(q), rtol=1e-11)
        assert_allclose(law.moments()[:, :2], one.moments()[:, :2], rtol=1e-3)

    def test_the_identity_map_changes_nothing(self, laws, rng):
        law = pool_laws(laws, WEIGHTS, "linear")
        y = rng.normal(0.0, 2.0, (6, 3))
        same = recalibrate_law(law, ProbitMap.identity())
        assert isinstance(same, PooledLaw)
        assert_allclose(same.cdf(y), law.cdf(y), rtol=1e-9)

    def test_a_map_after_a_map_is_their_composition(self, laws, rng):
        law = pool_laws(laws, WEIGHTS, "probit")
        twice = recalibrate_law(recalibrate_law(law, WIDER), WIDER)
        y = rng.normal(0.0, 2.0, (6, 3))
        assert_allclose(twice.cdf(y), WIDER(WIDER(law.cdf(y))), rtol=1e-9)

    def test_a_map_of_one_member_is_a_recalibrated_law(self, laws, rng):
        y = rng.normal(0.0, 2.0, (6, 3))
        want = RecalibratedLaw(laws[0], WIDER)
        got = PooledLaw(laws[:1], [1.0], "probit", WIDER)
        for method in ("cdf", "sf", "pdf"):
            assert_allclose(
                getattr(got, method)(y), getattr(want, method)(y), rtol=1e-9
            )
        assert_allclose(got.crps(y), want.crps(y), rtol=2e-3)
        assert_allclose(got.moments(), want.moments(), rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scores", [None, WIDER])
class TestIntegrals:
    def test_crps_and_partial_means(self, laws, kind, scores, rng):
        law = PooledLaw(laws, WEIGHTS, kind, scores)
        y = rng.normal(0.0, 2.0, (6, 3))
        x, dx = dense(law, y)
        cdf = law.cdf(x)
        below, above = law.partial_means(y)
        for j in range(3):
            step = x >= y[:, [j]]
            assert_allclose(
                law.crps(y)[:, j], (dx * (cdf - step) ** 2).sum(axis=1), rtol=2e-3
            )
            want = (dx * np.where(step, 0.0, cdf)).sum(axis=1)
            assert_allclose(below[:, j], want, rtol=2e-3, atol=1e-5)
            want = (dx * np.where(step, 1.0 - cdf, 0.0)).sum(axis=1)
            assert_allclose(above[:, j], want, rtol=2e-3, atol=1e-5)

    def test_moments_nodes_and_entropy(self, laws, kind, scores):
        law = PooledLaw(laws, WEIGHTS, kind, scores)
        x, dx = dense(law, np.empty((6, 0)))
        mass = law.pdf(x) * dx
        mean = (mass * x).sum(axis=1)
        away = x - mean[:, None]
        central = [(mass * away**k).sum(axis=1) for k in (2, 3, 4)]
        want = np.column_stack([mean, *central])
        assert_allclose(law.moments(), want, rtol=6e-3, atol=6e-3)
        y, weights = law.nodes()
        assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
        assert_allclose((weights * y).sum(axis=1), mean, atol=5e-3)
        entropy = -(mass * law.logpdf(x)).sum(axis=1)
        assert_allclose(law.entropy(), entropy, atol=5e-3)
        highest = law.pdf(law.mode()[:, None])[:, 0]
        assert (highest >= 0.999 * law.pdf(x).max(axis=1)).all()

    def test_intervals_hold_what_they_say(self, laws, kind, scores):
        dist = PredictiveDistribution(PooledLaw(laws, WEIGHTS, kind, scores))
        low, high = dist.hdi(0.8).T
        assert_allclose(dist.cdf(high) - dist.cdf(low), 0.8, atol=1e-9)
        assert ((high - low) <= np.diff(dist.interval(0.8))[:, 0] + 1e-12).all()
        for i, regions in enumerate(dist.hdi_regions(0.8)):
            held = sum(float(dist.cdf(b)[i] - dist.cdf(a)[i]) for a, b in regions)
            assert held == pytest.approx(0.8, abs=0.02)


class TestJumps:
    VALUES = np.array([0.0, 1.0, 4.0])

    def discrete(self, rng, values, n=5):
        return DiscreteLaw(values, rng.dirichlet(np.ones(len(values)), n))

    def test_discrete_members_mix_exactly(self, rng):
        one = self.discrete(rng, self.VALUES)
        other = self.discrete(rng, np.array([1.0, 2.0]))
        law = pool_laws([one, other], [0.4, 0.6], "linear")
        assert_array_equal(law.values, [0.0, 1.0, 2.0, 4.0])
        want = np.zeros((5, 4))
        want[:, [0, 1, 3]] += 0.4 * one.probabilities
        want[:, [1, 2]] += 0.6 * other.probabilities
        assert_allclose(law.probabilities, want, rtol=1e-14)

    def test_discrete_members_pool_scores(self, rng):
        one, other = (self.discrete(rng, self.VALUES) for _ in range(2))
        law = pool_laws([one, other], [0.4, 0.6], "probit")
        z = 0.4 * ndtri(one.cumulative) + 0.6 * ndtri(other.cumulative)
        assert_allclose(law.cumulative, ndtr(z), rtol=1e-12)

    def mixed(self, seed, atoms=(0.0, 1.0), n=6):
        rng = np.random.default_rng(seed)
        masses = 0.3 * rng.dirichlet(np.ones(len(atoms)), n)
        widths = np.full(len(atoms), 0.1)
        return MixedLaw(np.array(atoms), masses, spline_law(seed, n), widths)

    def test_mixed_members_mix_exactly(self, laws, rng):
        pair = [self.mixed(4), self.mixed(5, (1.0,))]
        y = np.hstack([rng.normal(0.0, 2.0, (6, 3)), np.tile([0.0, 1.0], (6, 1))])
        law = pool_laws([*pair, laws[0]], WEIGHTS, "linear")
        members = [*pair, laws[0]]
        for method in ("cdf", "cdf_left", "sf"):
            want = sum(
                w * getattr(one, method)(y)
                for w, one in zip(WEIGHTS, members, strict=True)
            )
            assert_allclose(getattr(law, method)(y), want, rtol=1e-12, atol=1e-15)
        want = sum(
            w * one.pdf(y[:, :3]) for w, one in zip(WEIGHTS, members, strict=True)
        )
        assert_allclose(law.pdf(y[:, :3]), want, rtol=1e-12)
        below = [one.partial_means(y)[0] for one in members]
        assert_allclose(law.partial_means(y)[0], np.tensordot(WEIGHTS, below, 1))

    def test_mixed_pools_are_recalibrated_as_a_whole(self):
        law = pool_laws([self.mixed(4), self.mixed(5)], [0.5, 0.5], "linear")
        better = recalibrate_law(law, WIDER)
        y = np.tile([-1.0, 0.0, 0.5, 1.0, 2.0], (6, 1))
        assert_allclose(better.cdf(y), WIDER(law.cdf(y)), atol=1e-9)

    def test_probit_pools_need_members_alike(self, laws):
        pair = [self.mixed(4), laws[0]]
        assert not can_pool_scores(pair)
        assert can_pool_scores(laws)
        with pytest.raises(ValueError, match='`kind` must be "linear" for laws with'):
            pool_laws(pair, [0.5, 0.5], "probit")


class TestObject:
    @pytest.mark.parametrize("kind", KINDS)
    def test_rows_and_pickle(self, laws, kind):
        law = pool_laws(laws, np.tile(WEIGHTS, (6, 1)), kind)
        y = np.linspace(-1.0, 1.0, 6)[:, None]
        copy = pickle.loads(pickle.dumps(law))
        assert_array_equal(copy.cdf(y), law.cdf(y))
        assert_array_equal(law.take([4, 1]).pdf(y[[4, 1]]), law.pdf(y)[[4, 1]])
        assert len(law.take(slice(0, 2))) == 2
        assert law.support == (-np.inf, np.inf)

    def test_bad_input(self, laws):
        with pytest.raises(ValueError, match="`members` must be laws of as many rows"):
            PooledLaw([laws[0], laws[1].take(slice(2))], [0.5, 0.5])
        with pytest.raises(ValueError, match="`weights` must sum to 1"):
            PooledLaw(laws, [0.5, 0.5, 0.5])
        with pytest.raises(TypeError, match="`members` must have no jumps"):
            PooledLaw([DiscreteLaw([0.0], [[1.0]])], [1.0])
        with pytest.raises(ValueError, match="`kind`"):
            pool_laws(laws, WEIGHTS, "geometric")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scores", [None, WIDER], ids=["plain", "mapped"])
def test_entropies_are_integrals(kind, scores):
    law = PooledLaw([kinked_law(seed) for seed in (1, 2)], [0.5, 0.5], kind, scores)
    y, dy = dense(law, law.kinks())
    density = law.pdf(y)
    want = -(xlogy(density, density) * dy).sum(axis=1)
    assert_allclose(law.entropy(), want, atol=1e-4)
    assert_allclose((dy * density).sum(axis=1), 1.0, atol=1e-5)


def kinked_law(seed, n=6):
    """Rows whose curves are steep here and flat there."""
    rng = np.random.default_rng(seed)
    base = BaseCDF.fit(rng.gamma(2.0, size=1500))
    knots = np.linspace(-2.5, 2.5, 7)
    chords = 0.4 + rng.gamma(4.0, 0.25, (n, 6))
    values = np.hstack([np.zeros((n, 1)), np.cumsum(chords * np.diff(knots), axis=1)])
    slopes = np.column_stack([chords[:, :1], chords])
    slopes[:, 1:-1] = 2.0 / (1.0 / chords[:, 1:] + 1.0 / chords[:, :-1])
    values -= values.mean(axis=1, keepdims=True)
    frame = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    return SplineLaw(*frame, knots, values, slopes, base)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scores", [None, WIDER], ids=["plain", "mapped"])
def test_nothing_lies_beyond_infinity(laws, kind, scores):
    ends = np.tile([-np.inf, np.inf], (6, 1))
    # Shares of a sum that is a little less than 1.
    law = PooledLaw(laws, np.full(3, (1.0 - 1e-15) / 3.0), kind, scores)
    assert_array_equal(law.cdf(ends), ends > 0.0)
    assert_array_equal(law.sf(ends), ends < 0.0)
    masses = np.random.default_rng(0).dirichlet(np.ones(8), 6)[:, :7]
    mixed = MixedLaw(np.arange(7.0), masses, law, np.ones(7))
    assert_array_equal(mixed.cdf(ends), ends > 0.0)
    assert_array_equal(mixed.sf(ends), ends < 0.0)


def straight_law(center, scale, n=3):
    """Rows of the base distribution itself, which is symmetric about 0."""
    base = BaseCDF.fit(ndtri((np.arange(2000) + 0.5) / 2000))
    one = np.ones((n, 1))
    frame = np.full(n, center), np.full(n, scale)
    return SplineLaw(*frame, [0.0], 0.0 * one, one, base)


POOLS = {
    "bent": lambda: [spline_law(1, 3), spline_law(2, 3)],
    # Roots near 0, where floats are far finer than scores.
    "symmetric": lambda: [straight_law(-1.0, 1.0), straight_law(1.0, 1.0)],
    "nested": lambda: [straight_law(0.0, 1e-3), straight_law(0.0, 10.0)],
    # A gap between, where scores stand still, and floats far coarser than scores.
    "apart": lambda: [straight_law(-20.0, 0.1), straight_law(20.0, 0.1)],
    "far": lambda: [straight_law(1e9, 1.0), straight_law(1e9 + 1.0, 1.0)],
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_take_few_steps(name, kind, rng, monkeypatch):
    law = PooledLaw(POOLS[name](), [0.4, 0.6], kind)
    asked, real = [], PooledLaw._own_density

    def counted(self, y):
        asked.append(y.size)
        return real(self, y)

    monkeypatch.setattr(PooledLaw, "_own_density", counted)
    q = rng.uniform(size=(3, 500))
    y = law.ppf(q)
    # It took 200 steps, all of them for all quantiles, while one was not found.
    assert sum(asked) <= 25 * q.size
    ulp = np.spacing(np.abs(y))
    slack = 1e-13 + 4.0 * ulp * law.pdf(y)
    assert (np.abs(law.cdf(y) - q) <= slack).all()
    assert (law.cdf(y + 4.0 * ulp) >= q - 1e-15).all()
    assert (law.cdf(y - 4.0 * ulp) <= q + 1e-15).all()
    # Each is found by itself, whatever else is asked for.
    np.testing.assert_allclose(law.ppf(q[:, 7:8]), y[:, 7:8], rtol=1e-15, atol=1e-15)


def test_quantiles_of_tails_without_moments_are_found():
    base = BaseCDF.fit(ndtri((np.arange(2000) + 0.5) / 2000))
    heavy = BaseCDF(base.points, base.levels, base.slopes, (3.0, 3.0))
    one = np.ones((2, 1))
    members = [
        SplineLaw([0.0, 5.0], [1.0, 2.0], [0.0], 0.0 * one, one, which)
        for which in (base, heavy)
    ]
    q = np.tile([1e-12, 1e-6, 0.5, 1.0 - 1e-6, 1.0 - 1e-12], (2, 1))
    law = PooledLaw(members, [0.5, 0.5])
    y = law.ppf(q)
    assert np.abs(y).max() > 1e20
    assert_allclose(law.cdf(y[:, :3]), q[:, :3], rtol=1e-10)
    assert_allclose(law.sf(y[:, 3:]), 1.0 - q[:, 3:], rtol=1e-10)
    # Undefined beside an infinite one, and no warning about it.
    assert not np.isfinite(law.moments()[:, 1]).any()


def test_member_that_says_nothing_more_adds_no_density():
    """Where its score is cut off a member moves the pool's CDF no more."""
    base = BaseCDF.fit(np.random.default_rng(0).normal(size=2000))
    one = np.ones((1, 1))
    near, far = (
        SplineLaw([c], [s], [0.0], 0.0 * one, one, base)
        for c, s in ((0.0, 1.0), (50.0, 1.0))
    )
    law = PooledLaw([near, far], [0.5, 0.5], "probit")
    cut = far.ppf_scores(np.array([[-37.5]]))[0, 0]
    y = cut + np.linspace(-0.2, 0.2, 401)
    middle = 0.5 * (y[1:] + y[:-1])
    wanted = np.diff(law.cdf(y[None])[0]) / np.diff(y)
    got = np.exp(law.logpdf(middle[None])[0])
    # But for the cell in which it is cut off.
    inner = np.abs(middle - cut) > 1e-3
    assert_allclose(got[inner], wanted[inner], rtol=1e-3)
