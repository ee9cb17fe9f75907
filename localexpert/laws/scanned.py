"""`ScannedLaw`: laws whose density is looked over at the nodes of a mesh."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Self

import numpy as np

from calibration.typing import Float64Array
from localexpert._kernels.regions import density_levels, level_crossings
from localexpert.laws.law import Law

# Rows whose mesh is in memory at a time.
_ROWS = 1024
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
_GOLDEN_STEPS = 45


class ScannedLaw(Law):
    """A smooth law that finds entropy, mode and densest regions by scanning."""

    @abstractmethod
    def _scan(self) -> Float64Array:
        """Return y, probability, log density and CDF at the nodes, (4, n, m)."""

    def _parts(self) -> Iterator[tuple[slice, Self]]:
        """Yield the law a piece at a time, with the rows of each."""
        for start in range(0, len(self), _ROWS):
            rows = slice(start, start + _ROWS)
            yield rows, self.take(rows)

    def _entropy(self) -> Float64Array:
        out = np.empty(len(self))
        for rows, part in self._parts():
            _, masses, log_density, _ = part._scan()
            held = np.where(masses > 0.0, log_density, 0.0)
            out[rows] = -(masses * held).sum(axis=1)
        return out

    def _mode(self) -> Float64Array:
        out = np.empty(len(self))
        for rows, part in self._parts():
            y, _, log_density, _ = part._scan()
            best = np.argmax(log_density, axis=1)
            every = np.arange(len(part))
            low = y[every, np.maximum(best - 1, 0)]
            high = y[every, np.minimum(best + 1, y.shape[1] - 1)]
            out[rows] = _golden_maximum(part.logpdf, low, high)
        return out

    def _nodes(self) -> tuple[Float64Array, Float64Array]:
        y, masses, _, _ = self._scan()
        return y, masses

    def _densest_regions(self, coverage: Float64Array) -> list[Float64Array]:
        """Scan at the nodes, with lines of log density between them."""
        y, _, log_density, cdf = self._scan()
        goals = np.ascontiguousarray(coverage, dtype=np.float64)
        levels = density_levels(log_density, cdf, goals)
        return [
            level_crossings(y[i], log_density[i], levels[i]) for i in range(len(self))
        ]


def _golden_maximum(
    function: Callable[[Float64Array], Float64Array],
    low: Float64Array,
    high: Float64Array,
) -> Float64Array:
    """Return where in [low, high] (n,) the function is greatest, ends included."""
    ends = low, high
    for _ in range(_GOLDEN_STEPS):
        gap = _GOLDEN * (high - low)
        at = function(np.column_stack([high - gap, low + gap]))
        left = at[:, 0] >= at[:, 1]
        low, high = np.where(left, low, high - gap), np.where(left, low + gap, high)
    trials = np.column_stack([0.5 * (low + high), *ends])
    best = np.argmax(function(trials), axis=1)
    return np.asarray(np.take_along_axis(trials, best[:, None], axis=1)[:, 0])
