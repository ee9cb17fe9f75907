"""Sums of correlated rows: draws with a Gaussian copula, and exact variances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import eval_hermitenorm, factorial, ndtri

from calibration.typing import Float64Array
from localexpert.law.law import Law

# Draws of each total, half of them the others mirrored: at most, at least, and of all
# rows together.
_MOST_DRAWS, _LEAST_DRAWS, _ALL_DRAWS = 16384, 4096, 5e7
# Scores of a table of quantiles, and of sums that are Hermite coefficients where
# quantiles jump; those of smooth ones converge faster than any power.
_REACH, _N_TABLE, _N_SUM = 8.0, 641, 4001
_N_TERMS = 60
# Draws in memory at a time.
_CHUNK = 1 << 22


class Correlation(NamedTuple):
    """The normal scores' correlation: one for all pairs, or a matrix (n, n).

    `rng` is the source of their draws.
    """

    rng: np.random.Generator
    rho: float
    matrix: Float64Array | None = None

    def of_rows(self, rows: NDArray[np.intp]) -> Float64Array:
        """Return the matrix (m, m) of some rows."""
        if self.matrix is not None:
            return np.ascontiguousarray(self.matrix[np.ix_(rows, rows)])
        return self.rho + (1.0 - self.rho) * np.eye(len(rows))

    def scores(
        self, rows: NDArray[np.intp], half: int
    ) -> Iterator[tuple[NDArray[np.intp], Float64Array]]:
        """Yield rows, a few at a time, with draws (k, half) of their scores."""
        most = max(_CHUNK // half, 1)
        starts = np.arange(most, len(rows), most)
        if self.matrix is None and self.rho >= 0.0:
            # What all have in common is drawn one from each of as many equal parts.
            levels = (self.rng.permutation(half) + self.rng.uniform(size=half)) / half
            common = np.sqrt(self.rho) * ndtri(np.clip(levels, 1e-12, 1.0 - 1e-12))
            for part in np.split(rows, starts):
                own = self.rng.standard_normal((len(part), half))
                yield part, common + np.sqrt(1.0 - self.rho) * own
            return
        values, vectors = np.linalg.eigh(self.of_rows(rows))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws = self.rng.standard_normal((len(rows), half))
        for part, some in zip(
            np.split(rows, starts), np.split(root, starts), strict=True
        ):
            yield part, some @ draws


def draw_sums(
    law: Law,
    weights: Float64Array,
    groups: list[NDArray[np.intp]],
    correlation: Correlation,
) -> tuple[Float64Array, Float64Array]:
    """Return draws of every group's sum, and what correlation adds to its variance.

    Parameters
    ----------
    law : Law
        Of n rows.
    weights : ndarray of shape (n,)
    groups : list of G ndarrays of int
    correlation : Correlation

    Returns
    -------
    draws : ndarray of shape (G, S)
        Antithetic.
    added : ndarray of shape (G,)
    """
    n_draws = 1 << int(_ALL_DRAWS / sum(map(len, groups))).bit_length() - 1
    half = min(max(n_draws, _LEAST_DRAWS), _MOST_DRAWS) // 2
    draws, added = np.zeros((len(groups), 2 * half)), np.empty(len(groups))
    grid = np.linspace(-_REACH, _REACH, _N_SUM if law.has_jumps else _N_TABLE)
    basis = _hermite(grid)
    for g, rows in enumerate(groups):
        parts = []
        for part, drawn in correlation.scores(rows, half):
            own, w, z = law.take(part), weights[part, None], np.hstack([drawn, -drawn])
            table = own.ppf_scores(np.tile(grid, (len(own), 1)))
            parts.append(w * (table @ basis))
            if law.has_jumps:
                values = own.ppf_scores(z)
            else:
                pairs = zip(z, table, strict=True)
                values = np.stack([np.interp(at, grid, row) for at, row in pairs])
            draws[g] += (w * values).sum(axis=0)
        added[g] = _covariances(np.concatenate(parts), correlation, rows)
    return draws, added


def _covariances(
    coefficients: Float64Array, correlation: Correlation, rows: NDArray[np.intp]
) -> float:
    r"""Return the sum of the covariances of all pairs of some rows.

    Two rows with quantile curves :math:`Q = \sum_k c_k He_k / \sqrt{k!}` have the
    covariance :math:`\sum_{k \ge 1} c_k d_k \rho^k` (Mehler's formula).
    """
    if correlation.matrix is None:
        both = coefficients.sum(axis=0) ** 2 - (coefficients**2).sum(axis=0)
        return float(both @ correlation.rho ** np.arange(1, _N_TERMS + 1))
    matrix = correlation.of_rows(rows)
    np.fill_diagonal(matrix, 0.0)
    power, total = np.ones_like(matrix), 0.0
    for c in coefficients.T:
        power = power * matrix
        total += float(c @ power @ c)
    return total


def _hermite(z: Float64Array) -> Float64Array:
    """Return what quantiles at scores (N,) count in coefficients, from He_1 on."""
    density = np.exp(-0.5 * z * z) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
    k = np.arange(1, _N_TERMS + 1)
    basis = eval_hermitenorm(k, z[:, None]) / np.sqrt(factorial(k))
    return np.asarray(density[:, None] * basis)
