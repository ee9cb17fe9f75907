"""A net of one hidden layer beside log-probabilities, and its training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from calibration.multiclass.log_probabilities import column_blocks, log_softmax
from calibration.typing import Float64Array, Int64Array

# Steps of L-BFGS, pairs of steps and gradients it remembers, and the largest entry of
# the gradient at which it stops. Nets of more steps are no better.
_MAX_STEPS = 60
_MEMORY = 20
_TOLERANCE = 1e-7
# Nets of more rows are trained on some of them first, and then for fewer steps.
_START_ROWS = 8_192
_MORE_STEPS = 20
# AdaGrad as chapter 6.1 of the thesis has it, and what it leaves open: TensorFlow's
# first sums of squares, and how long to train.
_RATE, _BATCH = 0.1, 10
_FIRST_SQUARES = 0.1
_PASSES = 20


@dataclass(frozen=True, eq=False)
class HiddenLayer:
    """V u(W x + c) + b, a correction of k log-probabilities.

    Parameters
    ----------
    slopes : ndarray of shape (h, d)
        W.
    shifts : ndarray of shape (h,)
        c.
    heights : ndarray of shape (k, h)
        V.
    intercept : ndarray of shape (k,)
        b.
    rectified : bool
        Whether u is max(., 0), and not tanh.
    """

    slopes: Float64Array
    shifts: Float64Array
    heights: Float64Array
    intercept: Float64Array
    rectified: bool = False

    @classmethod
    def draw(cls, rng: np.random.Generator, h: int, d: int, k: int) -> HiddenLayer:
        """Draw units that look in directions of their own, and correct nothing yet."""
        slopes = rng.standard_normal((h, d)) / np.sqrt(d)
        return cls(slopes, rng.standard_normal(h), np.zeros((k, h)), np.zeros(k))

    @classmethod
    def draw_rectified(
        cls, rng: np.random.Generator, h: int, d: int, k: int
    ) -> HiddenLayer:
        """Draw rectified units, and their heights, by Glorot's uniform law."""
        far, near = np.sqrt(6.0 / (d + h)), np.sqrt(6.0 / (h + k))
        slopes = rng.uniform(-far, far, size=(d, h)).T
        heights = rng.uniform(-near, near, size=(h, k)).T
        return cls(slopes, np.zeros(h), heights, np.zeros(k), rectified=True)

    def units(self, inputs: Float64Array) -> Float64Array:
        """Return the values (h, n) of the units for inputs (d, n)."""
        raw = self.slopes @ inputs + self.shifts[:, None]
        return np.maximum(raw, 0.0) if self.rectified else np.tanh(raw)

    def correct(self, z: Float64Array, inputs: Float64Array) -> Float64Array:
        """Return log-probabilities z (k, n), corrected by inputs (d, n)."""
        corrections = self.heights @ self.units(inputs) + self.intercept[:, None]
        return log_softmax(z + corrections)

    def flatten(self) -> Float64Array:
        """Return all parameters in one vector."""
        parts = (self.slopes, self.shifts, self.heights, self.intercept)
        return np.concatenate([part.ravel() for part in parts])

    def filled(self, theta: Float64Array) -> HiddenLayer:
        """Return a layer of this shape with the parameters of a vector."""
        k, h = self.heights.shape
        ends = np.cumsum([self.slopes.size, h, k * h])
        slopes, shifts, heights, intercept = np.split(theta, ends)
        return HiddenLayer(
            slopes.reshape(self.slopes.shape),
            shifts,
            heights.reshape(k, h),
            intercept,
            self.rectified,
        )


