"""Weights of candidates that are not negative, and held to a start, of least loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.optimize import nnls

from calibration.typing import Float64Array

# Value, gradient (c,) and Hessian (c, c) of a convex loss at weights (c,).
Derivatives: TypeAlias = tuple[float, Float64Array, Float64Array]

_MAX_STEPS = 100
_MAX_HALVINGS = 40
# Newton's decrement, relative to the value: below the first rounding hides the descent
# of a step that is sure, after one below the second the weights stand still.
_SURE, _LAST = 1e-10, 1e-16


def learn_held_weights(
    loss: Callable[[Float64Array], Derivatives], start: Float64Array, ridge: float
) -> Float64Array:
    """Return the w >= 0 of least loss(w) + ridge / 2 |w - start|^2.

    Each Newton step is a non-negative least-squares problem, so bounds hold exactly.

    Parameters
    ----------
    loss : function of an ndarray of shape (c,)
        Returns value, gradient and Hessian.
    start : ndarray of shape (c,)
        Weights that few rows stay close to.
    ridge : float

    Returns
    -------
    ndarray of shape (c,)
    """

    def held(w: Float64Array) -> Derivatives:
        value, gradient, hessian = loss(w)
        away = w - start
        value += 0.5 * ridge * float(away @ away)
        return value, gradient + ridge * away, hessian + ridge * np.eye(len(w))

    w = start.copy()
    value, gradient, hessian = held(w)
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
            now = held(trial)
            if -slope < _SURE * size or now[0] <= value + 1e-4 * scale * slope:
                break
            scale *= 0.5
        else:
            return w
        w, (value, gradient, hessian) = trial, now
    return w


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
