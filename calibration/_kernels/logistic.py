"""Penalised logistic regression on weighted cells by Newton's method."""

import math
from typing import NamedTuple

import numpy as np

from calibration._kernels._jit import for_kernels, inner, njit
from calibration.typing import Float64Array

_MAX_STEPS = 100
_MAX_HALVINGS = 40
# The squared Newton decrement is the squared length of the next step in standard
# errors. Below the first bound, a full step is sure to descend, and rounding of the
# objective would hide the descent. Below the second bound, the step taken is the last
# one.
_SURE_DECREMENT = 1e-5
_LAST_DECREMENT = 1e-12


class LogisticProblem(NamedTuple):
    """What is minimised: cells with weights of both classes, and a penalty.

    `design` is (n_coefficients, n_cells). `weight0` and `weight1` are (n_cells,). They
    may be fractions (smoothed targets). `penalty` and `prior` are (n_coefficients,).
    """

    design: Float64Array
    weight0: Float64Array
    weight1: Float64Array
    penalty: Float64Array
    prior: Float64Array


def fit_logistic(
    problem: LogisticProblem, start: Float64Array
) -> tuple[Float64Array, bool]:
    """Minimise the penalised loss by Newton steps, halving each until it descends.

    With f = theta' design the loss of a cell is w1 log(1 + e^-f) + w0 log(1 + e^f). The
    penalty is half of sum penalty_j (theta_j - prior_j)^2.

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
    # Arrays are made here. Each kernel that makes one would have to compile that too.
    points, hessian = np.tile(start, (4, 1)), np.empty((p, p))
    fixed = LogisticProblem(*(for_kernels(part) for part in problem))
    converged = _fit(*fixed, points, hessian)
    return points[0], bool(converged)


@inner
def _evaluate(
    design: Float64Array,
    weight0: Float64Array,
    weight1: Float64Array,
    penalty: Float64Array,
    prior: Float64Array,
    theta: Float64Array,
    gradient: Float64Array,
    hessian: Float64Array,
    valued: bool,
) -> float:
    """Return the objective, and write its gradient and its lower Hessian.

    If the value is not wanted (`valued`), the logarithms of the loss are left out of
    it.
    """
    total = 0.0
    for j in range(len(theta)):
        away = theta[j] - prior[j]
        total += 0.5 * penalty[j] * away * away
        gradient[j] = penalty[j] * away
        for k in range(j + 1):
            hessian[j, k] = penalty[j] if j == k else 0.0
    for i in range(len(weight0)):
        f = 0.0
        for j in range(len(theta)):
            f += theta[j] * design[j, i]
        # This gives log(1 + e^f) and expit without overflow on either side.
        e = math.exp(-abs(f))
        w = weight0[i] + weight1[i]
        if valued:
            total += w * (math.log1p(e) + max(f, 0.0)) - weight1[i] * f
        slope = w * ((1.0 if f >= 0.0 else e) / (1.0 + e)) - weight1[i]
        # This is q (1 - q). If q rounds to 1, a computation from 1 - q would lose it.
        curvature = w * e / ((1.0 + e) * (1.0 + e))
        for j in range(len(theta)):
            gradient[j] += slope * design[j, i]
            for k in range(j + 1):
                hessian[j, k] += curvature * design[j, i] * design[k, i]
    return total


@inner
def _solve(matrix: Float64Array, vector: Float64Array) -> None:
    """Solve a positive definite system by elimination: `vector` becomes the solution.

    It is written out, because LAPACK takes two seconds to compile in, and no rows need
    to be exchanged. `matrix` is overwritten.
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
def _fit(
    design: Float64Array,
    weight0: Float64Array,
    weight1: Float64Array,
    penalty: Float64Array,
    prior: Float64Array,
    points: Float64Array,
    hessian: Float64Array,
) -> bool:
    """Write the fit to the first of `points` (4, p). All of them begin at the start."""
    p = len(design)
    theta, trial, step, gradient = points[0], points[1], points[2], points[3]
    most, scale, decrement = np.inf, 1.0, 0.0
    n_steps = n_halvings = 0
    # The value is computed before and after a step that is not sure, to compare the
    # two. Fits that start near their end never need it. This is an expression, because
    # a literal would be a second signature.
    valued = most < 0.0
    while n_steps < _MAX_STEPS and n_halvings < _MAX_HALVINGS:
        total = _evaluate(
            design, weight0, weight1, penalty, prior, trial, gradient, hessian, valued
        )
        # This is Armijo's condition with the usual constant. Almost any descent is
        # enough, because Newton steps end up whole. `not <=` catches nan too.
        if valued and not total <= most:
            n_halvings += 1
            scale *= 0.5
            for j in range(p):
                trial[j] = theta[j] - scale * step[j]
            most += 1e-4 * scale * decrement
            continue
        decrement = 0.0
        for j in range(p):
            theta[j] = trial[j]
            for k in range(j):
                hessian[k, j] = hessian[j, k]
        for j in range(p):
            # A tiny ridge keeps the solution defined if probabilities saturate.
            hessian[j, j] += 1e-12 * hessian[j, j] + 1e-300
            step[j] = gradient[j]
        _solve(hessian, step)
        for j in range(p):
            decrement += gradient[j] * step[j]
        if not decrement < np.inf:
            return False
        if decrement >= _SURE_DECREMENT and not valued:
            valued, most = decrement >= 0.0, np.inf
            continue
        n_steps, n_halvings, scale = n_steps + 1, 0, 1.0
        valued, most = decrement >= _SURE_DECREMENT, total - 1e-4 * decrement
        for j in range(p):
            trial[j] = theta[j] - step[j]
        if decrement < _LAST_DECREMENT:
            for j in range(p):
                theta[j] = trial[j]
            return True
    return False
