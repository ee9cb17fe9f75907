"""`Basis`: the knots in normal scores that the curves of a law share."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import solve_banded
from scipy.sparse import csr_array, vstack
from scipy.special import ndtr

from calibration._kernels._jit import for_kernels
from calibration.typing import Float64Array
from localexpert._kernels.law_curve import Pieces

# Slopes up to this multiple of both neighbouring chords keep a cubic increasing:
# any pair of them lies inside the circle of radius 3 of Fritsch & Carlson (1980).
STEEPEST = 2.1


def chords_beside(knots: Float64Array, values: Float64Array) -> Float64Array:
    """Return the lesser slope of the chords on both sides of each knot, (..., K).

    Infinite where there is no chord.
    """
    none = np.full((*values.shape[:-1], 1), np.inf)
    chords = np.concatenate([none, np.diff(values) / np.diff(knots), none], axis=-1)
    return np.asarray(np.minimum(chords[..., :-1], chords[..., 1:]))


def harmonic_slopes(steps: Float64Array, chords: Float64Array) -> Float64Array:
    """Return slopes between K chords over steps: weighted harmonic means.

    Where chords are positive the Hermite curve with these slopes increases (Fritsch &
    Butland, 1984); chords are (..., K), slopes (..., K - 1).
    """
    before, after = 2.0 * steps[1:] + steps[:-1], steps[1:] + 2.0 * steps[:-1]
    inverse = before / chords[..., :-1] + after / chords[..., 1:]
    return np.asarray((before + after) / inverse)


def steepest_slopes(knots: Float64Array, values: Float64Array) -> Float64Array:
    """Return the greatest slope at each knot that keeps the curve increasing."""
    return STEEPEST * chords_beside(knots, values)


#: How far in scores curves go, beyond which they are lines: 6e-16 of probability.
REACH = 8.0
# Number of pieces of the standard basis, and how much denser they are in the middle.
_N_PIECES, _SINH = 88, 4.0
# Widest panel of an integral.
_WIDEST = 0.8
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
# Gauss-Legendre nodes and weights from 0 to 1.
RULE = np.stack([0.5 * (1.0 + _NODES), 0.5 * _WEIGHTS])


class Panels(NamedTuple):
    """Panels of integrals, which all rows share: P of them, with m nodes in all.

    Between `borders` (P + 1,) nodes are scores `z` with probabilities `share` (m,) of
    sum 1. Coefficients times `values` (m, K) are the curves there, their rises times
    `rates` (m, K - 1) the slopes. Slopes at nodes times `weights` (4 P, m), or rises
    times `sums` (4 P, K - 1), are integrals over panels: of F, 1 - F, F^2 and
    (1 - F)^2. Coefficients times `mean` (K,) are means, and `products` (K, K) are the
    means of two B-splines' product.
    """

    borders: Float64Array
    z: Float64Array
    share: Float64Array
    values: csr_array
    rates: csr_array
    weights: csr_array
    sums: csr_array
    mean: Float64Array
    products: csr_array


class Basis:
    """Cubic B-splines B_k(z) on clamped knots from -8 to 8.

    Parameters
    ----------
    knots : ndarray of shape (K + 4,)
        Not decreasing, four at either end, no more than two equal inside.

    Notes
    -----
    They are positive and sum to 1, so a curve lies between its coefficients,
    increases if they increase, and is greater if they are greater (Schoenberg). The
    Greville point of B_k is the mean of its three inner knots: the coefficients of a
    straight line are its values at these points.
    """

    def __init__(self, knots: Float64Array):
        self.knots = knots
        self.size = len(knots) - 4

    def __reduce__(self) -> tuple[Any, ...]:
        return Basis, (self.knots,)

    def __eq__(self, other: object) -> bool:
        # The cache forgets some bases, so two bases may have the same knots.
        same = isinstance(other, Basis) and np.array_equal(self.knots, other.knots)
        return self is other or same

    def __hash__(self) -> int:
        return hash(self.knots.tobytes())

    @cached_property
    def greville(self) -> Float64Array:
        """The points g_k, (K,)."""
        t = self.knots
        return np.asarray((t[1:-3] + t[2:-2] + t[3:-1]) / 3.0)

    @cached_property
    def shared(self) -> Pieces:
        """The pieces between different knots, for kernels."""
        kept = np.flatnonzero(np.diff(self.knots) > 0.0)
        breaks = np.append(self.knots[kept], self.knots[-1])
        width, first = np.diff(breaks), kept - 3
        pieces = np.empty((len(kept), 4, 3))
        spline = BSpline(self.knots, np.eye(self.size), 3)
        for order, factorial in enumerate((1.0, 1.0, 2.0, 6.0)):
            values = spline(breaks[:-1], order) * width[:, None] ** order / factorial
            for p, k in enumerate(first):
                pieces[p, order] = values[p, k + 1 : k + 4]
        return Pieces(for_kernels(breaks), first.astype(np.int64), for_kernels(pieces))

    @cached_property
    def _bands(self) -> Float64Array:
        """B_k(g_j) as `solve_banded` takes it, two diagonals on either side."""
        bands = np.zeros((5, self.size))
        for offset in range(-2, 3):
            columns = slice(max(offset, 0), self.size + min(offset, 0))
            bands[2 - offset, columns] = _at_greville(self).diagonal(offset)
        return bands

    def solve(self, values: Float64Array) -> Float64Array:
        """Return the coefficients (n, K) of curves with values (n, K) at the g_k."""
        if len(values) == 0:
            return values.copy()
        return np.ascontiguousarray(solve_banded((2, 2), self._bands, values.T).T)

    def read(self, coefficients: Float64Array) -> Float64Array:
        """Return the values (n, K) of curves at the g_k."""
        return np.ascontiguousarray((_at_greville(self) @ coefficients.T).T)

    @property
    def panels(self) -> Panels:
        """Panels of integrals: the pieces, wide ones in parts."""
        return _panels(self)

    @cached_property
    def greville_weights(self) -> Float64Array:
        """The probability that is nearest to each g_k, (K,)."""
        g = self.greville
        edges = np.concatenate([[-np.inf], 0.5 * (g[1:] + g[:-1]), [np.inf]])
        return np.asarray(np.diff(ndtr(edges)))


# Cached here and not in bases, because files of models hold no sparse tables.
@lru_cache(maxsize=64)
def _at_greville(basis: Basis) -> csr_array:
    """Return B_k(g_j), (K, K)."""
    return csr_array(BSpline.design_matrix(basis.greville, basis.knots, 3))


@lru_cache(maxsize=64)
def _panels(basis: Basis) -> Panels:
    """Panels of integrals: the pieces, wide ones in parts."""
    breaks, t = basis.shared.breaks, basis.knots
    parts = np.ceil(np.diff(breaks) / _WIDEST).astype(np.int64)
    pieces = zip(breaks[:-1], breaks[1:], parts, strict=True)
    inner = [np.linspace(low, high, n + 1)[:-1] for low, high, n in pieces]
    borders = np.append(np.concatenate(inner), breaks[-1])
    width = np.diff(borders)[:, None]
    z = (borders[:-1, None] + width * RULE[0]).ravel()
    weight = (width * RULE[1]).ravel()
    share = weight * np.exp(-0.5 * z**2)
    share /= share.sum()
    levels = np.stack([ndtr(z), ndtr(-z)])
    powers = weight * np.concatenate([levels, levels**2])
    add_up = csr_array(np.kron(np.eye(len(width)), np.ones((1, len(_NODES)))))
    weights = csr_array(vstack([add_up.multiply(power) for power in powers]))
    values = csr_array(BSpline.design_matrix(z, t, 3))
    # The slope of a curve is a sum of quadratic B-splines times rises. No term is below
    # 0, so no digits are lost.
    rates = csr_array(BSpline.design_matrix(z, t[1:-1], 2))
    rates = csr_array(rates.multiply(3.0 / (t[4:-1] - t[1:-4])))
    products = csr_array(values.T @ values.multiply(share[:, None]))
    sums = csr_array(weights @ rates)
    tables = values, rates, weights, sums, values.T @ share, products
    return Panels(borders, z, share, *tables)


def hermite_basis(
    breaks: Float64Array, heights: Float64Array, rates: Float64Array
) -> tuple[Basis, Float64Array]:
    """Return the basis and the coefficients (n, K) of Hermite curves.

    Heights and rates at the breaks (m,) are (n, m). On double knots the coefficients
    are the control points of the pieces.
    """
    thirds = np.diff(breaks) / 3.0
    inner = np.empty((len(heights), 2 * len(thirds)))
    inner[:, ::2] = heights[:, :-1] + rates[:, :-1] * thirds
    inner[:, 1::2] = heights[:, 1:] - rates[:, 1:] * thirds
    c = np.column_stack([heights[:, 0], inner, heights[:, -1]])
    ends = np.full(4, breaks[0]), np.full(4, breaks[-1])
    knots = np.concatenate([ends[0], np.repeat(breaks[1:-1], 2), ends[1]])
    return basis_of(knots), c


@lru_cache(maxsize=64)
def _known_basis(knots: bytes) -> Basis:
    return Basis(np.frombuffer(knots))


def basis_of(knots: Float64Array) -> Basis:
    """Return the basis of knots, one and the same for equal ones."""
    return _known_basis(np.ascontiguousarray(knots, dtype=np.float64).tobytes())


def _standard_knots() -> Float64Array:
    grid = np.linspace(-_SINH, _SINH, _N_PIECES + 1)
    breaks = REACH * np.sinh(grid) / np.sinh(_SINH)
    breaks[[0, -1]] = -REACH, REACH
    ends = np.full(3, REACH)
    return np.concatenate([-ends, breaks, ends])


#: The basis that laws share unless quantiles at other levels must come back exactly.
STANDARD = basis_of(_standard_knots())
