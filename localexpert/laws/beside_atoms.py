"""`MapBesideAtoms`: what a map of a mixed law's CDF does to its continuous part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri_exp

from calibration.typing import Float64Array
from localexpert.laws.law import pick_counts
from localexpert.laws.mixed import MixedLaw
from localexpert.laws.score_map import ProbitMap, clip_scores, scores_of

# A continuous part of less than this is left as it is: it is never seen.
_LEAST_REST = 1e-9
# Beyond this many deviations differences to an atom's level lose their digits.
_FAR = 5.0


@dataclass(frozen=True, eq=False)
class MapBesideAtoms:
    """The scores of a continuous part whose law, atoms and all, is mapped by G.

    With the atoms' probability H below y the CDF is H + rest Fc(y); the mapped law
    has the atoms' probability H' there, so its continuous part has the CDF

        Fc'(y) = (G(H + rest Fc(y)) - H') / rest'.

    Beyond 5 deviations of Fc, where the differences lose their digits, Fc' (or in
    the upper tail 1 - Fc') is proportional to Fc (1 - Fc), as it is to first order:
    levels of less than 3e-7 of the continuous part may be off by a factor of ten.

    Parameters
    ----------
    whole : ProbitMap
        G on scores.
    atoms : ndarray of shape (n, A)
        Scores of the continuous part at the atoms.
    held, masses : ndarray of shape (n, A)
        Probability of the atoms up to each, before G; of each, after it.
    """

    whole: ProbitMap
    atoms: Float64Array
    held: Float64Array
    masses: Float64Array

    @classmethod
    def of(cls, law: MixedLaw, whole: ProbitMap) -> MapBesideAtoms:
        """Read the parts of a law.

        Parameters
        ----------
        law : MixedLaw
        whole : ProbitMap

        Returns
        -------
        MapBesideAtoms
        """
        at = np.broadcast_to(law.atoms, law.masses.shape)
        cdf, sf = law.cdf(at), law.sf(at)
        upper = whole.forward(scores_of(cdf, sf))[0]
        # From below an atom its own mass is still to come.
        lower = whole.forward(scores_of(law.cdf_left(at), sf + law.masses))[0]
        # As differences of the smaller tails, which keep their digits.
        masses = np.where(
            upper < 0.0, ndtr(upper) - ndtr(lower), ndtr(-lower) - ndtr(-upper)
        )
        masses = np.where(law.masses > 0.0, np.maximum(masses, 0.0), 0.0)
        smooth = scores_of(law.continuous.cdf(at), law.continuous.sf(at))
        return cls(whole, smooth, law.cumulative, masses)

    def take(self, index: slice | NDArray[Any]) -> MapBesideAtoms:
        """Return the map of some rows.

        Parameters
        ----------
        index : slice or ndarray

        Returns
        -------
        MapBesideAtoms
        """
        parts = self.atoms[index], self.held[index], self.masses[index]
        return MapBesideAtoms(self.whole.take(index), *parts)

    def forward(self, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the scores of Fc' and the logarithm of their slope.

        Parameters
        ----------
        scores : ndarray of shape (n, k)

        Returns
        -------
        mapped, log_slopes : ndarrays of shape (n, k)
        """
        seen = self._seen()
        near = np.clip(scores, -_FAR, _FAR)
        place = _count_below(self.atoms, near)
        whole = _join(near, self.held, place)
        whole_mapped, log_slopes = self.whole.forward(whole)
        after = self._held_after()
        mapped = _part(whole_mapped, after, place)
        # dFc' = G'(F) rest / rest' dFc, with all three in scores.
        log_slopes = (
            log_slopes
            + 0.5 * (whole - whole_mapped) * (whole + whole_mapped)
            + 0.5 * (mapped - near) * (mapped + near)
            + np.log(_rest(self.held) / _rest(after))
        )
        mapped = np.where(seen, mapped, scores)
        log_slopes = np.where(seen, log_slopes, 0.0)
        far = seen & (np.abs(scores) > _FAR)
        if far.any():
            tail, log_factor = _follow(scores[far], near[far], mapped[far])
            mapped[far] = tail
            bent = clip_scores(scores[far])
            # log h' = log G' + (mapped^2 - own^2) / 2, with G' the tail's factor.
            log_slopes[far] = log_factor + 0.5 * (tail - bent) * (tail + bent)
        return mapped, log_slopes

    def levels(self, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return Fc' and 1 - Fc'.

        Parameters
        ----------
        scores : ndarray of shape (n, k)

        Returns
        -------
        below, above : ndarrays of shape (n, k)
        """
        near = np.clip(scores, -_FAR, _FAR)
        place = _count_below(self.atoms, near)
        whole = self.whole.levels(_join(near, self.held, place))
        small = _remove(*whole, self._held_after(), place)
        # As `forward` beyond 5 deviations, and in rows without a continuous part.
        unseen = ~self._seen()[:, 0]
        for side, level in zip((1.0, -1.0), small, strict=True):
            far = side * scores < -_FAR
            level[far] *= ndtr(side * scores[far]) / ndtr(-_FAR)
            level[unseen] = ndtr(side * scores[unseen])
        lower = small[0] < small[1]
        below = np.where(lower, small[0], 1.0 - small[1])
        return below, np.where(lower, 1.0 - small[0], small[1])

    def inverse(self, scores: Float64Array) -> Float64Array:
        """Return the scores of Fc where those of Fc' are given.

        Parameters
        ----------
        scores : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """
        ends = self.forward(np.tile([-_FAR, _FAR], (len(scores), 1)))[0]
        low, high = ends[:, :1], ends[:, 1:]
        near = np.clip(scores, low, high)
        place = _count_below(self.forward(self.atoms)[0], near)
        whole = self.whole.inverse(_join(near, self._held_after(), place))
        own = np.clip(_part(whole, self.held, place), -_FAR, _FAR)
        own = np.where(self._seen(), own, scores)
        far = self._seen() & (scores != near)
        if far.any():
            own[far] = _follow(scores[far], near[far], own[far])[0]
        return own

    def kinks(self, n: int) -> Float64Array:
        """Return the scores at the atoms and at the knots of the whole's map.

        Parameters
        ----------
        n : int
            Number of rows.

        Returns
        -------
        ndarray of shape (n, c)
        """
        knots = self.whole.kinks(n)
        at_atoms = _join(self.atoms, self.held, _count_below(self.atoms, self.atoms))
        own = _part(knots, self.held, _count_below(at_atoms, knots))
        return np.hstack([self.atoms, own])

    def _held_after(self) -> Float64Array:
        """Return the probability of the atoms up to each, after G, (n, A)."""
        return np.minimum(np.cumsum(self.masses, axis=1), 1.0)

    def _seen(self) -> NDArray[np.bool_]:
        """Return whether rows have a continuous part, before and after, (n, 1)."""
        before, after = 1.0 - self.held[:, -1:], 1.0 - self._held_after()[:, -1:]
        return np.minimum(before, after) > _LEAST_REST


def _follow(
    scores: Float64Array, near: Float64Array, mapped: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the scores of tails that are proportional beyond near -> mapped, (m,).

    And the logarithms of the factors.
    """
    side = np.where(scores < near, 1.0, -1.0)
    log_factor = log_ndtr(side * mapped) - log_ndtr(side * near)
    levels = np.minimum(log_ndtr(side * scores) + log_factor, 0.0)
    return side * ndtri_exp(levels), log_factor


def _rest(held: Float64Array) -> Float64Array:
    """Return what the atoms leave to the continuous part, (n, 1), positive."""
    return np.maximum(1.0 - held[:, -1:], _LEAST_REST)


def _count_below(atoms: Float64Array, scores: Float64Array) -> NDArray[np.int64]:
    """Return how many atoms (n, A) are at or below the scores (n, k)."""
    count = np.zeros(scores.shape, dtype=np.int64)
    for column in atoms.T:
        count += column[:, None] <= scores
    return count


def _join(
    scores: Float64Array, held: Float64Array, place: NDArray[np.int64]
) -> Float64Array:
    """Return the whole's scores where the continuous part has these."""
    below, rest = pick_counts(held, place), _rest(held)
    lower = below + rest * ndtr(scores)
    return scores_of(lower, held[:, -1:] - below + rest * ndtr(-scores))


def _part(
    whole: Float64Array, held: Float64Array, place: NDArray[np.int64]
) -> Float64Array:
    """Return the continuous part's scores where the whole has these."""
    parts = _remove(ndtr(whole), ndtr(-whole), held, place)
    return clip_scores(scores_of(*parts))


def _remove(
    below: Float64Array,
    above: Float64Array,
    held: Float64Array,
    place: NDArray[np.int64],
) -> tuple[Float64Array, Float64Array]:
    """Return the continuous part's CDF and the rest to 1, of the whole's."""
    atoms, rest = pick_counts(held, place), _rest(held)
    lower = np.clip((below - atoms) / rest, 0.0, 1.0)
    return lower, np.clip((above - (held[:, -1:] - atoms)) / rest, 0.0, 1.0)
