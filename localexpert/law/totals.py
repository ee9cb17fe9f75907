"""`total_law`: the laws of sums over rows."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.law.copula_sums import Correlation, draw_sums
from localexpert.law.curve import Curve
from localexpert.law.from_draws import law_of_samples
from localexpert.law.hermite_curve import curve_through
from localexpert.law.join import append_laws
from localexpert.law.law import Law
from localexpert.law.near_values import near_runs
from localexpert.law.sum_grid import (
    KNOTS,
    Cells,
    add_lattice,
    add_smooth,
    lattice_step,
    quantiles_of,
)
from localexpert.law.transform import lattice_as_atoms

# Values that sums of values off a lattice may take, and sums of atoms beside a rest.
_MOST_VALUES, _MOST_ATOMS = 4096, 256
# A probability of less than this is none: of a sum of atoms, and of a lattice point.
_LEAST_ATOM, _LEAST_MASS = 1e-9, 1e-15
# Draws of more than this share that are equal are a value with probability.
_REPEATS = 1e-3
# Levels, and how many deviations of a normal law they are from its middle.
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_DEVIATIONS = np.array([1.645, 0.674, 1.0, 0.674, 1.645])
# A curve that misses the known deviation, or by a share of it the mean, by more has
# tails that it does not tell, and is left as it is.
_MOST_STRETCH = 0.005


def total_law(
    law: Law,
    weights: Float64Array,
    groups: list[NDArray[np.intp]],
    correlation: Correlation | None,
    rng: np.random.Generator,
) -> Law:
    """Return the law of the weighted sum over each group of rows.

    Parameters
    ----------
    law : Law
        Of n rows.
    weights : ndarray of shape (n,)
    groups : list of G ndarrays of int
        The rows of each, one or more.
    correlation : Correlation or None
        None for independent rows.
    rng : Generator
        Of draws for correlated rows.

    Returns
    -------
    Law
        Of G rows.
    """
    if law.step > 0.0:
        law = lattice_as_atoms(law)
    law = law.clipped if law.is_clipped else law
    held = [rows[weights[rows] != 0.0] for rows in groups]
    parts: list[tuple[list[int], Law]] = []
    # What is one row itself, or nothing at all, is exact.
    alone = [g for g, rows in enumerate(held) if len(rows) == 1]
    alone = [g for g in alone if weights[held[g][0]] == 1.0]
    if alone:
        parts.append((alone, law.take(np.array([held[g][0] for g in alone]))))
    none = [g for g, rows in enumerate(held) if len(rows) == 0]
    if none:
        parts.append((none, Law.discrete(np.zeros(1), np.ones((len(none), 1)))))
    many = sorted(set(range(len(held))) - {*alone, *none})
    if many:
        moments = law.moments()
        sums = [held[g] for g in many]
        if correlation is None:
            found = [_add(law, weights, rows, moments) for rows in sums]
            parts.append((many, _join_sums(found)))
        else:
            draws, known = draw_sums(law, weights, sums, moments, correlation, rng)
            parts.append((many, _law_of_draws(law, draws, known)))
    order = np.argsort(np.concatenate([np.array(places) for places, _ in parts]))
    return append_laws([part for _, part in parts]).take(order)


class _Total(NamedTuple):
    """One total: masses of values, and quantiles of the rest with its moments.

    `quantiles` is None where all probability is in the values.
    """

    values: Float64Array
    masses: Float64Array
    width: float
    quantiles: Float64Array | None
    known: Float64Array


def _add(
    law: Law,
    weights: Float64Array,
    rows: NDArray[np.intp],
    moments: Float64Array,
) -> _Total:
    """Return the law of a sum of independent rows."""
    own, w = law.take(rows), weights[rows]
    known = _add_moments(moments[rows], w)
    if own.is_discrete:
        total = _add_discrete(own, w, known)
        if total is not None:
            return total
    cells = add_smooth(own, w, *_spreads(own, w, known))
    none, every = np.empty(0), quantiles_of(cells.start, cells.width, cells.masses)
    total = _Total(none, none, 1.0, every, known)
    if cells.atoms.sum() < _LEAST_ATOM:
        return total
    sums = _sums_of(own.atoms, own.masses, w, _MOST_ATOMS)
    return total if sums is None else _beside(cells, *sums, own, w, known)


def _beside(
    cells: Cells,
    values: Float64Array,
    masses: Float64Array,
    law: Law,
    weights: Float64Array,
    known: Float64Array,
) -> _Total:
    """Return a total of atoms and of a rest, whose moments follow from both."""
    width = float(law.widths.min() * np.abs(weights).min())
    rest = 1.0 - masses.sum()
    if rest < _LEAST_ATOM:
        return _Total(values, masses / masses.sum(), width, None, known)
    left = quantiles_of(cells.start, cells.width, cells.masses - cells.atoms)
    # About the mean of all, and then about its own.
    away = values - known[0]
    raw = 0.0, known[1], known[2], known[3]
    m1, m2, m3, m4 = (
        (raw[k - 1] - float((masses * away**k).sum())) / rest for k in (1, 2, 3, 4)
    )
    c2 = m2 - m1**2
    c3 = m3 - m1 * (3.0 * m2 - 2.0 * m1**2)
    c4 = m4 - m1 * (4.0 * m3 - m1 * (6.0 * m2 - 3.0 * m1**2))
    inner = np.array([known[0] + m1, c2, c3, c4])
    return _Total(values, masses, width, left, inner)


def _add_moments(moments: Float64Array, w: Float64Array) -> Float64Array:
    """Return mean and central moments (4,) of a sum of independent rows.

    Cumulants add up: that of order k of w Y is w^k times that of Y.
    """
    mean, c2, c3, c4 = moments.T
    with np.errstate(invalid="ignore"):
        k4 = c4 - 3.0 * c2**2
        sums = [float((w**k * c).sum()) for k, c in ((1, mean), (2, c2), (3, c3))]
        fourth = float((w**4 * k4).sum()) + 3.0 * sums[1] ** 2
        # An infinite fourth moment is no difference of infinities.
        if np.isfinite(sums[1]) and np.isinf(c4).any():
            fourth = np.inf
    return np.array([*sums, fourth])


def _spreads(law: Law, w: Float64Array, known: Float64Array) -> tuple[float, float]:
    """Return about the deviation of a sum, and that of its narrowest side.

    The latter is told by quantiles, so that a peak beside a long tail is seen.
    """
    ends = law.ppf(np.tile(_LEVELS, (len(law), 1)))
    ends = np.where((w < 0.0)[:, None], -ends[:, ::-1], ends)
    gaps = np.abs(w)[:, None] * np.abs(ends - ends[:, [len(_LEVELS) // 2]])
    sides = np.sqrt((gaps**2).sum(axis=0)) / _DEVIATIONS
    sides = sides[np.isfinite(sides) & (sides > 0.0)]
    sd = float(np.sqrt(known[1])) if np.isfinite(known[1]) else 0.0
    if len(sides) == 0:
        return (sd, sd) if sd > 0.0 else (1.0, 1.0)
    most = float(sides.max())
    return (sd if 0.0 < sd <= 10.0 * most else most), float(sides.min())


def _add_discrete(law: Law, w: Float64Array, known: Float64Array) -> _Total | None:
    """Return the exact law of a sum of values; None if it takes too many."""
    first = law.atoms[0]
    step = lattice_step(np.unique((w[:, None] * (law.atoms - first)).ravel()))
    cells = None
    if step is not None:
        cells = add_lattice(law.atoms, law.masses, w, step)
    if cells is not None:
        steps = np.arange(len(cells.masses), dtype=np.float64)
        values = cells.start + cells.width * steps
        masses = cells.masses
    else:
        sums = _sums_of(law.atoms, law.masses, w, _MOST_VALUES)
        if sums is None:
            return None
        values, masses = sums
    kept = masses > _LEAST_MASS
    return _Total(values[kept], masses[kept] / masses[kept].sum(), 1.0, None, known)


def _sums_of(
    values: Float64Array, masses: Float64Array, w: Float64Array, most: int
) -> tuple[Float64Array, Float64Array] | None:
    """Return all sums of weighted values and their masses; None if more than `most`."""
    sums, total = np.zeros(1), np.ones(1)
    for weight, row in zip(w, masses, strict=True):
        kept = row > 0.0
        every = (sums[:, None] + weight * values[kept]).ravel()
        mass = (total[:, None] * row[kept]).ravel()
        sums, total = _merge(every, mass)
        if len(sums) > most:
            return None
    return sums, total


def _merge(
    values: Float64Array, masses: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return values in order, near ones once, with their masses together."""
    every, place = np.unique(values, return_inverse=True)
    run = near_runs(every)
    first = np.flatnonzero(np.diff(run, prepend=-1))
    return every[first], np.bincount(run[place], masses).astype(np.float64)


