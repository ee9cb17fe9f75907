"""`total_law`: the laws of sums over rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.law.copula_sums import Correlation, draw_sums
from localexpert.law.curve import Curve
from localexpert.law.from_draws import FEW_VALUES, law_of_samples
from localexpert.law.from_quantiles import increase_rows
from localexpert.law.hermite_curve import curve_through
from localexpert.law.join import append_laws
from localexpert.law.law import Law
from localexpert.law.near_values import nearest_places
from localexpert.law.sum_grid import (
    KNOTS,
    LEAST_ATOM,
    Values,
    add_smooth,
    add_values,
    merge_values,
)
from localexpert.law.transform import lattice_as_atoms

# Draws of more than this share that are equal are a value with probability.
_REPEATS = 1e-3
# A curve that misses the known deviation, or by a share of it the mean, by more has
# tails that it does not tell, and is left as it is.
_MOST_STRETCH = 0.005

# Atoms of each sum, curves of the rest, and moments of both.
_Sums: TypeAlias = tuple[list[Values], Curve, Float64Array]


def total_law(
    law: Law,
    weights: Float64Array,
    groups: list[NDArray[np.intp]],
    correlation: Correlation | None,
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

    Returns
    -------
    Law
        Of G rows.
    """
    if law.step > 0.0:
        law = lattice_as_atoms(law)
    law = law.clipped
    held = [rows[weights[rows] != 0.0] for rows in groups]
    none = [g for g, rows in enumerate(held) if len(rows) == 0]
    alone = [g for g, rows in enumerate(held) if weights[rows].tolist() == [1.0]]
    many = sorted({*range(len(held))} - {*none, *alone})
    # What is one row itself, or nothing at all, is exact.
    itself = np.array([held[g][0] for g in alone], dtype=np.intp)
    nothing = Law.discrete(np.zeros(1), np.ones((len(none), 1)))
    parts = [law.take(itself), nothing]
    if many:
        sums = [held[g] for g in many]
        if correlation is None:
            found = _add_rows(law, weights, sums)
        else:
            found = _draw_rows(law, weights, sums, correlation)
        least = np.abs(weights[weights != 0.0]).min()
        parts.append(_beside(*found, law.widths.min(initial=np.inf) * least))
    return append_laws(parts).take(np.argsort(alone + none + many))


def _add_rows(law: Law, weights: Float64Array, groups: list[NDArray[np.intp]]) -> _Sums:
    """Return sums of independent rows."""
    known, atoms = _add_moments(law, weights, groups), []
    # A sum without a rest has any curve.
    quantiles = np.tile(KNOTS, (len(groups), 1))
    for g, rows in enumerate(groups):
        own, w = law.take(rows), weights[rows]
        values, masses = add_values(own, w)
        atoms.append((values, masses))
        if masses.sum() < 1.0 - LEAST_ATOM:
            quantiles[g] = add_smooth(own, w, known[g, 1], apart=len(values) > 0)
    free = (-np.inf, np.inf)
    curve = curve_through(KNOTS, increase_rows(quantiles, KNOTS, free), free)
    return atoms, curve, known


def _draw_rows(
    law: Law,
    weights: Float64Array,
    groups: list[NDArray[np.intp]],
    correlation: Correlation,
) -> _Sums:
    """Return drawn sums, whose values that repeat are atoms."""
    draws, added = draw_sums(law, weights, groups, correlation)
    n_draws, atoms = draws.shape[1], []
    # Of discrete rows that take few values all are, of smooth ones none.
    few = law.is_discrete and len(np.unique(draws)) <= FEW_VALUES
    repeats = 0.0 if few else _REPEATS if law.has_jumps else 1.0
    for row in draws:
        values, counts = np.unique(row, return_counts=True)
        held = counts > repeats * n_draws
        atoms.append((values[held], counts[held] / n_draws))
        left = np.repeat(values[~held], counts[~held])
        # As many draws of the rest as there are in all; any where there is none.
        if law.has_jumps and len(left) > 1:
            row[:] = np.quantile(left, (np.arange(n_draws) + 0.5) / n_draws)
    curve = law_of_samples(draws, "smooth", None).curve
    assert curve is not None
    known = _add_moments(law, weights, groups)[:, :2]
    known[:, 1] += added
    return atoms, curve, known


def _add_moments(
    law: Law, weights: Float64Array, groups: list[NDArray[np.intp]]
) -> Float64Array:
    """Return mean and central moments (G, 4) of sums of independent rows.

    Cumulants add up: that of order k of w Y is w^k times that of Y.
    """
    rows, sizes = np.concatenate(groups), [len(rows) for rows in groups]
    cumulants = law.moments()[rows]
    with np.errstate(invalid="ignore"):
        cumulants[:, 3] -= 3.0 * cumulants[:, 1] ** 2
        cumulants *= weights[rows, None] ** np.arange(1, 5)
        sums = np.add.reduceat(cumulants, np.cumsum([0, *sizes[:-1]]), axis=0)
        sums[:, 3] += 3.0 * sums[:, 1] ** 2
    return np.asarray(sums)


def _beside(
    atoms: list[Values], curve: Curve, known: Float64Array, width: float
) -> Law:
    """Return the laws of values with masses, beside curves that have the rest.

    Their moments are known: mean and variance (G, 2), or four of them (G, 4).
    """
    every = np.concatenate([values for values, _ in atoms])
    values, _ = merge_values(every, np.ones(len(every)))
    masses = np.zeros((len(atoms), len(values)))
    for row, (at, mass) in zip(masses, atoms, strict=True):
        np.add.at(row, nearest_places(values, at), mass)
    law = Law(curve, values, masses, np.full(len(values), width))
    if not law.rest.any():
        return Law.discrete(values, masses)
    mean, variance = known[:, 0], known[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        away = values - mean[:, None]
        shift = -(masses * away).sum(axis=1) / law.rest
        spread = (variance - (masses * away**2).sum(axis=1)) / law.rest - shift**2
        law = replace(law, curve=_stretch(curve, mean + shift, spread))
    if known.shape[1] == 2:
        shape = np.where(np.isfinite(known[:, 1:]), law.moments()[:, 2:], np.nan)
        known = np.hstack([known, shape])
    return replace(law, known=known)


def _stretch(curve: Curve, mean: Float64Array, variance: Float64Array) -> Curve:
    """Return curves moved and stretched to known means and variances (n,)."""
    own = curve.moments()
    near = np.abs(mean - own[:, 0]) <= _MOST_STRETCH * np.sqrt(own[:, 1])
    mean = np.where(near, mean, own[:, 0])
    factor = np.sqrt(np.maximum(variance, 0.0) / own[:, 1])
    factor = np.where(np.abs(factor - 1.0) <= _MOST_STRETCH, factor, 1.0)[:, None]
    c = mean[:, None] + factor * (curve.coefficients - own[:, :1])
    return replace(curve, coefficients=c, slopes=factor * curve.slopes)
