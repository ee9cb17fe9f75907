"""Training of a small neural network by Adam."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array, Int64Array
from localexpert._kernels.adam import step_by_adam


class _Layers(NamedTuple):
    """Views of a vector of parameters (or of its gradient), layer by layer.

    Weights (p, h), (h, h) and (h,), biases (h,), (h,) and (1,).
    """

    weights1: NDArray[np.float32]
    bias1: NDArray[np.float32]
    weights2: NDArray[np.float32]
    bias2: NDArray[np.float32]
    weights3: NDArray[np.float32]
    bias3: NDArray[np.float32]


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
        See `step_by_adam`.
    """
    n, p = X.shape
    gradient, mean, square = (np.zeros_like(theta) for _ in range(3))
    net = view_layers(theta, p, n_hidden)
    parts = view_layers(gradient, p, n_hidden)
    n_batches = max(1, n // batch)
    ends = np.arange(n_batches + 1) * n // n_batches
    step = 0
    # What overflows ends in parameters that are not finite, without a word.
    with np.errstate(all="ignore"):
        for one_pass in order:
            for start, stop in pairwise(ends):
                rows = one_pass[start:stop]
                _fill_gradient(net, parts, X[rows], y[rows], w[rows])
                step += 1
                rate = rates[step - 1]
                step_by_adam(theta, gradient, mean, square, step, rate, decay)


def view_layers(vector: NDArray[np.float32], p: int, h: int) -> _Layers:
    """Name the parts of a vector of parameters; writing to one writes to the vector."""
    end1, end2 = p * h, p * h + h + h * h
    return _Layers(
        vector[:end1].reshape(p, h),
        vector[end1 : end1 + h],
        vector[end1 + h : end2].reshape(h, h),
        vector[end2 : end2 + h],
        vector[end2 + h : end2 + 2 * h],
        vector[end2 + 2 * h :],
    )


def _fill_gradient(
    net: _Layers,
    gradient: _Layers,
    inputs: NDArray[np.float32],
    targets: NDArray[np.float32],
    weights: NDArray[np.float32],
) -> None:
    """Write the gradient of half the weighted mean squared error over a batch."""
    # Forward: two layers of rectifiers, and a linear output. In place where it can
    # be: batches are small, and new arrays would take a third of the time.
    first = inputs @ net.weights1
    first += net.bias1
    np.maximum(first, 0.0, out=first)
    second = first @ net.weights2
    second += net.bias2
    np.maximum(second, 0.0, out=second)
    miss = second @ net.weights3
    miss += net.bias3
    miss -= targets
    miss *= weights
    miss *= np.float32(1.0 / len(inputs))
    # Backward: the chain rule, from the output to the inputs. A rectifier passes a
    # derivative on where it is open. The product with ones sums over the rows in one
    # call of BLAS.
    ones = np.ones(len(inputs), np.float32)
    np.dot(miss, second, out=gradient.weights3)
    gradient.bias3[0] = miss.cumsum()[-1]
    back = miss[:, None] * net.weights3
    back *= second > 0.0
    np.dot(ones, back, out=gradient.bias2)
    np.dot(first.T, back, out=gradient.weights2)
    back = back @ net.weights2.T
    back *= first > 0.0
    np.dot(ones, back, out=gradient.bias1)
    np.dot(inputs.T, back, out=gradient.weights1)
