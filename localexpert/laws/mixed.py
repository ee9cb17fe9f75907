"""`MixedLaw`: values of positive probability beside a continuous law."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, xlogy

from calibration.typing import Float64Array
from localexpert._validation import (
    check_array,
    check_increasing,
    check_probability_rows,
    check_same_length,
    show,
)
from localexpert.laws.discrete import densest_values
from localexpert.laws.law import (
    Law,
    central_moments_about,
    freeze_fields,
    log_or_minus_inf,
    pick_counts,
)
from localexpert.laws.near_values import count_below, count_upto, reach_of_values

# Rounding that sums of probabilities may carry where a quantile meets a jump.
_SLACK = 1e-14
# A continuous part of less than this is none.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class MixedLaw(Law):
    """F_i = sum of masses[i, j] at atoms[j] + (1 - their sum) continuous_i.

    Parameters
    ----------
    atoms : array-like of shape (A,)
        Strictly increasing values of positive probability.
    masses : array-like of shape (n, A)
        Their probabilities; rows sum to at most 1.
    continuous : Law
        Law of n rows without jumps: what Y is where it is no atom.
    widths : array-like of shape (A,)
        Width of each atom's cell, positive: what the data are rounded to, for
        instance. The density at an atom is mass / width, so the widths set what a
        hit is worth in the log score; forecasts that are compared must share them.

    Notes
    -----
    In a row where an atom has no mass the density there is the continuous one. A
    number that misses an atom by rounding only (1e-12 of its size) is that atom.

    Both tails are sums over atoms and the continuous part, and masses are known to
    rounding: probabilities are right to 1e-12, and tails of less than that keep no
    digits as those of a law without atoms do.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.curves.base_cdf import BaseCDF
    >>> from localexpert.laws.mixed import MixedLaw
    >>> from localexpert.laws.spline import SplineLaw
    >>> base = BaseCDF.fit(np.random.default_rng(0).normal(size=2000))
    >>> one = np.ones((1, 1))
    >>> smooth = SplineLaw([5.0], [1.0], [0.0], 0.0 * one, one, base)
    >>> law = MixedLaw([0.0], [[0.3]], smooth, [0.01])
    >>> law.cdf(np.array([[-1.0, 0.0, 5.0]])).round(1)
    array([[0. , 0.3, 0.7]])
    """

    atoms: Float64Array
    masses: Float64Array
    continuous: Law
    widths: Float64Array
    cumulative: Float64Array = field(init=False)
    rest: Float64Array = field(init=False)
    reach: Float64Array = field(init=False)

    def __post_init__(self) -> None:
        atoms = check_array(self.atoms, "atoms", (None,))
        check_increasing(atoms, "atoms")
        masses = check_probability_rows(self.masses, "masses", len(atoms), full=False)
        widths = check_array(self.widths, "widths", (len(atoms),))
        if widths.min() <= 0.0:
            msg = f"`widths` must be positive, got {show(widths.min())}."
            raise ValueError(msg)
        if not isinstance(self.continuous, Law) or self.continuous.has_jumps:
            msg = (
                "`continuous` must be a law without jumps, "
                f"got {type(self.continuous).__name__}."
            )
            raise TypeError(msg)
        check_same_length(len(masses), "`masses`", len(self.continuous), "continuous")
        cumulative = np.minimum(np.cumsum(masses, axis=1), 1.0)
        cumulative[cumulative[:, -1] > 1.0 - _ROUNDING, -1] = 1.0
        freeze_fields(
            self,
            atoms=atoms,
            masses=masses,
            widths=widths,
            cumulative=cumulative,
            rest=1.0 - cumulative[:, -1],
            reach=reach_of_values(atoms, widths),
        )

    def __len__(self) -> int:
        return len(self.masses)

    def __reduce__(self) -> tuple[type[MixedLaw], tuple[Any, ...]]:
        return type(self), (self.atoms, self.masses, self.continuous, self.widths)

    @property
    def support(self) -> tuple[float, float]:
        """Least and greatest value of the atoms and of the continuous part."""
        low, high = self.continuous.support
        return min(low, float(self.atoms[0])), max(high, float(self.atoms[-1]))

    @property
    def has_jumps(self) -> bool:
        """True: the atoms."""
        return True

    def take(self, rows: slice | NDArray[Any]) -> MixedLaw:
        return MixedLaw(
            self.atoms, self.masses[rows], self.continuous.take(rows), self.widths
        )

    def cdf(self, y: Float64Array) -> Float64Array:
        atoms = pick_counts(self.cumulative, count_upto(self.atoms, self.reach, y))
        below = atoms + self.rest[:, None] * self.continuous.cdf(y)
        return np.where(y >= self.support[1], 1.0, np.minimum(below, 1.0))

    def cdf_left(self, y: Float64Array) -> Float64Array:
        atoms = pick_counts(self.cumulative, count_below(self.atoms, self.reach, y))
        return atoms + self.rest[:, None] * self.continuous.cdf(y)

    def sf(self, y: Float64Array) -> Float64Array:
        """Sum from above, so that small probabilities keep their digits."""
        above = np.cumsum(self.masses[:, ::-1], axis=1)
        n_below = count_upto(self.atoms, self.reach, y)
        smooth = self.rest[:, None] * self.continuous.sf(y)
        above = pick_counts(above, len(self.atoms) - n_below) + smooth
        above = np.minimum(above, 1.0)
        below_all = (n_below == 0) & ((y < self.support[0]) | (y == -np.inf))
        return np.where(below_all, 1.0, above)

    def logpdf(self, y: Float64Array) -> Float64Array:
        """Return log(mass / width) at an atom with mass, else the continuous part's."""
        place = np.minimum(count_below(self.atoms, self.reach, y), len(self.atoms) - 1)
        mass = pick_counts(self.masses, place + 1)
        smooth = log_or_minus_inf(self.rest)[:, None] + self.continuous.logpdf(y)
        on_atom = (np.abs(self.atoms[place] - y) <= self.reach[place]) & (mass > 0.0)
        return np.where(on_atom, log_or_minus_inf(mass / self.widths[place]), smooth)

    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        """Return the quantiles at Phi(scores).

        With k atoms wholly below the quantile it is the next atom, if the level
        falls into its jump, or else a quantile of the continuous part.
        """
        p, n_atoms = ndtr(scores), len(self.atoms)
        before, upto = self._jumps()
        none = self.rest[:, None] == 0.0
        # Without a continuous part the least quantile is the first atom with mass.
        reached = np.where(none, np.maximum(p, 10.0 * _SLACK), p)[:, :, None]
        k = (upto[:, None, :] + _SLACK < reached).sum(axis=2)
        k = np.where(none, np.minimum(k, n_atoms - 1), k)
        in_jump = (k < n_atoms) & (none | (p > pick_counts(before, k % n_atoms + 1)))
        held = pick_counts(self.cumulative, k)
        share = np.where(none, 1.0, self.rest[:, None])
        lower = np.clip((p - held) / share, 0.0, 1.0)
        upper = np.clip((ndtr(-scores) - (self._total() - held)) / share, 0.0, 1.0)
        # The score from the smaller tail, where the difference has kept its digits.
        inner = np.where(lower < 0.5, ndtri(lower), -ndtri(upper))
        ends = np.concatenate([[-np.inf], self.atoms, [np.inf]])
        smooth = np.clip(self.continuous.ppf_scores(inner), ends[k], ends[k + 1])
        return np.where(in_jump, ends[np.minimum(k + 1, n_atoms)], smooth)

    def crps(self, y: Float64Array) -> Float64Array:
        """Return E|Y - y| - E|Y - Y'| / 2, summed in parts."""
        n_columns, w = y.shape[1], self.rest[:, None]
        atoms = np.broadcast_to(self.atoms, self.masses.shape)
        # E|X - x| at y and at the atoms, X the continuous part.
        below, above = self.continuous.partial_means(np.hstack([y, atoms]))
        away = below + above
        smooth = w * self.continuous.crps(y) + self._total() * away[:, :n_columns]
        atoms_below, atoms_above = self._atom_means(y)
        steps = atoms_below + atoms_above - self._atom_spread()
        # E|Y - Y'| / 2 has a pair of atoms, a pair of X, and one of each.
        cross = (self.masses * away[:, n_columns:]).sum(axis=1, keepdims=True)
        # What cancels may leave less than nothing, by a rounding.
        return np.asarray(np.maximum(w * (smooth - cross) + steps, 0.0))

    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        w = self.rest[:, None]
        below, above = self.continuous.partial_means(y)
        atoms_below, atoms_above = self._atom_means(y)
        return w * below + atoms_below, w * above + atoms_above

    def moments(self) -> Float64Array:
        inner = self.continuous.moments()
        # A continuous part that is never seen may have infinite moments.
        inner[self.rest == 0.0] = 0.0
        w = self.rest
        # Not a product of matrices, whose rounding depends on the other rows.
        mean = (self.masses * self.atoms).sum(axis=1) + w * inner[:, 0]
        # E(Y - mean)^k is that of the atoms and of the continuous part, each about
        # the mean of the whole.
        c2, c3, c4 = inner[:, 1:].T
        # About an infinite mean no moment is defined.
        shift = np.where(np.isfinite(mean), inner[:, 0], np.nan) - mean
        smooth = central_moments_about((c2, c3, c4), shift)
        away = self.atoms - mean[:, None]
        parts = [
            (self.masses * away**k).sum(axis=1) + w * part
            for k, part in zip((2, 3, 4), smooth, strict=True)
        ]
        return np.column_stack([mean, *parts])

    def entropy(self) -> Float64Array:
        w = self.rest
        # -E log f(Y) part by part; the continuous part has the density rest * f.
        terms = xlogy(self.masses, self.masses) - self.masses * np.log(self.widths)
        total = w * self.continuous.entropy() - xlogy(w, w)
        return np.asarray(total - terms.sum(axis=1))

    def mode(self) -> Float64Array:
        smooth = self._beside_atoms(self.continuous.mode())
        density = self.masses / self.widths
        best = np.argmax(density, axis=1)
        highest = np.take_along_axis(density, best[:, None], 1)[:, 0]
        inner = self.rest * self.continuous.pdf(smooth[:, None])[:, 0]
        return np.where(highest >= inner, self.atoms[best], smooth)

    def _beside_atoms(self, y: Float64Array) -> Float64Array:
        """Return y (n,), or the higher side of the atom that stands there."""
        place = np.argmin(np.abs(self.atoms[:, None] - y), axis=0)
        atom, reach = self.atoms[place], self.reach[place]
        left, right = np.nextafter([atom - reach, atom + reach], [[-np.inf], [np.inf]])
        sides = np.clip(np.column_stack([left, right]), *self.support)
        higher = np.argmax(self.continuous.logpdf(sides), axis=1)
        beside = sides[np.arange(len(y)), higher]
        return np.where(np.abs(atom - y) <= reach, beside, y)

    def nodes(self) -> tuple[Float64Array, Float64Array]:
        y, weights = self.continuous.nodes()
        atoms = np.broadcast_to(self.atoms, self.masses.shape)
        shares = np.hstack([self.masses, self.rest[:, None] * weights])
        return np.hstack([atoms, y]), shares

    def shortest_interval(self, coverage: float) -> Float64Array:
        """Try intervals that start or end at an atom beside those of the search."""
        before, upto = self._jumps()
        atoms = np.broadcast_to(self.atoms, upto.shape)
        found = super().shortest_interval(coverage)
        lows = [found[:, :1], atoms, self.ppf(np.maximum(upto - coverage, 0.0))]
        highs = [found[:, 1:], self.ppf(np.minimum(before + coverage, 1.0)), atoms]
        held = [
            np.ones((len(self), 1), dtype=bool),
            before + coverage <= 1.0,
            upto >= coverage,
        ]
        low, high = np.hstack(lows), np.hstack(highs)
        widths = np.full(low.shape, np.inf)
        np.subtract(high, low, out=widths, where=np.hstack(held))
        best = np.argmin(widths, axis=1)[:, None]
        ends = [np.take_along_axis(end, best, 1) for end in (low, high)]
        return np.hstack(ends)

    def densest_regions(self, coverage: Float64Array) -> list[Float64Array]:
        """Take atoms, the likeliest first, and then the densest intervals."""
        left = coverage - self._total()[:, 0]
        left = left / np.where(self.rest > 0.0, self.rest, 1.0)
        smooth = self.continuous.densest_regions(np.clip(left, 0.0, 1.0))
        atoms = densest_values(self.masses, coverage)
        out = []
        for i in range(len(self)):
            intervals = smooth[i] if left[i] > 0.0 else np.empty((0, 2))
            points = self.atoms[atoms[i]]
            inside = (points >= intervals[:, :1]) & (points <= intervals[:, 1:])
            outside = points[~inside.any(axis=0)]
            union = np.vstack([intervals, np.column_stack([outside, outside])])
            out.append(union[np.argsort(union[:, 0], kind="stable")])
        return out

    def _total(self) -> Float64Array:
        """Return the probability of all atoms, shape (n, 1)."""
        return self.cumulative[:, -1:]

    def _jumps(self) -> tuple[Float64Array, Float64Array]:
        """Return P(Y < a) and P(Y <= a) at the atoms, (n, A) both."""
        atoms = np.broadcast_to(self.atoms, self.masses.shape)
        upto = self.cdf(atoms)
        return upto - self.masses, upto

    def _atom_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the atoms' part of E max(y - Y, 0) and of E max(Y - y, 0), (n, k)."""
        below, above = np.zeros(y.shape), np.zeros(y.shape)
        for atom, mass in zip(self.atoms, self.masses.T, strict=True):
            below += mass[:, None] * np.maximum(y - atom, 0.0)
            above += mass[:, None] * np.maximum(atom - y, 0.0)
        return below, above

    def _atom_spread(self) -> Float64Array:
        """Return half the sum of m_i m_j |a_i - a_j|, shape (n, 1)."""
        inner = self.cumulative[:, :-1]
        pairs = inner * (self._total() - inner) * np.diff(self.atoms)
        return np.asarray(pairs.sum(axis=1, keepdims=True))
