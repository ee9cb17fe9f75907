"""Fitted matrix, vector and temperature scaling: maps of log-probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.multiclass.class_scores import ClassScores
from calibration.multiclass.log_probabilities import (
    LogProbabilityScale,
    log_softmax,
    mix_uniform,
    to_probabilities,
)
from calibration.multiclass.scaling_problem import (
    MatrixProblem,
    ScalingProblem,
    VectorProblem,
)
from calibration.multiclass.temperature import find_inverse_temperature
from calibration.multiclass.truncated_newton import TOLERANCE, solve_scaling
from calibration.typing import Float64Array, Int64Array

# Ridge of an unpenalised fit, in rows: as in the fits of two classes it only keeps
# the parameters finite where classes are separable.
_WEAK_RIDGE = 1e-3

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
    logs = LogProbabilityScale.of(scale, data.scores, data.n)
    b = find_inverse_temperature(logs(data.scores), data.labels, data.weight)
    k = data.scores.shape[1]
    return SoftmaxMap(logs, data.n, b, None, np.zeros((k, 2)))


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
    start, theta = fit_temperature(data, scale), None
    z: Float64Array | None = None
    maps: list[SoftmaxMap] = []
    for penalty in penalties:
        blank = replace(start, penalty=penalty)
        # Only without a penalty it is another z'.
        if z is None or penalty == 0.0:
            z = blank.prepare(data.scores)
        problem = make_problem(structure, z, data.labels, data.weight, penalty)
        theta = solve_scaling(problem, theta, tolerance)
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
    unit = penalty * k / n if penalty > 0.0 else _WEAK_RIDGE / n
    ridge = np.full((k, k + 1 if structure == "matrix" else 2), unit)
    if structure == "matrix" and penalty > 0.0:
        ridge[:, :-1] += (k - 2) * unit * (1.0 - np.eye(k))
    return _PROBLEMS[structure](z, labels, weight, ridge)
