"""`PitRecalibration`: a map of CDFs learned from out-of-fold PIT values."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from calibration.typing import Float64Array
from localexpert._validation import check_number
from localexpert.data.folds import Fold, known_folds, make_folds, number_folds
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap
from localexpert.recalibration.base import Recalibration
from localexpert.recalibration.pit_curves import PitCells, fit_curve


class PitRecalibration(Recalibration):
    r"""A smooth map learned from out-of-fold PIT values; no guarantee.

    Parameters
    ----------
    strengths : sequence of float
        Weights of the pull towards the identity to choose from, in rows: strength s
        counts as s rows whose PIT values are uniform. The identity itself is always
        among the candidates.
    random_state : int, optional
        Deals the rows to five folds where `fit` is given none.

    Attributes
    ----------
    map_, oof_map_ : LevelMap
        For new rows, and for each training row the one of the other folds.
    strength_ : float
        Inf: the identity.
    losses_ : dict of float to float
        Held-out log score of the PIT values by strength; that of the identity is 0.

    Notes
    -----
    With z = Phi^-1(F(y)) the log score changes by -log G'(F(y)), where

    .. math:: \log G' = \log h'(z) - h(z)^2 / 2 + z^2 / 2.

    h(z) - z is a cubic spline between +-2.4, taken to be constant beyond; it
    maximises this sum over rows, which is concave, plus that over the s uniform rows,
    minus s times the roughness of h. The strength is the greatest whose held-out
    score is within one standard error of the best, so noise changes nothing.

    Where y has probability of its own its PIT value is spread evenly over the jump
    of F. The score of that is a bound: the log score of the jump gains at least as
    much, by Jensen's inequality.

    References
    ----------
    Gneiting, Balabdaoui & Raftery (2007), Probabilistic forecasts, calibration and
    sharpness; Czado, Gneiting & Held (2009), Predictive model assessment for count
    data.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.recalibration.pit import PitRecalibration
    >>> y = np.random.default_rng(0).choice(3, size=500, p=[0.1, 0.2, 0.7])
    >>> rows = np.tile([0.3, 0.4, 0.3], (500, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> better = PitRecalibration(random_state=0).fit(dist, y).apply(dist)
    >>> bool(better.masses[0, 2] > 0.6)
    True

    Forecasts of any library, here too narrow ones, are corrected by their past:

    >>> from scipy import stats
    >>> past = PredictiveDistribution.from_scipy(stats.norm(0.0, 1.0), 500)
    >>> came = np.random.default_rng(0).normal(0.0, 2.0, 500)
    >>> wider = PitRecalibration(random_state=0).fit(past, came)
    >>> bool(wider.apply(past[:3]).std().min() > 1.5)
    True
    """

    holds_out = False

    def __init__(
        self,
        strengths: tuple[float, ...] = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0),
        *,
        random_state: int | None = None,
    ):
        self.strengths = strengths
        self.random_state = random_state

    def _learn(
        self, law: Law, y: Float64Array, weight: Float64Array, folds: list[Fold] | None
    ) -> None:
        n = len(y)
        if folds is None:
            folds = make_folds(n, random_state=self.random_state, sample_weight=weight)
        number = number_folds(folds, n)
        ends = law.scores(y[:, None], np.array([[0.0, 1.0]]))
        furthest = furthest_score(float(weight.sum()))
        cells = PitCells.of(ends, furthest, weight, number, len(folds))
        maps = self._choose(cells, known_folds(folds, n))
        self.oof_map_ = LevelMap.by_row(maps, number)

    def fit_cells(self, cells: PitCells) -> Self:
        """Choose the strength by folds of other rows than those of `oof_map_`.

        Parameters
        ----------
        cells : PitCells
            Of rows that no model has seen, in folds that know each other. Their sums
            over parts of a table are those of the table.

        Returns
        -------
        self
        """
        self._check_parameters()
        folds = range(len(cells.weight))
        self._choose(cells, [[k for k in folds if k != fold] for fold in folds])
        self.oof_map_ = self.map_
        return self

    def _choose(self, cells: PitCells, known: list[list[int]]) -> list[LevelMap]:
        """Choose the strength, set the map, and return that of each fold.

        A fold's map is learned from the folds that it knows; of none it is the
        identity.
        """
        pulls = [np.inf, *sorted(self.strengths, reverse=True)]
        maps = [[fit_curve(cells.take(some), s) for some in known] for s in pulls]
        gains = np.array([cells.gains(one) for one in maps])
        n = float(cells.weight.sum())
        means = np.einsum("fc,sfc->s", cells.weight, gains) / n
        # Differences row by row: what strengths have in common is no noise.
        away = gains - gains[int(np.argmax(means))]
        squares = np.einsum("fc,sfc->s", cells.weight, away**2) / n
        errors = np.sqrt(np.maximum(squares - (means - means.max()) ** 2, 0.0) / n)
        best = int(np.argmax(means + errors >= means.max()))
        self.strength_ = pulls[best]
        self.losses_ = dict(zip(pulls, (-means).tolist(), strict=True))
        self.map_ = fit_curve(cells.take(range(len(known))), self.strength_)
        return maps[best]

    def _check_parameters(self) -> None:
        for strength in self.strengths:
            check_number(strength, "strengths", 0.0, np.inf)

    def choices(self) -> dict[str, Any]:
        """Return the strength, and what the others scored.

        Returns
        -------
        dict
            Ready for JSON.
        """
        losses = {str(s): loss for s, loss in self.losses_.items()}
        return {"kind": "pit", "strength": str(self.strength_), "losses": losses}


def furthest_score(weight: float) -> float:
    """Return the normal score beyond which so many rows can tell nothing.

    Parameters
    ----------
    weight : float
        Of all rows.

    Returns
    -------
    float
    """
    return -float(ndtri(0.5 / (weight + 1.0)))
