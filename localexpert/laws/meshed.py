"""`MeshedLaw`: smooth laws whose integrals are sums between quantiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.laws.law import Law
from localexpert.laws.quantile_mesh import Mesh, central_moments, levels_of
from localexpert.laws.scanned import ScannedLaw


class MeshedLaw(ScannedLaw):
    """A law that answers CDF, density and quantiles; the rest follows from these."""

    def _bordering(self) -> Sequence[Law]:
        """Return laws of as many rows whose quantiles border panels: the law itself."""
        return [self]

    def _levels(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return CDF and survival function, each accurate where it is small."""
        return levels_of(self, y)

    def crps(self, y: Float64Array) -> Float64Array:
        # CRPS = E|Y - y| - E|Y - Y'| / 2, and the latter is int F (1 - F).
        below, above, spread = self._integrals(y)
        return below + above - spread

    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        below, above, _ = self._integrals(y)
        return below, above

    def _answers(self, rows: NDArray[np.int64], y: Float64Array) -> Float64Array:
        """Return what is integrated at nodes (k, m) of some rows, the CDF first."""
        law = self if len(rows) == len(self) else self.take(rows)
        return np.stack(law._levels(y))

    def _meshes(
        self, middle: Float64Array | None = None
    ) -> Iterator[tuple[NDArray[np.int64], Self, Mesh, Float64Array]]:
        """Yield rows, their law and mesh, and what `_answers` says at its nodes.

        A middle (n, 1) is cut at, and then the mesh goes on to where moments end.
        """
        for rows, part in self._parts():
            cuts = None if middle is None else middle[rows]
            mesh = Mesh.of(part._bordering(), cuts=cuts, far=cuts is not None)
            for some, fine, answers in mesh.refined(part._answers):
                yield rows.start + some, part.take(some), fine, answers

    def _integrals(
        self, y: Float64Array
    ) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return the integrals of F below y, 1 - F above it, and F (1 - F), (n, 1)."""
        below, above, spread = np.empty(y.shape), np.empty(y.shape), np.empty(len(y))
        for rows, part, mesh, (cdf, sf) in self._meshes():
            at = np.ascontiguousarray(y[rows])
            sums = mesh.partial_means(part._levels, at, cdf, sf)
            below[rows], above[rows] = sums
            spread[rows] = (mesh.dy * cdf * sf).sum(axis=1)
        return below, above, spread[:, None]

    def _central_moments(self, middle: Float64Array) -> Float64Array:
        """Return mean and second to fourth central moment, by a middle (n, 1)."""
        out = np.empty((len(self), 4))
        for rows, _, mesh, (cdf, sf) in self._meshes(middle):
            out[rows] = central_moments(mesh, cdf, sf, middle[rows])
        return out

    def _scan(self) -> Float64Array:
        """Return y, probability, log density and CDF at the nodes, (4, n, m)."""
        mesh, cdf = Mesh.of(self._bordering(), kinks=self.kinks()).settled(self.cdf)
        log_density = self.logpdf(mesh.y)
        masses = mesh.masses(np.exp(log_density), self._levels)
        return np.stack([mesh.y, masses, log_density, cdf])
