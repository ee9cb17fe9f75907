"""Logarithmic pools of forecasts of several classes."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from calibration.multiclass.log_probabilities import log_softmax
from calibration.typing import Float64Array, Int64Array

_MAX_STEPS = 100
_MAX_HALVINGS = 40
# Newton's decrement, in squared standard errors, at which the weights stand still.
_LAST_DECREMENT = 1e-16


class LogPool:
    r"""The pool :math:`p \propto \prod_c p_c^{w_c}` of candidates on labelled rows.

    Parameters
    ----------
    logs : ndarray of shape (c, k, n)
        Log-probabilities of c candidates.
    labels : ndarray of shape (n,)
        Column numbers.
    weight : ndarray of shape (n,)
        Numbers of repetitions.
    ridge : float
        Total loss grows by ridge / 2 times the squared distance of w from the prior.
    """

    def __init__(
        self,
        logs: Float64Array,
        labels: Int64Array,
        weight: Float64Array,
        ridge: float,
    ):
        self.logs = logs
        self.weight = weight
        self.ridge = ridge
        # Log-probabilities of the labels, shape (c, n).
        self.own = logs[:, labels, np.arange(len(labels))]

    def learn(self, prior: Float64Array) -> Float64Array:
        """Return the non-negative weights of least loss, shape (c,).

        Parameters
        ----------
        prior : ndarray of shape (c,)
            Weights that few rows stay close to, and the start.

        Returns
        -------
        ndarray of shape (c,)
        """
        w = prior.copy()
        value, gradient, hessian = self._derivatives(w, prior)
        for _ in range(_MAX_STEPS):
            # With H = L L', min g'd + d'Hd / 2 over w + d >= 0 is
            # min |L'v - L^-1 (H w - g)| over v = w + d >= 0.
            lower = np.linalg.cholesky(hessian)
            goal = np.linalg.solve(lower, hessian @ w - gradient)
            step = nnls(lower.T, goal)[0] - w
            slope = float(gradient @ step)
            if -slope < _LAST_DECREMENT * (1.0 + abs(value)):
                break
            scale = 1.0
            for _ in range(_MAX_HALVINGS):
                # On the segment between two feasible points; the maximum takes back
                # rounding only.
                trial = np.maximum(w + scale * step, 0.0)
                now = self._derivatives(trial, prior)
                # Near the solution rounding hides the descent of a sure step.
                noise = 1e-14 * (1.0 + abs(value))
                if now[0] <= value + 1e-4 * scale * slope + noise:
                    break
                scale *= 0.5
            else:
                break
            w, (value, gradient, hessian) = trial, now
        return w

    def _derivatives(
        self, w: Float64Array, prior: Float64Array
    ) -> tuple[float, Float64Array, Float64Array]:
        """Return the total loss and penalty, its gradient (c,) and Hessian (c, c)."""
        n_candidates = len(self.logs)
        pooled = np.tensordot(w, self.logs, axes=1)
        before = pooled[0].copy()
        log_p = log_softmax(pooled)
        # What the softmax has subtracted from each column: its normaliser.
        normaliser = before - log_p[0]
        loss = self.weight @ (normaliser - w @ self.own)
        p = np.exp(log_p)
        mean = np.einsum("cki,ki->ci", self.logs, p)
        gradient = (mean - self.own) @ self.weight + self.ridge * (w - prior)
        p *= self.weight
        hessian = self.ridge * np.eye(n_candidates) - (mean * self.weight) @ mean.T
        flat = self.logs.reshape(n_candidates, -1)
        for c, one in enumerate(self.logs):
            hessian[c] += flat @ (one * p).ravel()
        penalty = 0.5 * self.ridge * float(((w - prior) ** 2).sum())
        return float(loss) + penalty, gradient, hessian


def pool_logs(weights: Float64Array, logs: Float64Array) -> Float64Array:
    """Return the pool of candidates as log-probabilities.

    Parameters
    ----------
    weights : ndarray of shape (c,)
    logs : ndarray of shape (c, k, n)

    Returns
    -------
    ndarray of shape (k, n)
    """
    return log_softmax(np.tensordot(weights, logs, axes=1))
