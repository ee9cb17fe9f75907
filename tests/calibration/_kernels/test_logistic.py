"""Newton's logistic fit against a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from calibration._kernels.logistic import LogisticProblem, fit_logistic


def objective(theta, design, weight0, weight1, penalty, prior):
    f = theta @ design
    loss = weight1 @ np.logaddexp(0, -f) + weight0 @ np.logaddexp(0, f)
    return loss + 0.5 * penalty @ (theta - prior) ** 2


@pytest.mark.parametrize("p", [1, 2, 4])
@pytest.mark.parametrize("fractions", [False, True])
def test_minimises_the_objective(rng, p, fractions):
    m = 60
    design = rng.normal(size=(p, m))
    weight0, weight1 = rng.integers(0, 3, (2, m)).astype(float)
    if fractions:
        weight0, weight1 = rng.uniform(0, 2, (2, m))
    penalty, prior = rng.uniform(0, 1, p), rng.normal(size=p)
    problem = LogisticProblem(design, weight0, weight1, penalty, prior)
    theta, converged = fit_logistic(problem, np.zeros(p))
    best = minimize(objective, np.zeros(p), args=problem, tol=1e-12, method="BFGS")
    assert converged
    np.testing.assert_allclose(theta, best.x, atol=1e-5)
    assert objective(theta, *problem) <= best.fun + 1e-9


def test_separable_data_stay_finite_under_a_weak_penalty():
    x = np.array([[1.0, 1.0, 1.0, 1.0], [-2.0, -1.0, 1.0, 2.0]])
    labels = np.array([0.0, 0.0, 1.0, 1.0])
    ridge = np.array([0.0, 1e-3])
    problem = LogisticProblem(x, 1 - labels, labels, ridge, np.zeros(2))
    theta, converged = fit_logistic(problem, np.zeros(2))
    assert converged
    assert np.isfinite(theta).all()
    assert 5 < theta[1] < 20


def test_far_start_and_extreme_scores_converge():
    x = np.stack([np.ones(6), np.array([-700.0, -40.0, -1.0, 1.0, 40.0, 700.0])])
    labels = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    problem = LogisticProblem(x, 1 - labels, labels, np.full(2, 1e-3), np.zeros(2))
    theta, converged = fit_logistic(problem, np.array([5.0, -3.0]))
    near, _ = fit_logistic(problem, np.zeros(2))
    assert converged
    np.testing.assert_allclose(theta, near, atol=1e-7)
