"""Laws moved so that their means are given numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibration.typing import Float64Array
from localexpert.laws.law import Law
from localexpert.laws.recalibrated import recalibrate_law
from localexpert.laws.score_map import ProbitMap
from localexpert.laws.spline import SplineLaw

# Scores up to which a tilt is a shift of all scores, and the largest one tried.
_REACH, _MOST = 4.0, 6.0
# Steps of the search for a tilt, and the error, in deviations, at which it stops.
_STEPS, _TOLERANCE = 60, 1e-9


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
    if isinstance(law, SplineLaw) and np.isinf(law.bounds).all():
        centre = law.center + (means - law.moments()[:, 0])
        curves = law.knots, law.values, law.slopes
        return SplineLaw(centre, law.scale, *curves, law.base, law.bounds)

    def mean(shift: Float64Array) -> Float64Array:
        # A smaller CDF is that of larger values.
        return recalibrate_law(law, _shift_scores(-shift)).moments()[:, 0]

    # The mean increases with the shift, so one root is all there is.
    spread = np.sqrt(law.moments()[:, 1])
    shift = _solve_increasing(mean, means, _TOLERANCE * spread)
    return recalibrate_law(law, _shift_scores(-shift))


def _shift_scores(shift: Float64Array) -> ProbitMap:
    """Return the map that adds shift (n,) to the scores of each row."""
    knots = np.array([-_REACH, _REACH])
    return ProbitMap(knots, knots + shift[:, None], np.ones((len(shift), 2)))


def _solve_increasing(
    function: Callable[[Float64Array], Float64Array],
    goal: Float64Array,
    tolerance: Float64Array,
) -> Float64Array:
    """Return x (n,) in [-6, 6] with function(x) = goal, or the nearer end.

    The Illinois method on all rows at once: false position, where an end that stays
    twice counts half.
    """
    low, high = np.full(len(goal), -_MOST), np.full(len(goal), _MOST)
    below, above = function(low) - goal, function(high) - goal
    x = np.where(below > 0.0, low, high)
    open_ = (below < 0.0) & (above > 0.0)
    for _ in range(_STEPS):
        if not open_.any():
            break
        width = np.where(open_, above - below, 1.0)
        x = np.where(open_, (low * above - high * below) / width, x)
        gap = function(x) - goal
        rises = gap < 0.0
        # Illinois: the end that does not move is given half its weight.
        above = np.where(rises, 0.5 * above, gap)
        below = np.where(rises, gap, 0.5 * below)
        low, high = np.where(rises, x, low), np.where(rises, high, x)
        open_ &= np.abs(gap) > tolerance
    return x
