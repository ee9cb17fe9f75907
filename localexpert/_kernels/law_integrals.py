"""Integrals of powers of F and of 1 - F over y, on the pieces of increasing curves.

With y = Q(z) an integral of F(y)^a dy is one of Phi(z)^a Q'(z) dz: nothing cancels, and
Gauss-Legendre sums on the pieces are right to many digits.
"""

import math

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array
from localexpert._kernels.hermite import find_segment
from localexpert._kernels.law_curve import Pieces, Rows, density_at, value_at
from localexpert._kernels.normal import normal_cdf


@inner
def _add_panel(
    shared: Pieces,
    rows: Rows,
    i: int,
    start: float,
    end: float,
    rule: Float64Array,
    sums: Float64Array,
) -> None:
    """Add the integrals from one score to another: F, 1 - F, both squared, both."""
    width = end - start
    for q in range(rule.shape[1]):
        z = start + width * rule[0, q]
        dy = width * rule[1, q] * math.exp(value_at(shared, rows, i, z)[1])
        below, above = normal_cdf(z), normal_cdf(-z)
        sums[0] += dy * below
        sums[1] += dy * above
        sums[2] += dy * below * below
        sums[3] += dy * above * above
        sums[4] += dy * below * above


def curve_integrals(
    shared: Pieces,
    rows: Rows,
    borders: Float64Array,
    rule: Float64Array,
    y: Float64Array,
) -> tuple[Float64Array, Float64Array]:
    """Return integrals (4, n, k) cut at y (n, k), and that of F (1 - F), (n,).

    The four are those of F and of its square below y, of 1 - F and of its square above.
    `borders` are those of panels, breaks among them, and `rule` (2, q) are nodes and
    weights from 0 to 1.
    """
    out, spread = np.empty((4, *y.shape)), np.empty(len(y))
    upto, beyond = np.empty((len(borders), 5)), np.empty((len(borders), 5))
    _fill_integrals(shared, rows, borders, rule, y, upto, beyond, out, spread)
    return out, spread


@njit
def _fill_integrals(
    shared: Pieces,
    rows: Rows,
    breaks: Float64Array,
    rule: Float64Array,
    y: Float64Array,
    upto: Float64Array,
    beyond: Float64Array,
    out: Float64Array,
    spread: Float64Array,
) -> None:
    """Fill in `out` and `spread`; `upto` and `beyond` are room for cumulated sums."""
    last = len(breaks) - 1
    left, right = np.zeros(5), np.zeros(5)
    for i in range(y.shape[0]):
        upto[0] = 0.0
        beyond[last] = 0.0
        for p in range(last):
            left[:] = 0.0
            _add_panel(shared, rows, i, breaks[p], breaks[p + 1], rule, left)
            upto[p + 1] = upto[p] + left
            beyond[p] = left
        for p in range(last - 1, -1, -1):
            beyond[p] += beyond[p + 1]
        spread[i] = upto[last, 4]
        first = value_at(shared, rows, i, breaks[0])[0]
        final = value_at(shared, rows, i, breaks[last])[0]
        for j in range(y.shape[1]):
            z = density_at(shared, rows, i, y[i, j])[0]
            inside = min(max(z, breaks[0]), breaks[last])
            p = min(find_segment(breaks, inside), last - 1)
            left[:] = upto[p]
            _add_panel(shared, rows, i, breaks[p], inside, rule, left)
            right[:] = beyond[p + 1]
            _add_panel(shared, rows, i, inside, breaks[p + 1], rule, right)
            # Beyond the breaks F is 0 or 1 but for rounding.
            over, under = max(y[i, j] - final, 0.0), max(first - y[i, j], 0.0)
            out[0, i, j], out[1, i, j] = left[0] + over, left[2] + over
            out[2, i, j], out[3, i, j] = right[1] + under, right[3] + under
