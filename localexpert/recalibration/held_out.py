"""`HeldOut`: calibration rows in the order of their PIT values, and curves by them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert.law.chords import harmonic_slopes
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, map_levels
from localexpert.law.shares import draw_shares

# Scores nearer than this are one.
_LEAST_GAP = 1e-6
# Scores that no level tells, of values beyond all that a forecast holds possible.
_FURTHEST = 38.0
# A row so many deviations out is one in two millions, and a share of such rows says
# that forecasts are too narrow by far.
_FAR, _MANY, _FEWEST = 5.0, 0.01, 10
_GREATEST = 1e6
# Rows beyond either outer knot.
_LEAST_OUTSIDE = 2.0


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows with weight that no fit has seen, sorted by their PIT values.

    Parameters
    ----------
    law : Law
        Of m rows, not corrected.
    y, weight : ndarrays of shape (m,)
    scores : ndarray of shape (m,)
        Phi^-1 of the PIT values, finite and not falling.
    """

    law: Law
    y: Float64Array
    weight: Float64Array
    scores: Float64Array

    @classmethod
    def of(
        cls, law: Law, y: Float64Array, weight: Float64Array, random_state: int | None
    ) -> HeldOut:
        """Sort rows; PIT values are drawn inside the jumps of CDFs.

        Warns
        -----
        CalibrationWarning
            Where many rows lie far out.
        """
        share = draw_shares(random_state, (len(y), 1))
        scores = law.scores(y[:, None], share)[:, 0]
        _warn_of_outliers(scores)
        known = scores[np.isfinite(scores)]
        most = max(_FURTHEST, 1.0 + float(np.abs(known).max(initial=0.0)))
        held = np.flatnonzero(weight > 0.0)
        order = held[np.argsort(scores[held], kind="stable")]
        scores = scores[order].clip(-most, most)
        return cls(law.take(order), y[order], weight[order], scores)

    @property
    def ties(self) -> int:
        """How many rows beyond one the longest run of equal scores has."""
        return int(np.diff(run_starts(self.scores), append=len(self.y)).max()) - 1

    def reading_error(self, levels: LevelMap) -> float:
        """Return by how much a corrected law misses what the map makes of its levels.

        Curves are read anew at some scores, so it is not 0; the greatest over the rows.
        """
        # Where F jumps, at both ends of the jump.
        y, ends = self.y[:, None], np.array([[0.0, 1.0]])
        before = np.clip(self.law.scores(y, ends), -_GREATEST, _GREATEST)
        after = map_levels(self.law, levels).scores(y, ends)
        return float(np.abs(ndtr(levels.forward(before)[0]) - ndtr(after)).max())


def _warn_of_outliers(scores: Float64Array) -> None:
    far = int((np.abs(scores) > _FAR).sum())
    if far >= _FEWEST and far > _MANY * len(scores):
        msg = (
            f"{far / len(scores):.0%} of the calibration rows lie more than {_FAR:g} "
            "deviations out: the forecasts are too narrow by far. What is beyond the "
            "outermost rows after the correction is a guess."
        )
        warnings.warn(msg, CalibrationWarning, stacklevel=5)


def run_starts(scores: Float64Array) -> NDArray[np.intp]:
    """Return where runs of equal ones begin in scores that do not fall."""
    return np.flatnonzero(np.diff(scores, prepend=-np.inf) > _LEAST_GAP)


def outer_shares(n_rows: float) -> Float64Array:
    """Return at which shares of an outer gap of so many rows there are more knots.

    Beyond the outer knots a map can only go on as it is: the levels of usual intervals
    should lie between knots.
    """
    n_halves = int(np.log2(max(n_rows / _LEAST_OUTSIDE, 1.0)))
    return np.asarray(0.5 ** np.arange(n_halves, 0, -1))


def curve_through(knots: Float64Array, levels: Float64Array) -> LevelMap:
    """Return the map through (Phi(knots), levels), both of shape (m,) and increasing.

    Slopes are weighted harmonic means of the chords (Fritsch & Butland, 1984), so h
    increases.
    """
    z = ndtri(levels)
    # The chords of the pieces that lead over to the tails are 1.
    h = np.concatenate([[1.0], np.diff(knots), [1.0]])
    chords = np.concatenate([[1.0], np.diff(z) / np.diff(knots), [1.0]])
    return LevelMap.through(knots, z, harmonic_slopes(h, chords))
