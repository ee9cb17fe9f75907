"""`RecalibratedLaw`: the law with CDF G(F) for a spline law F and an increasing G."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert._kernels.law_mesh import mesh_crps, mesh_moments
from localexpert.laws.beside_atoms import MapBesideAtoms
from localexpert.laws.composed_map import ComposedMap
from localexpert.laws.discrete import DiscreteLaw
from localexpert.laws.law import Law
from localexpert.laws.mixed import MixedLaw
from localexpert.laws.pooled_law import PooledLaw
from localexpert.laws.scanned import ScannedLaw
from localexpert.laws.score_map import (
    ProbitMap,
    ScoreMap,
    clip_scores,
    log_rate,
    scores_of,
)
from localexpert.laws.spline import SplineLaw
from localexpert.laws.transformed import TransformedLaw

# Values of y that are cut at at a time.
_CUTS = 16
# Scores at which the densities of laws with bounds are cut.
_BESIDE_BOUNDS = np.linspace(-7.0, 7.0, 15)
# A median that lies further out than this in the law that is mapped is in its tail,
# and scores of the mapped law at which panels end then.
_IN_TAIL = 3.0
_OF_TAIL = np.linspace(-7.0, 7.0, 29)


@dataclass(frozen=True, eq=False, repr=False)
class RecalibratedLaw(ScannedLaw):
    """The law with CDF Phi(h(Phi^-1(F(y)))), F that of a spline law.

    Its density is G'(F(y)) f(y), its quantiles are F^-1(G^-1(p)).

    Parameters
    ----------
    law : SplineLaw
    scores : ScoreMap
        The map h, which keeps tails up to a factor: the moments that are finite are
        those of the law.

    Notes
    -----
    Integrals are sums over the mesh of the spline law. Moments are integrated by
    parts, so that they, the CRPS and the partial means need G(F) alone, whose second
    derivative may jump at the knots of h but not its first.

    Beside a bound the scores of F rest on differences: the survival function at a
    quantile may be off by 1e-3 of itself at 1e-12, and by a factor of 2 at 6e-16.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.curves.base_cdf import BaseCDF
    >>> from localexpert.laws.recalibrated import RecalibratedLaw
    >>> from localexpert.laws.score_map import ProbitMap
    >>> from localexpert.laws.spline import SplineLaw
    >>> base = BaseCDF.fit(np.random.default_rng(0).normal(size=2000))
    >>> one = np.ones((1, 1))
    >>> law = SplineLaw([0.0], [1.0], [0.0], 0.0 * one, one, base)
    >>> lower = RecalibratedLaw(law, ProbitMap([0.0], [1.0], [0.5]))
    >>> median = law.ppf(np.array([[0.5]]))
    >>> lower.cdf(median).round(3)  # Phi(1)
    array([[0.841]])
    """

    law: SplineLaw
    scores: ScoreMap

    def __len__(self) -> int:
        return len(self.law)

    @property
    def support(self) -> tuple[float, float]:
        """That of the law."""
        return self.law.support

    def take(self, rows: slice | NDArray[Any]) -> RecalibratedLaw:
        return RecalibratedLaw(self.law.take(rows), self.scores.take(rows))

    def _own_scores(self, y: Float64Array) -> Float64Array:
        """Return Phi^-1(F(y))."""
        return scores_of(self.law.cdf(y), self.law.sf(y))

    def cdf(self, y: Float64Array) -> Float64Array:
        return self.scores.levels(self._own_scores(y))[0]

    def sf(self, y: Float64Array) -> Float64Array:
        return self.scores.levels(self._own_scores(y))[1]

    def logpdf(self, y: Float64Array) -> Float64Array:
        own = clip_scores(self._own_scores(y))
        return self.law.logpdf(y) + log_rate(own, *self.scores.forward(own))

    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        return self.law.ppf_scores(self.scores.inverse(scores))

    def crps(self, y: Float64Array) -> Float64Array:
        return np.asarray(self._integrals(y)[0])

    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        _, below, above = self._integrals(y)
        return below, above

    def _integrals(self, y: Float64Array) -> Float64Array:
        """Return CRPS and both partial means at y (n, k), shape (3, n, k)."""
        out = np.empty((3, *y.shape))
        for first in range(0, y.shape[1], _CUTS):
            columns = slice(first, first + _CUTS)
            for rows, part in self._parts():
                at = np.ascontiguousarray(y[rows, columns])
                mesh, ends = part._mesh(at)
                levels = part.scores.levels(mesh[2])
                out[:, rows, columns] = mesh_crps(mesh[0], mesh[1], *levels, ends, at)
        return out

    def moments(self) -> Float64Array:
        out = np.empty((len(self), 4))
        for rows, part in self._parts():
            middle = part.ppf(np.full((len(part), 1), 0.5))
            mesh, _ = part._mesh(middle)
            levels = part.scores.levels(mesh[2])
            law = part.law.base.curve, part.law.rows
            out[rows] = mesh_moments(*law, mesh[0], mesh[1], *levels, middle[:, 0])
        return out

    def kinks(self) -> Float64Array:
        bends = self.law.ppf_scores(self.scores.kinks(len(self)))
        return np.hstack([self.law.kinks(), bends])

    def _bends(self) -> Float64Array:
        """Return the scores of F at which the panels of a mesh end, (n, c)."""
        kinks, middle = self.scores.kinks(len(self)), np.zeros((len(self), 1))
        in_tail = np.abs(self.scores.inverse(middle)) > _IN_TAIL
        if in_tail.any():
            # Panels for the whole law see little of what is in its tail, least of all
            # beside a bound. A row that is not there repeats a kink, which cuts
            # nothing: its sums must not hang on the rows beside it.
            levels = np.tile(_OF_TAIL, (len(self), 1))
            own = kinks[:, :1] if kinks.shape[1] else np.full(middle.shape, np.inf)
            beside = np.where(in_tail, self.scores.inverse(levels), own)
            kinks = np.hstack([kinks, beside])
        return kinks

    def _mesh(self, cuts: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return `SplineLaw.mesh` cut at `cuts` (n, c) and where h is not smooth."""
        return self.law.mesh(cuts, self._bends())

    def _scan(self) -> Float64Array:
        """Return y, probability, log density and CDF at nodes of a mesh, (4, n, m).

        The first and the last node are the ends of the mesh, without probability.
        """
        none = np.empty((len(self), 0))
        kinks = self._bends()
        if np.isfinite(self.support).any():
            # Beside a bound scores go far on a short way, and what a map makes of them.
            kinks = np.hstack([kinks, np.tile(_BESIDE_BOUNDS, (len(self), 1))])
        mesh = self.law.mesh(none, kinks, with_density=True)
        (y, dy, own, log_density), ends = mesh
        own = clip_scores(own)
        mapped, log_slopes = self.scores.forward(own)
        log_density = log_density + log_rate(own, mapped, log_slopes)
        masses = np.exp(log_density) * dy
        # A quadrature's sum misses 1 by its error, which would bias means.
        masses /= masses.sum(axis=1, keepdims=True)
        inner = np.stack([y, masses, log_density, ndtr(mapped)])
        outer = np.stack([ends, 0.0 * ends, self.logpdf(ends), self.cdf(ends)])
        return np.concatenate([outer[:, :, :1], inner, outer[:, :, 1:]], axis=2)


