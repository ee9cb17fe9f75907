"""Training of a small neural network by Adam."""

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import njit
from calibration.typing import Float64Array, Int64Array

_MOMENTUM = 0.9
_SQUARES = 0.95


@njit
def train_network(
    theta: NDArray[np.float32],
    X: NDArray[np.float32],
    y: NDArray[np.float32],
    w: NDArray[np.float32],
    order: Int64Array,
    rates: Float64Array,
    n_hidden: int,
    batch: int,
    decay: float,
) -> None:
    """Fit a net of two hidden layers of rectifiers to squared error, in place.

    Adam with decoupled decay of all parameters: theta is multiplied by
    1 - rate * decay in every step (Loshchilov & Hutter 2019).

    Parameters
    ----------
    theta : ndarray of shape (p h + h + h h + h + h + 1,)
        Weights and biases of the layers, one after the other, h = `n_hidden`.
    X : ndarray of shape (n, p)
    y, w : ndarrays of shape (n,)
        Targets and weights.
    order : ndarray of shape (n_passes, n)
        Order of the rows in every pass.
    rates : ndarray of shape (n_passes * max(1, n // batch),)
        Step lengths.
    n_hidden, batch : int
    decay : float
    """
    n, p = X.shape
    h = n_hidden
    ends = (p * h, p * h + h, p * h + h + h * h, p * h + 2 * h + h * h)
    gradient = np.zeros_like(theta)
    mean = np.zeros_like(theta)
    square = np.zeros_like(theta)
    w1, g1 = theta[: ends[0]].reshape(p, h), gradient[: ends[0]].reshape(p, h)
    w2 = theta[ends[1] : ends[2]].reshape(h, h)
    g2 = gradient[ends[1] : ends[2]].reshape(h, h)
    b1, w3 = theta[ends[0] : ends[1]], theta[ends[3] : ends[3] + h]
    b2 = theta[ends[2] : ends[3]]
    zero, one, tiny = np.float32(0.0), np.float32(1.0), np.float32(1e-8)
    to_mean, to_square = np.float32(1.0 - _MOMENTUM), np.float32(1.0 - _SQUARES)
    n_batches = max(1, n // batch)
    step = 0
    for one_pass in range(order.shape[0]):
        for k in range(n_batches):
            rows = order[one_pass, k * n // n_batches : (k + 1) * n // n_batches]
            inputs = X[rows]
            ones = np.ones(len(rows), np.float32)
            first = np.maximum(np.dot(inputs, w1) + b1, zero)
            second = np.maximum(np.dot(first, w2) + b2, zero)
            miss = np.dot(second, w3) + theta[-1] - y[rows]
            miss = miss * w[rows] * (one / np.float32(len(rows)))
            gradient[ends[3] : ends[3] + h] = np.dot(miss, second)
            gradient[-1] = miss.sum()
            back = miss.reshape(-1, 1) * w3 * (second > zero)
            gradient[ends[2] : ends[3]] = np.dot(ones, back)
            np.dot(first.T, back, g2)
            back = np.dot(back, w2.T) * (first > zero)
            gradient[ends[0] : ends[1]] = np.dot(ones, back)
            np.dot(inputs.T, back, g1)
            rate = rates[step]
            step += 1
            # One array operation a line: longer ones are not vectorised.
            mean += to_mean * (gradient - mean)
            square += to_square * (gradient * gradient - square)
            unbiased = square * np.float32(1.0 / (1.0 - _SQUARES**step))
            move = mean / (np.sqrt(unbiased) + tiny)
            theta *= np.float32(1.0 - rate * decay)
            theta -= np.float32(rate / (1.0 - _MOMENTUM**step)) * move
