"""Laws of values: counts, what was never met beside them, and mass near heavy ones."""

import numpy as np
import pytest
from scipy.stats import nbinom, norm, poisson

from localexpert import LocalExpertRegressor
from localexpert.data.folds import Sample
from localexpert.data.table import Table
from localexpert.learn.steps import NearAtoms, atom_widths
from localexpert.learn.values import Cells, Support, Tails
from tests.forecasts import normal, of_values


def fitted(step, y):
    """Return a step that has seen some targets."""
    n = len(y)
    folds = [(np.arange(n // 2), np.arange(n // 2, n))]
    step.fit(Sample(Table.of(np.zeros((n, 1))), y.astype(float), np.ones(n), folds))
    return step


def draw(rng, n):
    X = rng.normal(size=(n, 2))
    mean = np.exp(1.9 + 0.5 * X[:, 0])
    y = nbinom(3, 3.0 / (3.0 + mean)).rvs(random_state=rng)
    return X, np.where(rng.random(n) < 0.3, 0.0, y), 0.3 + 0.7 * (3 / (3 + mean)) ** 3


@pytest.mark.slow
def test_zeros_and_means_are_as_many_as_come(rng):
    X, y, _ = draw(rng, 2000)
    model = LocalExpertRegressor(random_state=0).fit(X, y)
    dist = model.oof_distribution_
    assert dist.pmf(0.0).mean() == pytest.approx((y == 0.0).mean(), abs=0.02)
    assert dist.mean().mean() == pytest.approx(y.mean(), rel=0.03)
    new, _, zero = draw(rng, 2000)
    told = model.predict_dist(new).pmf(0.0).mean()
    assert told == pytest.approx(zero.mean(), abs=0.03)


def test_targets_are_learned_in_their_cells(rng):
    y = np.append(rng.poisson(6.0, size=500), 200.0)
    step = fitted(Cells(atoms=np.array([0.0])), y)
    z = step.there(y)
    assert (np.abs(z - y) <= 0.5).all()
    assert (z[y == 0.0] == 0.0).all()
    assert len(np.unique(z[y > 0.0])) == (y > 0.0).sum()
    np.testing.assert_array_equal(step.there(y), z)
    few = y % 5.0
    np.testing.assert_array_equal(fitted(Cells(), few).there(few), few)


def test_mass_is_that_of_the_cell(rng):
    y = rng.poisson(6.0, size=500).astype(float)
    inner, at = normal([6.0], 2.0).law, np.arange(1.0, 10.0)[None]
    law = fitted(Cells(bounds=(0.0, np.inf)), y).read(inner)
    expected = inner.cdf(at + 0.5) - inner.cdf(at - 0.5)
    # One row in 501 is shared by all.
    np.testing.assert_allclose(law.mass_at(at), expected, atol=2e-3)
    assert law.masses.min() > 0.0


def with_tails(y, law, bounds=(-np.inf, np.inf)):
    return fitted(Tails(bounds), y).read(fitted(Cells(bounds=bounds), y).read(law))


def test_no_count_is_impossible_beside_one_that_is_far_out():
    met = np.append(np.arange(70.0), [79.0, 95.0, 238.0])
    y = np.repeat(met, np.append(np.full(70, 20), [1, 1, 1]))
    law = with_tails(y, normal([30.0, 90.0], 20.0).law, (0.0, np.inf))
    at = np.append(np.arange(400.0), [1000.0, 1e5])
    masses = law.mass_at(np.tile(at, (2, 1)))
    assert (masses > 0.0).all()
    assert np.isfinite(law.logpdf(np.tile(at, (2, 1)))).all()
    np.testing.assert_allclose(masses.sum(axis=1), 1.0, atol=1e-3)
    assert (law.mass_at(np.array([[-1.0], [0.5]])) == 0.0).all()


def test_tails_reach_as_far_downwards_as_upwards():
    y = np.repeat(np.append(np.arange(70.0), 79.0), np.append(np.full(70, 20), 1))
    at = np.append(np.arange(60.0, 400.0), [1e3, 1e5])[None]
    up = with_tails(y, normal([60.0], 20.0).law, (0.0, np.inf))
    down = with_tails(-y, normal([-60.0], 20.0).law, (-np.inf, 0.0))
    np.testing.assert_allclose(down.cdf(-at), up.levels(at, left=True)[1], rtol=1e-6)
    # With two tails, half of either lies as far beyond the support as that goes on.
    y = np.repeat(np.arange(5.0, 75.0), 5)
    law = with_tails(y, normal([25.0, 40.0, 55.0], 20.0).law)
    sides = law.atoms < 5.0, law.atoms > 74.0
    below, above = (law.masses[:, side].sum(axis=1) for side in sides)
    far = np.tile([-96.0, 175.0], (3, 1))
    np.testing.assert_allclose(law.cdf(far)[:, 0], 0.5 * below / 50.0, rtol=0.03)
    np.testing.assert_allclose(law.sf(far)[:, 1], 0.5 * above / 50.0, rtol=0.03)


def test_uneven_values_go_on_in_their_cells():
    values = np.cumsum(np.tile([1.0, 2.5, 0.7], 20))
    step = fitted(Tails((-np.inf, np.inf)), np.repeat(values, 3))
    law = of_values(values, np.full((1, 60), 1.0 / 60.0)).law
    between = 0.5 * (values[1:] + values[:-1])
    assert np.isfinite(step.read(law).logpdf(between[None])).all()


def support(values, weight, *bounds):
    return Support.of(np.array(values, float), np.array(weight, float), *bounds)


@pytest.mark.parametrize(
    ("values", "weight"),
    [
        ([0, 1], [3, 1]),  # a coin, however few rows
        ([1, 2, 3, 4, 5, 6], [100] * 6),  # a die
        ([1, 2, 4, 8], [30, 30, 30, 30]),  # doses: gaps that are meant
        ([2.0], [5]),
    ],
)
def test_values_that_are_well_known_are_all(values, weight):
    found = support(values, weight)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(found.shares, np.eye(len(values)))


def test_counts_have_gaps_and_go_on_upwards():
    found = support([0, 1, 2, 4], [50, 30, 9, 1])
    np.testing.assert_array_equal(found.values, np.arange(9.0))
    shares = found.shares
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    # What is well known keeps all that is said of it.
    np.testing.assert_array_equal(shares[:2, :2], np.eye(2))
    # 2 was met 9 times, and 3 beside it never: half a row in 9.
    assert shares[2, 3] / shares[2, 2] == pytest.approx(0.5 / 9.0)
    # 4 was met once: half a row on either side; further away there is less.
    assert shares[3, 3] / shares[3, 4] == pytest.approx(0.5)
    assert shares[3, 5:].sum() / shares[3, 4] == pytest.approx(0.5)
    assert (np.diff(shares[3, 5:]) < 0.0).all()


def test_no_bound_and_no_sign_is_crossed():
    # Zero is an end where it was met.
    assert support([0, 2, 3, 4], [1, 9, 9, 1]).values[[0, -1]].tolist() == [0.0, 8.0]
    assert support([1, 2, 3, 4], [1, 9, 9, 1]).values[[0, -1]].tolist() == [-2.0, 7.0]
    assert support([-4, -2, -1], [1, 9, 1]).values[[0, -1]].tolist() == [-7.0, 2.0]
    assert support([-1, 0, 1], [1, 9, 1]).values[[0, -1]].tolist() == [-3.0, 3.0]
    bounded = support([1, 2, 3, 4], [1, 9, 9, 1], (1.0, 5.0))
    assert bounded.values.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    grid = np.cumsum(np.full(9, 0.1))
    assert support(grid, [1] * 9, (0.1, 1.0)).values[[0, -1]] == pytest.approx([0.1, 1])


@pytest.mark.parametrize("far", [-1e12, 1e12, 9.97e36])
def test_values_far_out_have_no_part(far):
    met, weight = np.arange(7.0), np.array([30.0, 80, 90, 60, 30, 8, 2])
    near = support(met, weight)
    both = np.append(met, far)
    order = np.argsort(both)
    found = support(both[order], np.append(weight, 1.0)[order])
    np.testing.assert_array_equal(found.values, np.sort(np.append(near.values, far)))
    shares = found.shares[np.argsort(order)][:, np.argsort(found.values == far)]
    np.testing.assert_array_equal(shares[:-1, :-1][:, :], near.shares)
    assert shares[-1, -1] == 1.0


@pytest.mark.parametrize("law", [poisson(1.5), poisson(10), nbinom(1, 0.1)])
@pytest.mark.parametrize("n", [50, 500])
def test_new_counts_cost_little(rng, law, n):
    """Mean log loss over that of the truth, and the chance of what is impossible."""
    y = np.arange(400.0)[:, None]
    chance = law.pmf(y[:, 0])
    loss, impossible, closed = [], [], []
    for _ in range(100):
        y_new = law.rvs(size=n, random_state=rng)
        values, weight = np.unique(y_new, return_counts=True)
        found = support(values, weight)
        given = of_values(found.values, [(weight / n) @ found.shares]).pdf(y)[:, 0]
        loss.append(-chance @ np.log(np.maximum(given, 1e-9)) - law.entropy())
        impossible.append(chance[given == 0.0].sum())
        closed.append(1.0 - law.cdf(values.max()))
    assert np.mean(impossible) < 0.1 * np.mean(closed)
    assert 0.0 < np.mean(loss) < 40.0 / n


def test_values_beyond_whole_numbers_are_whole():
    found = support([0, 5, 10, 12, 50], [5] * 5).values
    np.testing.assert_array_equal(found, [0, 5, 10, 12, 50, 62, 74, 86, 98])
    halves = support([0.5, 1.0, 4.0, 9.5], [5] * 4, (0.0, np.inf)).values
    np.testing.assert_array_equal(halves, [0.5, 1.0, 4.0, 9.5, 12.5, 15.5, 18.5])


def test_a_row_is_spread_as_if_it_were_alone(rng):
    support = Support.of(np.arange(12.0), rng.integers(1, 25, size=12).astype(float))
    masses = rng.dirichlet(np.ones(12), size=41)
    spread = support.spread(masses)
    np.testing.assert_allclose(spread, masses @ support.shares, rtol=1e-14)
    for n in range(1, 41):
        np.testing.assert_array_equal(support.spread(masses[-n:]), spread[-n:])


@pytest.mark.parametrize(
    ("rest", "spread"),
    [
        (np.arange(9.0), 4.0),
        ([1.0, 5.0, 5.0, 5.0, 5.0, 5.0, 8.0], 7.0),
        ([3.0, 3.0, 3.0], 1.0),
        ([3.0], 1.0),
    ],
)
def test_a_hit_at_an_atom_is_worth_a_hundredth_of_the_spread(rest, spread):
    rest, weight = np.append(rest, 1e6), np.append(np.ones(len(rest)), 0.0)
    assert atom_widths(np.zeros(2), rest, weight).tolist() == [0.01 * spread] * 2


def collected(atoms, borders, shares):
    step = NearAtoms(np.array(atoms))
    step.borders_, step.shares_ = np.array(borders), np.array(shares)
    step.widths_ = np.full(len(atoms), 0.1)
    return step.read(normal([0.3], 1.5).law)


@pytest.mark.parametrize(
    ("atoms", "borders", "shares"),
    [
        ([0.0], [-0.2, 0.2], [0.9]),
        ([0.0, 1.0, 2.0], [-0.5, 0.5, 0.5, 1.5, 1.5, 2.5], [0.8, 0.5, 0.99]),
        ([-9.0, 5.0], [-9.5, -8.5, 4.0, 6.0], [0.7, 0.3]),
    ],
)
def test_an_atom_takes_its_share_of_what_is_around_it(atoms, borders, shares):
    law = collected(atoms, borders, shares)
    y = np.linspace(-12.0, 8.0, 200_001)
    mass = np.diff(norm.cdf(y, 0.3, 1.5))
    middle = 0.5 * (y[1:] + y[:-1])
    jumps = np.zeros(len(mass))
    for k, atom in enumerate(atoms):
        near = (borders[2 * k] <= middle) & (middle < borders[2 * k + 1])
        jumps[np.searchsorted(middle, atom)] += shares[k] * mass[near].sum()
        mass = np.where(near, (1.0 - shares[k]) * mass, mass)
    expected = np.cumsum(mass + jumps)
    at = np.linspace(-3.9, 4.1, 41) + 0.013
    got = law.cdf(at[None, :])[0]
    # What is left is drawn by knots a fifth of a deviation apart.
    np.testing.assert_allclose(got, np.interp(at, y[1:], expected), atol=0.025)
    far = np.abs(at[:, None] - borders).min(axis=1) > 0.6
    np.testing.assert_allclose(got[far], np.interp(at[far], y[1:], expected), atol=2e-3)
    # All that is left is somewhere, in both tails as well.
    assert law.cdf(np.array([[-8.0]]))[0, 0] == pytest.approx(
        norm.cdf(-8.0, 0.3, 1.5) * (1 if atoms[0] > -8.0 else 2), abs=1e-7
    )


def test_rounded_values_say_what_lies_between_them():
    """Half the values of a smooth target are rounded."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(500, 3))
    y = 6.0 * X[:, 0] + np.sin(5.0 * X[:, 1]) + 0.3 * rng.normal(size=500)
    y = np.where(rng.uniform(size=500) < 0.5, np.round(y), y)
    model = LocalExpertRegressor(random_state=0, cv=3).fit(X[:300], y[:300])
    report = model.report_.choices
    losses = report["roads"]["losses"]
    assert model.report_.target == "mixed"
    assert losses["smooth"] < 0.95 * losses["mixed"]
    assert report["roads"]["weights"]["smooth"] > 0.5
    assert 3.0 in report["atoms"]
    dist = model.predict_dist(X[300:])
    # Half of what is said lies on whole numbers.
    whole = np.arange(-2.0, 9.0)
    on = sum(dist.cdf(v) - dist.cdf(v - 1e-6) for v in whole)
    assert on.mean() == pytest.approx(0.5, abs=0.1)
    assert dist.crps(y[300:]).mean() < 0.35


@pytest.mark.parametrize("seed", [1, 2])
def test_amounts_rounded_more_coarsely_as_they_grow_can_be_learned(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(200, 2))
    y = np.exp(1.0 + 3.0 * X[:, 0] + 0.5 * rng.normal(size=200))
    unit = np.select([y < 10.0, y < 50.0], [1.0, 10.0], 50.0)
    y = np.maximum(unit * np.round(y / unit), 1.0)
    model = LocalExpertRegressor(effort="quick", random_state=0).fit(X, y)
    assert 0.8 < model.predict_dist(X).covered(y, 0.9).mean() < 0.97
