"""Laws joined: rows one after another, pools of laws, and what their variance is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from calibration._validation import check_choice, refuse
from calibration.typing import Float64Array
from localexpert._kernels.law_curve import invert_rows
from localexpert._validation import check_probability_rows
from localexpert.law.basis import STANDARD, Basis, basis_of
from localexpert.law.curve import Curve, append_curves, read_curve, rebound, refine
from localexpert.law.lattice import OF_STEP
from localexpert.law.law import Law
from localexpert.law.level_map import masses_of_scores
from localexpert.law.steps import (
    as_shares,
    clip_scores,
    distinct_values,
    nearest_places,
    scores_of,
)
from localexpert.law.transform import lattice_as_atoms

PoolKind = Literal["linear", "probit"]
# Rows that are pooled at a time, and members that are many.
_ROWS, _MANY = 2048, 3
# Most knots of joined rows, and how near two are that count as one.
_MOST_KNOTS, _NEAR = 600, 1e-9


def append_laws(laws: Sequence[Law]) -> Law:
    """Return the rows of all laws, in their order.

    Parameters
    ----------
    laws : sequence of laws
        One or more. Curves on different knots stay as they are, on the knots of all up
        to 600, and are read on the standard ones beyond. Of different lattices the
        values become atoms.

    Returns
    -------
    Law
    """
    held = [law for law in laws if len(law)] or list(laws[:1])
    if len(held) == 1:
        return held[0]
    held = _with_one_last_step(held)
    values = jump_values(held)
    masses, widths = [], np.zeros(len(values))
    for law in held:
        masses.append(_masses_at(law, values))
        if len(law.atoms):
            np.maximum.at(widths, nearest_places(values, law.atoms), law.widths)
    known = None
    if any(law.known is not None for law in held):
        known = np.concatenate([law.moments() for law in held])
    first = next((law for law in held if law.curve is not None), held[0])
    return replace(
        first,
        curve=_append_curves(held),
        atoms=values,
        masses=np.concatenate(masses),
        widths=widths,
        ordered=all(law.ordered for law in held),
        known=known,
    )


def gather_laws(laws: Sequence[Law], places: Iterable[ArrayLike]) -> Law:
    """Return the rows of all laws in the order of their places, one array a law."""
    return append_laws(laws).take(np.argsort(np.concatenate([*places])))


def _append_curves(laws: Sequence[Law]) -> Curve | None:
    """Return the curves of all laws; a law without one gets any, of probability 0."""
    curves = [law.curve for law in laws if law.curve is not None]
    if not curves:
        return None
    basis = _joint_basis(curves)
    parts = []
    for law in laws:
        curve = law.curve
        if curve is None:
            curve = curves[0].take(np.zeros(len(law), dtype=np.intp))
        parts.append(curve)
    if basis is None:
        return append_curves([rebound(one, one.low, one.high) for one in parts])
    return append_curves([refine(one, basis) for one in parts])


def _joint_basis(curves: Sequence[Curve]) -> Basis | None:
    """Return the basis of the knots of all curves, None if they are too many."""
    knots = [curve.basis.knots for curve in {one.basis: one for one in curves}.values()]
    if len(knots) == 1:
        return curves[0].basis
    # Where one ends all end: beyond it some would have tails too far out.
    first, last = max(own[0] for own in knots), min(own[-1] for own in knots)
    every = np.unique(np.clip(np.concatenate(knots), first, last))
    # Knots as near as rounding are one.
    every = every[np.diff(every, prepend=-np.inf) > _NEAR]
    times = np.zeros(len(every), dtype=np.intp)
    for own in knots:
        place = nearest_places(every, np.clip(own, first, last))
        times = np.maximum(times, np.bincount(place, minlength=len(every)))
    times[1:-1] = np.minimum(times[1:-1], 2)
    times[[0, -1]] = 4
    joint = np.repeat(every, times)
    return basis_of(joint) if len(joint) <= _MOST_KNOTS else None


def _with_one_last_step(laws: list[Law]) -> list[Law]:
    """Return laws that all have the same last step, or none: rounding or clipping."""
    smooth = [law for law in laws if law.curve is not None]
    steps = {(law.step, law.offset, law.ends, law.end_width) for law in smooth}
    if len(steps) < 2 and all(_keeps_values(law, smooth[:1]) for law in laws):
        return laws
    return [lattice_as_atoms(law.clipped) for law in laws]


def _keeps_values(law: Law, others: Sequence[Law]) -> bool:
    """Return whether the last step of other laws would leave a law's values alone."""
    ends = [one.ends for one in others if one.ends != law.ends]
    if others and law.curve is None and others[0].step > 0.0:
        place = others[0].lattice.places(law.atoms)
        if (np.abs(place - np.rint(place)) > OF_STEP).any():
            return False
    (first, last), half = law.support, 0.5 * law.step
    return all(low - half <= first and last <= high + half for low, high in ends)


