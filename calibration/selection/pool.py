"""Logarithmic pools of candidates, and their non-negative weights of least loss."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from calibration.multiclass.log_probabilities import log_softmax
from calibration.typing import Float64Array

_MAX_STEPS = 100
_MAX_HALVINGS = 40
# Newton's decrement, relative to the value: below the first rounding hides the descent
# of a step that is sure, after one below the second the weights stand still.
_SURE, _LAST = 1e-10, 1e-16


def pool_logs(weights: Float64Array, logs: Float64Array) -> Float64Array:
    r"""Return the pool :math:`p \propto \prod_c p_c^{w_c}` as log-probabilities.

    Parameters
    ----------
    weights : ndarray of shape (c,)
    logs : ndarray of shape (c, k, n)
        Log-probabilities of c candidates.

    Returns
    -------
    ndarray of shape (k, n)
    """
    return log_softmax(np.tensordot(weights, logs, axes=1))


def learn_weights(
    logs: Float64Array, weight: Float64Array, start: Float64Array, ridge: float
) -> Float64Array:
    """Return the w >= 0 of least loss of the pool + ridge / 2 |w - start|^2.

    Each Newton step is a non-negative least-squares problem, so bounds hold exactly.

    Parameters
    ----------
    logs : ndarray of shape (c, k, n)
    weight : ndarray of shape (k, n)
        Numbers of repetitions of each class.
    start : ndarray of shape (c,)
        Weights that few rows stay close to.
    ridge : float

    Returns
    -------
    ndarray of shape (c,)
    """
    w = start.copy()
    value, gradient, hessian = _derive(w, logs, weight, start, ridge)
    for _ in range(_MAX_STEPS):
        step = _newton_step(w, gradient, hessian, ridge)
        slope = float(gradient @ step)
        size = 1.0 + abs(value)
        if -slope < _LAST * size:
            return np.maximum(w + step, 0.0)
        scale = 1.0
        for _ in range(_MAX_HALVINGS):
            # On the segment between two feasible points; the maximum takes back
            # rounding only.
            trial = np.maximum(w + scale * step, 0.0)
            now = _derive(trial, logs, weight, start, ridge)
            if -slope < _SURE * size or now[0] <= value + 1e-4 * scale * slope:
                break
            scale *= 0.5
        else:
            return w
        w, (value, gradient, hessian) = trial, now
    return w


def _derive(
    w: Float64Array,
    logs: Float64Array,
    weight: Float64Array,
    start: Float64Array,
    ridge: float,
) -> tuple[float, Float64Array, Float64Array]:
    """Return the objective, its gradient (c,) and Hessian (c, c)."""
    n_candidates = len(logs)
    log_p = pool_logs(w, logs)
    away = w - start
    value = -float((weight * log_p).sum()) + 0.5 * ridge * float(away @ away)
    p, mass = np.exp(log_p), weight.sum(axis=0)
    mean = np.einsum("cki,ki->ci", logs, p)
    p *= mass
    flat = logs.reshape(n_candidates, -1)
    gradient = flat @ (p - weight).ravel() + ridge * away
    hessian = ridge * np.eye(n_candidates) - (mean * mass) @ mean.T
    for c, one in enumerate(logs):
        hessian[c] += flat @ (one * p).ravel()
    return value, gradient, hessian


def _newton_step(
    w: Float64Array, gradient: Float64Array, hessian: Float64Array, ridge: float
) -> Float64Array:
    """Return the d of least g'd + d'Hd / 2 with w + d >= 0.

    With H = R'R it is that of least |R v - R'^-1 (H w - g)| over v = w + d >= 0. No
    curvature is below the ridge, but by rounding, where log-odds are as large as 1e8.
    """
    curvatures, axes = np.linalg.eigh(hessian)
    roots = np.sqrt(np.maximum(curvatures, ridge))
    goal = axes.T @ (hessian @ w - gradient) / roots
    step: Float64Array = nnls(roots[:, None] * axes.T, goal)[0] - w
    return step
