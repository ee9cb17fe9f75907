"""Outputs of a small network, a row at a time."""

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import njit

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
