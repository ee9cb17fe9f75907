"""Training of a small neural network by Adam."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import njit
from calibration.typing import Float64Array, Int64Array

# How much of the running means of gradients and of their squares a step keeps (beta_1
# and beta_2 of Kingma & Ba 2015). Their 0.999 for the squares remembers a thousand
# steps, which is more than a small fit has.
_MOMENTUM = 0.9
_SQUARES = 0.95
# Keeps a parameter in place whose gradient has always been 0 (epsilon of the paper).
_TINY = np.float32(1e-8)
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


class Layers(NamedTuple):
    """Views of a vector of parameters (or of its gradient), layer by layer.

    Weights (p, h), (h, h) and (h,), biases (h,), (h,) and (1,).
    """

    weights1: NDArray[np.float32]
    bias1: NDArray[np.float32]
    weights2: NDArray[np.float32]
    bias2: NDArray[np.float32]
    weights3: NDArray[np.float32]
    bias3: NDArray[np.float32]


@njit
def _view_layers(vector: NDArray[np.float32], p: int, h: int) -> Layers:
    """Name the parts of a vector of parameters; writing to one writes to the vector."""
    end1, end2 = p * h, p * h + h + h * h
    return Layers(
        vector[:end1].reshape(p, h),
        vector[end1 : end1 + h],
        vector[end1 + h : end2].reshape(h, h),
        vector[end2 : end2 + h],
        vector[end2 + h : end2 + 2 * h],
        vector[end2 + 2 * h :],
    )


@njit
def _fill_gradient(
    net: Layers,
    gradient: Layers,
    inputs: NDArray[np.float32],
    targets: NDArray[np.float32],
    weights: NDArray[np.float32],
) -> None:
    """Write the gradient of half the weighted mean squared error over a batch."""
    # Forward: two layers of rectifiers, and a linear output.
    first = np.maximum(np.dot(inputs, net.weights1) + net.bias1, _ZERO)
    second = np.maximum(np.dot(first, net.weights2) + net.bias2, _ZERO)
    miss = np.dot(second, net.weights3) + net.bias3[0] - targets
    miss = miss * weights * (_ONE / np.float32(len(inputs)))
    # Backward: the chain rule, from the output to the inputs. A rectifier passes a
    # derivative on where it is open. The product with ones sums over the rows in one
    # call of BLAS.
    ones = np.ones(len(inputs), np.float32)
    gradient.weights3[:] = np.dot(miss, second)
    gradient.bias3[0] = miss.sum()
    back = miss.reshape(-1, 1) * net.weights3 * (second > _ZERO)
    gradient.bias2[:] = np.dot(ones, back)
    np.dot(first.T, back, gradient.weights2)
    back = np.dot(back, net.weights2.T) * (first > _ZERO)
    gradient.bias1[:] = np.dot(ones, back)
    np.dot(inputs.T, back, gradient.weights1)


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
    gradient = np.zeros_like(theta)
    net = _view_layers(theta, p, n_hidden)
    parts = _view_layers(gradient, p, n_hidden)
    mean, square = np.zeros_like(theta), np.zeros_like(theta)
    to_mean, to_square = np.float32(1.0 - _MOMENTUM), np.float32(1.0 - _SQUARES)
    n_batches = max(1, n // batch)
    step = 0
    for one_pass in range(order.shape[0]):
        for k in range(n_batches):
            rows = order[one_pass, k * n // n_batches : (k + 1) * n // n_batches]
            _fill_gradient(net, parts, X[rows], y[rows], w[rows])
            rate = rates[step]
            step += 1
            # Adam (Kingma & Ba 2015, algorithm 1). The means start at 0; dividing by
            # 1 - beta^step takes that bias out.
            # One array operation a line: longer ones are not vectorised.
            mean += to_mean * (gradient - mean)
            square += to_square * (gradient * gradient - square)
            unbiased = square * np.float32(1.0 / (1.0 - _SQUARES**step))
            move = mean / (np.sqrt(unbiased) + _TINY)
            # The decay is no part of the gradient: Adam would divide it by the root
            # of the squares, and shrink steep parameters least.
            theta *= np.float32(1.0 - rate * decay)
            theta -= np.float32(rate / (1.0 - _MOMENTUM**step)) * move
