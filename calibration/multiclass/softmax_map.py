"""Fitted matrix, vector and temperature scaling: maps of log-probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from calibration.base.log_odds import WEAK_RIDGE, limit_pull
from calibration.multiclass.class_scores import ClassScores
from calibration.multiclass.log_probabilities import (
    LogProbabilityScale,
    column_blocks,
    log_softmax,
    mix_uniform,
    to_probabilities,
)
from calibration.multiclass.scaling import (
    TOLERANCE,
    MatrixProblem,
    ScalingProblem,
    VectorProblem,
    solve_scaling,
)
from calibration.typing import Float64Array, Int64Array

# The logarithm of the inverse temperature is sought in between, of log-probabilities
# that differ by much further down.
_LOW, _HIGH = -16.0, 16.0
_MAX_STEPS = 80
# Change of the logarithm at which it stands still.
_LAST_CHANGE = 1e-12


Problems = dict[str, type[ScalingProblem]]
_PROBLEMS: Problems = {"matrix": MatrixProblem, "vector": VectorProblem}


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
        Of z.
    penalty : float or None
        Multiplier of the ridge; 0 is none, and None that there is only a temperature.
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

        That of a penalised map is the logarithm of the softmax at the temperature,
        mixed with the uniform law; the ridge measures distances in it. Without a
        ridge there is nothing to measure and z' is b z: the family is that of log p.
        """
        z = self.scale(table)
        z *= self.inverse_temperature
        if self.penalty == 0.0:
            return z
        log_softmax(z)
        if self.penalty is None:
            return self._mix_zeros(z, table)
        return mix_uniform(z, self.n)

    def _mix_zeros(self, z: Float64Array, table: Float64Array) -> Float64Array:
        """Mix with the uniform law the rows that hold a probability of 0."""
        if self.scale.scale != "probability" or table.min() > 0.0:
            return z
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
    """Return the maps of some penalties, each fit started from the one before.

    Parameters
    ----------
    data : ClassScores
    scale : {"probability", "logit"}
    structure : {"matrix", "vector"}
    penalties : sequence of float
        Multipliers of the ridge, the largest first.
    tolerance : float
        Largest entry of the objective's gradient at a fit.

    Returns
    -------
    list of SoftmaxMap
    """
    start, maps = fit_temperature(data, scale), []
    # The last solution, in a list: whoever fits the same rows again starts from it.
    path: list[Float64Array | None] = data.share((structure, scale), lambda: [None])
    for penalty in penalties:
        blank = replace(start, penalty=penalty)
        # Only without a penalty it is another z'.
        z = data.share((scale, penalty == 0.0), partial(blank.prepare, data.scores))
        problem = make_problem(structure, z, data.labels, data.weight, penalty)
        path[0] = theta = solve_scaling(problem, path[0], tolerance)
        maps.append(replace(blank, theta=theta))
    return maps


def make_problem(
    structure: str,
    z: Float64Array,
    labels: Int64Array,
    weight: Float64Array,
    penalty: float,
) -> ScalingProblem:
    """Return the objective of structured matrix or vector scaling.

    Parameters
    ----------
    structure : {"matrix", "vector"}
    z : ndarray of shape (k, n)
    labels : ndarray of shape (n,)
    weight : ndarray of shape (n,)
    penalty : float
        Multiplier of the ridge.

    Returns
    -------
    ScalingProblem
    """
    k, n = len(z), float(weight.sum())
    # Each group of parameters is penalised by its number: k diagonal entries, k
    # intercepts, k (k - 1) others.
    unit = penalty * k / n if penalty > 0.0 else WEAK_RIDGE / n
    ridge = np.full((k, k + 1 if structure == "matrix" else 2), unit)
    if structure == "matrix" and penalty > 0.0:
        ridge[:, :-1] += (k - 2) * unit * (1.0 - np.eye(k))
    return _PROBLEMS[structure](z, labels, weight, ridge)


def find_inverse_temperature(
    z: Float64Array, labels: Int64Array, weight: Float64Array
) -> float:
    r"""Return the b > 0 of least mean cross-entropy of S(b z), with a weak ridge.

    The loss is convex in b, its slope
    mean_i [sum_j z_ij S(b z_i)_j - z_(i, y_i)]. To it comes the slope of
    min(r s^2, 4) (b - 1)^2 / (2 n), r being 0.001 and s^2 twice the mean of
    sum_j (z_ij - mean_j z_ij)^2: of two classes that is the mean square of the
    log-odds, and the whole the objective of `TemperatureCalibrator`.

    With u = log b the slope's root is bracketed in [-16, 16], less the logarithm of
    an s > 1 at the lower end, and the bracket cut at
    Newton's step where that lies inside, else in the middle: bisection, but of fewer
    passes over the data. Without a root the end of the bracket is the answer.

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
    for _ in range(_MAX_STEPS):
        slope, bend = _slope(z, labels, share, np.exp(u))
        slope, bend = slope + ridge * (np.exp(u) - 1.0), bend + ridge
        if slope > 0.0:
            high = u
        else:
            low = u
        # Newton's step in u, whose derivative of the slope is b times that in b.
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
        # Of S only differences count: with the largest at 0 nothing overflows.
        part = part - part.max(axis=0)
        mass = part * b
        np.exp(mass, out=mass)
        total = mass.sum(axis=0)
        mean = np.einsum("ki,ki->i", mass, part) / total
        square = np.einsum("ki,ki,ki->i", mass, part, part) / total
        here = labels[block]
        own = part[here, np.arange(len(here))]
        slope += float(share[block] @ (mean - own))
        bend += float(share[block] @ (square - mean**2))
    return slope, bend
