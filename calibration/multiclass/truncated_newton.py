"""Newton's method on a scaling problem, its steps by conjugate gradients."""

from __future__ import annotations

import numpy as np

from calibration.multiclass.scaling_problem import ScalingPoint, ScalingProblem
from calibration.typing import Float64Array

# The largest entry of the gradient at a solution.
TOLERANCE = 1e-9
_MAX_STEPS = 100
_MAX_HALVINGS = 40
_MAX_INNER = 500
# Rows that the preconditioner is made of, and rows that a fit is started from.
_SAMPLE_ROWS = 2_000
_START_ROWS = 4_000
# Relative to a block's own size: what rounding may take from a flat direction.
_JITTER = 1e-12


def solve_scaling(
    problem: ScalingProblem,
    start: Float64Array | None = None,
    tolerance: float = TOLERANCE,
) -> Float64Array:
    """Return the minimiser of a scaling problem.

    Without a start, that of some of the rows comes first: close to the solution, and
    at a fraction of the cost.

    Parameters
    ----------
    problem : ScalingProblem
    start : ndarray of the parameters' shape, optional
    tolerance : float
        Largest entry of the gradient at the answer.

    Returns
    -------
    ndarray of the parameters' shape
    """
    if start is None:
        start = np.zeros_like(problem.ridge)
        step = problem.z.shape[1] // _START_ROWS
        if step > 4:
            # An eighth of a standard error of the whole is close enough.
            start = _descend(problem.thinned(step), start, 1e-5)
    return _descend(problem, start, tolerance)


def _descend(
    problem: ScalingProblem, theta: Float64Array, tolerance: float
) -> Float64Array:
    """Take Newton steps, halved until they descend, until the gradient is 0."""
    point = problem.at(theta)
    for _ in range(_MAX_STEPS):
        size = float(np.abs(point.gradient).max())
        if size <= tolerance:
            break
        step = _newton_step(problem, point, tolerance)
        slope = float((point.gradient * step).sum())
        scale = 1.0
        for _ in range(_MAX_HALVINGS):
            trial = theta + scale * step
            # The old probabilities are of no more use: their memory takes the new.
            now = problem.at(trial, out=point.p)
            # Near the solution rounding hides the descent of a sure step.
            noise = 1e-14 * (1.0 + abs(point.value))
            if now.value <= point.value + 1e-4 * scale * slope + noise:
                break
            scale *= 0.5
        else:
            break
        theta, point = trial, now
    return theta


def _newton_step(
    problem: ScalingProblem, point: ScalingPoint, tolerance: float
) -> Float64Array:
    """Return about -H^-1 gradient, by preconditioned conjugate gradients.

    Exact enough for the steps' lengths to converge faster than linearly: the residual
    is asked to fall by the root of the gradient's size (Nocedal & Wright, ch. 7).
    """
    inverse = _invert_blocks(problem, point.p)
    residual = -point.gradient
    goal = float(np.abs(residual).max())
    goal *= min(0.1, np.sqrt(goal))
    goal = max(goal, 0.1 * tolerance)
    step = np.zeros_like(residual)
    image = np.einsum("kde,ke->kd", inverse, residual)
    direction = image
    product = float((residual * image).sum())
    for _ in range(_MAX_INNER):
        bent = problem.curvature(point.p, direction)
        bend = float((direction * bent).sum())
        # Flat by rounding: what is found so far descends.
        if not bend > 0.0:
            return step if step.any() else direction
        length = product / bend
        step = step + length * direction
        residual = residual - length * bent
        if np.abs(residual).max() <= goal:
            break
        image = np.einsum("kde,ke->kd", inverse, residual)
        product, last = float((residual * image).sum()), product
        direction = image + (product / last) * direction
    return step


def _invert_blocks(problem: ScalingProblem, p: Float64Array) -> Float64Array:
    """Return the inverses of the Hessian's blocks within a class, shape (k, d, d)."""
    every = max(p.shape[1] // _SAMPLE_ROWS, 1)
    blocks = problem.class_blocks(p, slice(None, None, every))
    places = np.arange(blocks.shape[1])
    size = np.trace(blocks, axis1=1, axis2=2) / len(places)
    blocks[:, places, places] += _JITTER * size[:, None] + 1e-300
    inverse: Float64Array = np.linalg.inv(blocks).astype(np.float64, copy=False)
    return inverse
