"""`LevelMap`: laws whose CDF F becomes G(F), and laws between bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert._kernels.law_curve import follow_curves
from localexpert.law.basis import REACH, hermite_basis
from localexpert.law.curve import (
    Curve,
    cut_curve,
    end_slopes,
    fold_curve,
    increase_curves,
)
from localexpert.law.law import Law
from localexpert.law.steps import clip_scores, log_between, scores_of

# Length of one more piece at each end, on which a map goes over to slope 1.
_END_STEP = 1.0


@dataclass(frozen=True, eq=False)
class LevelMap:
    """G(p) = Phi(h(Phi^-1(p))), h a cubic Hermite curve, straight beyond its knots.

    If h goes on with slope 1, the tails of a law keep their index, and so finite
    moments stay finite.

    Parameters
    ----------
    knots : ndarray of shape (m,)
        Strictly increasing scores.
    values : ndarray of shape (m,) or (n, m)
        Values of h at the knots, strictly increasing: one curve for all rows, or one
        for each.
    slopes : ndarray of shape (m,) or (n, m)
        Slopes h' at the knots: positive, at most 3 times the slopes of the chords
        beside them (Fritsch & Carlson, 1980).
    """

    knots: Float64Array
    values: Float64Array
    slopes: Float64Array

    @classmethod
    def through(
        cls, knots: Float64Array, values: Float64Array, slopes: Float64Array
    ) -> LevelMap:
        """Return a map that goes over to slope 1 on one more piece at each end."""
        step = np.array([-_END_STEP, _END_STEP])
        x, h = knots[[0, -1]] + step, values[[0, -1]] + step
        return cls(
            np.concatenate([x[:1], knots, x[1:]]),
            np.concatenate([h[:1], values, h[1:]]),
            np.concatenate([[1.0], slopes, [1.0]]),
        )

    @classmethod
    def line(cls, shift: Float64Array | float, slope: float = 1.0) -> LevelMap:
        """Return the map shift + slope z, for a shift (n,) one for each row."""
        knots = np.array([-1.0, 1.0])
        values = np.asarray(shift)[..., None] + slope * knots
        return cls(knots, values, np.full(values.shape, slope))

    @classmethod
    def by_row(cls, maps: Sequence[LevelMap], number: NDArray[np.integer]) -> LevelMap:
        """Return the map that takes for row i the map ``maps[number[i]]``.

        Parameters
        ----------
        maps : sequence of LevelMap
            One curve each, over the same knots.
        number : ndarray of shape (n,)

        Returns
        -------
        LevelMap
        """
        values = np.stack([one.values for one in maps])[number]
        slopes = np.stack([one.slopes for one in maps])[number]
        return cls(maps[0].knots, values, slopes)

    @property
    def is_identity(self) -> bool:
        """Whether the map changes nothing, in any row."""
        return bool((self.values == self.knots).all() and (self.slopes == 1.0).all())

    def __call__(self, p: Float64Array) -> Float64Array:
        """Return G(p) of levels (n, k), of any shape for one curve."""
        levels = np.asarray(p, dtype=np.float64)
        rows = len(self.values) if self.values.ndim == 2 else 1
        scores = scores_of(levels, 1.0 - levels).reshape(rows, -1)
        return np.asarray(ndtr(self.forward(scores)[0])).reshape(levels.shape)

    def forward(self, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return h and log h' at scores (n, k)."""
        mapped, slopes = self.follow(scores)
        return mapped, np.log(slopes)

    def inverse(self, scores: Float64Array) -> Float64Array:
        """Return the s with h(s) = scores (n, k)."""
        return self.follow(scores, inverse=True)[0]

    def follow(
        self, x: Float64Array, *, inverse: bool = False
    ) -> tuple[Float64Array, Float64Array]:
        """Return h at scores (n, k), or scores of its values; and h' there."""
        values, slopes = np.atleast_2d(self.values), np.atleast_2d(self.slopes)
        basis, c = hermite_basis(self.knots, values, slopes)
        return follow_curves(basis.shared, c, slopes[:, [0, -1]], x, inverse=inverse)

    def take(self, rows: slice | NDArray[Any]) -> LevelMap:
        """Return the map of some rows; one curve for all rows stays the same."""
        if self.values.ndim == 1:
            return self
        return LevelMap(self.knots, self.values[rows], self.slopes[rows])