def _have_one_lattice(laws: Sequence[Law]) -> bool:
    """Return whether all curves are rounded to the same values, or none is."""
    curved = [law for law in laws if law.curve is not None]
    steps = np.array([law.step for law in curved])
    if not (curved and steps.all()):
        return not steps.any()
    away = curved[0].lattice.places(np.array([law.offset for law in curved]))
    near = np.abs(away - np.rint(away)) <= OF_STEP
    return bool(near.all() and np.allclose(steps, steps[0], rtol=1e-12, atol=0.0))


def jump_values(laws: Sequence[Law]) -> Float64Array:
    """Return the values of all laws' atoms, sorted, near ones once, (A,)."""
    return distinct_values(np.concatenate([law.atoms for law in laws]))


def _masses_at(law: Law, values: Float64Array) -> Float64Array:
    """Return masses (n, A) of a law at values; 0 where it has no atom."""
    out = np.zeros((len(law), len(values)))
    if len(law.atoms):
        # Atoms of a law that are near each other share a place.
        place = nearest_places(values, law.atoms)
        for at, mass in zip(place, law.masses.T, strict=True):
            out[:, at] += mass
    return out


def can_pool_scores(laws: Sequence[Law]) -> bool:
    """Return whether laws have a probit pool: all in values alone, or all smooth."""
    if all(law.is_discrete for law in laws):
        return True
    jumps = any(len(law.atoms) or law.is_clipped for law in laws)
    return not jumps and _have_one_lattice(laws)


