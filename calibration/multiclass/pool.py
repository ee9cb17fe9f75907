"""Logarithmic pools of forecasts of several classes."""

from __future__ import annotations

import numpy as np

from calibration.multiclass.log_probabilities import log_softmax
from calibration.selection.held_weights import Derivatives, learn_held_weights
from calibration.typing import Float64Array, Int64Array


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
        return learn_held_weights(self._derivatives, prior, self.ridge)

    def _derivatives(self, w: Float64Array) -> Derivatives:
        """Return the total loss, its gradient (c,) and Hessian (c, c)."""
        n_candidates = len(self.logs)
        pooled = np.tensordot(w, self.logs, axes=1)
        before = pooled[0].copy()
        log_p = log_softmax(pooled)
        # What the softmax has subtracted from each column: its normaliser.
        normaliser = before - log_p[0]
        loss = self.weight @ (normaliser - w @ self.own)
        p = np.exp(log_p)
        mean = np.einsum("cki,ki->ci", self.logs, p)
        gradient = (mean - self.own) @ self.weight
        p *= self.weight
        hessian = -(mean * self.weight) @ mean.T
        flat = self.logs.reshape(n_candidates, -1)
        for c, one in enumerate(self.logs):
            hessian[c] += flat @ (one * p).ravel()
        return float(loss), gradient, hessian


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