def _join_sums(totals: list[_Total]) -> Law:
    """Return the law of totals, one a row."""
    every = np.concatenate([total.values for total in totals])
    smooth = [g for g, total in enumerate(totals) if total.quantiles is not None]
    if len(every) == 0:
        return _curves(totals)
    values, _ = _merge(every, np.ones(len(every)))
    masses = np.zeros((len(totals), len(values)))
    for g, total in enumerate(totals):
        place = np.clip(np.searchsorted(values, total.values), 0, len(values) - 1)
        lower = np.maximum(place - 1, 0)
        nearer = np.abs(values[lower] - total.values) < np.abs(
            values[place] - total.values
        )
        np.add.at(masses[g], np.where(nearer, lower, place), total.masses)
    if not smooth:
        return Law.discrete(values, masses)
    widths = np.full(len(values), min(totals[g].width for g in smooth))
    # A row without a rest has any.
    rest = [
        total if total.quantiles is not None else totals[smooth[0]] for total in totals
    ]
    return _beside_curves(values, masses, widths, _curves(rest))


def _beside_curves(
    values: Float64Array, masses: Float64Array, widths: Float64Array, smooth: Law
) -> Law:
    """Return atoms beside curves, whose own moments are known."""
    law = Law(smooth.curve, values, masses, widths)
    mean, c2, c3, c4 = smooth.moments().T
    shape = law.rest
    whole = (masses * values).sum(axis=1) + shape * mean
    with np.errstate(invalid="ignore"):
        off = mean - whole
        about = (
            c2 + off**2,
            c3 + off * (3.0 * c2 + off**2),
            c4 + off * (4.0 * c3 + off * (6.0 * c2 + off**2)),
        )
        away = values - whole[:, None]
        parts = [
            (masses * away**k).sum(axis=1) + np.where(shape > 0.0, shape * part, 0.0)
            for k, part in zip((2, 3, 4), about, strict=True)
        ]
    return replace(law, known=np.column_stack([whole, *parts]))


