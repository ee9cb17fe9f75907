"""`Curve`: the smooth part of a law, for each row an increasing function of a score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr, ndtr, ndtri, ndtri_exp

from calibration._validation import refuse
from calibration.typing import Float64Array
from localexpert._kernels.law_curve import follow_curves, increase_rows
from localexpert.law.basis import REACH, RULE, STANDARD, Basis
from localexpert.law.steps import LOG_SQRT_TWO_PI, log_between, scores_of

# So many peaks of a density are searched closely, for scores within this reach.
_PEAKS, _GOLDEN_STEPS, _PEAK_REACH = 3, 45, 6.0
# Searches of the shortest interval: starting probabilities, golden sections.
_N_STARTS, _SHORTEST_STEPS = 65, 32
# Least slope beyond the ends, as a share of the mean slope, and of the size.
_LEAST_END, _ROUNDING = 1e-3, 2.0**-50
# Halvings in which the level of a region is found (1 000 / 2^40 is below 1e-8), and
# by how much the logarithms of densities fall from the median to the ends there.
_HALVINGS, _TILT = 40, 0.03
# Rows whose nodes are in memory at a time.
_ROWS = 256
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
# A bound so many widths of a row away does not count: in its coordinate floats are too
# coarse to tell where in the row a value is.
_FARTHEST = 1e5
# Levels so near to that of a bound use the density there; in deviations.
_NEAR = 1e-6
_LEAST_GAP = 1e-300


def without_caches(record: Any) -> tuple[type[Any], tuple[Any, ...]]:
    """Return how to copy or pickle a dataclass: by its fields alone."""
    return type(record), tuple(getattr(record, one.name) for one in fields(record))


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
        return without_caches(self)

    @cached_property
    def is_free(self) -> bool:
        """Whether there is no bound in any row."""
        return bool(np.isinf(self.low).all() and np.isinf(self.high).all())

    def take(self, rows: slice | NDArray[Any]) -> Curve:
        """Return the curves of some rows."""
        arrays = self.coefficients, self.slopes, self.low, self.high
        return Curve(self.basis, *(array[rows] for array in arrays))

    def coordinates(
        self, x: Float64Array, *, inverse: bool = False
    ) -> tuple[Float64Array, Float64Array]:
        """Return u at scores (n, k), or scores of coordinates; and du/dz there."""
        rows = self.coefficients, self.slopes
        return follow_curves(self.basis.shared, *rows, x, inverse=inverse)

    def values(self, z: Float64Array) -> Float64Array:
        """Return Q(z), z (n, k)."""
        return self.follow(z)[0]

    def follow(self, z: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return Q(z) and Q'(z), z (n, k)."""
        u, rate = self.coordinates(z)
        if self.is_free:
            return u, rate
        y, rise = from_coordinates(u, self.low[:, None], self.high[:, None])
        with np.errstate(invalid="ignore", over="ignore"):
            rate *= rise
            for side, end, bound, gap in self._ends():
                beyond = (side * z > side * end) & np.isfinite(gap)
                log_share = log_ndtr(-np.abs(z)) - log_ndtr(-abs(end))
                y = np.where(beyond, bound - side * gap * np.exp(log_share), y)
                density = -0.5 * z**2 - LOG_SQRT_TWO_PI - log_ndtr(-abs(end))
                rate = np.where(beyond, gap * np.exp(density), rate)
        return y, rate

    def gaps(
        self, z: Float64Array, low: Float64Array, high: Float64Array
    ) -> tuple[Float64Array, list[Float64Array]]:
        """Return Q(z), z (n, k), and its distances from two bounds, (n,) each.

        Of the curve's own bounds the coordinate tells the distance: near one a
        difference of values would lose all digits.
        """
        y, u = self.values(z), self.coordinates(z)[0]
        away, width = [y - low[:, None], high[:, None] - y], self.high - self.low
        for k, (side, end, bound, gap) in enumerate(self._ends()):
            kept = np.isfinite(gap) & (bound == (low, high)[k][:, None])
            share = np.exp(log_ndtr(-np.abs(z)) - log_ndtr(-abs(end)))
            near = _gaps(-side * u, width[:, None])
            with np.errstate(invalid="ignore"):
                own = np.where(side * z > side * end, gap * share, near)
            away[k] = np.where(kept, own, away[k])
        return y, away

    def heights(self, z: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return Q(z) and the log density there, z (n, k)."""
        y, rate = self.follow(z)
        # Next to a bound, or far out in a heavy tail, slopes leave the range of floats.
        rate = np.clip(rate, _LEAST_GAP, 1.0 / _LEAST_GAP)
        return y, -0.5 * z**2 - LOG_SQRT_TWO_PI - np.log(rate)

    def scores(self, y: Float64Array) -> Float64Array:
        """Return the z with Q(z) = y, infinite at bounds and beyond, y (n, k)."""
        return self._find(y)[0]

    def densities(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the z with Q(z) = y and the log density there, y (n, k).

        At a bound it is the density beside the bound.
        """
        z, rate = self._find(y)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_density = -0.5 * z**2 - LOG_SQRT_TWO_PI - np.log(rate)
        if self.is_free:
            return z, log_density
        for side, end, bound, gap in self._ends():
            beyond = (side * z > side * end) & np.isfinite(gap)
            even = np.where(beyond, log_ndtr(-abs(end)) - np.log(gap), log_density)
            log_density = np.where(side * y > side * bound, -np.inf, even)
        return z, np.where(np.isinf(y), -np.inf, log_density)

    def _find(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the z with Q(z) = y, and Q'(z) where y is not next to a bound."""
        if self.is_free:
            return self.coordinates(y, inverse=True)
        low, high = self.low[:, None], self.high[:, None]
        u = to_coordinates(y, low, high)
        z, rate = self.coordinates(u, inverse=True)
        for side, end, bound, gap in self._ends():
            beyond = (side * z > side * end) & np.isfinite(gap)
            with np.errstate(divide="ignore", invalid="ignore"):
                log_share = np.log(np.clip(side * (bound - y), 0.0, gap) / gap)
                even = ndtri_exp(log_ndtr(-abs(end)) + log_share)
            z = np.where(beyond, -side * even, z)
        with np.errstate(invalid="ignore"):
            return z, rate * from_coordinates(u, low, high)[1]

    def _ends(self) -> Iterator[tuple[float, float, Float64Array, Float64Array]]:
        """Yield side, last score, bound, and the distance left to the bound, (n, 1).

        Over this distance y is uniform, so at the bound its density is neither 0 nor
        infinite. If rounding leaves no distance, it is given as infinite.
        """
        breaks, width = self.basis.shared.breaks, (self.high - self.low)[:, None]
        for side, k, bound in ((-1.0, 0, self.low), (1.0, -1, self.high)):
            at = bound[:, None]
            gap = _gaps(-side * self.coefficients[:, k, None], width)
            known = np.isfinite(at) & (gap > 0.0)
            yield side, float(breaks[k]), at, np.where(known, gap, np.inf)

    def integrals(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the integrals of F, F^2 below y, and of 1 - F, (1 - F)^2 above it.

        Their shape is (4, n, k). Return also the integral of F (1 - F), shape (n,).
        With y = Q(z), F(y)^a dy becomes Phi(z)^a Q'(z) dz: nothing cancels, and
        Gauss-Legendre sums on panels are exact to many digits.
        """
        borders, sums = self.basis.panels.borders, self._panel_sums()
        last, (n, k) = len(borders) - 2, y.shape
        # Up to each border and beyond it; `np.cumsum` is slow across rows.
        none = np.zeros((2, n))
        upto = np.stack([*accumulate(sums[:, ::2], initial=none)], axis=1)
        beyond = np.stack([*accumulate(sums[::-1, 1::2], initial=none)], axis=1)
        middle = int(np.searchsorted(borders, 0.0))
        spread = upto[0, middle] - upto[1, middle]
        spread += beyond[0, last + 1 - middle] - beyond[1, last + 1 - middle]
        z = np.clip(self.scores(y), borders[0], borders[-1])
        p = np.minimum(np.searchsorted(borders, z, "right") - 1, last)
        # The parts of y's panel to the left and to the right of y.
        ends = np.stack([borders[p], z, borders[p + 1]], axis=2)
        width = np.diff(ends, axis=2)[..., None]
        nodes = ends[..., :2, None] + width * RULE[0]
        rate = self.follow(nodes.reshape(n, -1))[1].reshape(nodes.shape)
        level = ndtr(nodes * [[1.0], [-1.0]])
        part = width * RULE[1] * rate * level
        parts = np.stack([part.sum(axis=3), (part * level).sum(axis=3)])
        row, out = np.arange(n)[:, None], np.empty((4, n, k))
        out[:2] = upto[:, p, row] + parts[..., 0]
        out[2:] = beyond[:, last - p, row] + parts[..., 1]
        # Beyond the borders F is 0 or 1 up to rounding.
        first, final = self.values(np.tile(borders[[0, -1]], (n, 1))).T[:, :, None]
        with np.errstate(invalid="ignore"):
            out[:2] += np.maximum(y - final, 0.0)
            out[2:] += np.maximum(first - y, 0.0)
        return out, spread

    def _panel_sums(self) -> Float64Array:
        """Return the integrals of F, 1 - F, F^2 and (1 - F)^2 on panels, (P, 4, n)."""
        panels, n = self.basis.panels, len(self)
        rises = np.diff(self.coefficients, axis=1).T
        if self.is_free:
            sums = panels.sums @ rises
        else:
            u = panels.values @ self.coefficients.T
            rise = from_coordinates(u, self.low, self.high)[1]
            sums = panels.weights @ ((panels.rates @ rises) * rise)
        return np.asarray(sums).reshape(4, -1, n).transpose(1, 0, 2)

    def moments(self, order: int = 4) -> Float64Array:
        """Return the mean and the second to fourth central moment, (n, order)."""
        out, panels = np.empty((len(self), order)), self.basis.panels
        # Differences from a middle value: large values would lose digits.
        if self.is_free and order == 2:
            middle = self.coefficients[:, self.basis.size // 2, None]
            away = self.coefficients - middle
            mean = (away * panels.mean).sum(axis=1)
            away -= mean[:, None]
            pairs = away * (panels.products @ away.T).T
            return np.column_stack([middle[:, 0] + mean, pairs.sum(axis=1)])
        for start in range(0, len(self), _ROWS):
            rows = slice(start, start + _ROWS)
            y, share = self.take(rows).nodes()
            middle = y[:, y.shape[1] // 2, None].copy()
            y -= middle
            mean = (y * share).sum(axis=1)
            y -= mean[:, None]
            out[rows, 0], part = middle[:, 0] + mean, share * y
            with np.errstate(over="ignore", invalid="ignore"):
                for k in range(1, order):
                    part *= y
                    out[rows, k] = part.sum(axis=1)
        return out

    def nodes(self) -> tuple[Float64Array, Float64Array]:
        """Return Q at the nodes of the basis, (n, m), and their shares (m,)."""
        panels = self.basis.panels
        u = np.ascontiguousarray((panels.values @ self.coefficients.T).T)
        if not self.is_free:
            u = from_coordinates(u, self.low[:, None], self.high[:, None])[0]
        return u, panels.share

    def peak(self) -> tuple[Float64Array, Float64Array]:
        """Return where the density is greatest, and its logarithm there, (n,) both."""
        nodes = self.basis.panels.z
        # A high density further out is rounding: it holds no probability.
        grid = nodes[np.abs(nodes) < _PEAK_REACH]
        heights = self.heights(np.tile(grid, (len(self), 1)))[1]
        walled = np.pad(heights, ((0, 0), (1, 1)), constant_values=-np.inf)
        is_peak = (heights >= walled[:, :-2]) & (heights >= walled[:, 2:])
        # Between nodes a lower peak may be the higher one.
        best = np.argsort(-np.where(is_peak, heights, -np.inf), axis=1, kind="stable")
        best = best[:, :_PEAKS]
        low = grid[np.maximum(best - 1, 0)]
        high = grid[np.minimum(best + 1, len(grid) - 1)]
        inner = golden_section(lambda z: -self.heights(z)[1], low, high, _GOLDEN_STEPS)
        # Try the ends, too: a density that is cut may be greatest there.
        trials = np.hstack([inner, low, high])
        values, heights = self.heights(trials)
        row, place = np.arange(len(self)), np.argmax(heights, axis=1)
        return values[row, place], heights[row, place]

    def densest_regions(self, coverage: Float64Array) -> list[Float64Array]:
        """Return where the density is above the level that gives each row its coverage.

        The log density is read at nodes, with straight lines between them. If a density
        is flat, values nearer to the median come first.
        """
        grid = np.concatenate([[-REACH], self.basis.panels.z, [REACH]])
        y, heights = self.heights(np.tile(grid, (len(self), 1)))
        heights -= _TILT * np.abs(ndtr(grid) - 0.5)
        pairs = heights[:, :-1], heights[:, 1:]
        # The density is exponential where its logarithm is a line.
        top, fall = np.maximum(*pairs), np.minimum(-np.abs(pairs[1] - pairs[0]), -1e-9)
        weight = np.diff(ndtr(grid)) / (np.exp(fall) - 1.0)
        # A peak may be a bound with a density beyond all others.
        low, high = heights.min(axis=1), top.max(axis=1)
        for _ in range(_HALVINGS):
            level = 0.5 * (low + high)
            part = np.exp(np.clip(level[:, None] - top, fall, 0.0)) - 1.0
            enough = (part * weight).sum(axis=1) >= coverage
            # Take the lower end: the region holds at least the coverage.
            low, high = np.where(enough, level, low), np.where(enough, high, level)
        return [_above(*row) for row in zip(y, heights, low, strict=True)]


def _above(y: Float64Array, heights: Float64Array, level: float) -> Float64Array:
    """Return where lines through heights (k,) are above a level: intervals (m, 2)."""
    edges = np.diff(heights >= level, prepend=False, append=False)
    inner = np.flatnonzero(edges) - np.tile([0, 1], int(edges.sum()) // 2)
    outer = (inner + np.tile([-1, 1], len(inner) // 2)).clip(0, len(y) - 1)
    fall = heights[inner] - heights[outer]
    share = np.divide(heights[inner] - level, fall, out=fall * 0.0, where=fall > 0.0)
    return np.asarray((y[inner] + share * (y[outer] - y[inner])).reshape(-1, 2))


def _gaps(t: Float64Array, width: Float64Array) -> Float64Array:
    """Return the distances of values from the bound, which is at t = -inf.

    Differences of values would lose all digits near the bound.
    """
    two = np.isfinite(width)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(two, width * expit(t), np.exp(t)) if two.any() else np.exp(t)


def from_coordinates(
    u: Float64Array, low: Float64Array, high: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return y of coordinates between bounds that broadcast against them, and dy/du."""
    lower, upper = np.isfinite(low), np.isfinite(high)
    if lower.all() and not upper.any():
        with np.errstate(over="ignore"):
            gap = np.exp(u)
        return low + gap, gap
    # The distance from the nearer end keeps its digits.
    from_low = lower & (~upper | (u < 0.0))
    t = np.where(from_low, u, -u)
    with np.errstate(over="ignore", invalid="ignore"):
        gap = _gaps(t, high - low)
        rise = np.where(lower & upper, gap * expit(-t), gap)
        y = np.where(from_low, low + gap, high - gap)
    free = ~(lower | upper)
    return np.where(free, u, y), np.where(free, 1.0, rise)


def to_coordinates(
    y: Float64Array, low: Float64Array, high: Float64Array
) -> Float64Array:
    """Return the coordinate of y (n, k) between bounds (n, 1)."""
    if not (np.isfinite(low).any() or np.isfinite(high).any()):
        return y
    with np.errstate(invalid="ignore"):
        gaps = y - low, high - y
    return coordinates_of_gaps(y, gaps, low, high)


def coordinates_of_gaps(
    y: Float64Array, gaps: Sequence[Float64Array], low: Float64Array, high: Float64Array
) -> Float64Array:
    """Return the coordinate of y (n, k) from its distances to both bounds."""
    lower, upper = np.isfinite(low), np.isfinite(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        above, below = (np.log(np.maximum(gap, 0.0)) for gap in gaps)
        u = np.where(lower, above, 0.0) - np.where(upper, below, 0.0)
    return np.where(lower | upper, u, y)


def fill_ends(u: Float64Array) -> Float64Array:
    """Return coordinates (n, K) that increase; a line replaces lost ones."""
    for turned, sign in ((u[:, ::-1], -1.0), (u, 1.0)):
        lost = ~np.isfinite(turned)
        # From the middle outwards: each continues the line of the two before it.
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

    Coefficients interpolate: one banded solve for all rows. If the coefficients of a
    row fall, the nearest increasing ones are taken, or the coordinates themselves,
    which cannot fall, if their curve is nearer. `plain` takes the coordinates in all
    rows, and so keeps order: a row that is greater everywhere has the greater curve.

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
    """Return the slopes of curves at both ends, (n, 2); a slope of 0 is made small."""
    g = basis.greville
    rises = np.column_stack([c[:, 1] - c[:, 0], c[:, -1] - c[:, -2]])
    slopes = rises / np.array([g[1] - g[0], g[-1] - g[-2]])
    mean = (c[:, -1:] - c[:, :1]) / (g[-1] - g[0])
    size = np.maximum(np.abs(c[:, [0, -1]]), 1e-300)
    least = np.maximum(_LEAST_END * mean, _ROUNDING * size)
    return np.asarray(np.maximum(slopes, least))


def increase_curves(
    solved: Float64Array, values: Float64Array, basis: Basis
) -> Float64Array:
    """Return coefficients that increase in all rows.

    Parameters
    ----------
    solved : ndarray of shape (n, K)
        Coefficients that may fall.
    values : ndarray of shape (n, K)
        Values that the curves should have at the Greville points.
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
    """Return increasing coefficients whose curve is nearest to the values.

    There are three candidates: the solved ones projected, the plain ones, and the plain
    ones with one step towards the solved ones, where each depends on its neighbours
    only. The nearest has scores of the values closest to the Greville points.
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


def append_curves(curves: Sequence[Curve]) -> Curve:
    """Return the rows of curves on one basis, one after another."""
    names = "coefficients", "slopes", "low", "high"
    rows = (np.concatenate([getattr(one, name) for one in curves]) for name in names)
    return Curve(curves[0].basis, *rows)


def refine(curve: Curve, basis: Basis) -> Curve:
    """Return the same curves on a basis that has all of their knots, and others.

    If it ends before them, curves are lines from there on.
    """
    if curve.basis == basis:
        return curve
    g = np.broadcast_to(basis.greville, (len(curve), basis.size))
    values, rates = curve.coordinates(g)
    found = np.maximum.accumulate(basis.solve(values), axis=1)
    same = basis.knots[[0, -1]] == curve.basis.knots[[0, -1]]
    slopes = np.where(same, curve.slopes, rates[:, [0, -1]])
    return Curve(basis, found, slopes, curve.low, curve.high)


def rebound(
    curve: Curve, low: Float64Array, high: Float64Array, basis: Basis = STANDARD
) -> Curve:
    """Return the same curves in the coordinates of other, wider bounds (n,)."""
    same = np.array_equal(curve.low, low) and np.array_equal(curve.high, high)
    if same and curve.basis == basis:
        return curve
    g = np.broadcast_to(basis.greville, (len(curve), basis.size))
    if same:
        return read_curve(curve.coordinates(g)[0], low, high, basis=basis)
    u = coordinates_of_gaps(*curve.gaps(g, low, high), low[:, None], high[:, None])
    return read_curve(fill_ends(u), low, high, basis=basis)


def cut_curve(
    curve: Curve, low: float | Float64Array, high: float | Float64Array
) -> tuple[Curve, Float64Array]:
    """Return the curves cut to the bounds, and their probability there, (n,).

    Bounds are numbers for all rows, or one for each, (n,).
    """
    n, basis = len(curve), curve.basis
    ends = np.column_stack([np.broadcast_to(end, n) for end in (low, high)])
    z, log_density = curve.densities(ends)
    outside = np.column_stack([ndtr(z[:, 0]), ndtr(-z[:, 1])])
    # A difference of levels has no digits where nearly all lies beyond a bound.
    mass = np.exp(log_between(z[:, 0], z[:, 1]))
    if not (mass > 0.0).all():
        i = int(np.argmin(mass))
        rule = "hold some of the probability of every row"
        refuse("bounds", rule, f"({ends[i, 0]:g}, {ends[i, 1]:g}) and none of row {i}")
    new_low, new_high = _bounds_that_count(curve, low, high)
    g = basis.greville
    inside = [mass[:, None] * ndtr(side * g) for side in (1.0, -1.0)]
    at = scores_of(outside[:, :1] + inside[0], outside[:, 1:] + inside[1])
    y, gaps = curve.gaps(at, new_low, new_high)
    for side in range(2):
        # Near a bound a difference of values has no digits left.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            steps = inside[side] / np.exp(log_density[:, side, None])
            beside = inside[side] < _NEAR * np.minimum(ndtr(z), ndtr(-z))[:, side, None]
        gaps[side] = np.where(beside & (outside[:, side, None] > 0), steps, gaps[side])
    # A gap of 0 has no logarithm.
    gaps = [np.maximum(gap, _LEAST_GAP) for gap in gaps]
    u = coordinates_of_gaps(y, gaps, new_low[:, None], new_high[:, None])
    u = np.maximum.accumulate(u, axis=1)
    return read_curve(u, new_low, new_high, basis=basis), mass


def fold_curve(curve: Curve, low: float, high: float, power: float) -> Curve:
    r"""Return curves whose mass beyond bounds lies inside, next to them.

    Let p be the mass below `low`. Levels up to 2 p are laid anew,

    .. math:: Q'(u) = low + (Q(2 p) - low) (u / 2 p)^{power},

    but no more than half of the levels inside. Other quantiles stay. So do those near
    `high`, turned round. If power is 1, the density is even there.
    """
    n, g = len(curve), curve.basis.greville
    ends = np.stack(_bounds_that_count(curve, low, high))[:, :, None]
    z = curve.scores(np.hstack([*ends]))
    outside = np.stack([ndtr(z[:, :1]), ndtr(-z[:, 1:])])
    most = np.minimum(0.5 * (1.0 + outside - outside[::-1]), 1.0 - 1e-15)
    levels = np.maximum(np.minimum(2.0 * outside, most), _LEAST_GAP)
    y, gaps = curve.gaps(np.tile(g, (n, 1)), *ends[:, :, 0])
    for k, sign in enumerate((1.0, -1.0)):
        at, score = ndtri(levels[k]), sign * g
        with np.errstate(invalid="ignore", over="ignore"):
            reach = sign * (curve.values(sign * at) - ends[k])
            gap = reach * np.exp(power * (log_ndtr(score) - np.log(levels[k])))
            y = np.where(score < at, ends[k] + sign * gap, y)
        gaps[k] = np.where(score < at, gap, gaps[k])
        gaps[1 - k] = np.where(score < at, np.abs(ends[1 - k] - y), gaps[1 - k])
    u = coordinates_of_gaps(y, [np.maximum(gap, _LEAST_GAP) for gap in gaps], *ends)
    u = np.maximum.accumulate(u, axis=1)
    return read_curve(u, *ends[:, :, 0], basis=curve.basis)


def _bounds_that_count(
    curve: Curve, low: float | Float64Array, high: float | Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the bounds of each row, (n,). Bounds very far away are infinite."""
    middle = curve.values(np.tile([-1.0, 0.0, 1.0], (len(curve), 1)))
    farthest = _FARTHEST * (middle[:, 2] - middle[:, 0])
    new_low = np.where(middle[:, 1] - low < farthest, low, -np.inf)
    new_high = np.where(high - middle[:, 1] < farthest, high, np.inf)
    return np.maximum(new_low, curve.low), np.minimum(new_high, curve.high)


def golden_section(
    function: Callable[[Float64Array], Float64Array],
    low: Float64Array,
    high: Float64Array,
    n_steps: int,
) -> Float64Array:
    """Return where in each [low, high] (n, k) a function with one valley is least.

    Each step keeps a share of 0.618 of the interval (Kiefer, 1953). It evaluates both
    inner points. One of them is known from the step before, but which one differs
    between rows. The function gets (n, 2 k) points at a time.
    """
    k = low.shape[1]
    for _ in range(n_steps):
        gap = _GOLDEN * (high - low)
        values = function(np.hstack([high - gap, low + gap]))
        left = values[:, :k] <= values[:, k:]
        low, high = np.where(left, low, high - gap), np.where(left, low + gap, high)
    return np.asarray(0.5 * (low + high))


def search_shortest(
    ppf: Callable[[Float64Array], Float64Array], n: int, coverage: float
) -> Float64Array:
    """Return the shortest intervals (n, 2) between quantiles at p and p + coverage."""

    def width(starts: Float64Array) -> Float64Array:
        ends = ppf(np.hstack([starts, np.minimum(starts + coverage, 1.0)]))
        return ends[:, starts.shape[1] :] - ends[:, : starts.shape[1]]

    # First on a grid that is dense where tails may be long, then between the
    # neighbours of the best.
    room = 1.0 - coverage
    starts = 0.5 * room * (1.0 - np.cos(np.linspace(0.0, np.pi, _N_STARTS)))
    best = np.argmin(width(np.tile(starts, (n, 1))), axis=1)
    low = starts[np.maximum(best - 1, 0)]
    high = starts[np.minimum(best + 1, _N_STARTS - 1)]
    p = golden_section(width, low[:, None], high[:, None], _SHORTEST_STEPS)
    return ppf(np.hstack([p, np.minimum(p + coverage, 1.0)]))