def log_rate(
    own: Float64Array, mapped: Float64Array, log_slopes: Float64Array
) -> Float64Array:
    """Return log G' of G(p) = Phi(h(Phi^-1(p))), scores mapped by h with slopes h'.

    G' = h' phi(h(s)) / phi(s); the difference of the squares is a product, which
    keeps its digits.
    """
    return np.asarray(log_slopes + 0.5 * (own - mapped) * (own + mapped))


def map_levels(law: Law, levels: LevelMap) -> Law:
    """Return the law with CDF G(F).

    Coefficients change by the difference that G makes, c + B(g)^-1 [u(h^-1(g)) - u(g)],
    so the identity changes nothing and many maps in a row do not widen a law. Masses
    become G(F(a)) - G(F(a-)). A rounding or clipping stays the last step.

    Parameters
    ----------
    law : Law
    levels : LevelMap
        G, one for all rows or one for each.

    Returns
    -------
    Law
        The very same one if nothing changes.
    """
    if levels.is_identity or len(law) == 0:
        return law
    if law.curve is None:
        values = np.broadcast_to(law.atoms, law.masses.shape)
        masses = masses_of_scores(levels.forward(law.scores(values))[0])
        return replace(law, masses=masses, known=None)
    g = np.broadcast_to(law.curve.basis.greville, law.curve.coefficients.shape)
    masses, at = law.masses, levels.inverse(g)
    if len(law.atoms):
        masses, at = _beside_atoms(law, levels, g)
    found = replace(law, curve=_read_at(law, at), masses=masses, known=None)
    if law.known is None:
        return found
    # A moment that does not exist before does not exist after.
    known = np.where(np.isfinite(law.known), found.moments(), law.known)
    return replace(found, known=known)


def _read_at(law: Law, at: Float64Array) -> Curve:
    """Return the curve whose values at the g_k are those of the law's at scores."""
    curve = law.own_curve
    basis, read = curve.basis, curve.coordinates(at)[0]
    if law.ordered:
        return replace(curve, coefficients=read)
    own = curve.coordinates(np.broadcast_to(basis.greville, at.shape))[0]
    found = curve.coefficients + basis.solve(read - own)
    found = increase_curves(found, read, basis)
    return replace(curve, coefficients=found, slopes=end_slopes(found, basis))


def masses_of_scores(scores: Float64Array) -> Float64Array:
    """Return masses of values with P(Y <= values[j]) = Phi(scores[i, j]), (n, V)."""
    upto, beyond = ndtr(scores), ndtr(-scores)
    # No probability lies beyond the last value.
    upto[:, -1], beyond[:, -1] = 1.0, 0.0
    # Differences of the smaller one of both tails keep their digits.
    rises = np.diff(upto, axis=1, prepend=0.0)
    falls = -np.diff(beyond, axis=1, prepend=1.0)
    return np.clip(np.where(upto < beyond, rises, falls), 0.0, 1.0)


