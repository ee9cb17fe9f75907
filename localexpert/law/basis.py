"""`Basis`: the knots in normal scores that the curves of a law share."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import solve_banded
from scipy.special import ndtr

from calibration._kernels._jit import for_kernels
from calibration.typing import Float64Array
from localexpert._kernels.law_curve import Pieces
from localexpert._kernels.law_integrals import Panels

#: How far in scores curves go, beyond which they are lines: 6e-16 of probability.
REACH = 8.0
# Number of pieces of the standard basis, and how much denser they are in the middle.
_N_PIECES, _SINH = 88, 4.0
# Widest panel of an integral.
_WIDEST = 0.8
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
# Gauss-Legendre nodes and weights from 0 to 1.
_RULE = for_kernels(np.stack([0.5 * (1.0 + _NODES), 0.5 * _WEIGHTS]))


class Basis:
    """Cubic B-splines B_k(z) on clamped knots from -8 to 8.

    Parameters
    ----------
    knots : ndarray of shape (K + 4,)
        Not decreasing, four at either end, no more than two equal inside.

    Notes
    -----
    They are positive and sum to 1, so a curve lies between its coefficients,
    increases where they do, and is greater where they are (Schoenberg). B_k stands for
    its Greville point, the mean of its three inner knots: straight lines have the
    values there as coefficients.
    """

    def __init__(self, knots: Float64Array):
        self.knots = knots
        self.size = len(knots) - 4

    def __reduce__(self) -> tuple[Any, ...]:
        return basis_of, (self.knots,)

    def __eq__(self, other: object) -> bool:
        # Those of many lengths are not all remembered, so two may have the same knots.
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
        pieces = np.empty((len(kept), 4, 4))
        spline = BSpline(self.knots, np.eye(self.size), 3)
        for order, factorial in enumerate((1.0, 1.0, 2.0, 6.0)):
            values = spline(breaks[:-1], order) * width[:, None] ** order / factorial
            for p, k in enumerate(first):
                pieces[p, order] = values[p, k : k + 4]
        return Pieces(for_kernels(breaks), first.astype(np.int64), for_kernels(pieces))

    @cached_property
    def _bands(self) -> Float64Array:
        """B_k(g_j) as `solve_banded` takes it, two diagonals on either side."""
        full = BSpline.design_matrix(self.greville, self.knots, 3).toarray()
        bands = np.zeros((5, self.size))
        for offset in range(-2, 3):
            diagonal = np.diagonal(full, offset)
            columns = slice(max(offset, 0), self.size + min(offset, 0))
            bands[2 - offset, columns] = diagonal
        return bands

    def solve(self, values: Float64Array) -> Float64Array:
        """Return the coefficients (n, K) of curves with values (n, K) at the g_k."""
        if len(values) == 0:
            return values.copy()
        return np.ascontiguousarray(solve_banded((2, 2), self._bands, values.T).T)

    def read(self, coefficients: Float64Array) -> Float64Array:
        """Return the values (n, K) of curves at the g_k."""
        out = np.zeros(coefficients.shape)
        for offset in range(-2, 3):
            rows = slice(max(-offset, 0), self.size + min(-offset, 0))
            columns = slice(max(offset, 0), self.size + min(offset, 0))
            out[:, rows] += self._bands[2 - offset, columns] * coefficients[:, columns]
        return out

    @cached_property
    def panels(self) -> Panels:
        """Panels of integrals: the pieces, wide ones in parts."""
        breaks = self.shared.breaks
        parts = np.ceil(np.diff(breaks) / _WIDEST).astype(np.int64)
        pieces = zip(breaks[:-1], breaks[1:], parts, strict=True)
        inner = [np.linspace(low, high, n + 1)[:-1] for low, high, n in pieces]
        borders = np.append(np.concatenate(inner), breaks[-1])
        piece = np.repeat(np.arange(len(parts)), parts)
        width = np.diff(borders)[:, None]
        z = borders[:-1, None] + width * _RULE[0]
        span = np.diff(breaks)[piece, None]
        share = width * _RULE[1] * np.exp(-0.5 * z**2)
        tables = (z - breaks[piece, None]) / span, width / span * _RULE[1]
        levels = ndtr(z), ndtr(-z), share / share.sum(), _RULE
        rest = (for_kernels(part) for part in (*tables, *levels))
        return Panels(for_kernels(borders), piece.astype(np.int64), *rest)

    @cached_property
    def nodes(self) -> tuple[Float64Array, Float64Array]:
        """Scores (m,) of the nodes on all panels, and their probabilities."""
        borders = self.panels.borders
        z = borders[:-1, None] + np.diff(borders)[:, None] * _RULE[0]
        return z.ravel(), self.panels.share.ravel()

    @cached_property
    def greville_weights(self) -> Float64Array:
        """The probability that is nearest to each g_k, (K,)."""
        g = self.greville
        edges = np.concatenate([[-np.inf], 0.5 * (g[1:] + g[:-1]), [np.inf]])
        return np.asarray(np.diff(ndtr(edges)))


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