def pool_laws(laws: Sequence[Law], weights: ArrayLike, kind: PoolKind) -> Law:
    r"""Return the linear or the probit pool of laws.

    Parameters
    ----------
    laws : sequence of M laws
        Of n rows each.
    weights : array-like of shape (M,) or (n, M)
        Not negative, of sum 1.
    kind : {"linear", "probit"}
        :math:`\sum_k w_k F_k` or :math:`\Phi(\sum_k w_k \Phi^{-1}(F_k))`; the latter
        for laws that are all smooth, or all discrete.

    Returns
    -------
    Law
        The law itself where one has all the weight.
    """
    check_choice(kind, "kind", ("linear", "probit"))
    n = len(laws[0])
    rows = np.asarray(weights, dtype=np.float64)
    rows = np.broadcast_to(rows, (n, rows.shape[-1]))
    rows = check_probability_rows(rows, "weights", len(laws))
    held = [k for k in range(len(laws)) if n == 0 or rows[:, k].any()]
    laws, rows = [laws[k] for k in held], rows[:, held]
    if len(laws) == 1:
        return laws[0]
    if kind == "probit" and not can_pool_scores(laws):
        what = "laws with values of positive probability beside a smooth rest"
        refuse("kind", f'be "linear" for {what}, or of unlike steps', '"probit"')
    laws = [law.clipped for law in laws]
    lattices = [law for law in laws if law.curve is not None and law.step > 0.0]
    alike = _have_one_lattice(laws)
    if not (alike and all(_keeps_values(law, lattices) for law in laws)):
        laws = [lattice_as_atoms(law) for law in laws]
    values = jump_values(laws)
    discrete = all(law.is_discrete for law in laws)
    if discrete and kind == "probit":
        at = np.broadcast_to(values, (n, len(values)))
        scores = [clip_scores(law.scores(at)) for law in laws]
        pooled = np.sum(rows.T[:, :, None] * scores, axis=0)
        return Law.discrete(values, masses_of_scores(pooled))
    masses = np.zeros((n, len(values)))
    for law, w in zip(laws, rows.T, strict=True):
        masses += w[:, None] * _masses_at(law, values)
    if discrete:
        return Law.discrete(values, masses)
    widths = np.full(len(values), np.inf)
    for law in laws:
        if len(law.atoms):
            np.minimum.at(widths, nearest_places(values, law.atoms), law.widths)
    members = [k for k, law in enumerate(laws) if law.curve is not None]
    parts = np.stack([rows[:, k] * laws[k].rest for k in members], axis=1)
    curves = [law.curve for law in laws if law.curve is not None]
    lows, highs = zip(*(laws[k].ends for k in members), strict=True)
    pool = replace(
        laws[members[0]],
        curve=_pool_curves(curves, as_shares(parts), kind),
        ends=(max(lows), min(highs)),
        atoms=values,
        masses=masses,
        widths=widths,
        ordered=False,
        known=None,
    )
    return _with_endless_moments(pool, laws, rows)


def _pool_curves(
    curves: Sequence[Curve], weights: Float64Array, kind: PoolKind
) -> Curve:
    """Return the pool of curves, read at the Greville points of a common basis.

    Values of all members give its levels and slopes; it is cubic between them.
    """
    low = np.min([curve.low for curve in curves], axis=0)
    high = np.max([curve.high for curve in curves], axis=0)
    bases = {curve.basis for curve in curves}
    basis = bases.pop() if len(bases) == 1 else STANDARD
    curves = [rebound(curve, low, high, basis) for curve in curves]
    if len(curves) == 1:
        return curves[0]
    out = np.empty((len(low), basis.size))
    for start in range(0, len(low), _ROWS):
        rows = slice(start, start + _ROWS)
        part = [curve.take(rows) for curve in curves]
        out[rows] = _pool_rows(part, weights[rows], kind, basis)
    return read_curve(np.maximum.accumulate(out, axis=1), low, high, basis=basis)


def _pool_rows(
    curves: Sequence[Curve], weights: Float64Array, kind: PoolKind, basis: Basis
) -> Float64Array:
    """Return the pool's coordinates at the Greville points, (n, K)."""
    # With many members every other value of each is enough.
    places = basis.greville
    if len(curves) > _MANY:
        places = np.unique(np.append(places[::2], places[-1]))
    g = np.tile(places, (len(weights), 1))
    read = [curve.coordinates(g) for curve in curves]
    sums = np.zeros((len(curves), 3, *g.shape))
    for k, (w, curve) in enumerate(zip(weights.T, curves, strict=True)):
        for j, (u, rate) in enumerate(read):
            # The levels of a member's own values are known.
            own = (g, rate) if j == k else curve.coordinates(u, inverse=True)
            _add_member(sums[j], w[:, None], *own, kind)
    u = np.hstack([values for values, _ in read])
    order = np.argsort(u, axis=1, kind="stable")
    found = [u, *(np.hstack(list(sums[:, k])) for k in range(3))]
    u, below, above, rate = (np.take_along_axis(part, order, axis=1) for part in found)
    z = below
    if kind == "linear":
        z = clip_scores(scores_of(np.minimum(below, 1.0), np.minimum(above, 1.0)))
        with np.errstate(over="ignore"):
            rate = rate * np.exp(0.5 * z**2)
    return invert_rows(np.maximum.accumulate(z, axis=1), u, rate, basis.greville)


