"""`ScannedLaw`: laws whose density is looked over at the nodes of a mesh."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Self

import numpy as np

from calibration.typing import Float64Array
from localexpert._kernels.regions import density_levels, level_crossings
from localexpert.laws.law import Law, golden_section

# Rows whose mesh is in memory at a time.
_ROWS = 1024
_GOLDEN_STEPS = 45
# Peaks of a scan that are looked at more closely.
_PEAKS = 3
# As shares of their size, by how much places of jumps may round: some steps of a float.
_ROUNDED = 2.0**-48


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

    def entropy(self) -> Float64Array:
        out = np.empty(len(self))
        for rows, part in self._parts():
            _, masses, log_density, _ = part._scan()
            held = np.where(masses > 0.0, log_density, 0.0)
            out[rows] = -(masses * held).sum(axis=1)
        return out

    def mode(self) -> Float64Array:
        parts = [part._highest() for _, part in self._parts()]
        return np.concatenate([np.empty(0), *parts])

    def _highest(self) -> Float64Array:
        """Return where the density is greatest, beside the nodes of its peaks."""
        y, _, log_density, cdf = self._scan()
        walled = np.pad(log_density, ((0, 0), (1, 1)), constant_values=-np.inf)
        is_peak = (log_density >= walled[:, :-2]) & (log_density >= walled[:, 2:])
        peaks = np.where(is_peak, log_density, -np.inf)
        # A lower one may be the higher between the nodes.
        best = np.argsort(-peaks, axis=1, kind="stable")[:, :_PEAKS]
        low = np.take_along_axis(y, np.maximum(best - 1, 0), axis=1)
        high = np.take_along_axis(y, np.minimum(best + 1, y.shape[1] - 1), axis=1)
        inner = golden_section(lambda at: -self.logpdf(at), low, high, _GOLDEN_STEPS)
        # The ends, too: a density that is cut off may be greatest where it is cut, and
        # one that jumps beside a jump.
        bends = np.clip(self.kinks(), *self.support)
        sizes = np.where(np.isfinite(bends), np.abs(bends), 0.0)
        near = _ROUNDED * (sizes + 2.0**12 * _middle_half(y, cdf))
        sides = np.clip([bends - near, bends + near], *self.support)
        trials = np.hstack([inner, low, high, *sides])
        highest = np.argmax(self.logpdf(trials), axis=1)
        return np.asarray(np.take_along_axis(trials, highest[:, None], axis=1)[:, 0])

    def nodes(self) -> tuple[Float64Array, Float64Array]:
        y, masses, _, _ = self._scan()
        return y, masses

    def densest_regions(self, coverage: Float64Array) -> list[Float64Array]:
        y, _, log_density, cdf = self._scan()
        return densest_regions(y, log_density, cdf, coverage)


def _middle_half(y: Float64Array, cdf: Float64Array) -> Float64Array:
    """Return how wide the middle half of each row is, by its nodes, shape (n, 1)."""
    rows = np.arange(len(y))
    lower, upper = ((cdf < share).sum(axis=1) for share in (0.25, 0.75))
    last = y.shape[1] - 1
    wide = y[rows, np.minimum(upper, last)] - y[rows, np.minimum(lower, last)]
    return np.asarray(wide[:, None])


def densest_regions(
    y: Float64Array,
    log_density: Float64Array,
    cdf: Float64Array,
    coverage: Float64Array,
) -> list[Float64Array]:
    """Return where the density is above the level that gives each row its coverage.

    From nodes (n, m), with lines of log density between them; coverage is (n,).
    """
    goals = np.ascontiguousarray(coverage, dtype=np.float64)
    levels = density_levels(log_density, cdf, goals)
    return [level_crossings(*row) for row in zip(y, log_density, levels, strict=True)]
