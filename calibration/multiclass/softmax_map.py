"""Fitted matrix, vector and temperature scaling: maps of log-probabilities.

Their convex objective is minimised by Newton's method.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from calibration.base.log_odds import WEAK_RIDGE, limit_pull
from calibration.multiclass.class_scores import (
    ClassScores,
    LogProbabilityScale,
    column_blocks,
    log_softmax,
    mix_uniform,
    to_probabilities,
)
from calibration.typing import Float64Array, Int64Array

# The largest entry of the gradient at a solution.
TOLERANCE = 1e-9
_MAX_STEPS = 100
_MAX_HALVINGS = 40
_MAX_INNER = 500
# The preconditioner uses this many rows. A fit starts from this many.
_SAMPLE_ROWS = 2_000
_START_ROWS = 4_000
# Rounding may take this share of a block's size from a flat direction.
_JITTER = 1e-12


class ScalingPoint(NamedTuple):
    """The objective at some parameters.

    `gradient` has the shape of the parameters. `p` (k, n) are the class probabilities.
    """

    value: float
    gradient: Float64Array
    p: Float64Array


class MatrixProblem:
    r"""Mean cross-entropy of S(z + W z + b) and a ridge, as a function of theta.

    theta = [W, b] has the shape (k, k + 1). Columns are rows of the data. The classes
    are on the first axis, so sums over classes run along memory for any k.

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

    def _move(self, theta: Float64Array, z: Float64Array) -> Float64Array:
        """Return W z + b, shape (k, m) as z."""
        moved: Float64Array = theta[:, :-1] @ z
        moved += theta[:, -1:]
        return moved

    def _collect(self, slopes: Float64Array, z: Float64Array) -> Float64Array:
        """Return the adjoint of `_move` at slopes (k, m), in the parameters' shape."""
        return np.hstack([slopes @ z.T, slopes.sum(axis=1, keepdims=True)])

    def _designs(self, z: Float64Array) -> Iterable[Float64Array]:
        """Return the inputs (d, m) in which the logit of each class is linear."""
        return [np.vstack([z, np.ones((1, z.shape[1]))])] * len(z)

    def class_blocks(self, p: Float64Array, rows: slice) -> Float64Array:
        """Return X diag(share p (1 - p)) X' and the ridge of each class, (k, d, d).

        Here a class has d parameters, and X is their design. `rows` stand for all rows.
        """
        share = self.share[rows] / self.share[rows].sum()
        p_rows, z = p[:, rows], self.z[:, rows]
        weights = p_rows * (1.0 - p_rows) * share
        parts = zip(weights, self._designs(z), self.ridge, strict=True)
        blocks = [(x * row) @ x.T + np.diag(2.0 * ridge) for row, x, ridge in parts]
        return np.stack(blocks)

    def thinned(self, step: int) -> MatrixProblem:
        """Return the problem of every `step`-th row."""
        z = np.ascontiguousarray(self.z[:, ::step])
        return type(self)(z, self.labels[::step], self.share[::step], self.ridge)

    def at(self, theta: Float64Array, out: Float64Array | None = None) -> ScalingPoint:
        """Return value, gradient and probabilities, which are written to `out`."""
        p = np.empty_like(self.z) if out is None else out
        value = float((self.ridge * theta**2).sum())
        gradient = 2.0 * self.ridge * theta
        for block in column_blocks(self.z):
            z, labels, share = self.z[:, block], self.labels[block], self.share[block]
            part = self._move(theta, z)
            part += z
            part -= part.max(axis=0)
            places = np.arange(len(labels))
            of_label = part[labels, places]
            np.exp(part, out=part)
            total = part.sum(axis=0)
            value += float(share @ (np.log(total) - of_label))
            part /= total
            p[:, block] = part
            part[labels, places] -= 1.0
            part *= share
            gradient += self._collect(part, z)
        return ScalingPoint(value, gradient, p)

    def curvature(self, p: Float64Array, direction: Float64Array) -> Float64Array:
        """Return the Hessian times a direction, at the parameters with probabilities p.

        If the logits change by D = A z + b, the slopes share * (p - y) change by
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


class VectorProblem(MatrixProblem):
    """One factor for each class: theta = [v, b] (k, 2), with logits z + v * z + b."""

    def _move(self, theta: Float64Array, z: Float64Array) -> Float64Array:
        moved: Float64Array = theta[:, :1] * z
        moved += theta[:, 1:]
        return moved

    def _collect(self, slopes: Float64Array, z: Float64Array) -> Float64Array:
        return np.stack([np.einsum("ki,ki->k", slopes, z), slopes.sum(axis=1)], axis=1)

    def _designs(self, z: Float64Array) -> Iterable[Float64Array]:
        return (np.stack([row, np.ones(z.shape[1])]) for row in z)


def solve_scaling(
    problem: MatrixProblem,
    start: Float64Array | None = None,
    tolerance: float = TOLERANCE,
) -> Float64Array:
    """Return the minimiser of a scaling problem.

    Without a start, the solution for some of the rows comes first. It is close to the
    full solution, and costs a fraction.

    Parameters
    ----------
    problem : MatrixProblem
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
    problem: MatrixProblem, theta: Float64Array, tolerance: float
) -> Float64Array:
    """Take Newton steps until the gradient is 0. Halve each until it descends."""
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
            # The old probabilities are not needed again. The new ones take their
            # memory.
            now = problem.at(trial, out=point.p)
            # Near the solution, rounding hides the descent of a good step.
            noise = 1e-14 * (1.0 + abs(point.value))
            if now.value <= point.value + 1e-4 * scale * slope + noise:
                break
            scale *= 0.5
        else:
            break
        theta, point = trial, now
    return theta


