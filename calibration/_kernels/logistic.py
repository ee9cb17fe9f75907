"""Penalised logistic regression on weighted cells by Newton's method."""

import math
from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import fused, inner, njit
from calibration.typing import Float64Array

_MAX_STEPS = 100
_MAX_HALVINGS = 40
# The squared Newton decrement is the next step's length in standard errors, squared.
# Below the first bound a full step is sure to descend (and rounding of the objective
# would hide it), below the second the step taken is the last one.
_SURE_DECREMENT = 1e-5
_LAST_DECREMENT = 1e-12


class LogisticProblem(NamedTuple):
    """What is minimised: cells, with weights of both classes, and a penalty.

    `design` is (n_coefficients, n_cells); `weight0` and `weight1` are (n_cells,), where
    fractions are allowed (smoothed targets); `penalty` and `prior` (n_coefficients,).
    """

    design: Float64Array
    weight0: Float64Array
    weight1: Float64Array
    penalty: Float64Array
    prior: Float64Array


@njit
def logistic_objective(problem: LogisticProblem, theta: Float64Array) -> float:
    """Negative log-likelihood plus half of sum penalty_j (theta_j - prior_j)^2.

    With f = theta' design the loss of a cell is w1 log(1 + e^-f) + w0 log(1 + e^f).
    """
    design, weight0, weight1, penalty, prior = problem
    p, m = design.shape
    total = 0.0
    for i in range(m):
        f = 0.0
        for j in range(p):
            f += theta[j] * design[j, i]
        # log(1 + e^f) without overflow; the loss is weight * softplus - weight1 * f.
        softplus = math.log1p(math.exp(-abs(f))) + max(f, 0.0)
        total += (weight0[i] + weight1[i]) * softplus - weight1[i] * f
    for j in range(p):
        total += 0.5 * penalty[j] * (theta[j] - prior[j]) ** 2
    return total


@fused
def _derivatives(
    problem: LogisticProblem, theta: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Gradient (p,) and Hessian (p, p) of `logistic_objective`."""
    design, weight0, weight1, penalty, prior = problem
    p, m = design.shape
    gradient = np.zeros(p)
    hessian = np.zeros((p, p))
    for i in range(m):
        f = 0.0
        for j in range(p):
            f += theta[j] * design[j, i]
        # expit without overflow on either side
        e = math.exp(-abs(f))
        q = 1.0 / (1.0 + e) if f >= 0.0 else e / (1.0 + e)
        w = weight0[i] + weight1[i]
        slope = w * q - weight1[i]
        # q (1 - q), which 1 - q would lose where q rounds to 1.
        curvature = w * e / ((1.0 + e) * (1.0 + e))
        for j in range(p):
            d = design[j, i]
            gradient[j] += slope * d
            # The lower triangle; the other follows by symmetry.
            for k in range(j + 1):
                hessian[j, k] += curvature * d * design[k, i]
    for j in range(p):
        gradient[j] += penalty[j] * (theta[j] - prior[j])
        hessian[j, j] += penalty[j]
        for k in range(j):
            hessian[k, j] = hessian[j, k]
    return gradient, hessian


@inner
def _solve(matrix: Float64Array, vector: Float64Array) -> None:
    """Solve a positive definite system by elimination: `vector` becomes the solution.

    Written out, since LAPACK takes two seconds to be compiled in, and no row needs to
    be exchanged. `matrix` is used up.
    """
    p = len(vector)
    for j in range(p):
        for i in range(j + 1, p):
            factor = matrix[i, j] / matrix[j, j]
            for k in range(j + 1, p):
                matrix[i, k] -= factor * matrix[j, k]
            vector[i] -= factor * vector[j]
    for j in range(p - 1, -1, -1):
        for k in range(j + 1, p):
            vector[j] -= matrix[j, k] * vector[k]
        vector[j] /= matrix[j, j]


@njit
def fit_logistic(
    problem: LogisticProblem, start: Float64Array
) -> tuple[Float64Array, bool]:
    """Minimise `logistic_objective` by Newton steps, halved until they descend.

    Parameters
    ----------
    problem : LogisticProblem
    start : ndarray of shape (n_coefficients,)

    Returns
    -------
    theta : ndarray of shape (n_coefficients,)
    converged : bool
    """
    p = len(start)
    theta, step, trial = np.empty(p), np.empty(p), np.empty(p)
    for j in range(p):
        theta[j] = start[j]
    for _ in range(_MAX_STEPS):
        gradient, hessian = _derivatives(problem, theta)
        # A tiny ridge keeps the solve defined where probabilities saturate.
        for j in range(p):
            hessian[j, j] += 1e-12 * hessian[j, j] + 1e-300
            step[j] = gradient[j]
        _solve(hessian, step)
        decrement = 0.0
        for j in range(p):
            decrement += gradient[j] * step[j]
        # Written so that nan is caught too.
        if not decrement < np.inf:
            return theta, False
        if decrement < _SURE_DECREMENT:
            for j in range(p):
                theta[j] -= step[j]
            if decrement < _LAST_DECREMENT:
                return theta, True
            continue
        value = logistic_objective(problem, theta)
        scale = 1.0
        for _ in range(_MAX_HALVINGS):
            for j in range(p):
                trial[j] = theta[j] - scale * step[j]
            trial_value = logistic_objective(problem, trial)
            # Armijo's condition with the usual constant: almost any descent will do, as
            # Newton steps end up whole.
            if trial_value <= value - 1e-4 * scale * decrement:
                break
            scale *= 0.5
        else:
            return theta, False
        for j in range(p):
            theta[j] = trial[j]
    return theta, False
