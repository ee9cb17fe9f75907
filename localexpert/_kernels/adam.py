"""Steps of Adam, for parameters in single precision."""

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
