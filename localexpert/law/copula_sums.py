"""Sums of correlated rows: draws with a Gaussian copula, and exact variances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

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
    """The normal scores' correlation: one for all pairs, or a matrix (n, n)."""

    rho: float
    matrix: Float64Array | None = None

    def of_rows(self, rows: NDArray[np.intp]) -> Float64Array:
        """Return the matrix (m, m) of some rows."""
        if self.matrix is not None:
            return np.ascontiguousarray(self.matrix[np.ix_(rows, rows)])
        out = np.full((len(rows), len(rows)), self.rho)
        np.fill_diagonal(out, 1.0)
        return out


def draw_sums(
    law: Law,
    weights: Float64Array,
    groups: list[NDArray[np.intp]],
    moments: Float64Array,
    correlation: Correlation,
    rng: np.random.Generator,
) -> tuple[Float64Array, Float64Array]:
    """Return draws of every group's sum, and its mean and variance.

    Parameters
    ----------
    law : Law
        Of n rows.
    weights : ndarray of shape (n,)
    groups : list of G ndarrays of int
    moments : ndarray of shape (n, 4)
    correlation : Correlation
    rng : Generator

    Returns
    -------
    draws : ndarray of shape (G, S)
    known : ndarray of shape (G, 4)
        The third and fourth moment are NaN: they are those of the draws.
    """
    n_rows = sum(len(rows) for rows in groups)
    n_draws = 1 << int(_ALL_DRAWS / n_rows).bit_length() - 1
    n_draws = min(max(n_draws, _LEAST_DRAWS), _MOST_DRAWS)
    draws = np.empty((len(groups), n_draws))
    known = np.full((len(groups), 4), np.nan)
    for g, rows in enumerate(groups):
        own, w = law.take(rows), weights[rows]
        draws[g] = _draw(own, w, correlation, rows, rng, n_draws)
        known[g, 0] = (w * moments[rows, 0]).sum()
        known[g, 1] = _variance(own, w, moments[rows, 1], correlation, rows)
    return draws, known


def _draw(
    law: Law,
    w: Float64Array,
    correlation: Correlation,
    rows: NDArray[np.intp],
    rng: np.random.Generator,
    n_draws: int,
) -> Float64Array:
    """Return draws (S,) of one sum, antithetic."""
    half = n_draws // 2
    out = np.zeros(n_draws)
    for part, z in _scores(len(law), half, correlation, rows, rng):
        some = law.take(part)
        values = _values_at(some, np.hstack([z, -z]))
        out += (w[part, None] * values).sum(axis=0)
    return out


def _scores(
    m: int,
    half: int,
    correlation: Correlation,
    rows: NDArray[np.intp],
    rng: np.random.Generator,
) -> Iterator[tuple[slice, Float64Array]]:
    """Yield slices of rows with normal scores (k, half) of the correlation."""
    most = max(_CHUNK // half, 1)
    if correlation.matrix is None and correlation.rho >= 0.0:
        # What all have in common is drawn one from each of as many equal parts.
        parts = (rng.permutation(half) + rng.uniform(size=half)) / half
        common = ndtri(np.clip(parts, 1e-12, 1.0 - 1e-12))
        share, rest = np.sqrt(correlation.rho), np.sqrt(1.0 - correlation.rho)
        for first in range(0, m, most):
            k = min(most, m - first)
            own = rng.standard_normal((k, half))
            yield slice(first, first + k), share * common + rest * own
        return
    values, vectors = np.linalg.eigh(correlation.of_rows(rows))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    scores = root @ rng.standard_normal((m, half))
    for first in range(0, m, most):
        yield slice(first, first + most), scores[first : first + most]


def _values_at(law: Law, scores: Float64Array) -> Float64Array:
    """Return the quantiles at scores (m, k): of a smooth law from a table."""
    if law.has_jumps:
        return law.ppf_scores(np.ascontiguousarray(scores))
    grid = np.linspace(-_REACH, _REACH, _N_TABLE)
    table = law.ppf_scores(np.tile(grid, (len(law), 1)))
    at = (np.clip(scores, -_REACH, _REACH) + _REACH) / (grid[1] - grid[0])
    left = np.minimum(at.astype(np.int64), _N_TABLE - 2)
    share = at - left
    left += np.arange(len(law))[:, None] * _N_TABLE
    flat = table.ravel()
    low = flat[left]
    left += 1
    return np.asarray(low + share * (flat[left] - low))


def _variance(
    law: Law,
    w: Float64Array,
    variances: Float64Array,
    correlation: Correlation,
    rows: NDArray[np.intp],
) -> float:
    r"""Return the variance of a sum.

    Two rows with quantile curves :math:`Q = \sum_k c_k He_k / \sqrt{k!}` have the
    covariance :math:`\sum_{k \ge 1} c_k d_k \rho^k` (Mehler's formula).
    """
    own = float((w**2 * variances).sum())
    if not np.isfinite(own):
        return own
    coefficients = w[:, None] * _hermite(law)
    powers = np.arange(1, _N_TERMS + 1)
    if correlation.matrix is None:
        both = coefficients.sum(axis=0) ** 2 - (coefficients**2).sum(axis=0)
        return own + float((both * correlation.rho**powers).sum())
    matrix = correlation.of_rows(rows)
    np.fill_diagonal(matrix, 0.0)
    power, total = np.ones_like(matrix), own
    for c in coefficients.T:
        power = power * matrix
        total += float(c @ power @ c)
    return total


def _hermite(law: Law) -> Float64Array:
    """Return the coefficients (m, K) of quantile curves, from He_1 on."""
    n_points = _N_SUM if law.has_jumps else _N_TABLE
    z = np.linspace(-_REACH, _REACH, n_points)
    density = np.exp(-0.5 * z * z) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
    basis = np.empty((_N_TERMS + 1, n_points))
    basis[0], basis[1] = 1.0, z
    for k in range(2, _N_TERMS + 1):
        basis[k] = (z * basis[k - 1] - np.sqrt(k - 1) * basis[k - 2]) / np.sqrt(k)
    out = np.empty((len(law), _N_TERMS))
    most = max(_CHUNK // n_points, 1)
    for first in range(0, len(law), most):
        part = slice(first, first + most)
        some = law.take(part)
        q = some.ppf_scores(np.tile(z, (len(some), 1)))
        out[part] = q @ (density * basis[1:]).T
    return out
