"""Training of small neural networks by Adam, several at a time."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array, Int64Array
from localexpert._kernels.adam import step_by_adam


class _Layers(NamedTuple):
    """Views of the parameters of nets (or of their gradients), layer by layer.

    The last row of each layer is its bias: shapes (n_nets, p + 1, h), (n_nets, h + 1,
    h) and (n_nets, h + 1, 1).
    """

    first: NDArray[np.float32]
    second: NDArray[np.float32]
    last: NDArray[np.float32]


def train_networks(
    theta: NDArray[np.float32],
    X: NDArray[np.floating],
    y: NDArray[np.floating],
    w: NDArray[np.floating],
    orders: Iterable[Int64Array],
    rates: Float64Array,
    n_hidden: int,
    batch: int,
    decay: float,
) -> None:
    """Fit nets of two hidden layers of rectifiers to squared error, in place.

    The nets know nothing of each other. Their products are taken together, because
    those of one net are so small that calling them takes as long as they do.

    Parameters
    ----------
    theta : ndarray of shape (n_nets, p h + h + h h + h + h + 1)
        Weights and biases of the layers, one after the other, h = `n_hidden`; C order.
    X : ndarray of shape (n, p)
    y, w : ndarrays of shape (n,)
        Targets and weights.
    orders : iterable of n_passes ndarrays of shape (n_nets, n)
        Order of the rows for every net, pass by pass.
    rates : ndarray of shape (n_passes * max(1, n // batch),)
        Step lengths.
    n_hidden, batch : int
    decay : float
        See `step_by_adam`.
    """
    n, p = X.shape
    # A row is the inputs, a 1 for the bias, the target and the weight.
    rows = np.ones((n, p + 3), np.float32)
    rows[:, :p], rows[:, p + 1], rows[:, p + 2] = X, y, w
    # A step of Adam is taken parameter by parameter, whosever it is.
    vector = theta.reshape(-1)
    gradient, mean, square = (np.zeros_like(vector) for _ in range(3))
    nets = view_layers(theta, p, n_hidden)
    parts = view_layers(gradient.reshape(theta.shape), p, n_hidden)
    n_batches = max(1, n // batch)
    ends = (np.arange(n_batches + 1) * n // n_batches).tolist()
    step = 0
    # What overflows ends in parameters that are not finite, without a word.
    with np.errstate(all="ignore"):
        for order in orders:
            for start, stop in pairwise(ends):
                _fill_gradient(nets, parts, rows[order[:, start:stop]])
                step += 1
                rate = rates[step - 1]
                step_by_adam(vector, gradient, mean, square, step, rate, decay)


def view_layers(vectors: NDArray[np.float32], p: int, h: int) -> _Layers:
    """Name the parts of vectors of parameters; writing to one writes to the vectors."""
    k = len(vectors)
    end1, end2 = (p + 1) * h, (p + 1) * h + (h + 1) * h
    return _Layers(
        vectors[:, :end1].reshape(k, p + 1, h),
        vectors[:, end1:end2].reshape(k, h + 1, h),
        vectors[:, end2:].reshape(k, h + 1, 1),
    )


def _fill_gradient(nets: _Layers, gradient: _Layers, rows: NDArray[np.float32]) -> None:
    """Write the gradient of half the weighted mean squared error over a batch.

    `rows` has the shape (n_nets, size of the batch, p + 3).
    """
    k, size, _ = rows.shape
    h = nets.first.shape[2]
    inputs, targets, weights = rows[:, :, :-2], rows[:, :, -2:-1], rows[:, :, -1:]
    # Forward: two layers of rectifiers, and a linear output. The last unit of a layer
    # is the 1 that the next one's bias is multiplied by. In place where it can be:
    # batches are small, and new arrays would take a third of the time.
    zeros = np.zeros((k, size, h + 1), np.float32)
    first, second = np.ones((2, k, size, h + 1), np.float32)
    np.matmul(inputs, nets.first, out=first[:, :, :h])
    # An array of zeros takes a third of the time of the number 0.
    np.maximum(first, zeros, out=first)
    np.matmul(first, nets.second, out=second[:, :, :h])
    np.maximum(second, zeros, out=second)
    miss = second @ nets.last
    miss -= targets
    miss *= weights
    miss *= np.float32(1.0 / size)
    # Backward: the chain rule, from the output to the inputs. A rectifier passes a
    # derivative on where it is open.
    np.matmul(second.mT, miss, out=gradient.last)
    back = miss * nets.last.mT
    back *= second > zeros
    np.matmul(first.mT, back[:, :, :h], out=gradient.second)
    back = back[:, :, :h] @ nets.second.mT
    back *= first > zeros
    np.matmul(inputs.mT, back[:, :, :h], out=gradient.first)
