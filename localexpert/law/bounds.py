"""Laws between bounds: cut off and scaled to probability 1, or clipped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.typing import Float64Array
from localexpert.law.curve import cut_curve
from localexpert.law.law import Law
from localexpert.law.steps import log_between, reach_of_values

# A quantile at the edge of a lattice's cell would round to the cell before.
_OFF_EDGE = 1e-9


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


def condition(law: Law, low: Float64Array, high: Float64Array) -> Law:
    """Return the law given that low <= Y <= high, with bounds of each row.

    Parameters
    ----------
    law : Law
    low, high : ndarrays of shape (n,)
        Between them each row has probability.

    Returns
    -------
    Law
    """
    law, (lower, upper) = law.clipped, (low[:, None], high[:, None])
    reach = reach_of_values(law.atoms, law.widths)
    inside = (law.atoms + reach >= lower) & (law.atoms - reach <= upper)
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
    return replace(law, curve=curve, masses=masses, ordered=False, known=None)


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
