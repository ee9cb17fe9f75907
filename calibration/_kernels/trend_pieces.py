"""Piecewise-linear least squares on given knots: the inner step of trend filtering.

The function is linear between knots (cells of the data, the first and the last among
them), so its values at the knots solve a tridiagonal system. Its conditioning does
not suffer from cells that nearly coincide: every hat function is 1 at a cell.
"""

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array, Int64Array

# Values are about 1; smaller differences of them are rounding.
_ROUNDING = 1e-13


@njit
def fit_pieces(
    x: Float64Array,
    weight: Float64Array,
    target: Float64Array,
    knots: Int64Array,
    signs: Float64Array,
    states: Int64Array,
    bend: float,
    fall: float,
) -> Float64Array:
    """Best values at the knots for given signs of kinks and slopes, shape (k,).

    Minimises sum w (p - z)^2 / 2 + bend * sum s_k kink_k + fall * (total decrease of
    the pieces in state -1), where a piece in state 0 is flat. A piece of length h
    between knots k and k + 1 enters the penalty by its slope (c_{k+1} - c_k) / h with
    the factor bend * (s_k - s_{k+1}).
    """
    k = len(knots)
    diagonal, above, right = np.zeros(k), np.zeros(k), np.zeros(k)
    at = 0
    for piece in range(k - 1):
        first, last = knots[piece], knots[piece + 1]
        diagonal[at] += weight[first]
        right[at] += weight[first] * target[first]
        # The two ends of a flat piece are one unknown: its cells all go there.
        if states[piece] == 0:
            for i in range(first + 1, last):
                diagonal[at] += weight[i]
                right[at] += weight[i] * target[i]
            continue
        # Hat functions: a cell between two knots counts for both, by its distance.
        inverse = 1.0 / (x[last] - x[first])
        g00, g01, g11, b0, b1 = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(first + 1, last):
            share = (x[i] - x[first]) * inverse
            high = weight[i] * share
            low = weight[i] - high
            g01 += low * share
            g11 += high * share
            g00 += low - low * share
            b0 += low * target[i]
            b1 += high * target[i]
        # The derivative of the penalties by the piece's slope; it raises one end as it
        # lowers the other.
        force = bend * (signs[piece] - signs[piece + 1]) * inverse
        if states[piece] < 0:
            force -= fall
        diagonal[at] += g00
        above[at] = g01
        right[at] += b0 + force
        at += 1
        diagonal[at] += g11
        right[at] += b1 - force
    diagonal[at] += weight[knots[k - 1]]
    right[at] += weight[knots[k - 1]] * target[knots[k - 1]]
    _solve_tridiagonal(diagonal[: at + 1], above[: at + 1], right[: at + 1])
    # The far end of a piece that is not flat is an unknown of its own.
    places = np.cumsum((states != 0).astype(np.int64))
    values: Float64Array = right[np.append(0, places)]
    return values


@inner
def _solve_tridiagonal(
    diagonal: Float64Array, above: Float64Array, right: Float64Array
) -> None:
    """Solve a symmetric positive definite system in place; the answer is `right`."""
    # Elimination without pivots (the Thomas algorithm): the matrix is positive
    # definite.
    for i in range(1, len(diagonal)):
        factor = above[i - 1] / diagonal[i - 1]
        diagonal[i] -= factor * above[i - 1]
        right[i] -= factor * right[i - 1]
    right[-1] /= diagonal[-1]
    for i in range(len(diagonal) - 2, -1, -1):
        right[i] = (right[i] - above[i] * right[i + 1]) / diagonal[i]


@njit
def kinks_of(x: Float64Array, knots: Int64Array, values: Float64Array) -> Float64Array:
    """Change of slope at every knot, 0 at the two ends, shape (k,).

    A change that rounding of the values can make is 0: where the function goes
    through its targets, any cell may carry the kink, and one is enough.
    """
    inverse = 1.0 / np.diff(x[knots])
    inner = np.diff(np.diff(values) * inverse)
    least = _ROUNDING * (inverse[:-1] + inverse[1:])
    kinks = np.zeros(len(knots))
    kinks[1:-1] = np.where(np.abs(inner) > least, inner, 0.0)
    return kinks


@njit
def fill_pieces(
    x: Float64Array, knots: Int64Array, values: Float64Array
) -> Float64Array:
    """Values of the piecewise-linear function at all cells, shape (m,)."""
    out = np.empty(len(x))
    for piece in range(len(knots) - 1):
        first, last = knots[piece], knots[piece + 1]
        rise = (values[piece + 1] - values[piece]) / (x[last] - x[first])
        for i in range(first, last):
            out[i] = values[piece] + rise * (x[i] - x[first])
    out[knots[-1]] = values[-1]
    return out


@njit
def fit_affine(
    x: Float64Array, weight: Float64Array, target: Float64Array
) -> Float64Array:
    """Values at all cells of the weighted least squares line, shape (m,)."""
    ends = np.array([0, len(x) - 1], dtype=np.int64)
    none, one = np.zeros(2), np.ones(1, dtype=np.int64)
    values = fit_pieces(x, weight, target, ends, none, one, 0.0, 0.0)
    return fill_pieces(x, ends, values)
