"""`clip_law`: what of a smooth law lies beyond bounds, moved to the bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from localexpert.laws.law import Law
from localexpert.laws.mixed import MixedLaw
from localexpert.laws.spline import SplineLaw
from localexpert.laws.transformed import TransformedLaw
from localexpert.laws.value_map import ValueMap


def clip_law(law: Law, bounds: tuple[float, float], width: float) -> Law:
    """Return the law of Y clipped to bounds: least max(low, min(high, Y)).

    Between the bounds the CDF stays what it was, and so of rows whose CDFs do not
    cross none crosses another after. A law that is cut off there, and made whole by a
    factor of its own, may: of two laws above 0 whose CDFs differ below 0 alone, one
    would have the greater factor.

    Parameters
    ----------
    law : SplineLaw or TransformedLaw of one
        Without bounds of its own.
    bounds : (float, float)
        Infinite where there is none.
    width : float
        Of the cell of a bound, see `MixedLaw`.

    Returns
    -------
    Law
        The law itself where nothing is beyond the bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.curves.base_cdf import BaseCDF
    >>> from localexpert.laws.clipped import clip_law
    >>> from localexpert.laws.spline import SplineLaw
    >>> base = BaseCDF.fit(np.random.default_rng(0).normal(size=2000))
    >>> law = SplineLaw([0.0], [1.0], [0.0], [[0.0]], [[1.0]], base)
    >>> clip_law(law, (0.0, np.inf), 0.1).cdf(np.array([[-1.0, 0.0, 1.0]])).round(1)
    array([[0. , 0.5, 0.8]])
    """
    first, last = law.support
    sides = zip(bounds, (law.cdf, law.sf), strict=True)
    beyond = [(end, mass) for end, mass in sides if first < end < last]
    if not beyond:
        return law
    ends = np.array([end for end, _ in beyond])
    masses = np.hstack([mass(np.full((len(law), 1), end)) for end, mass in beyond])
    return MixedLaw(ends, masses, _cut(law, bounds), np.full(len(ends), width))


def _cut(law: Law, bounds: tuple[float, float]) -> Law:
    """Return the law between bounds, its part there made whole."""
    if isinstance(law, SplineLaw):
        return replace(law, bounds=bounds)
    if isinstance(law, TransformedLaw):
        back = ValueMap(law.values.inverse, law.values.func)
        low, high = (back.end(end) for end in bounds)
        return replace(law, law=_cut(law.law, (low, high)))
    msg = f"`law` must be a spline or a function of one, got {type(law).__name__}."
    raise TypeError(msg)