def _beside_atoms(
    law: Law, levels: LevelMap, g: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return mapped masses (n, A), and the scores at which the curve is read (n, K).

    The probability besides the mapped atoms reaches the level Phi(g) in one of the gaps
    between atoms. There the inverse of G gives the level of the whole law, and from it
    follows the level of the curve.
    """
    values = np.broadcast_to(law.atoms, law.masses.shape)
    start, end = (
        levels.forward(scores_of(*law._inner_levels(values, left=left)))[0]
        for left in (True, False)
    )
    low = np.where(end < 0.0, ndtr(end) - ndtr(start), ndtr(-start) - ndtr(-end))
    masses = np.clip(low, 0.0, 1.0)
    upto = np.pad(np.cumsum(masses, axis=1), ((0, 0), (1, 0)))
    beyond = upto[:, -1:] - upto
    rest = np.maximum(1.0 - upto[:, -1:], 0.0)
    # Probability of what is left below each atom, and above it.
    below = np.maximum(ndtr(start) - upto[:, :-1], 0.0)
    k = np.zeros(g.shape, dtype=np.intp)
    goal = rest * ndtr(g)
    for column in below.T:
        k += column[:, None] < goal
    whole = [
        goal + np.take_along_axis(upto, k, axis=1),
        rest * ndtr(-g) + np.take_along_axis(beyond, k, axis=1),
    ]
    back = levels.inverse(scores_of(*(np.minimum(part, 1.0) for part in whole)))
    at = clip_scores(law.rest_scores(k, ndtr(back), ndtr(-back)))
    return masses, np.maximum.accumulate(np.where(law.rest[:, None] > 0, at, g), axis=1)


# The largest shift of scores that is tried.
_MOST = 6.0
# Steps of the search for a tilt, the error, in deviations, at which it stops, and
# the width of a bracket that does.
_STEPS, _TOLERANCE, _NARROW = 60, 1e-12, 1e-13
# Between these a law is as wide as its scale where its variance is infinite.
_QUARTILES = (0.25, 0.75)
# Every so many steps a bracket is halved: secants alone may stay on one side.
_PATIENCE = 5


def recentre(law: Law, means: Float64Array) -> Law:
    """Return the law of each row moved to a given mean.

    A smooth law without bounds is shifted. The values of other laws cannot move: their
    CDF F becomes Phi(Phi^-1(F) - delta). Each row has the delta that gives its mean
    (the exponential tilt of a Gaussian), and 6 if a mean cannot be reached.

    Parameters
    ----------
    law : Law
        Of n rows.
    means : ndarray of shape (n,)

    Returns
    -------
    Law
    """
    before = law.moments()
    curve = law.curve
    if law.is_smooth and curve is not None and curve.is_free:
        moved = curve.coefficients + (means - before[:, 0])[:, None]
        known = None if law.known is None else law.known.copy()
        if known is not None:
            known[:, 0] = means
        return replace(law, curve=replace(curve, coefficients=moved), known=known)

    def mean(rows: NDArray[np.intp], shift: Float64Array) -> Float64Array:
        # A smaller CDF is that of larger values.
        return map_levels(law.take(rows), LevelMap.line(-shift)).moments(2)[:, 0]

    spread = np.sqrt(before[:, 1])
    endless = np.flatnonzero(~np.isfinite(spread))
    low, high = law.take(endless).ppf(np.tile(_QUARTILES, (len(endless), 1))).T
    spread[endless] = high - low
    # The mean increases with the shift, so there is only one root.
    shift = _solve_increasing(mean, means, before[:, 0], spread)
    return map_levels(law, LevelMap.line(-shift))


def _solve_increasing(
    function: Callable[[NDArray[np.intp], Float64Array], Float64Array],
    goal: Float64Array,
    at_zero: Float64Array,
    slope: Float64Array,
) -> Float64Array:
    """Return x (n,) in [-6, 6] with function(x) = goal, or the nearer end.

    It takes secants from 0, where value and slope (n,) are about known. It halves the
    bracket where a secant leads out of it or is slow. `function` gets the numbers of
    the rows that are still sought.
    """
    x, gap, rate = np.zeros(len(goal)), at_zero - goal, slope.copy()
    low, high = np.full(len(goal), -_MOST), np.full(len(goal), _MOST)
    for number in range(_STEPS):
        low, high = np.where(gap < 0.0, x, low), np.where(gap > 0.0, x, high)
        left = (np.abs(gap) > _TOLERANCE * slope) & np.isfinite(gap)
        rows = np.flatnonzero(left & (high - low > _NARROW))
        if len(rows) == 0:
            break
        a, b, here, miss, steep = (part[rows] for part in (low, high, x, gap, rate))
        step = np.divide(miss, steep, out=np.zeros(len(rows)), where=steep > 0.0)
        inside = (here - step > a) & (here - step < b)
        taken = inside & (number % _PATIENCE < _PATIENCE - 1)
        trial = np.where(taken, here - step, 0.5 * (a + b))
        x[rows], gap[rows] = trial, function(rows, trial) - goal[rows]
        rate[rows] = (gap[rows] - miss) / (trial - here)
    return x


# A quantile at the edge of a lattice's cell would round to the cell before.
_OFF_EDGE = 1e-9
# A tail that reaches less far than this share of the other one is light beside it.
_HEAVY = 0.01


def cut(law: Law, low: float, high: float) -> Law:
    """Return the law given that Y is between bounds; a lattice keeps whole cells.

    Parameters
    ----------
    law : Law
        Not a law that keeps order: each row is scaled by its own factor, and so rows
        would lose their order.
    low, high : float

    Returns
    -------
    Law
    """
    half = 0.5 * law.step
    inside = (law.atoms >= low) & (law.atoms <= high)
    masses = law.masses[:, inside]
    if law.curve is None:
        total = masses.sum(axis=1, keepdims=True)
        return Law.discrete(law.atoms[inside], masses / total)
    first, last = law.support
    if low <= first and high >= last:
        return law
    curve, held = cut_curve(law.curve, low - half, high + half)
    total = masses.sum(axis=1) + law.rest * held
    ends = (max(law.ends[0], low), min(law.ends[1], high)) if half else law.ends
    return replace(
        law,
        curve=curve,
        atoms=law.atoms[inside],
        masses=masses / total[:, None],
        widths=law.widths[inside],
        ends=ends,
        known=None,
    )


def fold(law: Law, low: float, high: float, power: float) -> Law:
    """Return a smooth law whose mass beyond bounds lies inside, next to them.

    Each row has its own places for it. So rows may lose their order.

    Parameters
    ----------
    law : Law
        Without atoms.
    low, high : float
    power : float
        1 lays it evenly. With more, it lies nearer to the bounds. See `fold_curve`.

    Returns
    -------
    Law
    """
    first, last = law.support
    if law.curve is None or (low <= first and high >= last):
        return law
    return replace(law, curve=fold_curve(law.curve, low, high, power), known=None)


def condition(law: Law, low: Float64Array, high: Float64Array) -> Law:
    """Return the law, given low <= Y <= high. Each row has its own bounds.

    Parameters
    ----------
    law : Law
    low, high : ndarrays of shape (n,)
        Between them each row has probability.

    Returns
    -------
    Law
    """
    law = law.clipped
    low, high, atoms = law.snap(low), law.snap(high), law.snap(law.atoms)
    lower, upper = low[:, None], high[:, None]
    inside = (atoms >= lower) & (atoms <= upper)
    masses = np.where(inside, law.masses, 0.0)
    if law.curve is None:
        return replace(law, masses=masses / masses.sum(axis=1, keepdims=True))
    if law.step > 0.0:
        # A bound beyond the law's own end cuts off nothing, whole cells elsewhere.
        low = np.where(low > law.ends[0], law.lattice_edges(lower, -1.0)[:, 0], -np.inf)
        high = np.where(high < law.ends[1], law.lattice_edges(upper, 1.0)[:, 0], np.inf)
        low = low + _OFF_EDGE * law.step
    # A row of atoms alone may have any row's curve.
    z = law.curve.scores(np.column_stack([low, high]))
    between = np.exp(log_between(z[:, 0], z[:, 1]))
    held = np.flatnonzero((law.rest > 0.0) & (between > 0.0))
    curve, share = law.curve, np.zeros(len(law))
    if len(held):
        place = np.zeros(len(law), dtype=np.intp)
        place[held] = np.arange(len(held))
        curve, share[held] = cut_curve(curve.take(held), low[held], high[held])
        curve = curve.take(place)
    total = masses.sum(axis=1) + law.rest * share
    masses = masses / total[:, None]
    found = replace(law, curve=curve, masses=masses, ordered=False, known=None)
    if law.known is None or np.isfinite(law.known).all():
        return found
    return replace(found, known=_moments_left(law, found, z == [-np.inf, np.inf]))


def _moments_left(law: Law, cut: Law, stays: NDArray[np.bool_]) -> Float64Array:
    """Return the moments (n, 4) of a cut law, of which tails stay that are marked.

    A moment that does not exist stays missing if a tail stays that is about the
    heaviest.
    """
    assert law.known is not None
    places = np.tile([-REACH, 0.0, REACH], (len(law), 1))
    away = np.abs(np.diff(law.own_curve.values(places)))
    stays = stays & (away > _HEAVY * away.max(axis=1, keepdims=True))
    missing = ~np.isfinite(law.known) & stays.any(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        known = np.where(missing, law.known, cut.moments())
    for side, mean in enumerate((-np.inf, np.inf)):
        known[missing[:, 0] & stays[:, side] & ~stays[:, 1 - side], 0] = mean
    return known


def clip(law: Law, low: float, high: float, width: float) -> Law:
    """Return the law of max(low, min(high, Y)): values beyond move to the bounds.

    Between the bounds the CDF does not change. So if the CDFs of rows do not cross
    before, they do not cross after.

    Parameters
    ----------
    law : Law
    low, high : float
    width : float
        Width of the cell of a bound.

    Returns
    -------
    Law
    """
    first, last = law.support
    if low <= first and high >= last:
        return law
    ends = max(low, law.ends[0]), min(high, law.ends[1])
    return replace(law, ends=ends, end_width=width, known=None)
