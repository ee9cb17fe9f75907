"""AdaGrad for a small net of one hidden layer of rectifiers."""

import math

import numpy as np

from calibration._kernels._jit import fused, njit
from calibration.typing import Float64Array, Int64Array


@fused
def _dot(a: Float64Array, b: Float64Array) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@fused
def _add(total: Float64Array, factor: float, row: Float64Array) -> None:
    for i in range(len(row)):
        total[i] += factor * row[i]


@njit
def descend_by_batches(
    layers: tuple[Float64Array, Float64Array],
    rows: Float64Array,
    labels: Int64Array,
    weight: Float64Array,
    order: Int64Array,
    batch: int,
    rate: float,
    first_squares: float,
) -> None:
    """Train a softmax net in place, with some rows in each step.

    A step moves every parameter by rate g / sqrt(first_squares + sum of g^2 so far).
    Here g is its slope in the batch's weighted mean cross-entropy (Duchi et al. 2011).

    Parameters
    ----------
    layers : (ndarray of shape (h, d + 1), ndarray of shape (k, h + 1))
        Weights, and biases in the last column.
    rows : ndarray of shape (n, d + 1)
        Inputs, and a 1 for the bias.
    labels : ndarray of shape (n,)
    weight : ndarray of shape (n,)
    order : ndarray of shape (m,)
        Rows in the order in which they are seen.
    batch : int
    rate, first_squares : float
    """
    inner, outer = layers
    squares_in = np.full(inner.shape, first_squares)
    squares_out = np.full(outer.shape, first_squares)
    h, k = len(inner), len(outer)
    units, residual = np.ones(h + 1), np.empty(k)
    for start in range(0, len(order), batch):
        some = order[start : start + batch]
        slope_in, slope_out = np.zeros(inner.shape), np.zeros(outer.shape)
        for row in some:
            x = rows[row]
            for j in range(h):
                units[j] = max(0.0, _dot(inner[j], x))
            for c in range(k):
                residual[c] = _dot(outer[c], units)
            most, total = residual.max(), 0.0
            for c in range(k):
                residual[c] = math.exp(residual[c] - most)
                total += residual[c]
            share = weight[row] / weight[some].sum()
            for c in range(k):
                miss = share * (residual[c] / total - (c == labels[row]))
                _add(slope_out[c], miss, units)
                for j in range(h):
                    if units[j] > 0.0:
                        _add(slope_in[j], miss * outer[c, j], x)
        squares_in += slope_in**2
        squares_out += slope_out**2
        inner -= rate * slope_in / np.sqrt(squares_in)
        outer -= rate * slope_out / np.sqrt(squares_out)
