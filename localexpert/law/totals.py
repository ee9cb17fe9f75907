"""`total_law`: the laws of sums over rows, independent or correlated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import eval_hermitenorm, factorial, ndtr, ndtri

from calibration.typing import Float64Array
from localexpert.law.curve import Curve
from localexpert.law.from_others import (
    MOST_DISCRETE,
    curve_through,
    increase_rows,
    law_of_samples,
)
from localexpert.law.join import gather_laws
from localexpert.law.law import Law
from localexpert.law.steps import distinct_values, near_runs, nearest_places
from localexpert.law.transform import ValueMap, lattice_as_atoms, transform_law

# Values that a sum of values off a lattice may take, and one of atoms beside a rest.
_MOST_VALUES, _MOST_ATOMS = 4096, 256
# Smaller probabilities count as 0: of all sums of atoms, and of one value.
LEAST_ATOM, _LEAST_MASS = 1e-9, 1e-15
# Steps of the grid in a deviation of the sum, and per root of the number of rows.
_STEPS, _STEPS_PER_ROOT = 40.0, 4.0
# Deviations of the sum that the grid reaches beyond a row's own cells.
_SUM_REACH = 10.0
# Cells at most, and cells of rows that are filled in at a time.
_MOST_CELLS, _CHUNK = 1 << 16, 1 << 21
# Rows that are added on a circle of their own, before all are on a long one.
_FEW_ROWS = 4
# Heavy tails get more cells, so that only this probability lies beyond those of a row.
_CELLS_OF_TAILS, _LOST = 1 << 18, 1e-4
# Widest cells, in deviations of the sum's narrowest side. Sums that need wider ones are
# drawn: those of log-normals with a deviation above about 2.5, say.
_WIDEST = 0.25
# Levels of quantiles that tell how wide rows are. A row has its cells between the
# outermost two; the others are so many deviations from the middle of a normal law.
_LEVELS = np.array([ndtr(-8.0), 0.05, 0.25, 0.5, 0.75, 0.95, ndtr(8.0)])
_DEVIATIONS = np.array([1.645, 0.674, 1.0, 0.674, 1.645])
# Scores of the quantiles that describe a sum.
KNOTS = np.linspace(-6.0, 6.0, 97)

# Values and their masses, (V,) both.
Values: TypeAlias = tuple[Float64Array, Float64Array]


def add_values(law: Law, weights: Float64Array) -> Values:
    """Return all sums of weighted atoms of m rows, and their masses.

    It returns none if there are too many, or if they are nearly impossible. If rows
    also have curves, these are the sums of atoms only.
    """
    share = float(np.prod(1.0 - law.rest))
    if share < LEAST_ATOM:
        return np.empty(0), np.empty(0)
    discrete = share > 1.0 - LEAST_ATOM
    found = _add_lattice(law, weights) if discrete else None
    if found is None:
        found = _add_each(law, weights, _MOST_VALUES if discrete else _MOST_ATOMS)
    values, masses = found
    kept = masses > _LEAST_MASS
    return values[kept], masses[kept] / (masses[kept].sum() if discrete else 1.0)


def _add_each(law: Law, weights: Float64Array, most: int) -> Values:
    """Return sums of atoms and their masses, row by row; none if more than `most`."""
    values, masses = np.zeros(1), np.ones(1)
    for weight, row in zip(weights, law.masses, strict=True):
        kept = row > 0.0
        every = values[:, None] + weight * law.atoms[kept]
        mass = masses[:, None] * row[kept]
        values, masses = merge_values(every.ravel(), mass.ravel())
        if len(values) > most:
            return np.empty(0), np.empty(0)
    return values, masses


def merge_values(values: Float64Array, masses: Float64Array) -> Values:
    """Return values in order, near ones once, with their masses together."""
    every, place = np.unique(values, return_inverse=True)
    run = near_runs(every)
    first = np.flatnonzero(np.diff(run, prepend=-1))
    return every[first], np.bincount(run[place], masses).astype(np.float64)


def common_step(values: Float64Array) -> float | None:
    """Return the step of the lattice that values (m,) lie on, if it is coarse.

    The greatest common divisor of their differences, up to rounding; 1 of one value.
    """
    size, range_ = float(np.abs(values).max()), float(np.ptp(values))
    # Values a rounding apart are one, and what a division leaves by rounding is none.
    gaps = np.unique(np.diff(np.unique(values)))
    gaps = gaps[gaps > 1e-9 * size]
    step = float(gaps[0]) if len(gaps) else 1.0
    for gap in gaps[1:]:
        rest = float(gap)
        while rest > 1e-9 * size:
            step, rest = rest, abs(math.remainder(step, rest))
        if step < 1e-6 * range_:
            return None
    return step


def _add_lattice(law: Law, weights: Float64Array) -> Values | None:
    """Return the law of a sum of rows on a lattice; None if off one, or too long."""
    values = weights[:, None] * law.atoms
    first = values.min(axis=1, keepdims=True)
    step = common_step(weights[:, None] * (law.atoms - law.atoms[0]))
    if step is None:
        return None
    places = np.rint((values - first) / step).astype(np.int64)
    longest = int(places.max(axis=1).sum()) + 1
    mean = (law.masses * places).sum(axis=1, keepdims=True)
    spread = float(np.sqrt((law.masses * (places - mean) ** 2).sum()))
    reach = int(places.max()) + int(2.0 * _SUM_REACH * spread) + 8
    n_cells = 1 << int(min(longest, reach) - 1).bit_length()
    if n_cells > _MOST_CELLS:
        return None
    masses = np.fft.irfft(_spectrum(places, law.masses, n_cells), n_cells)
    # The circle is cut where it is empty, opposite to the mean.
    start = 0
    if longest > n_cells:
        start = max(round(float(mean.sum())) - n_cells // 2, 0)
        masses = np.roll(masses, -(start % n_cells))
    masses = np.maximum(masses[: longest - start], 0.0)
    return first.sum() + step * (start + np.arange(len(masses))), masses


def add_smooth(
    law: Law, weights: Float64Array, variance: float, *, apart: bool
) -> Float64Array:
    """Return the quantiles (K,) at `KNOTS` of the sum of weighted rows.

    Parameters
    ----------
    law : Law
        Of m rows.
    weights : ndarray of shape (m,)
        None is 0.
    variance : float
        Of the sum; may be infinite.
    apart : bool
        Whether sums of atoms alone are left out.

    Returns
    -------
    ndarray of shape (K,)
    """
    w = weights[:, None]
    grid = _place_grid(law, w, variance)
    if grid is None:
        return _draw_smooth(law, weights, apart)
    middle, away, width, n_cells = grid
    # What is beyond counts for the outermost, which leave room for the other rows.
    cap = n_cells * 3 // 8
    half = np.minimum(np.ceil(away / width) + 1, cap).astype(np.int64)
    atoms = np.rint((w * law.atoms - middle) / width).astype(np.int64)
    atoms = np.clip(atoms, -half[:, None], half[:, None])
    # The sum moves by what rows within their cells lose of their means.
    shift, means, within = 0.0, weights * law.moments()[:, 0], half < cap
    whole = np.ones(n_cells // 2 + 1, dtype=np.complex128)
    order, most = np.argsort(half, kind="stable"), max(_CHUNK // n_cells, 1)
    for some in np.split(order, np.arange(most, len(order), most)):
        places, masses = atoms[some], law.masses[some]
        if law.curve is not None:
            reach = half[some].max()
            cells = np.tile(np.arange(-reach, reach + 1), (len(some), 1))
            rest = _cell_masses(law.take(some), w[some], middle[some], width, reach)
            places, masses = np.hstack([places, cells]), np.hstack([masses, rest])
        whole *= _spectrum(places, masses, n_cells)
        lost = means[some] - middle[some, 0] - width * (masses * places).sum(axis=1)
        shift += lost[within[some] & (np.abs(lost) < width)].sum()
    if apart:
        whole -= _spectrum(atoms, law.masses, n_cells)
    found = np.fft.fftshift(np.fft.irfft(whole, n_cells))
    edges = middle.sum() + shift + (np.arange(n_cells) - n_cells // 2 + 0.5) * width
    return _read_quantiles(np.maximum(found, 0.0), edges, width)


def _place_grid(
    law: Law, w: Float64Array, variance: float
) -> tuple[Float64Array, Float64Array, float, int] | None:
    """Return the rows' middles (m, 1), how far they reach (m,), and width and length.

    Cells are narrow compared with the sum's narrowest side, which quantiles show. So a
    peak beside a long tail is not lost. None if the tail is too long for that.
    """
    ends = law.ppf(np.tile(_LEVELS, (len(law), 1)))
    middle = ends[:, len(_LEVELS) // 2, None]
    away = np.abs(w * np.where(np.isfinite(ends), ends - middle, 0.0))
    # The lower side of -Y is the upper one of Y.
    away = np.where(w < 0.0, away[:, ::-1], away)
    sides = np.sqrt((away[:, 1:-1] ** 2).sum(axis=0)) / _DEVIATIONS
    sd = float(np.sqrt(variance)) if np.isfinite(variance) else 0.0
    sides = sides[sides > 0.0] if sides.any() else np.array([sd if sd > 0.0 else 1.0])
    spread = sd if 0.0 < sd <= 10.0 * sides.max() else float(sides.max())
    width = float(sides.min()) / max(_STEPS, _STEPS_PER_ROOT * np.sqrt(len(law)))
    reach = away.max(axis=1)
    need = 2.0 * (_SUM_REACH * spread + float(reach.max())) / width
    n_cells = min(1 << int(np.ceil(need)).bit_length(), _MOST_CELLS)
    # What lies beyond the cells of a row is less than the promised error, in all rows.
    z = float(ndtri(_LOST / len(law)))
    tails = law.ppf(np.tile(ndtr([z, -z]), (len(law), 1)))
    known = np.where(np.isfinite(tails), tails - middle, 0.0)
    far = float(np.abs(w * known).max()) / 0.375
    if n_cells * width < far:
        n_cells = _CELLS_OF_TAILS
        width = max(width, far / n_cells)
    if width > _WIDEST * sides.min():
        return None
    return w * middle, reach, width, n_cells


def _cell_masses(
    law: Law, w: Float64Array, middle: Float64Array, width: float, reach: int
) -> Float64Array:
    """Return probabilities (m, 2 reach + 1) of curves in cells around the middles.

    The outermost cells also get the probability beyond them.
    """
    edges = middle + (np.arange(-reach, reach) + 0.5) * width
    z = law.own_curve.scores(edges / w)
    # With a negative weight the upper end of Y is the lower end of the sum.
    below = ndtr(np.where(w < 0.0, -z, z))
    below = np.pad(below, ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
    return np.asarray(np.maximum(np.diff(below), 0.0) * law.rest[:, None])


def _spectrum(
    places: NDArray[np.int64], masses: Float64Array, n_cells: int
) -> NDArray[np.complex128]:
    """Return the product of the transforms of rows of masses at places."""
    out = np.ones(n_cells // 2 + 1, dtype=np.complex128)
    # A circle that just holds the sum of a few rows is short.
    reach = _FEW_ROWS * int(np.abs(places).max(initial=0))
    short = 1 << (2 * reach).bit_length()
    many = len(places) > _FEW_ROWS and 2 * short <= n_cells
    cells = short if many else n_cells
    most = max(_CHUNK // cells, 1)
    for first in range(0, len(places), most):
        at, mass = places[first : first + most] % cells, masses[first : first + most]
        row = np.arange(len(at))[:, None] * cells
        laid = np.bincount((row + at).ravel(), mass.ravel(), len(at) * cells)
        waves = np.fft.rfft(laid.reshape(len(at), cells), axis=1)
        if not many:
            out *= np.multiply.reduce(waves, axis=0)
            continue
        few = np.multiply.reduceat(waves, np.arange(0, len(at), _FEW_ROWS), axis=0)
        where = np.arange(-reach, reach + 1)
        sums = np.fft.irfft(few, cells, axis=1)[:, where]
        out *= _spectrum(np.tile(where, (len(few), 1)), sums, n_cells)
    return out


def _read_quantiles(
    masses: Float64Array, edges: Float64Array, width: float
) -> Float64Array:
    """Return the quantiles at `KNOTS` of masses (N,) of cells with upper edges (N,)."""
    masses = masses / masses.sum()
    # Each half from its own end, whose small probabilities keep their digits.
    low = np.interp(ndtr(KNOTS), np.cumsum(masses), edges)
    above = np.cumsum(masses[::-1])
    high = np.interp(ndtr(-KNOTS), above, edges[::-1] - width)
    return np.asarray(np.where(KNOTS < 0.0, low, high))


# Draws of each total, half of them the others mirrored: at most, at least, and of all
# rows together.
_MOST_DRAWS, _LEAST_DRAWS, _ALL_DRAWS = 16384, 4096, 5e7
# Scores of a table of quantiles, and of sums that are Hermite coefficients where
# quantiles jump; those of smooth ones converge faster than any power.
_REACH, _N_TABLE, _N_SUM = 8.0, 641, 4001
_N_TERMS = 60
# Draws in memory at a time.
_DRAWN = 1 << 22


@dataclass(frozen=True, eq=False)
class CorrelationEstimate:
    """Correlation of the rows of a group; build it with `estimate_correlation`.

    Parameters
    ----------
    correlation : float
        Of the normal scores of two rows of a group.
    interval : ndarray of shape (2,)
        Ends of its interval.
    coverage : float
        Of the interval.
    n_groups, n_rows : int
        What it was learned from.

    Examples
    --------
    >>> from scipy import stats
    >>> from localexpert import PredictiveDistribution, estimate_correlation
    >>> dist = PredictiveDistribution.from_scipy(stats.norm([0.0, 0.0, 1.0, 1.0], 1.0))
    >>> found = estimate_correlation(dist, [1.0, 0.5, 0.2, 0.7], ["a", "a", "b", "b"])
    >>> found.n_groups, round(found.correlation, 2)
    (2, 0.86)
    """

    correlation: float
    interval: Float64Array
    coverage: float
    n_groups: int
    n_rows: int


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
        most = max(_DRAWN // half, 1)
        starts = np.arange(most, len(rows), most)
        if self.matrix is None and self.rho >= 0.0:
            # The common part has one draw from each of as many equal parts of (0, 1).
            levels = (self.rng.permutation(half) + self.rng.uniform(size=half)) / half
            common = np.sqrt(self.rho) * ndtri(np.clip(levels, 1e-12, 1.0 - 1e-12))
            for part in np.split(rows, starts):
                independent = self.rng.standard_normal((len(part), half))
                yield part, common + np.sqrt(1.0 - self.rho) * independent
            return
        values, vectors = np.linalg.eigh(self.of_rows(rows))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws = self.rng.standard_normal((len(rows), half))
        parts = np.split(rows, starts), np.split(root, starts)
        for part, some in zip(*parts, strict=True):
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
            # Differences from a middle value: large values would lose digits.
            parts.append(w * ((table - table[:, len(grid) // 2, None]) @ basis))
            if law.has_jumps:
                values = own.ppf_scores(z)
            else:
                pairs = zip(z, table, strict=True)
                values = np.stack([np.interp(at, grid, row) for at, row in pairs])
            draws[g] += (w * values).sum(axis=0)
        added[g] = _covariances(np.concatenate(parts), correlation, rows)
    if law.has_jumps:
        # Equal sums differ by rounding, depending on which rows give what.
        for sums in draws:
            distinct = distinct_values(sums)
            sums[:] = distinct[nearest_places(distinct, sums)]
    return draws, added


def _draw_smooth(law: Law, weights: Float64Array, apart: bool) -> Float64Array:
    """Return the quantiles (K,) at `KNOTS` of sums of independent rows, by draws."""
    independent = Correlation(np.random.default_rng(0), 0.0)
    draws, _ = draw_sums(law, weights, [np.arange(len(law))], independent)
    if apart:
        # Sums of atoms repeat, and no others do.
        values, counts = np.unique(draws, return_counts=True)
        if (counts == 1).sum() > 1:
            draws = _spread(values[counts == 1], draws.shape[1])[None]
    ends = np.sort(weights[:, None] * law.support).sum(axis=0)
    found = law_of_samples(draws, "smooth", ends)
    return np.asarray(found.ppf_scores(KNOTS[None])[0])


def _spread(draws: Float64Array, n: int) -> Float64Array:
    """Return n draws with the quantiles of fewer ones."""
    return np.asarray(np.quantile(draws, (np.arange(n) + 0.5) / n))


def _covariances(
    coefficients: Float64Array, correlation: Correlation, rows: NDArray[np.intp]
) -> float:
    r"""Return the sum of the covariances of all pairs of some rows.

    Two rows with quantile curves :math:`Q = \sum_k c_k He_k / \sqrt{k!}` have the
    covariance :math:`\sum_{k \ge 1} c_k d_k \rho^k` (Mehler's formula).
    """
    if correlation.matrix is None:
        if correlation.rho == 0.0:
            return 0.0
        with np.errstate(over="ignore", invalid="ignore"):
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


# If more than this share of the draws are equal, they are a value with probability.
_REPEATS = 1e-3
# If a curve misses the known deviation, or the mean, by more than this share of the
# deviation, its tails are not known well. Such a curve stays as it is.
_MOST_STRETCH = 0.005
# Rows with curves that are alone in their groups are exact for so many weights at most.
_MOST_FACTORS = 16

# Atoms of each sum, curves of the rest, and moments of both.
_Sums: TypeAlias = tuple[list[Values], Curve, Float64Array]


def total_law(
    law: Law,
    weights: Float64Array,
    groups: list[NDArray[np.intp]],
    correlation: Correlation | None,
) -> Law:
    """Return the law of the weighted sum over each group of rows.

    Parameters
    ----------
    law : Law
        Of n rows.
    weights : ndarray of shape (n,)
    groups : list of G ndarrays of int
        The rows of each, one or more.
    correlation : Correlation or None
        None for independent rows.

    Returns
    -------
    Law
        Of G rows.
    """
    law = lattice_as_atoms(law).clipped
    held = [rows[weights[rows] != 0.0] for rows in groups]
    none = [g for g, rows in enumerate(held) if len(rows) == 0]
    # A sum of one row, or of none, is exact.
    parts = [Law.discrete(np.zeros(1), np.ones((len(none), 1)))]
    alone: dict[float, list[int]] = {}
    for g, rows in enumerate(held):
        if len(rows) == 1 and weights[rows[0]] > 0.0:
            alone.setdefault(float(weights[rows[0]]), []).append(g)
    if law.is_discrete or len(alone) > _MOST_FACTORS:
        alone = {factor: alone[factor] for factor in alone if factor == 1.0}
    for factor, single in alone.items():
        parts.append(_scale(law.take(np.array([held[g][0] for g in single])), factor))
    many = sorted({*range(len(held))}.difference(none, *alone.values()))
    if many:
        sums = [held[g] for g in many]
        if correlation is None:
            found = _add_rows(law, weights, sums)
        else:
            found = _draw_rows(law, weights, sums, correlation)
        least = np.abs(weights[weights != 0.0]).min()
        parts.append(_beside(*found, law.widths.min(initial=np.inf) * least))
    return gather_laws(parts, [none, *alone.values(), many])


def _scale(law: Law, factor: float) -> Law:
    """Return the law of Y times a positive factor."""
    if factor == 1.0:
        return law
    return transform_law(law, ValueMap(lambda y: factor * y, lambda z: z / factor))


def _add_rows(law: Law, weights: Float64Array, groups: list[NDArray[np.intp]]) -> _Sums:
    """Return sums of independent rows."""
    known, atoms = _add_moments(law, weights, groups), []
    # A sum without a rest has any curve.
    quantiles = np.tile(KNOTS, (len(groups), 1))
    for g, rows in enumerate(groups):
        own, w = law.take(rows), weights[rows]
        values, masses = add_values(own, w)
        atoms.append((values, masses))
        if masses.sum() < 1.0 - LEAST_ATOM:
            quantiles[g] = add_smooth(own, w, known[g, 1], apart=len(values) > 0)
    free = (-np.inf, np.inf)
    curve = curve_through(KNOTS, increase_rows(quantiles, KNOTS, free), free)
    return atoms, curve, known


def _draw_rows(
    law: Law,
    weights: Float64Array,
    groups: list[NDArray[np.intp]],
    correlation: Correlation,
) -> _Sums:
    """Return drawn sums, whose values that repeat are atoms."""
    draws, added = draw_sums(law, weights, groups, correlation)
    n_draws, atoms = draws.shape[1], []
    # All values are atoms if rows are discrete and take few values; none is if they are
    # smooth.
    few = law.is_discrete and len(np.unique(draws)) <= MOST_DISCRETE
    repeats = 0.0 if few else _REPEATS if law.has_jumps else 1.0
    for row in draws:
        values, counts = np.unique(row, return_counts=True)
        held = counts > repeats * n_draws
        atoms.append((values[held], counts[held] / n_draws))
        left = np.repeat(values[~held], counts[~held])
        # As many draws of the rest as there are in all; any where there is none.
        if law.has_jumps and len(left) > 1:
            row[:] = _spread(left, n_draws)
    curve = law_of_samples(draws, "smooth", None).own_curve
    known = _add_moments(law, weights, groups)[:, :2]
    known[:, 1] += added
    return atoms, curve, known


def _add_moments(
    law: Law, weights: Float64Array, groups: list[NDArray[np.intp]]
) -> Float64Array:
    """Return mean and central moments (G, 4) of sums of independent rows.

    Cumulants add up: that of order k of w Y is w^k times that of Y.
    """
    rows, sizes = np.concatenate(groups), [len(rows) for rows in groups]
    cumulants = law.moments()[rows]
    with np.errstate(invalid="ignore"):
        cumulants[:, 3] -= 3.0 * cumulants[:, 1] ** 2
        cumulants *= weights[rows, None] ** np.arange(1, 5)
        sums = np.add.reduceat(cumulants, np.cumsum([0, *sizes[:-1]]), axis=0)
        sums[:, 3] += 3.0 * sums[:, 1] ** 2
    return np.asarray(sums)


def _beside(
    atoms: list[Values], curve: Curve, known: Float64Array, width: float
) -> Law:
    """Return the laws of values with masses, beside curves that have the rest.

    Their moments are known: mean and variance (G, 2), or four of them (G, 4).
    """
    values = distinct_values(np.concatenate([values for values, _ in atoms]))
    masses = np.zeros((len(atoms), len(values)))
    for row, (at, mass) in zip(masses, atoms, strict=True):
        np.add.at(row, nearest_places(values, at), mass)
    law = Law(curve, values, masses, np.full(len(values), width))
    if not law.rest.any():
        return Law.discrete(values, masses)
    mean, variance = known[:, 0], known[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        away = values - mean[:, None]
        shift = -(masses * away).sum(axis=1) / law.rest
        spread = (variance - (masses * away**2).sum(axis=1)) / law.rest - shift**2
        law = replace(law, curve=_stretch(curve, mean + shift, spread))
    if known.shape[1] == 2:
        shape = np.where(np.isfinite(known[:, 1:]), law.moments()[:, 2:], np.nan)
        known = np.hstack([known, shape])
    return replace(law, known=known)


def _stretch(curve: Curve, mean: Float64Array, variance: Float64Array) -> Curve:
    """Return curves moved and stretched to known means and variances (n,)."""
    moments = curve.moments()
    factor = np.sqrt(np.maximum(variance, 0.0) / moments[:, 1])
    factor = np.where(np.abs(factor - 1.0) <= _MOST_STRETCH, factor, 1.0)[:, None]
    # Not around the mean: a huge one would take the digits of all others.
    moved = (mean - moments[:, 0])[:, None]
    moved = moved + (factor - 1.0) * (curve.coefficients - moments[:, :1])
    # Heavy tails have most values much closer than one deviation, and a narrow peak
    # beside a wide rest is narrower still. None of them may leave its place.
    at = np.tile(np.linspace(-2.0, 2.0, 9), (len(mean), 1))
    narrowest = 2.0 * np.diff(curve.values(at)).min(axis=1)
    body = np.abs(curve.basis.greville) < 2.0
    most = np.abs(moved[:, body]).max(axis=1)
    # A normal curve may be moved and stretched by this share of its deviation.
    near = (most <= 3.0 * _MOST_STRETCH * narrowest)[:, None]
    c = curve.coefficients + np.where(near, moved, 0.0)
    slopes = np.where(near, factor, 1.0) * curve.slopes
    return replace(curve, coefficients=c, slopes=slopes)
