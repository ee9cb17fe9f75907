"""`Lattice`: values in equal steps, and how those far out are joined in cells."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np

from calibration.typing import Float64Array

# So many cells of a lattice have their own place. Farther out each has this many times
# as many as the one before.
_ALL_CELLS, _GROWTH = 256, 1.02
# A number may miss its place by this share of a step.
OF_STEP = 1e-6
# Steps and offsets that miss a fraction of at most this denominator by less than this
# share of a step are the fraction, as decimals are.
_GREATEST, _FRACTION = 10_000, 1e-12


@dataclass(frozen=True)
class Lattice:
    """The values offset + k step, at places k that are whole.

    Parameters
    ----------
    step, offset : float
    """

    step: float
    offset: float

    @cached_property
    def _line(self) -> tuple[float, float, float]:
        """Offset and step as numerators, and their denominator."""
        numbers = self.offset, self.step
        parts = [Fraction(each).limit_denominator(_GREATEST) for each in numbers]
        off = [abs(float(a) - b) for a, b in zip(parts, numbers, strict=True)]
        if max(off) > _FRACTION * self.step:
            return self.offset, self.step, 1.0
        whole = lcm(*(part.denominator for part in parts))
        first, step = (float(part * whole) for part in parts)
        return first, step, float(whole)

    def places(self, y: Float64Array) -> Float64Array:
        """Return where numbers are, between places too."""
        return (y - self.offset) / self.step

    def values(self, places: Float64Array) -> Float64Array:
        """Return the values at places: 3 tenths are .3, which 3 times .1 is not."""
        first, step, whole = self._line
        return (first + places * step) / whole

    def cells(
        self, ends: Float64Array, own: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the first and the last place of cells, (n, m) both.

        Parameters
        ----------
        ends : ndarray of shape (n, 3)
            Least value, a middle one, and the greatest one of each row. Far from the
            middle, cells are of more places: 2 % of this distance.
        own : ndarray of shape (k,)
            Values whose cells are of one place wherever they are.
        """
        if len(ends) == 0:
            return np.empty((0, 1)), np.empty((0, 1))
        place = np.rint(self.places(ends))
        low, high = (place[:, ::2] - place[:, 1:2]).T
        grid = cells_upto(max(float(-low.min()), float(high.max()), 1.0))
        grid = np.concatenate([-grid[:0:-1], grid])
        grid = grid[(grid >= low.min()) & (grid <= high.max())]
        cells = place[:, 1:2] + grid
        alone = np.rint(self.places(own))
        far = (np.abs(alone - place[:, 1:2]) >= _ALL_CELLS).any(axis=0)
        if far.any():
            # Between its neighbours. The first of equal ones has the mass.
            alone = np.unique(np.add.outer([-1.0, 0.0, 1.0], alone[far]))
            alone = np.broadcast_to(alone, (len(ends), len(alone)))
            cells = np.sort(np.hstack([cells, alone]), axis=1)
        middles = np.floor(0.5 * (cells[:, 1:] + cells[:, :-1]))
        first = np.hstack([cells[:, :1], middles + 1.0])
        return first, np.hstack([middles, cells[:, -1:]])


def cells_upto(most: float) -> Float64Array:
    """Return numbers of cells up to `most`: all at first, then fewer and fewer."""
    near = np.arange(min(most, _ALL_CELLS) + 1.0)
    if most <= _ALL_CELLS:
        return near
    n_far = int(np.ceil(np.log(most / _ALL_CELLS) / np.log(_GROWTH)))
    far = np.rint(_ALL_CELLS * _GROWTH ** np.arange(1.0, n_far + 1.0))
    return np.concatenate([near, np.unique(far)])
