"""Sums of independent rows: of values, and on a grid, multiplied in frequencies."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert.law.law import Law
from localexpert.law.near_values import near_runs

# Values that a sum of values off a lattice may take, and one of atoms beside a rest.
_MOST_VALUES, _MOST_ATOMS = 4096, 256
# A probability of less than this is none: of sums of atoms alone, and of one of them.
LEAST_ATOM, _LEAST_MASS = 1e-9, 1e-15
# Steps of the grid in a deviation of the sum, and per root of the number of rows.
_STEPS, _STEPS_PER_ROOT = 40.0, 4.0
# Deviations of the sum that the grid reaches beyond a row's own cells.
_SUM_REACH = 10.0
# Cells at most, and cells of rows that are filled in at a time.
_MOST_CELLS, _CHUNK = 1 << 16, 1 << 21
# Levels of quantiles that tell how wide rows are, and how many deviations of a normal
# law all but the outermost are from its middle; a row has its cells between those.
_LEVELS = np.array([ndtr(-8.0), 0.05, 0.25, 0.5, 0.75, 0.95, ndtr(8.0)])
_DEVIATIONS = np.array([1.645, 0.674, 1.0, 0.674, 1.645])
# Scores of the quantiles that a sum is told by.
KNOTS = np.linspace(-6.0, 6.0, 97)

# Values and their masses, (V,) both.
Values: TypeAlias = tuple[Float64Array, Float64Array]


def add_values(law: Law, weights: Float64Array) -> Values:
    """Return all sums of weighted atoms of m rows, and their masses.

    None if they are too many, or hardly ever come. Where rows have a rest these are
    the sums of atoms alone.
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


def lattice_step(values: Float64Array) -> float | None:
    """Return the step of the lattice that values (m,) lie on, if that is a coarse one.

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
    step = lattice_step(weights[:, None] * (law.atoms - law.atoms[0]))
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
    middle, away, width, n_cells = _place_grid(law, w, variance)
    # What is beyond counts for the outermost, which leave room for the other rows.
    half = np.minimum(np.ceil(away / width) + 1, n_cells * 3 // 8).astype(np.int64)
    atoms = np.rint((w * law.atoms - middle) / width).astype(np.int64)
    atoms = np.clip(atoms, -half[:, None], half[:, None])
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
    if apart:
        whole -= _spectrum(atoms, law.masses, n_cells)
    found = np.fft.fftshift(np.fft.irfft(whole, n_cells))
    edges = middle.sum() + (np.arange(n_cells) - n_cells // 2 + 0.5) * width
    return _read_quantiles(np.maximum(found, 0.0), edges, width)


def _place_grid(
    law: Law, w: Float64Array, variance: float
) -> tuple[Float64Array, Float64Array, float, int]:
    """Return the rows' middles (m, 1), how far they reach (m,), and width and length.

    Cells are narrow on the scale of the sum's narrowest side, told by quantiles, so
    that a peak beside a long tail is seen.
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
    return w * middle, reach, width, n_cells


def _cell_masses(
    law: Law, w: Float64Array, middle: Float64Array, width: float, reach: int
) -> Float64Array:
    """Return probabilities (m, 2 reach + 1) of curves in cells around the middles.

    All that is beyond counts for the outermost.
    """
    assert law.curve is not None
    edges = middle + (np.arange(-reach, reach) + 0.5) * width
    z = law.curve.scores(edges / w)
    # Of a negative weight the upper end of Y is the lower one of the sum.
    below = ndtr(np.where(w < 0.0, -z, z))
    below = np.pad(below, ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
    return np.asarray(np.maximum(np.diff(below), 0.0) * law.rest[:, None])


def _spectrum(
    places: NDArray[np.int64], masses: Float64Array, n_cells: int
) -> NDArray[np.complex128]:
    """Return the product of the transforms of rows of masses at places."""
    out = np.ones(n_cells // 2 + 1, dtype=np.complex128)
    most = max(_CHUNK // n_cells, 1)
    for first in range(0, len(places), most):
        at, mass = places[first : first + most] % n_cells, masses[first : first + most]
        row = np.arange(len(at))[:, None] * n_cells
        laid = np.bincount((row + at).ravel(), mass.ravel(), len(at) * n_cells)
        waves = np.fft.rfft(laid.reshape(len(at), n_cells), axis=1)
        out *= np.multiply.reduce(waves, axis=0)
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