def _curves(totals: list[_Total]) -> Law:
    quantiles = np.stack([np.asarray(total.quantiles) for total in totals])
    known = np.stack([total.known for total in totals])
    free = (-np.inf, np.inf)
    return _with_moments(curve_through(KNOTS, _apart(quantiles), free), known)


def _with_moments(curve: Curve, known: Float64Array, *, own_shape: bool = False) -> Law:
    """Return the law of curves, moved and stretched to known moments (n, 4).

    With `own_shape` the third and the fourth moment are those of the curve.
    """
    own = Law.smooth(curve).moments()
    room = _MOST_STRETCH * np.sqrt(own[:, 1])
    near = np.abs(known[:, 0] - own[:, 0]) <= room
    mean = np.where(near, known[:, 0], own[:, 0])
    factor = np.sqrt(np.abs(known[:, 1]) / own[:, 1])
    near = np.abs(factor - 1.0) <= _MOST_STRETCH
    factor = np.where(near, factor, 1.0)[:, None]
    c = mean[:, None] + factor * (curve.coefficients - own[:, :1])
    if own_shape:
        shape = np.isfinite(known[:, 1:2]) & (np.arange(4) > 1)
        known = np.where(shape, own * factor ** np.arange(1, 5), known)
    moved = replace(curve, coefficients=c, slopes=factor * curve.slopes)
    return Law.smooth(moved, known=known)


def _apart(quantiles: Float64Array) -> Float64Array:
    """Return quantiles that increase strictly."""
    size = np.abs(quantiles).max(axis=1, keepdims=True)
    range_ = np.ptp(quantiles, axis=1, keepdims=True)
    least = np.maximum(1e-9 * range_, 8.0 * np.spacing(size))
    steps = least * np.arange(quantiles.shape[1])
    rising = np.maximum.accumulate(quantiles - steps, axis=1)
    return np.asarray(rising + 2.0 * steps)


def _law_of_draws(law: Law, draws: Float64Array, known: Float64Array) -> Law:
    """Return the law of drawn totals (G, S): values that repeat beside a smooth rest.

    Of discrete rows that take few values it is their shares.
    """
    if law.is_discrete:
        found = law_of_samples(draws, "auto", None)
        if found.is_discrete:
            return found
    if not law.has_jumps:
        return _smooth_draws(draws, known)
    n_draws = draws.shape[1]
    places = (np.arange(n_draws) + 0.5) / n_draws
    totals, rest, inner = [], np.empty(draws.shape), known.copy()
    for g, row in enumerate(draws):
        values, counts = np.unique(row, return_counts=True)
        held = counts > _REPEATS * n_draws
        masses, values = counts[held] / n_draws, values[held]
        left = np.sort(row[~np.isin(row, values)])
        totals.append((values, masses))
        # As many draws of the rest as there are in all; any where there is none.
        left = left if len(left) > 1 else row
        rest[g] = np.quantile(left, places)
        share = max(1.0 - masses.sum(), _LEAST_ATOM)
        away = values - known[g, 0]
        shift = -(masses @ away) / share
        second = (known[g, 1] - masses @ away**2) / share - shift**2
        inner[g, :2] = known[g, 0] + shift, max(second, 0.0)
    smooth = _smooth_draws(rest, inner)
    every = np.unique(np.concatenate([values for values, _ in totals]))
    if len(every) == 0:
        return smooth
    table = np.zeros((len(draws), len(every)))
    for row, (values, masses) in zip(table, totals, strict=True):
        row[np.searchsorted(every, values)] = masses
    widths = np.full(len(every), float(law.widths.min()))
    return _beside_curves(every, table, widths, smooth)


def _smooth_draws(draws: Float64Array, known: Float64Array) -> Law:
    found = law_of_samples(draws, "smooth", None)
    assert found.curve is not None
    return _with_moments(found.curve, known, own_shape=True)
