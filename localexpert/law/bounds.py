"""Laws between bounds: cut off and scaled to probability 1, or clipped."""

from __future__ import annotations

from dataclasses import replace

from localexpert.law.curve import cut_curve
from localexpert.law.law import Law


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