@dataclass(frozen=True, eq=False)
class NetProblem:
    r"""Mean cross-entropy of corrected log-probabilities, and a ridge.

    .. math:: CE + \frac{r}{n} \|\theta - \theta_0\|^2

    with :math:`\theta_0` the parameters drawn: nets differ by where they are held to,
    and not by when training stops.

    Parameters
    ----------
    z : ndarray of shape (k, n_rows)
        Log-probabilities to correct.
    inputs : ndarray of shape (d, n_rows)
    labels : ndarray of shape (n_rows,)
        Column numbers.
    weight : ndarray of shape (n_rows,)
        Numbers of repetitions, n in all.
    ridge : float
        r.
    """

    z: Float64Array
    inputs: Float64Array
    labels: Int64Array
    weight: Float64Array
    ridge: float

    def train(self, drawn: HiddenLayer) -> HiddenLayer:
        """Return the layer of least objective that L-BFGS finds from one drawn.

        Parameters
        ----------
        drawn : HiddenLayer

        Returns
        -------
        HiddenLayer
        """
        start, every = drawn.flatten(), -(-len(self.labels) // _START_ROWS)
        if every == 1:
            return drawn.filled(self._descend(start, drawn, _MAX_STEPS))
        start = self._thinned(every)._descend(start, drawn, _MAX_STEPS)
        return drawn.filled(self._descend(start, drawn, _MORE_STEPS))

    def train_by_batches(
        self, drawn: HiddenLayer, rng: np.random.Generator, n_batches: int | None
    ) -> HiddenLayer:
        """Return the layer to which AdaGrad leads, ten rows a step; without the ridge.

        Parameters
        ----------
        drawn : HiddenLayer
        rng : Generator
            Source of the order of the rows, a new one for each pass.
        n_batches : int or None
            Steps to take; None stands for 20 passes over the rows.

        Returns
        -------
        HiddenLayer
        """
        n = len(self.labels)
        n_rows = _PASSES * n if n_batches is None else _BATCH * n_batches
        passes = [rng.permutation(n) for _ in range(-(-n_rows // n))]
        order = np.concatenate(passes)[:n_rows]
        theta = drawn.flatten()
        squares = np.full(len(theta), _FIRST_SQUARES)
        for start in range(0, n_rows, _BATCH):
            rows = order[start : start + _BATCH]
            share = self.weight[rows] / self.weight[rows].sum()
            slope = self._block(drawn.filled(theta), rows, share)[1]
            squares += slope * slope
            theta -= _RATE * slope / np.sqrt(squares)
        return drawn.filled(theta)

    def value_and_gradient(
        self, theta: Float64Array, shape: HiddenLayer, anchor: Float64Array
    ) -> tuple[float, Float64Array]:
        """Return the objective and its gradient, at parameters in one vector.

        Parameters
        ----------
        theta : ndarray of shape (p,)
        shape : HiddenLayer
            Any layer of the shape that the parameters have.
        anchor : ndarray of shape (p,)
            Where the ridge holds them to.

        Returns
        -------
        value : float
        gradient : ndarray of shape (p,)
        """
        layer = shape.filled(theta)
        away = theta - anchor
        rate = self.ridge / float(self.weight.sum())
        value, gradient = rate * float(away @ away), 2.0 * rate * away
        share = self.weight / self.weight.sum()
        for some in column_blocks(self.inputs):
            loss, slope = self._block(layer, some, share[some])
            value += loss
            gradient += slope
        return value, gradient

    def _block(
        self, layer: HiddenLayer, some: slice | Int64Array, share: Float64Array
    ) -> tuple[float, Float64Array]:
        """Return the cross-entropy of some rows, and its gradient."""
        x, labels = self.inputs[:, some], self.labels[some]
        places = np.arange(len(labels))
        units = layer.units(x)
        logs = layer.heights @ units + layer.intercept[:, None]
        logs += self.z[:, some]
        log_softmax(logs)
        loss = -float(share @ logs[labels, places])
        residual = np.exp(logs, out=logs)
        residual[labels, places] -= 1.0
        residual *= share
        inner = layer.heights.T @ residual
        inner *= (units > 0.0) if layer.rectified else 1.0 - units**2
        parts = inner @ x.T, inner.sum(axis=1), residual @ units.T, residual.sum(axis=1)
        return loss, np.concatenate([part.ravel() for part in parts])

    def _descend(
        self, start: Float64Array, drawn: HiddenLayer, steps: int
    ) -> Float64Array:
        options: Any = {"maxiter": steps, "maxcor": _MEMORY, "gtol": _TOLERANCE}
        anchor = drawn.flatten()

        def objective(theta: Float64Array) -> tuple[float, Float64Array]:
            return self.value_and_gradient(theta, drawn, anchor)

        found = minimize(
            objective, start, jac=True, method="L-BFGS-B", options=options | {"ftol": 0}
        )
        return np.asarray(found.x, dtype=np.float64)

    def _thinned(self, step: int) -> NetProblem:
        """Return the problem of every so many rows, with a ridge in proportion."""
        weight = self.weight[::step]
        return NetProblem(
            np.ascontiguousarray(self.z[:, ::step]),
            np.ascontiguousarray(self.inputs[:, ::step]),
            self.labels[::step],
            weight,
            self.ridge * float(weight.sum() / self.weight.sum()),
        )
