"""Pools: weights beside generic optimisers, honest for each row, and how sharp."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.stats import norm

from localexpert.data.folds import Sample, make_folds
from localexpert.data.table import Table
from localexpert.law.join import pool_laws
from localexpert.law.level_map import LevelMap, map_levels
from localexpert.learn.learner import Learner
from localexpert.learn.pool import Pool, PoolScores, learn_sharpness, linear_weights
from localexpert.learn.settings import Effort
from tests.forecasts import beside, normal, of_values
from tests.simplex import least_on_simplex

N = 80
MANY = 4000


@pytest.fixture
def y(rng):
    return rng.normal(size=N)


@pytest.fixture
def smooth(rng, y):
    """Forecasts that know something of y, with errors and widths of their own."""
    return [
        normal(0.6 * y + rng.normal(0.0, 0.5, N), scale).law
        for scale in (0.4, 0.8, 1.2, 0.6)
    ]


@pytest.fixture
def discrete(rng):
    values = np.array([-1.0, 0.0, 0.5, 3.0])
    return [of_values(values, rng.dirichlet(np.ones(4), N)).law for _ in range(3)]


@pytest.fixture
def mixed(rng):
    masses = [0.4 * rng.dirichlet(np.ones(2), N) for _ in range(3)]
    return [
        beside(normal(rng.normal(size=N)), [-0.5, 0.5], m, [0.1, 0.1]).law
        for m in masses
    ]


def score(laws, y):
    return PoolScores.of(laws, y, np.ones(N), np.arange(N) % 2, 2)


@pytest.mark.parametrize("kind", ["smooth", "mixed", "discrete"])
def test_quadratic_form_is_the_crps_of_the_pool(kind, request, y, rng):
    laws = request.getfixturevalue(kind)
    matrices = score(laws, y).matrices()
    for _ in range(3):
        w = rng.dirichlet(np.ones(len(laws)))
        form = np.einsum("ikl,k,l->i", matrices, w, w)
        crps = pool_laws(laws, w, "linear").crps(y[:, None])[:, 0]
        assert_allclose(form, crps, rtol=1e-9 if kind == "discrete" else 1e-2)
        assert form.mean() == pytest.approx(crps.mean(), rel=2e-3)


@pytest.mark.parametrize("ridge", [0.0, 0.03, 1.0])
def test_linear_weights_against_a_generic_optimiser(smooth, y, ridge):
    a = score(smooth, y).matrices().mean(axis=0)

    def loss(w):
        return w @ a @ w + ridge * np.trace(a) * ((w - 0.25) ** 2).sum()

    got = linear_weights(a, ridge)
    assert got.sum() == pytest.approx(1.0)
    assert got.min() >= 0.0
    assert loss(got) <= loss(least_on_simplex(loss, 4)) + 1e-9


def test_no_difference_gives_equal_weights():
    assert_allclose(linear_weights(np.full((3, 3), 2.0)), 1.0 / 3.0, rtol=1e-4)
    assert_allclose(linear_weights(np.zeros((2, 2))), 0.5)
    assert_allclose(linear_weights(np.diag([1.0, 9.0]), np.inf), 0.5)


@pytest.mark.parametrize("kind", ["smooth", "discrete"])
def test_probit_loss_is_the_crps_of_the_pool_and_made_least(kind, request, y, rng):
    laws = request.getfixturevalue(kind)
    scores, weight = score(laws, y), rng.uniform(size=N)
    w = rng.dirichlet(np.ones(len(laws)))
    crps = pool_laws(laws, w, "probit").crps(y[:, None])[:, 0]
    loss, gradient = scores.loss(w, weight, 0.1)
    pull = 0.1 * ((w - w.mean()) ** 2).sum()
    assert loss - pull == pytest.approx(np.average(crps, weights=weight), rel=1e-3)
    slope = approx_fprime(w, lambda v: scores.loss(v, weight, 0.1)[0], 1e-7)
    assert_allclose(gradient, slope, rtol=1e-4, atol=1e-6)
    got = scores.weights(weight, np.full(len(laws), 1.0 / len(laws)))
    best = scores.loss(got, weight, 0.0)[0]
    for w in rng.dirichlet(np.ones(len(laws)), 300):
        assert scores.loss(w, weight, 0.0)[0] >= best - 1e-9


class Given(Learner):
    """Laws that nothing is learned for."""

    def __init__(self, law):
        self.law_ = law

    def _finish(self, sample):
        self.judged_ = np.arange(len(sample))

    def _law(self, places, _=None):
        return self.law_.take(np.arange(len(self.law_))[places])

    tasks_ = _members = _points = _keep_rows = _choices = None


def fit_pool(laws, y):
    """Return a fitted pool of laws of 300 rows in five folds, and their numbers."""
    folds = make_folds(len(y), 5, random_state=0)
    table = Table.of(np.zeros((len(y), 1)))
    sample = Sample(table, y, np.ones(len(y)), folds)
    roads = {name: Given(law) for name, law in zip("abc", laws, strict=True)}
    return Pool(roads, 0, Effort(), exact=False).fit(sample), folds


def test_weights_of_a_row_have_not_seen_its_answer(rng):
    """One target is moved: weights change in all folds but its own."""
    parts = rng.normal(size=(3, 300))
    y = parts.T @ [2.0, 1.4, 1.0] + 0.5 * rng.normal(size=300)
    laws = [normal(2.5 * part, 2.0).law for part in parts]
    pool, folds = fit_pool(laws, y)
    assert len(pool.weights_) == 3
    row, fold = folds[2][1][4], folds[2][1]
    others = np.setdiff1d(np.arange(300), fold)
    y[row] += 3.0
    again = fit_pool(laws, y)[0]
    assert again.kind_ == pool.kind_
    moved = np.abs(again.oof_weights_ - pool.oof_weights_).max(axis=1)
    # The solver of probit pools begins at the weights of all rows.
    assert moved[fold].max() < 1e-4
    assert moved[others].min() > 1e-3
    assert_array_equal(np.unique(pool.oof_weights_[fold], axis=0).shape, (1, 3))


def even(_sharpness):
    """Return a CRPS that does not matter."""
    return 1.0


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_a_pool_of_halves_of_the_truth_is_too_wide(kind, rng):
    n = MANY // 2
    a, b = rng.normal(size=(2, n))
    y, sd = a + b + rng.normal(size=n), np.full(n, np.sqrt(2.0))
    laws = [normal(a, sd).law, normal(b, sd).law]

    def crps(k):
        return float(sharpened(k).crps(y[:, None]).mean())

    def sharpened(k):
        return map_levels(pool, LevelMap.line(0.0, k))

    pool = pool_laws(laws, [0.5, 0.5], kind)
    k = learn_sharpness(pool, y, np.ones(n), crps)
    assert k > 1.1
    assert crps(k) < crps(1.0)
    u = pool.cdf(y[:, None])
    v = sharpened(k).cdf(y[:, None])
    assert abs(np.mean((v > 0.05) & (v < 0.95)) - 0.9) < 0.02
    assert np.mean((u > 0.05) & (u < 0.95)) > 0.92
    assert_allclose(v, norm.cdf(k * norm.ppf(u)), atol=2e-3)


def test_a_calibrated_pool_is_left_as_it_is(rng):
    mean = rng.normal(size=MANY)
    law, y = normal(mean).law, mean + rng.normal(size=MANY)
    assert 1.0 <= learn_sharpness(law, y, np.ones(MANY), even) < 1.03
    wide = normal(mean, np.full(MANY, 2.0)).law
    assert learn_sharpness(wide, y, np.ones(MANY), even) == pytest.approx(1.5, abs=1e-3)
    # Few rows say little.
    few = learn_sharpness(wide.take(slice(0, 10)), y[:10], np.ones(10), even)
    assert few < 1.1


def test_sharpness_beside_atoms(rng):
    mean, share = rng.normal(size=MANY), rng.uniform(0.2, 0.5, MANY)
    y = np.where(rng.uniform(size=MANY) < share, 0.0, mean + rng.normal(size=MANY))
    true = beside(normal(mean), [0.0], share[:, None], [0.1]).law
    assert learn_sharpness(true, y, np.ones(MANY), even) < 1.03
    wide = map_levels(true, LevelMap.line(0.0, 1.0 / 1.2))
    k = learn_sharpness(wide, y, np.ones(MANY), even)
    assert k == pytest.approx(1.2, abs=0.04)
