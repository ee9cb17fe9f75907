"""The convex objective of matrix and vector scaling, and its derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from calibration.multiclass.log_probabilities import column_blocks
from calibration.typing import Float64Array, Int64Array


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
    def class_blocks(self, p: Float64Array, rows: slice) -> Float64Array:
        """Return the Hessian's blocks within a class, shape (k, d, d), from some rows.

        d parameters a class. `rows` stand for all.
        """

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

    def class_blocks(self, p: Float64Array, rows: slice) -> Float64Array:
        """Return X diag(share p (1 - p)) X' and the ridge of each class, X = [z; 1]."""
        share = self.share[rows] / self.share[rows].sum()
        some, z = p[:, rows], self.z[:, rows]
        design = np.vstack([z, np.ones((1, z.shape[1]))])
        blocks = np.stack(
            [(design * row) @ design.T for row in some * (1.0 - some) * share]
        )
        places = np.arange(len(design))
        blocks[:, places, places] += 2.0 * self.ridge
        return blocks


class VectorProblem(ScalingProblem):
    """theta = [v, b] of shape (k, 2): logits z + v * z + b."""

    def _move(self, theta: Float64Array, z: Float64Array) -> Float64Array:
        moved: Float64Array = theta[:, :1] * z
        moved += theta[:, 1:]
        return moved

    def _collect(self, slopes: Float64Array, z: Float64Array) -> Float64Array:
        return np.stack([np.einsum("ki,ki->k", slopes, z), slopes.sum(axis=1)], axis=1)

    def class_blocks(self, p: Float64Array, rows: slice) -> Float64Array:
        """Return X diag(share p (1 - p)) X' and the ridge of each class, X = [z; 1]."""
        share = self.share[rows] / self.share[rows].sum()
        some, z = p[:, rows], self.z[:, rows]
        weight = some * (1.0 - some) * share
        mixed = np.einsum("ki,ki->k", weight, z)
        square = np.einsum("ki,ki,ki->k", weight, z, z)
        blocks = np.array([[square, mixed], [mixed, weight.sum(axis=1)]])
        blocks = np.ascontiguousarray(np.moveaxis(blocks, 2, 0))
        blocks[:, [0, 1], [0, 1]] += 2.0 * self.ridge
        return blocks