@singledispatch
def recalibrate_law(law: Law, scores: ProbitMap) -> Law:
    """Return the law with CDF G(F).

    Parameters
    ----------
    law : Law
        Discrete, mixed, or without jumps.
    scores : ProbitMap
        G, one for all rows or one for each.

    Returns
    -------
    Law
        A `DiscreteLaw`, `MixedLaw` or `TransformedLaw` of what is one, a
        `RecalibratedLaw` of a spline law, else a `PooledLaw`.
    """
    return _map_smooth(law, scores)


@recalibrate_law.register
def _(law: DiscreteLaw, scores: ProbitMap) -> DiscreteLaw:
    values = np.broadcast_to(law.values, law.probabilities.shape)
    mapped, _ = scores.forward(scores_of(law.cdf(values), law.sf(values)))
    return DiscreteLaw.of_scores(law.values, mapped)


@recalibrate_law.register
def _(law: MixedLaw, scores: ProbitMap) -> MixedLaw:
    beside = MapBesideAtoms.of(law, scores)
    smooth = _map_smooth(law.continuous, beside)
    return MixedLaw(law.atoms, beside.masses, smooth, law.widths)


def _map_smooth(
    law: Law, scores: ScoreMap
) -> RecalibratedLaw | PooledLaw | TransformedLaw:
    """Return a law without jumps mapped, after the map it has if it has one."""
    if isinstance(law, SplineLaw):
        return RecalibratedLaw(law, scores)
    if isinstance(law, TransformedLaw):
        # A map of values does not care what probabilities they have.
        return replace(law, law=_map_smooth(law.law, scores))
    if isinstance(law, RecalibratedLaw | PooledLaw):
        both = scores if law.scores is None else ComposedMap(law.scores, scores)
        return replace(law, scores=both)
    if not isinstance(law, Law):
        msg = f"`law` must be a Law, got {type(law).__name__}."
        raise TypeError(msg)
    # The pool of one law knows how to be mapped, whatever the law is.
    return PooledLaw([law], [1.0], scores=scores)
