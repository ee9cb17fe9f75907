"""Small networks: steps of training, and outputs a row at a time."""

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import njit

# How much of the running means of gradients and of their squares a step keeps (beta_1
# and beta_2 of Kingma & Ba 2015). Their 0.999 for the squares remembers a thousand
# steps, which is more than a small fit has.
_MOMENTUM = 0.9
_SQUARES = 0.95
# Keeps a parameter in place whose gradient has always been 0 (epsilon of the paper).
_TINY = np.float32(1e-8)
# Running means below this move nothing beside `_TINY`. They are those of rectifiers
# that are shut for good, and would fade into numbers that processors are slow with.
_NOTHING = np.float32(1e-30)
_ZERO = np.float32(0.0)


@njit
def step_by_adam(
    theta: NDArray[np.float32],
    gradient: NDArray[np.float32],
    mean: NDArray[np.float32],
    square: NDArray[np.float32],
    step: int,
    rate: float,
    decay: float,
) -> None:
    """Take step number 1, 2, ... of Adam with decoupled decay, in place.

    Kingma & Ba (2015), algorithm 1, on parameters that are multiplied by 1 - rate *
    decay in every step (Loshchilov & Hutter 2019). `mean` and `square` are the running
    means of gradients and of their squares; they start at 0.
    """
    to_mean, to_square = np.float32(1.0 - _MOMENTUM), np.float32(1.0 - _SQUARES)
    # Dividing by 1 - beta^step takes the bias of that start out.
    unbias = np.float32(1.0 / (1.0 - _SQUARES**step))
    length = np.float32(rate / (1.0 - _MOMENTUM**step))
    # The decay is no part of the gradient: Adam would divide it by the root of the
    # squares, and shrink steep parameters least.
    kept = np.float32(1.0 - rate * decay)
    for i in range(len(theta)):
        m = mean[i] + to_mean * (gradient[i] - mean[i])
        v = square[i] + to_square * (gradient[i] * gradient[i] - square[i])
        mean[i] = _ZERO if abs(m) < _NOTHING else m
        square[i] = _ZERO if v < _NOTHING else v
        move = mean[i] / (np.sqrt(square[i] * unbias) + _TINY)
        theta[i] = theta[i] * kept - length * move


Floats = NDArray[np.float32]


def run_rows(first: Floats, second: Floats, last: Floats, rows: Floats) -> Floats:
    """Return the outputs of a net of two hidden layers, shape (n,).

    A row's output does not depend on the rows beside it, to the last bit, as that of a
    product of matrices does.

    Parameters
    ----------
    first : ndarray of float32, shape (p + 1, h)
        The last row of each layer is its bias.
    second : ndarray of float32, shape (h + 1, h)
    last : ndarray of float32, shape (h + 1,)
    rows : ndarray of float32, shape (n, p)

    Returns
    -------
    ndarray of float32, shape (n,)
    """
    # Arrays are made here: each kernel that makes one compiles that, too.
    layers = np.empty((2, first.shape[1]), dtype=np.float32)
    out = np.empty(len(rows), dtype=np.float32)
    _run_rows(first, second, last, rows, layers, out)
    return out


@njit
def _run_rows(
    first: Floats,
    second: Floats,
    last: Floats,
    rows: Floats,
    layers: Floats,
    out: Floats,
) -> None:
    """Fill in `out`; `layers` is room for the values of both hidden layers, (2, h)."""
    n, p = rows.shape
    h = first.shape[1]
    below, above = layers
    for i in range(n):
        for k in range(h):
            below[k] = first[p, k]
            above[k] = second[h, k]
        for j in range(p):
            value = rows[i, j]
            for k in range(h):
                below[k] += value * first[j, k]
        for j in range(h):
            # A unit that is silent adds nothing.
            if below[j] > 0.0:
                value = below[j]
                for k in range(h):
                    above[k] += value * second[j, k]
        for k in range(h):
            above[k] = above[k] * last[k] if above[k] > 0.0 else np.float32(0.0)
        # Halves are added: several sums at a time.
        held = h
        while held > 1:
            half = (held + 1) // 2
            for k in range(held - half):
                above[k] += above[k + half]
            held = half
        out[i] = above[0] + last[h]
