"""Normal and asymmetric Laplace classes against formulas and a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import laplace_asymmetric, norm

from calibration import AsymmetricLaplaceCalibrator, GaussianCalibrator


@pytest.fixture
def data(rng):
    y = (rng.uniform(size=300) < 0.3).astype(int)
    x = np.round(rng.normal(2.0 * y - 1.0, 1.0 + y), 1)
    return x, y, rng.uniform(0.1, 2.0, 300)


def moments(x, y, weight, k):
    mean = np.average(x[y == k], weights=weight[y == k])
    return mean, np.average((x[y == k] - mean) ** 2, weights=weight[y == k])


def test_moments_and_posterior_are_the_closed_forms(data):
    x, y, weight = data
    fitted = GaussianCalibrator(scale="real").fit(x, y, weight)
    (m0, v0), (m1, v1) = (moments(x, y, weight, k) for k in (0, 1))
    np.testing.assert_allclose(fitted.means_, [m0, m1], rtol=1e-12)
    np.testing.assert_allclose(fitted.variances_, [v0, v1], rtol=1e-12)
    grid = np.linspace(-6, 6, 101)
    ratio = (weight[y == 1].sum() + 1) / (weight[y == 0].sum() + 1)
    density = norm.logpdf(grid, m1, np.sqrt(v1)) - norm.logpdf(grid, m0, np.sqrt(v0))
    expected = np.log(ratio) + density
    np.testing.assert_allclose(fitted.predict_log_odds(grid), expected, atol=1e-11)


def test_shared_variance_is_pooled_and_gives_a_line(data):
    x, y, weight = data
    fitted = GaussianCalibrator(shared_variance=True, scale="real").fit(x, y, weight)
    (m0, v0), (m1, v1) = (moments(x, y, weight, k) for k in (0, 1))
    share = weight[y == 1].sum() / weight.sum()
    pooled = (1 - share) * v0 + share * v1
    np.testing.assert_allclose(fitted.variances_, pooled, rtol=1e-12)
    log_odds = fitted.predict_log_odds([-1e6, 0.0, 1e6])
    np.testing.assert_allclose(np.diff(log_odds), 1e6 * (m1 - m0) / pooled, rtol=1e-9)


def test_a_class_of_one_score_has_the_variance_of_one_more_row():
    x, y = [0.0, 1.0, 3.0, 2.0, 2.0, 2.0], [0, 0, 0, 1, 1, 1]
    fitted = GaussianCalibrator(scale="real").fit(x, y)
    np.testing.assert_allclose(fitted.variances_, [np.var([0, 1, 3]), np.var(x) / 4])
    shared = GaussianCalibrator(shared_variance=True, scale="real")
    shared.fit([1.0, 1.0, 2.0], [0, 0, 1])
    np.testing.assert_allclose(shared.variances_, np.var([1, 1, 2]) / 4)


def make_real():
    return AsymmetricLaplaceCalibrator(scale="real")


def log_density(x, mode, beta, gamma):
    """The density of the paper, section 3.2, term by term."""
    norm = np.log(beta * gamma / (beta + gamma))
    return np.where(x <= mode, norm - beta * (mode - x), norm - gamma * (x - mode))


def fit_by_brute_force(x, weight):
    """Numerical maximum likelihood of the rates at every score as the mode."""

    def loss(logs, mode):
        return -weight @ log_density(x, mode, *np.exp(logs))

    fits = [
        (minimize(loss, np.zeros(2), mode, "Nelder-Mead", tol=1e-10), mode)
        for mode in np.unique(x)[1:-1]
    ]
    best, mode = min(fits, key=lambda fit: fit[0].fun)
    return mode, np.exp(best.x), -best.fun


def sample(rng, n):
    y = np.repeat([0, 1], [n, n // 2])
    sides = rng.choice([-0.5, 1.5], size=len(y))
    return np.round(3 * y + sides * rng.exponential(size=len(y)), 1), y


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_mode_and_rates_are_maximum_likelihood(seed, weighted):
    rng = np.random.default_rng(seed)
    x, y = sample(rng, 120)
    weight = rng.uniform(0.2, 3.0, len(x)) if weighted else np.ones(len(x))
    fitted = make_real().fit(x, y, weight)
    for k in (0, 1):
        xk, wk = x[y == k], weight[y == k]
        mode, rates, likelihood = fit_by_brute_force(xk, wk)
        assert fitted.modes_[k] == mode
        np.testing.assert_allclose(fitted.rates_[k], rates, rtol=1e-4)
        ours = wk @ log_density(xk, fitted.modes_[k], *fitted.rates_[k])
        assert ours == pytest.approx(likelihood, rel=1e-9)


def test_posterior_is_bayes_rule_with_add_one_priors(rng):
    x, y = sample(rng, 50)
    fitted = make_real().fit(x, y)
    grid = np.linspace(-5, 9, 301)
    joint = []
    laws = zip(fitted.modes_, fitted.rates_, strict=True)
    for k, (mode, (beta, gamma)) in enumerate(laws):
        kappa = np.sqrt(gamma / beta)
        scale = 1 / np.sqrt(beta * gamma)
        # scipy: exp(-kappa z) above the mode and exp(z / kappa) below, z = x / scale
        density = laplace_asymmetric.pdf(grid, kappa, mode, scale)
        joint.append(density * ((y == k).sum() + 1) / (len(y) + 2))
    expected = joint[1] / (joint[0] + joint[1])
    np.testing.assert_allclose(fitted.predict(grid), expected, atol=1e-12)


def test_an_empty_side_counts_as_one_row_at_the_mean_distance():
    fitted = make_real().fit([0.0, 1.0, 2.0, 5.0], [1, 1, 1, 0])
    # Class 1: sqrt(0 + 1 + 2) at both ends, 1 + 1 between: the lower end, X_l = 0.
    # Class 0 has one score: the mean distance of all rows from 2 is 6 / 4.
    assert fitted.modes_.tolist() == [5.0, 0.0]
    cross = np.sqrt(3)
    expected = [[1 / 3, 1 / 3], [3 / (1 + cross), 3 / (3 + cross)]]
    np.testing.assert_allclose(fitted.rates_, expected, rtol=1e-12)


def test_a_nearly_empty_side_is_no_steeper_than_an_empty_one():
    bulk = np.linspace(0.0, 3.0, 40) ** 2
    x, y = np.concatenate([bulk, bulk + 4]), np.repeat([0, 1], 40)
    exact = make_real().fit(x, y)
    x[0] -= 1e-12
    nearly = make_real().fit(x, y)
    np.testing.assert_allclose(nearly.rates_, exact.rates_, rtol=1e-6)
