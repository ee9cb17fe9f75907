"""Weights of pools against generic optimisers and dense integrals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize

from localexpert.law.join import pool_laws
from localexpert.learn.pool_weights import (
    PoolScores,
    crps_matrices,
    linear_weights,
)
from tests.forecasts import beside, normal, of_values

N = 80


@pytest.fixture
def y(rng):
    return rng.normal(size=N)


@pytest.fixture
def dists(rng, y):
    """Forecasts that know something of y, with errors and widths of their own."""
    return [
        normal(0.6 * y + rng.normal(0.0, 0.5, N), scale)
        for scale in (0.4, 0.8, 1.2, 0.6)
    ]


@pytest.fixture
def smooth(dists):
    return [dist.law for dist in dists]


@pytest.fixture
def mixed(rng, dists):
    masses = [0.4 * rng.dirichlet(np.ones(2), N) for _ in range(3)]
    return [
        beside(dist, [-0.5, 0.5], m, [0.1, 0.1]).law
        for m, dist in zip(masses, dists, strict=False)
    ]


@pytest.fixture
def discrete(rng):
    values = np.array([-1.0, 0.0, 0.5, 3.0])
    return [of_values(values, rng.dirichlet(np.ones(4), N)).law for _ in range(3)]


def on_simplex(loss, m):
    """The minimum that a generic optimiser finds."""
    return minimize(
        loss,
        np.full(m, 1.0 / m),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * m,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
        options={"ftol": 1e-12, "maxiter": 500},
    )


@pytest.mark.parametrize("kind", ["smooth", "mixed", "discrete"])
def test_quadratic_form_is_the_crps_of_the_pool(kind, request, y, rng):
    laws = request.getfixturevalue(kind)
    matrices = crps_matrices(laws, y)
    for _ in range(3):
        w = rng.dirichlet(np.ones(len(laws)))
        form = np.einsum("ikl,k,l->i", matrices, w, w)
        crps = pool_laws(laws, w, "linear").crps(y[:, None])[:, 0]
        assert_allclose(form, crps, rtol=1e-9 if kind == "discrete" else 2e-3)


def test_quadratic_form_is_the_integral(smooth, y):
    """Against the integral of the squared difference on a fine grid."""
    w = np.array([0.4, 0.3, 0.2, 0.1])
    form = np.einsum("ikl,k,l->i", crps_matrices(smooth, y), w, w)
    grid = np.linspace(-60.0, 60.0, 240_001)
    cdf = pool_laws(smooth, w, "linear").take(slice(5)).cdf(np.tile(grid, (5, 1)))
    want = ((cdf - (grid >= y[:5, None])) ** 2).sum(axis=1) * (grid[1] - grid[0])
    assert_allclose(form[:5], want, rtol=3e-3, atol=5e-4)


@pytest.mark.parametrize("ridge", [0.0, 0.03, 1.0])
def test_linear_weights_against_a_generic_optimiser(smooth, y, ridge):
    a = crps_matrices(smooth, y).mean(axis=0)
    pull = ridge * 4 * np.trace(a) / 4

    def loss(w):
        return w @ a @ w + pull * ((w - 0.25) ** 2).sum()

    got = linear_weights(a, ridge)
    assert got.sum() == pytest.approx(1.0)
    assert got.min() >= 0.0
    assert loss(got) <= on_simplex(loss, 4).fun + 1e-9


def test_weights_are_zero_on_the_edge():
    """A member that is worse than another everywhere gets nothing."""
    assert_allclose(linear_weights(np.diag([1.0, 1.0, 2.0])), [0.4, 0.4, 0.2])
    a = np.array([[1.0, 1.5], [1.5, 4.0]])
    assert_allclose(linear_weights(a), [1.0, 0.0], atol=1e-9)


def test_no_difference_gives_equal_weights():
    assert_allclose(linear_weights(np.full((3, 3), 2.0)), 1.0 / 3.0, rtol=1e-4)
    assert_allclose(linear_weights(np.zeros((2, 2))), 0.5)
    assert_allclose(linear_weights(np.diag([1.0, 9.0]), np.inf), 0.5)


@pytest.mark.parametrize("kind", ["smooth", "discrete"])
def test_probit_loss_is_the_crps_of_the_pool(kind, request, y, rng):
    laws = request.getfixturevalue(kind)
    scores = PoolScores.fine(laws, y)
    weight = rng.uniform(size=N)
    w = rng.dirichlet(np.ones(len(laws)))
    crps = pool_laws(laws, w, "probit").crps(y[:, None])[:, 0]
    loss, gradient = scores.loss(w, weight, 0.1)
    pull = 0.1 * ((w - w.mean()) ** 2).sum()
    assert loss - pull == pytest.approx(np.average(crps, weights=weight), rel=1e-3)
    slope = approx_fprime(w, lambda v: scores.loss(v, weight, 0.1)[0], 1e-7)
    assert_allclose(gradient, slope, rtol=1e-4, atol=1e-6)


def test_probit_weights_against_other_weights(smooth, y, rng):
    scores, weight = PoolScores.fine(smooth, y), np.ones(N)
    got = scores.weights(weight, np.full(4, 0.25))
    assert got.sum() == pytest.approx(1.0)
    assert got.min() >= 0.0
    best = scores.loss(got, weight, 0.0)[0]
    for w in rng.dirichlet(np.ones(4), 300):
        assert scores.loss(w, weight, 0.0)[0] >= best - 1e-9
    assert_allclose(scores.weights(weight, got, np.inf), 0.25)
