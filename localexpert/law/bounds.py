"""Laws between bounds: cut off there and made whole, or clipped to them."""

from __future__ import annotations

from dataclasses import replace

from localexpert.law.curve import cut_curve
from localexpert.law.law import Law


def cut(law: Law, low: float, high: float) -> Law:
    """Return the law given that Y is between bounds; of a lattice its cells are whole.

    Parameters
    ----------
    law : Law
        Not one that keeps order, which rows that are made whole each by a factor of
        their own would lose.
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


def clip(law: Law, low: float, high: float, width: float) -> Law:
    """Return the law of max(low, min(high, Y)): what lies beyond is at the bounds.

    Between the bounds the CDF stays what it was, and so of rows whose CDFs do not
    cross none crosses another after.

    Parameters
    ----------
    law : Law
    low, high : float
    width : float
        Of the cell of a bound.

    Returns
    -------
    Law
    """
    first, last = law.support
    if low <= first and high >= last:
        return law
    ends = max(low, law.ends[0]), min(high, law.ends[1])
    return replace(law, ends=ends, end_width=width, known=None)
