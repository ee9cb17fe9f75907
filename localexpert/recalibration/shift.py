"""`ShiftRecalibration`: forecasts moved, and widened, by their own deviations."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.folds import Fold
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap
from localexpert.recalibration.base import Recalibration
from localexpert.recalibration.pit import PitCells, gather_scores

# Rows with scores of mean 0 and deviation 1 that count beside those of a fit.
_PULL = 4.0
# Least and greatest width of new forecasts, in that of the old.
_WIDTHS = 0.1, 10.0


class ShiftRecalibration(Recalibration):
    r"""A shift of all forecasts in their standard deviations, with a slope if wanted.

    What helps least, and needs fewest rows: two numbers at most are learned.

    Parameters
    ----------
    slope : bool
        Whether forecasts are widened or narrowed too.
    random_state : int, optional
        Deals the rows to five folds where `fit` is given none.

    Attributes
    ----------
    map_, oof_map_ : LevelMap
        For new rows, and for each training row the one of the other folds.
    offset_, width_ : float
        Mean and standard deviation of the scores of the rows, drawn to 0 and 1 by as
        much as four rows count.

    Notes
    -----
    Scores are :math:`z = \Phi^{-1}(F(y))`; where y has probability of its own they are
    spread over the jump of F. The new CDF is
    :math:`\Phi((\Phi^{-1}(F) - \mu) / \sigma)`: of a normal law
    with mean m and deviation s that with mean :math:`m + \mu s` and deviation
    :math:`\sigma s`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.recalibration.shift import ShiftRecalibration
    >>> dist = PredictiveDistribution.from_scipy(norm(0.0, 1.0), 400)
    >>> came = np.random.default_rng(0).normal(1.0, 1.0, 400)
    >>> moved = ShiftRecalibration(random_state=0).fit(dist, came).apply(dist)
    >>> bool(abs(moved.mean()[0] - came.mean()) < 0.05)
    True
    """

    holds_out = False

    def __init__(self, *, slope: bool = False, random_state: int | None = None):
        self.slope = slope
        self.random_state = random_state

    def _learn(
        self, law: Law, y: Float64Array, weight: Float64Array, folds: list[Fold] | None
    ) -> None:
        cells, number, known = gather_scores(law, y, weight, folds, self.random_state)
        maps = [_line(*self._fit(cells.take(others))) for others in known]
        self.oof_map_ = LevelMap.by_row(maps, number)
        self.offset_, self.width_ = self._fit(cells.take(range(len(known))))
        self.map_ = _line(self.offset_, self.width_)

    def _fit(self, cells: PitCells) -> tuple[float, float]:
        """Return mean and deviation of the scores in cells."""
        weight, scores = cells.weight[0], cells.scores[0]
        n = float(weight.sum()) + _PULL
        offset = float(weight @ scores) / n
        if not self.slope:
            return offset, 1.0
        spread = float(weight @ (scores - offset) ** 2) + _PULL * (1.0 + offset**2)
        return offset, float(np.clip(np.sqrt(spread / n), *_WIDTHS))

    def _check_parameters(self) -> None:
        if not isinstance(self.slope, bool):
            msg = f"`slope` must be a bool, got {self.slope!r:.60}."
            raise TypeError(msg)

    def choices(self) -> dict[str, Any]:
        """Return the shift and the width.

        Returns
        -------
        dict
            Ready for JSON.
        """
        return {"kind": "shift", "offset": self.offset_, "width": self.width_}


def _line(offset: float, width: float) -> LevelMap:
    """Return the map of scores z to (z - offset) / width."""
    return LevelMap.line(-offset / width, 1.0 / width)
