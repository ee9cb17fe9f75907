"""Laws moved so that their means are given numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, map_levels

# The largest shift of scores that is tried.
_MOST = 6.0
# Steps of the search for a tilt, and the error, in deviations, at which it stops.
_STEPS, _TOLERANCE = 60, 1e-9
# Between these a law is as wide as its scale where its variance is infinite.
_QUARTILES = (0.25, 0.75)
# Every so many steps a bracket is halved, lest secants stay on one side.
_PATIENCE = 5


def recentre(law: Law, means: Float64Array) -> Law:
    """Return the law of each row moved to a given mean.

    A smooth law without bounds is shifted. The values of any other cannot move:
    there the CDF F becomes Phi(Phi^-1(F) - delta), with the delta of each row that
    gives the mean (the exponential tilt of a Gaussian), and 6 where a mean cannot
    be reached.

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
    if law.is_smooth and curve is not None:
        free = np.isinf(curve.low) & np.isinf(curve.high)
        if free.all():
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
    # The mean increases with the shift, so one root is all there is.
    shift = _solve_increasing(mean, means, before[:, 0], spread)
    return map_levels(law, LevelMap.line(-shift))


def _solve_increasing(
    function: Callable[[NDArray[np.intp], Float64Array], Float64Array],
    goal: Float64Array,
    at_zero: Float64Array,
    slope: Float64Array,
) -> Float64Array:
    """Return x (n,) in [-6, 6] with function(x) = goal, or the nearer end.

    Secants from 0, where value and slope (n,) are about known, and halves of the
    bracket where they lead out of it or are slow. `function` is told the rows that
    are asked for; those that are found take no more work.
    """
    x, gap, rate = np.zeros(len(goal)), at_zero - goal, slope.copy()
    low, high = np.full(len(goal), -np.inf), np.full(len(goal), np.inf)
    found = np.zeros(len(goal), dtype=bool)
    for number in range(_STEPS):
        low, high = np.where(gap < 0.0, x, low), np.where(gap > 0.0, x, high)
        near = np.abs(gap) <= _TOLERANCE * slope
        # One step beyond the tolerance, lest it hang on a last bit which of two it is.
        left = ~(near & found) & (gap != 0.0) & np.isfinite(gap) & (low < high)
        found |= near
        rows = np.flatnonzero(left & (low < _MOST) & (high > -_MOST))
        if len(rows) == 0:
            break
        a, b, here, miss, steep = (part[rows] for part in (low, high, x, gap, rate))
        step = np.divide(miss, steep, out=miss * np.inf, where=steep > 0.0)
        # An end that no value is known of is tried before the bracket is halved.
        unknown = np.isinf(np.where(step < 0.0, b, a))
        a, b = np.maximum(a, -_MOST), np.minimum(b, _MOST)
        trial = np.clip(here - step, a, b)
        patient = number % _PATIENCE < _PATIENCE - 1
        taken = patient & (unknown | ((trial > a) & (trial < b)))
        trial = np.where(taken, trial, 0.5 * (a + b))
        x[rows], gap[rows] = trial, function(rows, trial) - goal[rows]
        # A step below rounding leads nowhere, and says nothing of the slope.
        rise, run = gap[rows] - miss, trial - here
        rate[rows] = np.divide(rise, run, out=steep, where=run != 0.0)
    return x
