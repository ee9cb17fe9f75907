"""Outputs of a small network, a row at a time."""

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import njit

Floats = NDArray[np.float32]


@njit
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
    n, p = rows.shape
    h = first.shape[1]
    none = np.float32(0.0)
    out = np.empty(n, np.float32)
    below, above = np.empty(h, np.float32), np.empty(h, np.float32)
    for i in range(n):
        below[:] = first[p]
        for j in range(p):
            value, weights = rows[i, j], first[j]
            for k in range(h):
                below[k] += value * weights[k]
        above[:] = second[h]
        for j in range(h):
            value, weights = max(below[j], none), second[j]
            for k in range(h):
                above[k] += value * weights[k]
        for k in range(h):
            above[k] = max(above[k], none) * last[k]
        # Halves are added: several sums at a time.
        held = h
        while held > 1:
            half = (held + 1) // 2
            for k in range(held - half):
                above[k] += above[k + half]
            held = half
        out[i] = above[0] + last[h]
    return out
