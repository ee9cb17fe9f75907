"""Sums of independent rows: their laws on a grid, multiplied in frequencies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert.law.law import Law

# Steps of the grid in a deviation of the sum, and per root of the number of rows.
_STEPS, _STEPS_PER_ROOT = 40.0, 4.0
# Scores between which a row's own cells lie, and deviations of the sum beside them.
_ROW_REACH, _SUM_REACH = 8.0, 10.0
# Cells at most, and cells of rows that are filled in at a time.
_MOST_CELLS, _CHUNK = 1 << 16, 1 << 21
# Scores of the quantiles that a sum is told by.
KNOTS = np.linspace(-6.0, 6.0, 97)


class Cells(NamedTuple):
    """Probabilities (N,) of cells of a width, the first at a start.

    `atoms` (N,) are the parts of them that are sums of atoms alone.
    """

    start: float
    width: float
    masses: Float64Array
    atoms: Float64Array


def lattice_step(values: Float64Array) -> float | None:
    """Return the step of the lattice that values (m,) lie on, if that is a coarse one.

    The greatest common divisor of their differences, up to rounding.

    Parameters
    ----------
    values : ndarray of shape (m,)

    Returns
    -------
    float or None
    """
    values = np.unique(values)
    if len(values) < 2:
        return 1.0
    gaps = np.diff(values)
    # Values a rounding apart are one.
    size = np.abs(values).max()
    gaps = gaps[gaps > 1e-9 * size]
    step, least = float(gaps[0]), 1e-6 * float(np.ptp(values))
    for gap in np.unique(gaps):
        rest = float(gap)
        while rest > 1e-9 * size:
            step, rest = rest, step % rest
            # What is left of a division by rounding is nothing.
            if min(rest, abs(step - rest)) <= 1e-9 * size:
                rest = 0.0
        if step < least:
            return None
    return step


def add_lattice(
    values: Float64Array, rows: Float64Array, weights: Float64Array, step: float
) -> Cells | None:
    """Return the law of a sum of rows with values on a lattice; None if too long.

    Parameters
    ----------
    values : ndarray of shape (V,)
        Increasing.
    rows : ndarray of shape (m, V)
        Their probabilities.
    weights : ndarray of shape (m,)
    step : float
        That all weighted values are multiples of, up to a shift.

    Returns
    -------
    Cells or None
    """
    first = weights * np.where(weights > 0.0, values[0], values[-1])
    places = np.rint((weights[:, None] * values - first[:, None]) / step)
    places = places.astype(np.int64)
    longest = int(places.max(axis=1).sum()) + 1
    mean = (rows * places).sum(axis=1, keepdims=True)
    spread = float(np.sqrt((rows * (places - mean) ** 2).sum()))
    reach = int(places.max()) + int(2.0 * _SUM_REACH * spread) + 8
    n_cells = 1 << int(min(longest, reach) - 1).bit_length()
    if n_cells > _MOST_CELLS:
        return None
    total = _spectrum(places, rows, n_cells)
    masses = np.maximum(np.fft.irfft(total, n_cells), 0.0)
    # The circle is cut where it is empty, opposite to the mean.
    start = 0
    if longest > n_cells:
        start = max(round(float(mean.sum())) - n_cells // 2, 0)
        masses = np.roll(masses, -(start % n_cells))
    masses = masses[: min(longest - start, n_cells)]
    masses /= masses.sum()
    return Cells(float(first.sum()) + start * step, step, masses, masses)


def add_smooth(law: Law, weights: Float64Array, spread: float, finest: float) -> Cells:
    """Return the law of a sum of weighted rows on a fine grid.

    Parameters
    ----------
    law : Law
        Of m rows.
    weights : ndarray of shape (m,)
        None is 0.
    spread : float
        About the deviation of the sum.
    finest : float
        The same of its narrower side, where it has most probability.

    Returns
    -------
    Cells
    """
    m = len(law)
    width = finest / max(_STEPS, _STEPS_PER_ROOT * np.sqrt(m))
    ends = law.ppf(np.tile(ndtr([-_ROW_REACH, 0.0, _ROW_REACH]), (m, 1)))
    ends = np.where(np.isfinite(ends), ends, ends[:, 1:2])
    away = np.abs(weights[:, None] * (ends - ends[:, 1:2])).max(axis=1)
    need = 2.0 * (_SUM_REACH * spread + float(away.max())) / width
    n_cells = min(1 << int(np.ceil(need)).bit_length(), _MOST_CELLS)
    # What is beyond counts for the outermost, which leave room for the other rows.
    half = np.minimum(np.ceil(away / width) + 1, n_cells * 3 // 8).astype(np.int64)
    middle = weights * ends[:, 1]
    spectra = np.ones((2, n_cells // 2 + 1), dtype=np.complex128)
    order = np.argsort(half, kind="stable")
    for rows in _chunks(half[order]):
        some = order[rows]
        row = _Rows(law.take(some), weights[some], middle[some], width)
        reach = int(half[some].max())
        atoms = row.atoms(reach)
        places = np.tile(np.arange(-reach, reach + 1), (len(some), 1))
        spectra[0] *= _spectrum(places, atoms + row.rest(reach), n_cells)
        # Where a row has no atoms no sum is one of atoms alone.
        spectra[1] *= _spectrum(places, atoms, n_cells) if atoms.any() else 0.0
    found = np.fft.fftshift(np.fft.irfft(spectra, n_cells, axis=1), axes=1)
    start = float(middle.sum()) - n_cells // 2 * width
    return Cells(start, width, found[0], found[1])


class _Rows(NamedTuple):
    """Weighted rows, as cells of a width around the middle of each."""

    law: Law
    weights: Float64Array
    middle: Float64Array
    width: float

    def rest(self, reach: int) -> Float64Array:
        """Return probabilities (m, 2 reach + 1) of cells, but for those of atoms.

        All that is beyond counts for the outermost.
        """
        if self.law.curve is None:
            return np.zeros((len(self.law), 2 * reach + 1))
        edges = self.middle[:, None] + (np.arange(-reach, reach) + 0.5) * self.width
        weights = self.weights[:, None]
        edges = np.ascontiguousarray(edges / weights)
        # Of a negative weight the upper end of Y is the lower one of the sum.
        z = self.law.curve.scores(edges)
        below = ndtr(np.where(weights < 0.0, -z, z))
        below = np.pad(below, ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
        return np.asarray(np.maximum(np.diff(below), 0.0) * self.law.rest[:, None])

    def atoms(self, reach: int) -> Float64Array:
        """Return the probabilities (m, 2 reach + 1) of atoms in their cells."""
        out = np.zeros((len(self.law), 2 * reach + 1))
        row = np.arange(len(self.law))
        for value, mass in zip(self.law.atoms, self.law.masses.T, strict=True):
            place = np.rint((self.weights * value - self.middle) / self.width)
            place = np.clip(place, -reach, reach).astype(np.int64)
            out[row, place + reach] += mass
        return out


def quantiles_of(start: float, width: float, masses: Float64Array) -> Float64Array:
    """Return the quantiles (K,) at `KNOTS` of what lies on a fine grid.

    Parameters
    ----------
    start : float
        The middle of the first cell.
    width : float
    masses : ndarray of shape (N,)
        Rounding may have made them negative.

    Returns
    -------
    ndarray of shape (K,)
    """
    masses = np.maximum(masses, 0.0)
    masses = masses / masses.sum()
    below: Float64Array = np.cumsum(masses)
    above: Float64Array = np.cumsum(masses[::-1])[::-1]
    edges = np.asarray(start + (np.arange(len(masses)) + 0.5) * width, np.float64)
    # Each half from its own end, whose small probabilities keep their digits.
    low = np.interp(ndtr(KNOTS), *_rising(below, edges))
    high = np.interp(ndtr(-KNOTS), *_rising(above[::-1], edges[::-1] - width))
    return np.asarray(np.where(KNOTS < 0.0, low, high))


def _rising(
    levels: Float64Array, at: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return levels that increase strictly, and where they are reached."""
    kept = np.concatenate([[True], np.diff(levels) > 0.0])
    # Of a run of equal levels the last place, where the next rise begins.
    last = np.append(np.flatnonzero(kept)[1:], len(levels)) - 1
    return levels[last], at[last]


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


def _chunks(half: NDArray[np.int64]) -> list[slice]:
    """Return slices of rows of rising half widths, alike in size and few at a time."""
    out, first = [], 0
    while first < len(half):
        last = int(np.searchsorted(half, 2 * half[first], "right"))
        last = min(last, first + max(_CHUNK // int(2 * half[last - 1] + 1), 1))
        out.append(slice(first, last))
        first = last
    return out