def _newton_step(
    problem: MatrixProblem, point: ScalingPoint, tolerance: float
) -> Float64Array:
    """Return about -H^-1 gradient, by preconditioned conjugate gradients.

    The solution is exact enough that steps converge faster than linearly. The residual
    must fall by the root of the gradient's size (Nocedal & Wright, ch. 7).
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
        # The direction is flat, up to rounding. The answer so far descends.
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


def _invert_blocks(problem: MatrixProblem, p: Float64Array) -> Float64Array:
    """Return the inverses of the Hessian's blocks within a class, shape (k, d, d)."""
    every = max(p.shape[1] // _SAMPLE_ROWS, 1)
    blocks = problem.class_blocks(p, slice(None, None, every))
    places = np.arange(blocks.shape[1])
    size = np.trace(blocks, axis1=1, axis2=2) / len(places)
    blocks[:, places, places] += _JITTER * size[:, None] + 1e-300
    return np.linalg.inv(blocks).astype(np.float64, copy=False)


# The logarithm of the inverse temperature is searched in this range. If
# log-probabilities differ by much, the range goes further down.
_LOW, _HIGH = -16.0, 16.0
_TEMPERATURE_STEPS = 80
# The search stops at a change of the logarithm this small.
_LAST_CHANGE = 1e-12


@dataclass(frozen=True, eq=False)
class SoftmaxMap:
    """S(z' + A z' + b) with z' the log-probabilities at a temperature.

    Parameters
    ----------
    scale : LogProbabilityScale
        Turns scores into log-probabilities z.
    n : float
        Weight of the rows learned from.
    inverse_temperature : float
        Inverse temperature of z.
    penalty : float or None
        Multiplier of the ridge. 0 means no ridge, None means only a temperature.
    theta : ndarray of shape (k, k + 1) or (k, 2)
        [A, b], or A's diagonal and b.
    """

    scale: LogProbabilityScale
    n: float
    inverse_temperature: float
    penalty: float | None
    theta: Float64Array

    def prepare(self, table: Float64Array) -> Float64Array:
        """Return z' of scores (m, k), shape (k, m).

        If the map is penalised, z' is the logarithm of the softmax at the temperature,
        mixed with the uniform law. The ridge measures distances in it. Without a ridge
        there is nothing to measure, and z' is b z: the family is that of log p. A
        temperature alone mixes only rows that hold a probability of 0.
        """
        z = self.scale(table)
        z *= self.inverse_temperature
        if self.penalty == 0.0:
            return z
        log_softmax(z)
        if self.penalty is not None:
            return mix_uniform(z, self.n)
        if self.scale.scale == "probability" and table.min() == 0.0:
            rows = (table == 0.0).any(axis=1)
            z[:, rows] = mix_uniform(z[:, rows], self.n)
        return z

    def log_probabilities(self, table: Float64Array) -> Float64Array:
        """Return calibrated log-probabilities of scores (m, k), shape (k, m)."""
        return log_softmax(self._logits(table))

    def probabilities(self, table: Float64Array) -> Float64Array:
        """Return calibrated probabilities of scores (m, k), shape (m, k)."""
        return to_probabilities(self._logits(table))

    def _logits(self, table: Float64Array) -> Float64Array:
        z = self.prepare(table)
        if self.penalty is None:
            return z
        matrix, intercept = self.theta[:, :-1], self.theta[:, -1:]
        moved: Float64Array = matrix * z if matrix.shape[1] == 1 else matrix @ z
        moved += intercept
        moved += z
        return moved


def fit_temperature(data: ClassScores, scale: str) -> SoftmaxMap:
    """Return the map of one temperature.

    Parameters
    ----------
    data : ClassScores
    scale : {"probability", "logit"}

    Returns
    -------
    SoftmaxMap
    """

    def fit() -> SoftmaxMap:
        logs = LogProbabilityScale.of(scale, data.scores, data.n)
        b = find_inverse_temperature(logs(data.scores), data.labels, data.weight)
        return SoftmaxMap(logs, data.n, b, None, np.zeros((data.scores.shape[1], 2)))

    return data.share(("temperature", scale), fit)


def fit_path(
    data: ClassScores,
    scale: str,
    structure: str,
    penalties: Sequence[float],
    tolerance: float = TOLERANCE,
) -> list[SoftmaxMap]:
    """Return the maps of some penalties. Each fit starts from the one before.

    Parameters
    ----------
    data : ClassScores
    scale : {"probability", "logit"}
    structure : {"matrix", "vector"}
    penalties : sequence of float
        Multipliers of the ridge. The largest is first.
    tolerance : float
        Largest entry of the objective's gradient at a fit.

    Returns
    -------
    list of SoftmaxMap
    """
    start, maps, k = fit_temperature(data, scale), [], data.scores.shape[1]
    kind = MatrixProblem if structure == "matrix" else VectorProblem
    # The last solution, in a list. A later fit of the same rows starts from it.
    path: list[Float64Array | None] = data.share((structure, scale), lambda: [None])
    for penalty in penalties:
        blank = replace(start, penalty=penalty)
        # z' is different only without a penalty.
        z = data.share((scale, penalty == 0.0), partial(blank.prepare, data.scores))
        # Each group of parameters is penalised by its size. There are k diagonal
        # entries, k intercepts, and k (k - 1) others.
        unit = penalty * k / data.n if penalty > 0.0 else WEAK_RIDGE / data.n
        ridge = np.full((k, k + 1 if structure == "matrix" else 2), unit)
        if structure == "matrix" and penalty > 0.0:
            ridge[:, :-1] += (k - 2) * unit * (1.0 - np.eye(k))
        problem = kind(z, data.labels, data.weight, ridge)
        path[0] = theta = solve_scaling(problem, path[0], tolerance)
        maps.append(replace(blank, theta=theta))
    return maps


def find_inverse_temperature(
    z: Float64Array, labels: Int64Array, weight: Float64Array
) -> float:
    r"""Return the b > 0 of least mean cross-entropy of S(b z), with a weak ridge.

    The loss is convex in b. Its slope is mean_i [sum_j z_ij S(b z_i)_j - z_(i, y_i)].
    The slope of min(r s^2, 4) (b - 1)^2 / (2 n) is added. Here r is 0.001, and s^2 is
    twice the mean of sum_j (z_ij - mean_j z_ij)^2. With two classes s^2 is the mean
    square of the log-odds, and the whole is the objective of `TemperatureCalibrator`.

    Let u = log b. The root of the slope is bracketed in [-16, 16]. The lower end is
    less by the logarithm of s if s > 1. The bracket is cut at Newton's step if that
    lies inside, and else in the middle. This is bisection with fewer passes over the
    data. Without a root, the end of the bracket is the answer.

    Parameters
    ----------
    z : ndarray of shape (k, n)
        Log-probabilities, a column for each row of the data.
    labels : ndarray of shape (n,)
        Column numbers.
    weight : ndarray of shape (n,)
        Positive numbers of repetitions.

    Returns
    -------
    float
    """
    share = weight / weight.sum()
    square = _mean_square(z, share)
    ridge = float(limit_pull(WEAK_RIDGE, np.sqrt(square))) * square / weight.sum()
    low, high, u = _LOW - 0.5 * np.log(max(square, 1.0)), _HIGH, 0.0
    for _ in range(_TEMPERATURE_STEPS):
        slope, bend = _slope(z, labels, share, np.exp(u))
        slope, bend = slope + ridge * (np.exp(u) - 1.0), bend + ridge
        if slope > 0.0:
            high = u
        else:
            low = u
        # This is Newton's step in u, where the derivative of the slope is b times that
        # in b.
        change = -slope / (bend * np.exp(u)) if bend > 0.0 else np.inf
        if abs(change) < _LAST_CHANGE or high - low < _LAST_CHANGE:
            break
        inside = low < u + change < high
        u = u + change if inside else 0.5 * (low + high)
    return float(np.exp(u))


def _mean_square(z: Float64Array, share: Float64Array) -> float:
    """Return twice the mean squared deviation of columns from their means, summed."""
    total = 0.0
    for block in column_blocks(z):
        part = z[:, block]
        part = part - part.mean(axis=0)
        squares = np.einsum("ki,ki->i", part, part)
        total += 2.0 * float(share[block] @ squares)
    return total


def _slope(
    z: Float64Array, labels: Int64Array, share: Float64Array, b: float
) -> tuple[float, float]:
    """Return the first and second derivative of the mean cross-entropy in b."""
    slope = bend = 0.0
    for block in column_blocks(z):
        part = z[:, block]
        # Only differences matter in S. If the largest is 0, nothing overflows.
        part = part - part.max(axis=0)
        mass = part * b
        np.exp(mass, out=mass)
        total = mass.sum(axis=0)
        mean = np.einsum("ki,ki->i", mass, part) / total
        square = np.einsum("ki,ki,ki->i", mass, part, part) / total
        here = labels[block]
        of_label = part[here, np.arange(len(here))]
        slope += float(share[block] @ (mean - of_label))
        bend += float(share[block] @ (square - mean**2))
    return slope, bend
