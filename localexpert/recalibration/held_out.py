"""Scores of held-out PIT values, and how far a map that is read misses what it was."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import ndtr

from calibration.exceptions import CalibrationWarning
from calibration.typing import Float64Array
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, map_levels

#: Scores nearer than this are one.
LEAST_GAP = 1e-6
# Scores that no level tells, of values beyond all that a forecast holds possible.
_FURTHEST = 38.0
# A row so many deviations out is one in two millions, and a share of such rows says
# that forecasts are too narrow by far.
_FAR, _MANY, _FEWEST = 5.0, 0.01, 10
_GREATEST = 1e6


def held_out_scores(law: Law, y: Float64Array, share: Float64Array) -> Float64Array:
    """Return Phi^-1 of the PIT values (n,), finite ones, at shares (n, 1) of jumps.

    Parameters
    ----------
    law : Law
        Of n rows.
    y : ndarray of shape (n,)
    share : ndarray of shape (n, 1)

    Warns
    -----
    CalibrationWarning
        Where many rows lie far out.

    Returns
    -------
    ndarray of shape (n,)
    """
    scores = law.scores(y[:, None], share)[:, 0]
    known = scores[np.isfinite(scores)]
    most = max(_FURTHEST, 1.0 + float(np.abs(known).max(initial=0.0)))
    far = int((np.abs(scores) > _FAR).sum())
    if far >= _FEWEST and far > _MANY * len(scores):
        msg = (
            f"{far / len(scores):.0%} of the calibration rows lie more than {_FAR:g} "
            "deviations out: the forecasts are too narrow by far. What is beyond the "
            "outermost rows after the correction is a guess."
        )
        warnings.warn(msg, CalibrationWarning, stacklevel=3)
    return np.asarray(np.clip(scores, -most, most))


def ties_of(scores: Float64Array) -> int:
    """Return how many rows beyond one the longest run of equal scores has."""
    runs = np.flatnonzero(np.diff(np.sort(scores), prepend=-np.inf) > LEAST_GAP)
    return int(np.diff(np.append(runs, len(scores))).max()) - 1


def reading_error(law: Law, y: Float64Array, levels: LevelMap) -> float:
    """Return by how much a level of a corrected law misses what the map makes of it.

    Curves are read anew at some scores, so it is not 0; the greatest over the rows.

    Parameters
    ----------
    law : Law
        Of n rows, not corrected.
    y : ndarray of shape (n,)
    levels : LevelMap

    Returns
    -------
    float
    """
    # Where F jumps, at both ends of the jump.
    ends = np.array([[0.0, 1.0]])
    before = np.clip(law.scores(y[:, None], ends), -_GREATEST, _GREATEST)
    after = map_levels(law, levels).scores(y[:, None], ends)
    missed = np.abs(ndtr(levels.forward(before)[0]) - ndtr(after))
    return float(missed.max())
