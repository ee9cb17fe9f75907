"""Matrix and vector scaling: the convex objective, and Newton's method on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from calibration.multiclass.log_probabilities import column_blocks
from calibration.typing import Float64Array, Int64Array

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


class ScalingPoint(NamedTuple):
    """What the objective is at some parameters.

    `gradient` has the parameters' shape; `p` (k, n) are the class probabilities.
    """

    value: float
    gradient: Float64Array
    p: Float64Array


class ScalingProblem(ABC):
    r"""Mean cross-entropy of S(z + A(theta) z + b) and a ridge, as a function of theta.

    Columns are rows of the data: with k classes in the first axis, sums over classes
    run along memory, whatever k is.

    Parameters
    ----------
    z : ndarray of shape (k, n)
        Log-probabilities.
    labels : ndarray of shape (n,)
        Column numbers, 0 to k - 1.
    weight : ndarray of shape (n,)
        Positive numbers of repetitions.
    ridge : ndarray of the parameters' shape
        The objective grows by sum ridge * theta^2.
    """

    def __init__(
        self,
        z: Float64Array,
        labels: Int64Array,
        weight: Float64Array,
        ridge: Float64Array,
    ):
        self.z = z
        self.labels = labels
        self.share = weight / weight.sum()
        self.ridge = ridge

    @abstractmethod
    def _move(self, theta: Float64Array, z: Float64Array) -> Float64Array:
        """Return A(theta) z + b, shape (k, m) as z."""

    @abstractmethod
    def _collect(self, slopes: Float64Array, z: Float64Array) -> Float64Array:
        """Return the adjoint of `_move` at slopes (k, m): the parameters' shape."""

    @abstractmethod
    def _designs(self, z: Float64Array) -> Iterable[Float64Array]:
        """Return what the logit of each class is linear in, shape (d, m)."""

    def class_blocks(self, p: Float64Array, rows: slice) -> Float64Array:
        """Return X diag(share p (1 - p)) X' and the ridge of each class, (k, d, d).

        d parameters a class, X their design. `rows` stand for all.
        """
        share = self.share[rows] / self.share[rows].sum()
        some, z = p[:, rows], self.z[:, rows]
        blocks = []
        weights = some * (1.0 - some) * share
        for row, design, ridge in zip(
            weights, self._designs(z), self.ridge, strict=True
        ):
            blocks.append((design * row) @ design.T + np.diag(2.0 * ridge))
        return np.stack(blocks)

    def thinned(self, step: int) -> ScalingProblem:
        """Return the problem of every `step`-th row."""
        z = np.ascontiguousarray(self.z[:, ::step])
        return type(self)(z, self.labels[::step], self.share[::step], self.ridge)

    def at(self, theta: Float64Array, out: Float64Array | None = None) -> ScalingPoint:
        """Return value, gradient and probabilities; these are written to `out`."""
        p = np.empty_like(self.z) if out is None else out
        value = float((self.ridge * theta**2).sum())
        gradient = 2.0 * self.ridge * theta
        for block in column_blocks(self.z):
            z, labels, share = self.z[:, block], self.labels[block], self.share[block]
            part = self._move(theta, z)
            part += z
            part -= part.max(axis=0)
            places = np.arange(len(labels))
            own = part[labels, places]
            np.exp(part, out=part)
            total = part.sum(axis=0)
            value += float(share @ (np.log(total) - own))
            part /= total
            p[:, block] = part
            part[labels, places] -= 1.0
            part *= share
            gradient += self._collect(part, z)
        return ScalingPoint(value, gradient, p)

    def curvature(self, p: Float64Array, direction: Float64Array) -> Float64Array:
        """Return the Hessian, at the parameters whose probabilities are p, times one.

        For a change D = A z + b of the logits, the slopes share * (p - y) change by
        share * p * (D - sum_j p_j D_j).
        """
        out = 2.0 * self.ridge * direction
        for block in column_blocks(self.z):
            z, here = self.z[:, block], p[:, block]
            change = self._move(direction, z)
            change -= np.einsum("ki,ki->i", here, change)
            change *= here
            change *= self.share[block]
            out += self._collect(change, z)
        return out


class MatrixProblem(ScalingProblem):
    """theta = [W, b] of shape (k, k + 1): logits z + W z + b."""

    def _move(self, theta: Float64Array, z: Float64Array) -> Float64Array:
        moved: Float64Array = theta[:, :-1] @ z
        moved += theta[:, -1:]
        return moved

    def _collect(self, slopes: Float64Array, z: Float64Array) -> Float64Array:
        return np.hstack([slopes @ z.T, slopes.sum(axis=1, keepdims=True)])

    def _designs(self, z: Float64Array) -> Iterable[Float64Array]:
        return [np.vstack([z, np.ones((1, z.shape[1]))])] * len(z)


class VectorProblem(ScalingProblem):
    """theta = [v, b] of shape (k, 2): logits z + v * z + b."""

    def _move(self, theta: Float64Array, z: Float64Array) -> Float64Array:
        moved: Float64Array = theta[:, :1] * z
        moved += theta[:, 1:]
        return moved

    def _collect(self, slopes: Float64Array, z: Float64Array) -> Float64Array:
        return np.stack([np.einsum("ki,ki->k", slopes, z), slopes.sum(axis=1)], axis=1)

    def _designs(self, z: Float64Array) -> Iterable[Float64Array]:
        return (np.stack([row, np.ones(z.shape[1])]) for row in z)


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
