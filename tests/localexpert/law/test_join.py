"""Laws one after another, and pools with their variance, against what members say."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import ndtr

from localexpert import LocalExpertRegressor, PredictiveDistribution
from localexpert.law.join import append_laws, can_pool_scores, pool_laws, spread_parts
from localexpert.law.law import Law
from tests.localexpert.law.kinds import KINDS, LATTICES, SMOOTH, every, places_of

WEIGHTS = np.array([[0.3, 0.7], [0.9, 0.1], [0.0, 1.0]])
# Kinds without bounds. Where a member's bound lies within another the density jumps,
# which 91 scores tell less well.
FREE = {"smooth", "two peaks", "mixed", "discrete"}


@every
@pytest.mark.parametrize("other", KINDS)
def test_rows_and_pools_of_unlike_laws(name, other):
    laws = [KINDS[name], KINDS[other]]
    joined = append_laws([*laws, KINDS[name].take(slice(0, 0))])
    assert len(joined) == 6
    for k, law in enumerate(laws):
        own, y = joined.take(slice(3 * k, 3 * k + 3)), places_of(law)
        for method in ("cdf", "cdf_left"):
            want = getattr(law, method)(y)
            assert_allclose(getattr(own, method)(y), want, rtol=0.0, atol=1e-3)
        sd = np.sqrt(law.moments()[:, 1])[:, None] + 1e-9
        assert_allclose((own.crps(y) - law.crps(y)) / sd, 0.0, atol=1e-3)
    if {name, other} & {*LATTICES} and {name, other} & {*SMOOTH}:
        assert not can_pool_scores(laws)
    pool = pool_laws(laws, WEIGHTS, "linear")
    y = np.hstack([places_of(law) for law in laws])
    bar = 1e-3 if name == other or {name, other} <= FREE else 3e-2
    for method in ("cdf", "cdf_left", "sf"):
        parts = [getattr(law, method)(y) for law in laws]
        want = np.einsum("ik,kij->ij", WEIGHTS, parts)
        assert_allclose(getattr(pool, method)(y), want, rtol=0.0, atol=bar)
    below = np.einsum("ik,kij->ij", WEIGHTS, [law.partial_means(y)[0] for law in laws])
    sd = np.sqrt(pool.moments()[:, 1])[:, None] + 1e-9
    assert_allclose((pool.partial_means(y)[0] - below) / sd, 0.0, atol=bar)


@pytest.mark.parametrize(("n_kinds", "bar"), [(2, 1e-12), (3, 1e-12), (9, 0.05)])
def test_rows_on_different_knots_keep_their_curves(n_kinds, bar, rng):
    dists = [KINDS["bounded"]]
    for k in range(1, n_kinds):
        levels = np.linspace(0.02, 0.98, 5 + k)
        draws = np.sort(rng.gamma(0.3, size=(2, 5 + k)), axis=1)
        made = PredictiveDistribution.from_quantiles(draws, levels, bounds=(0, None))
        dists.append(made.law)
    joined, first = append_laws(dists), 0
    z = np.linspace(-9.0, 9.0, 1801)
    assert joined.curve.basis.size < 600
    for law in dists:
        own, n = joined.take(slice(first, first + len(law))), len(law)
        want = law.ppf_scores(np.tile(z, (n, 1)))
        assert_allclose(own.ppf_scores(np.tile(z, (n, 1))), want, rtol=bar)
        first += n
        if bar < 1e-6:
            y = law.ppf_scores(np.tile(z[200:-200:100], (n, 1)))
            assert_allclose(own.logpdf(y), law.logpdf(y), rtol=1e-7)


@pytest.mark.parametrize("name", SMOOTH)
def test_probit_pools_are_means_of_scores(name):
    laws = [KINDS[name], KINDS[name].take([1, 2, 0])]
    assert can_pool_scores(laws)
    pool = pool_laws(laws, WEIGHTS, "probit")
    y = pool.ppf(np.tile([0.01, 0.2, 0.5, 0.8, 0.99], (3, 1)))
    own = [np.clip(law.scores(y), -37.0, 37.0) for law in laws]
    z = np.einsum("ik,kij->ij", WEIGHTS, own)
    assert_allclose(pool.cdf(y), ndtr(z), rtol=0.0, atol=3e-3)


@pytest.mark.parametrize(
    ("bounds", "side", "near"),
    [((90.0, None), "cdf", 90.0 + 1e-6), ((None, 100.0), "sf", 100.0 - 1e-6)],
)
def test_pools_of_laws_that_share_one_bound(bounds, side, near):
    values, levels = [[91.0, 95.0, 99.0]], [0.1, 0.5, 0.9]
    one = PredictiveDistribution.from_quantiles(values, levels, bounds=bounds)
    laws = [PredictiveDistribution.from_scipy(stats.uniform([90.0], 10.0)).law, one.law]
    y = np.array([[near, *values[0]]])
    parts = [getattr(law, side)(y) for law in laws]
    found = getattr(pool_laws(laws, [0.5, 0.5], "linear"), side)(y)
    assert_allclose(found, np.mean(parts, axis=0), rtol=1e-2)


def test_pools_of_laws_with_opposite_bounds(rng):
    levels, values = [0.05, 0.25, 0.5, 0.75, 0.95], rng.gamma(1.0, size=(2, 40, 5))
    above, below = np.sort(values[0], axis=1), -np.sort(-values[1], axis=1)
    make, end = PredictiveDistribution.from_quantiles, 0.4
    laws = [
        make(above, levels, bounds=(0.0, None)).law,
        make(end - below, levels, bounds=(None, end)).law,
    ]
    q = np.tile(np.linspace(0.001, 0.999, 200), (40, 1))
    y = np.hstack([law.ppf(q) for law in laws])
    want = np.mean([law.cdf(y) for law in laws], axis=0)
    found = pool_laws(laws, [0.5, 0.5], "linear").cdf(y)
    assert_allclose(found, want, rtol=0.0, atol=0.06)


def test_pools_of_lattices_of_other_steps_hold_the_values_of_both():
    wide, narrow = (replace(KINDS["counts"], step=step) for step in (1.0, 0.5))
    y = np.tile(np.arange(8) / 2.0, (3, 1))
    found = pool_laws([wide, narrow], WEIGHTS, "linear").mass_at(y)
    parts = np.stack([wide.mass_at(y), narrow.mass_at(y)])
    assert_allclose(found, np.einsum("ik,kij->ij", WEIGHTS, parts), atol=1e-9)


def test_moments_that_a_member_has_not_got():
    heavy = PredictiveDistribution.from_scipy(stats.cauchy(np.zeros(3))).law
    pool = pool_laws([heavy, KINDS["smooth"]], WEIGHTS, "linear")
    assert np.isfinite(pool.moments()).all(axis=1).tolist() == [False, False, True]


def test_what_has_no_pool_is_refused():
    assert not can_pool_scores([KINDS["smooth"], KINDS["mixed"]])
    assert not can_pool_scores([KINDS["clipped"]] * 2)
    coarse = replace(KINDS[LATTICES[0]], step=2.0)
    with pytest.raises(ValueError, match=r"must be .* or of unlike steps, got"):
        pool_laws([KINDS[LATTICES[0]], coarse], [0.5, 0.5], "probit")


def test_lattices_are_the_same_whichever_of_their_values_they_start_from():
    at = [KINDS["lattice"], replace(KINDS["lattice"], offset=3.6)]
    y = places_of(at[0])
    assert_allclose(at[1].cdf(y), at[0].cdf(y), rtol=1e-12)
    assert_allclose(pool_laws(at, [0.4, 0.6], "linear").cdf(y), at[0].cdf(y), atol=1e-6)
    both = pool_laws([at[0], replace(at[0], offset=0.3)], [0.5, 0.5], "linear")
    assert {*np.round(both.atoms % 0.5, 9)} == {0.1, 0.3}


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_lattices_with_different_ends_are_pooled_in_any_order(kind):
    free, counts = KINDS["lattice"], KINDS["counts"]
    held = replace(free, ends=(-0.4, np.inf))
    ways = [
        pool_laws([a, b], [0.5, 0.5], kind) for a, b in ((free, held), (held, free))
    ]
    y = places_of(free)
    assert_allclose(ways[0].cdf(y), ways[1].cdf(y), atol=1e-12)
    if kind == "linear":
        want = 0.5 * (free.cdf(y) + held.cdf(y))
        assert_allclose(ways[0].cdf(y), want, atol=1e-9)
    # Ends beyond which no member has values leave curves as they are.
    wide = replace(counts, ends=(-np.inf, np.inf))
    for pair in ([counts, wide], [wide, counts]):
        pool, y = pool_laws(pair, WEIGHTS, kind), places_of(counts)
        assert pool.step == 1.0
        assert_allclose(pool.cdf(y), counts.cdf(y), atol=1e-6)


def test_parts_are_variances_of_the_mixture(rng):
    values, weights = np.arange(6.0), np.array([0.2, 0.5, 0.3])
    masses = rng.dirichlet(np.ones(6), size=(3, 4, 7))
    masses[..., 0, :] = np.eye(6)[2]  # one value alone
    members = [
        (w, [Law.discrete(values, fold) for fold in road])
        for w, road in zip(weights, masses, strict=True)
    ]
    means = masses @ values
    own, roads = masses @ values**2 - means**2, means.mean(axis=1)
    parts = spread_parts(members)
    assert_allclose(parts.within, weights @ own.mean(axis=1), atol=1e-12)
    assert_allclose(parts.folds, weights @ means.var(axis=1), atol=1e-12)
    between = weights @ (roads - weights @ roads) ** 2
    assert_allclose(parts.roads, between, atol=1e-12)
    assert parts.disagreement[0] == 0.0


@pytest.mark.parametrize("kind", ["smooth", "positive", "atom", "counts"])
def test_members_average_to_the_forecast(kind, rng):
    X = rng.normal(size=(200, 2))
    y = 3.0 * X[:, 0] + rng.normal(size=200)
    targets = {"smooth": y, "positive": np.exp(0.3 * y), "atom": np.maximum(y, 0.0)}
    targets["counts"] = rng.poisson(np.exp(0.3 * X[:, 0]))
    y = targets[kind]
    model = LocalExpertRegressor(effort="quick", random_state=0).fit(X, y)
    members = model.forecaster_.members(model._read(X[:20]))
    assert sum(weight for weight, _ in members) == pytest.approx(1.0)
    mean = sum(
        w * np.mean([a.moments()[:, 0] for a in laws], axis=0) for w, laws in members
    )
    spread = model.predict_dist(X[:20])
    assert mean == pytest.approx(spread.mean(), abs=0.1 * y.std())
    assert (model.spread_parts(X[:20]).disagreement < 0.5).mean() > 0.9


def test_disagreement_is_large_where_rows_are_few(rng):
    X = rng.normal(size=(300, 1))
    y = X[:, 0] + rng.normal(size=300)
    model = LocalExpertRegressor(effort="quick", random_state=0).fit(X, y)
    middle, edge = model.spread_parts([[0.0], [4.0]]).disagreement
    assert middle < edge