def _add_member(
    sums: Float64Array, w: Float64Array, z: Float64Array, rate: Float64Array, kind: str
) -> None:
    """Add a member's levels and slopes at values with scores z and slopes du/dz."""
    if kind == "probit":
        sums[0] += w * clip_scores(z)
        sums[2] += w / rate
        return
    below = ndtr(-np.abs(z))
    above = 1.0 - below
    lower = z < 0.0
    sums[0] += w * np.where(lower, below, above)
    sums[1] += w * np.where(lower, above, below)
    sums[2] += w / rate * np.exp(-0.5 * z**2)


def _with_endless_moments(pool: Law, laws: Sequence[Law], weights: Float64Array) -> Law:
    """Return a pool that marks moments as missing if a member lacks them."""
    if all(law.known is None for law in laws):
        return pool
    rows = np.stack([law.moments() for law in laws])
    strange = ~np.isfinite(rows) & (weights.T[:, :, None] > 0.0)
    if not strange.any():
        return pool
    with np.errstate(invalid="ignore"):
        worst = np.where(strange, rows, 0.0).sum(axis=0)
    return replace(pool, known=np.where(strange.any(axis=0), worst, pool.moments()))


@dataclass(frozen=True)
class SpreadParts:
    r"""Three parts of each row's variance, by the law of total variance.

    A forecast averages members: roads :math:`k` of weight :math:`w_k`, and in each the
    models of :math:`J` folds. Their mixture has the variance

    .. math::
        \sum_k \frac{w_k}{J} \sum_j V_{kj}
        + \sum_k \frac{w_k}{J} \sum_j (m_{kj} - m_k)^2
        + \sum_k w_k (m_k - m)^2

    of members with means :math:`m_{kj}` and variances :math:`V_{kj}`.

    Parameters
    ----------
    within : ndarray of shape (n,)
        Mean variance of a member: the noise that all members see.
    folds : ndarray of shape (n,)
        Variance of the folds' means in their road.
    roads : ndarray of shape (n,)
        Variance of the roads' means.

    Examples
    --------
    >>> from localexpert import SpreadParts
    >>> parts = SpreadParts(within=[3.0], folds=[0.5], roads=[0.5])
    >>> float(parts.total[0]), float(parts.disagreement[0])
    (4.0, 0.25)
    """

    within: Float64Array
    folds: Float64Array
    roads: Float64Array

    @property
    def total(self) -> Float64Array:
        """Variance of the mixture of all members, shape (n,)."""
        parts = self.within, self.folds, self.roads
        return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

    @property
    def disagreement(self) -> Float64Array:
        """Share of the variance that is disagreement, in [0, 1], shape (n,)."""
        apart = np.sum([self.folds, self.roads], axis=0)
        whole = self.total
        share = np.zeros(len(whole))
        np.divide(apart, whole, out=share, where=whole > 0.0)
        return share


def spread_parts(members: Sequence[tuple[float, Sequence[Law]]]) -> SpreadParts:
    """Return the parts of the variance of a mixture.

    Parameters
    ----------
    members : sequence of (float, sequence of laws)
        The weight of each road, with sum 1, and the laws of its folds.

    Returns
    -------
    SpreadParts
    """
    weights = np.array([weight for weight, _ in members])[:, None]
    within, folds, means = [], [], []
    for _, laws in members:
        moments = np.stack([law.moments() for law in laws])
        within.append(moments[:, :, 1].mean(axis=0))
        folds.append(moments[:, :, 0].var(axis=0))
        means.append(moments[:, :, 0].mean(axis=0))
    around = np.array(means) - (weights * means).sum(axis=0)
    parts = np.array(within), np.array(folds), around**2
    return SpreadParts(*((weights * part).sum(axis=0) for part in parts))
