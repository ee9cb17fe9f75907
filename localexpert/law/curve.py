"""`Curve`: the smooth part of a law, an increasing function of a normal score a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from calibration._kernels._jit import for_kernels
from calibration.typing import Float64Array
from localexpert._kernels.law_curve import (
    Rows,
    curve_densities,
    curve_scores,
    curve_values,
)
from localexpert._kernels.law_integrals import (
    curve_integrals,
    curve_moments,
    curve_nodes,
)
from localexpert._kernels.monotone import increase_rows
from localexpert._kernels.normal import LOG_SQRT_TWO_PI
from localexpert._kernels.regions import density_levels, level_crossings
from localexpert.law.basis import REACH, STANDARD, Basis
from localexpert.law.search import golden_section

# Peaks of a density that are looked at more closely.
_PEAKS, _GOLDEN_STEPS = 3, 45
# Least slope beyond the ends, as a share of the mean slope, and of the size.
_LEAST_END, _ROUNDING = 1e-3, 2.0**-50


@dataclass(frozen=True, eq=False)
class Curve:
    r"""y = Q_i(z) for a standard normal z: n smooth distributions.

    u(Q_i(z)) = sum_k c_ik B_k(z), where the coordinate u is y itself, log(y - low)
    above a finite bound, -log(high - y) below one, and the logit between two. Beyond
    -8 and 8 it is a line, and towards a bound y is uniform.

    Parameters
    ----------
    basis : Basis
    coefficients : ndarray of shape (n, K)
        Not decreasing along a row.
    slopes : ndarray of shape (n, 2)
        du/dz beyond both ends, positive.
    low, high : ndarrays of shape (n,)
        Bounds, infinite where there is none.
    """

    basis: Basis
    coefficients: Float64Array
    slopes: Float64Array
    low: Float64Array
    high: Float64Array

    def __len__(self) -> int:
        return len(self.coefficients)

    def __reduce__(self) -> tuple[type[Curve], tuple[Any, ...]]:
        arrays = self.coefficients, self.slopes, self.low, self.high
        return type(self), (self.basis, *arrays)

    @cached_property
    def rows(self) -> Rows:
        """The arrays as kernels take them."""
        arrays = self.coefficients, self.slopes, self.low, self.high
        return Rows(*(for_kernels(array) for array in arrays))

    def take(self, rows: slice | NDArray[Any]) -> Curve:
        """Return the curves of some rows."""
        return Curve(
            self.basis,
            self.coefficients[rows],
            self.slopes[rows],
            self.low[rows],
            self.high[rows],
        )

    def values(self, z: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return Q(z) and log Q'(z), z (n, k)."""
        return curve_values(self.basis.shared, self.rows, for_kernels(z))

    def heights(self, z: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return Q(z) and the log density there, z (n, k)."""
        y, log_slopes = self.values(z)
        return y, -0.5 * z**2 - LOG_SQRT_TWO_PI - log_slopes

    def densities(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the z with Q(z) = y and the log density there, y (n, k)."""
        return curve_densities(self.basis.shared, self.rows, for_kernels(y))

    def scores(self, y: Float64Array) -> Float64Array:
        """Return the z with Q(z) = y, infinite beyond bounds, y (n, k)."""
        return curve_scores(self.basis.shared, self.rows, for_kernels(y))

    def integrals(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the integrals of F, F^2 below y, and of 1 - F, (1 - F)^2 above it.

        Shape (4, n, k); and that of F (1 - F), shape (n,).
        """
        tables = self.basis.shared, self.rows, self.basis.panels
        return curve_integrals(*tables, for_kernels(y))

    def moments(self) -> Float64Array:
        """Return the mean and the second to fourth central moment, (n, 4)."""
        return curve_moments(self.basis.shared, self.rows, self.basis.panels)

    def nodes(self) -> tuple[Float64Array, Float64Array]:
        """Return Q at the nodes of the basis, (n, m), and their shares (m,)."""
        tables = self.basis.shared, self.rows, self.basis.panels
        return curve_nodes(*tables), self.basis.nodes[1]

    def coordinates(self, z: Float64Array) -> Float64Array:
        """Return u at scores (n, k)."""
        return self.free().values(z)[0]

    def free(self) -> Curve:
        """Return the curves of the coordinates themselves, without bounds."""
        free = np.full(len(self), np.inf)
        return replace(self, low=-free, high=free)

    def peak(self) -> tuple[Float64Array, Float64Array]:
        """Return where the density is greatest, and its logarithm there, (n,) both."""
        grid = np.concatenate([[-REACH], self.basis.nodes[0], [REACH]])
        heights = self.heights(np.tile(grid, (len(self), 1)))[1]
        walled = np.pad(heights, ((0, 0), (1, 1)), constant_values=-np.inf)
        is_peak = (heights >= walled[:, :-2]) & (heights >= walled[:, 2:])
        # A lower one may be the higher between the nodes.
        best = np.argsort(-np.where(is_peak, heights, -np.inf), axis=1, kind="stable")
        best = best[:, :_PEAKS]
        low, high = (
            grid[np.maximum(best - 1, 0)],
            grid[np.minimum(best + 1, len(grid) - 1)],
        )
        inner = golden_section(lambda z: -self.heights(z)[1], low, high, _GOLDEN_STEPS)
        # The ends, too: a density that is cut off may be greatest where it is cut.
        trials = np.hstack([inner, low, high])
        values, heights = self.heights(trials)
        place = np.argmax(heights, axis=1)[:, None]
        best_y, highest = (
            np.take_along_axis(found, place, axis=1)[:, 0]
            for found in (values, heights)
        )
        return best_y, highest

    def densest_regions(self, coverage: Float64Array) -> list[Float64Array]:
        """Return where the density is above the level that gives each row its coverage.

        From nodes, with lines of log density between them.
        """
        grid = np.concatenate([[-REACH], self.basis.nodes[0], [REACH]])
        z = np.tile(grid, (len(self), 1))
        y, log_density = self.heights(z)
        levels = density_levels(log_density, ndtr(z), np.ascontiguousarray(coverage))
        rows = zip(y, log_density, levels, strict=True)
        return [level_crossings(*row) for row in rows]


def to_coordinates(
    y: Float64Array, low: Float64Array, high: Float64Array
) -> Float64Array:
    """Return the coordinate of y (n, k) between bounds (n, 1)."""
    if not (np.isfinite(low).any() or np.isfinite(high).any()):
        return y
    return coordinates_of_gaps(y, (y - low, high - y), low, high)


def coordinates_of_gaps(
    y: Float64Array,
    gaps: tuple[Float64Array, Float64Array],
    low: Float64Array,
    high: Float64Array,
) -> Float64Array:
    """Return the coordinate of y (n, k), told by how far it is from both bounds."""
    lower, upper = np.isfinite(low), np.isfinite(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        above, below = (np.log(np.maximum(gap, 0.0)) for gap in gaps)
        u = np.where(lower, above, 0.0) - np.where(upper, below, 0.0)
    return np.where(lower | upper, u, y)


def fill_ends(u: Float64Array) -> Float64Array:
    """Return coordinates (n, K) that increase, those lost to rounding on a line."""
    for turned, sign in ((u[:, ::-1], -1.0), (u, 1.0)):
        lost = ~np.isfinite(turned)
        # From the middle outwards each follows from the two before it.
        for k in range(turned.shape[1] // 2 - 1, -1, -1):
            steps = turned[:, k + 1] - turned[:, k + 2]
            steps = np.where(sign * steps < 0.0, steps, 0.0)
            turned[:, k] = np.where(lost[:, k], turned[:, k + 1] + steps, turned[:, k])
    return np.maximum.accumulate(u, axis=1)


def read_curve(
    values: Float64Array,
    low: Float64Array,
    high: Float64Array,
    *,
    basis: Basis = STANDARD,
    plain: bool = False,
    slopes: Float64Array | None = None,
) -> Curve:
    """Return the curves with coordinates (n, K) at the Greville points of a basis.

    Coefficients interpolate: one banded solve for all rows. Where they would fall the
    row has those nearest to them that increase, or the coordinates themselves, which
    cannot fall, if the curve is nearer then. `plain` takes these in all rows, which
    keeps order: of rows that are greater everywhere curves are.

    Parameters
    ----------
    values : ndarray of shape (n, K)
        Not decreasing along a row.
    low, high : ndarrays of shape (n,)
    basis : Basis
    plain : bool
    slopes : ndarray of shape (n, 2), optional
        Beyond both ends; by default those of the curve there.

    Returns
    -------
    Curve
    """
    found = values if plain else increase_curves(basis.solve(values), values, basis)
    if slopes is None:
        slopes = end_slopes(found, basis)
    return Curve(basis, found, slopes, low, high)


def end_slopes(c: Float64Array, basis: Basis) -> Float64Array:
    """Return the slopes of curves at both ends, (n, 2), not quite 0 where they are."""
    g = basis.greville
    rises = np.column_stack([c[:, 1] - c[:, 0], c[:, -1] - c[:, -2]])
    slopes = rises / np.array([g[1] - g[0], g[-1] - g[-2]])
    mean = (c[:, -1:] - c[:, :1]) / (g[-1] - g[0])
    size = np.maximum(np.abs(c[:, [0, -1]]), 1e-300)
    return np.asarray(
        np.maximum(slopes, np.maximum(_LEAST_END * mean, _ROUNDING * size))
    )


def increase_curves(
    solved: Float64Array, values: Float64Array, basis: Basis
) -> Float64Array:
    """Return coefficients that increase in all rows.

    Parameters
    ----------
    solved : ndarray of shape (n, K)
        Coefficients that may fall.
    values : ndarray of shape (n, K)
        What the curves are to be at the Greville points.
    basis : Basis

    Returns
    -------
    ndarray of shape (n, K)
    """
    falls = np.flatnonzero((np.diff(solved, axis=1) < 0.0).any(axis=1))
    if len(falls):
        solved = solved.copy()
        solved[falls] = _nearer(solved[falls], values[falls], basis)
    return solved


def _nearer(solved: Float64Array, plain: Float64Array, basis: Basis) -> Float64Array:
    """Return coefficients that increase: those whose curve is nearest to the values.

    Solved ones projected, the plain ones, or these with one step towards the solved
    ones, which hang on their neighbours alone. What is compared is how far the scores
    of the values are from the Greville points.
    """
    weights, none = basis.greville_weights, np.zeros(basis.size - 1)
    free = np.full(len(plain), np.inf)
    trials, missed = [], []
    for trial in (solved, 2.0 * plain - basis.read(plain), plain):
        c = increase_rows(np.ascontiguousarray(trial), weights, none)
        curve = Curve(basis, c, end_slopes(c, basis), -free, free)
        away = np.clip(curve.scores(plain), -REACH, REACH) - basis.greville
        trials.append(c)
        missed.append((away**2 * weights).sum(axis=1))
    best = np.argmin(missed, axis=0)
    return np.asarray(np.stack(trials)[best, np.arange(len(plain))])
