"""`WeightedConformal`: a map through weighted PIT values, another for every new row."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import check_weights
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap
from localexpert.recalibration.base import Forecast, check_rows, correct
from localexpert.recalibration.conformal import (
    HeldOut,
    curve_through,
    outer_shares,
    run_starts,
)
from localexpert.recalibration.pit import PitRecalibration
from localexpert.recalibration.shift import effective_rows

# Fewest rows of equal weight that a map may rest on.
_LEAST_EFFECTIVE = 50.0


class WeightedConformal:
    r"""Conformal recalibration for rows that come from another law of x.

    Fitted on m rows (X_i, Y_i) of a law P of x, none seen by the forecasts, for new
    rows of a law Q of x; Y given x is the same in both. With u_(1) <= ... <= u_(m)
    the PIT values and w_(j) their weights, the map of a new row x passes through

    .. math:: \Big(u_{(j)},\ \frac{w_{(1)} + \dots + w_{(j-1)} + (w_{(j)} + w(x)) / 2}
              {w_{(1)} + \dots + w_{(m)} + w(x)}\Big)

    at some j, about sqrt(effective rows) of them at equal steps of weight, and at
    halves of the outer steps down to two effective rows.

    Parameters
    ----------
    random_state : int, optional
        Draws PIT values inside the jumps of CDFs.

    Attributes
    ----------
    effective_rows_ : float
        :math:`(\sum w)^2 / \sum w^2`, 50 at least.
    error_ : float
        What `bound` adds for equal PIT values, and for curves that are read anew, as
        `ConformalRecalibration.bound_` does.

    Notes
    -----
    Let w = dQ/dP up to a factor, and PIT values without ties. Given the m + 1 rows,
    calibration and new, but not which is the new one, that is row i with probability
    p_i = w_i / sum(w) (Tibshirani et al., 2019, lemma 3). So, with H(v) the sum of
    the p_i of PIT values up to v, V that of the new row and U uniform, the variable
    H(V-) + U (H(V) - H(V-)) is uniform. Between two knots i < j of the map it and
    G(V) are never further apart than

    .. math:: b = \frac{w_{(i+1)} + \dots + w_{(j-1)} + \tfrac12 (\max(w_{(i)},
              w_{(j)}) + w(x))}{\sum w},

    and so :math:`|P(Y \le Q(a)) - a| \le E[b]` for every level a, b taken at its
    greatest over the knots and over which row is the new one. With equal weights it
    is the bound of `ConformalRecalibration`. With weights v in place of w, both of
    mean 1 under P, coverage is off by up to :math:`\tfrac12 E_P|v(X) - w(X)|` more
    (Lei & Candes, 2021). Probability is over calibration and new rows: coverage on
    average over Q.

    References
    ----------
    Tibshirani, Foygel Barber, Candes & Ramdas (2019), Conformal prediction under
    covariate shift. Lei & Candes (2021), Conformal inference of counterfactuals and
    individual treatment effects. Jonkers, Van Wallendael, Duchateau & Van Hoecke
    (2024), Conformal predictive systems under covariate shift.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.recalibration.weighted import WeightedConformal
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> y = rng.normal(scale=np.exp(0.5 * x))
    >>> said = PredictiveDistribution.from_scipy(stats.norm(0.0, np.ones(500)))
    >>> one = WeightedConformal(random_state=0).fit(said, y, np.exp(x))
    >>> wider = one.apply(said[:1], np.array([np.e]))
    >>> bool(wider.std()[0] > 1.4)
    True
    """

    def __init__(self, *, random_state: int | None = None):
        self.random_state = random_state

    def fit(
        self, law: Law | PredictiveDistribution, y: ArrayLike, weight: ArrayLike
    ) -> Self:
        """Place the knots.

        Parameters
        ----------
        law : Law or PredictiveDistribution
            Of n rows that the forecaster has not seen.
        y : array-like of shape (n,)
        weight : array-like of shape (n,)
            Not negative.

        Returns
        -------
        self
        """
        rows, target, _ = check_rows(law, y, None)
        weights = check_weights(weight, len(target), "weight")
        n = self.effective_rows_ = _check_effective(weights)
        held = HeldOut.of(rows, target, weights, self.random_state)
        own, upto = held.weight, np.cumsum(held.weight)
        self.total_ = float(upto[-1])
        # The weight that is to be expected of a new row.
        usual = float(own @ own) / self.total_
        middles = (upto - 0.5 * own + 0.5 * usual) / (self.total_ + usual)
        n_pieces = int(np.ceil(np.sqrt(n + 1.0)))
        steps = np.arange(1, n_pieces) / n_pieces
        outer = steps[0] * outer_shares(n / n_pieces)
        steps = np.concatenate([outer, steps, 1.0 - outer[::-1]])
        place = np.searchsorted(middles, steps - 1e-9).clip(1, len(own) - 1)
        place -= steps - middles[place - 1] < middles[place] - steps
        place = np.unique(place)
        first = run_starts(held.scores[place])
        self.knots_ = held.scores[place[first]]
        self.before_ = (upto - own)[place[first]]
        self.ends_ = upto[place[np.append(first[1:], len(place)) - 1]]
        # Rows that share a PIT value lie in one step.
        tied = held.ties * float(own.max()) / self.total_
        self.error_ = tied + held.reading_error(self._curve(usual))
        return self

    def apply(self, law: Forecast, weight: Float64Array) -> Forecast:
        """Return the forecasts with CDF G(F), each by a map of its own.

        Parameters
        ----------
        law : Law or PredictiveDistribution
            Of n rows.
        weight : ndarray of shape (n,)
            Of these rows.

        Returns
        -------
        Law or PredictiveDistribution
            What was given.
        """
        return correct(law, self.map_of(weight))

    def map_of(self, weight: Float64Array) -> LevelMap:
        """Return the maps of rows of such weights.

        Parameters
        ----------
        weight : ndarray of shape (n,)

        Returns
        -------
        LevelMap
            A curve for each row.
        """
        different, number = np.unique(weight, return_inverse=True)
        return LevelMap.by_row([self._curve(new) for new in different], number)

    def _curve(self, new: float) -> LevelMap:
        """Return the map of a row of such a weight."""
        levels = 0.5 * (self.before_ + self.ends_ + new) / (self.total_ + new)
        return curve_through(self.knots_, levels)

    def bound(self, weight: Float64Array) -> Float64Array:
        """Return how far coverage may be off by the steps between knots, b.

        Parameters
        ----------
        weight : ndarray of shape (n,)
            Of new rows.

        Returns
        -------
        ndarray of shape (n,)
        """
        new = weight[:, None]
        own = np.pad(self.ends_ - self.before_, 1)
        between = np.append(self.before_, self.total_) - np.append(0.0, self.ends_)
        edge = np.tile(np.maximum(own[:-1], own[1:]), (len(weight), 1))
        # At either end the new row itself is the neighbour.
        edge[:, [0, -1]] = np.maximum(edge[:, [0, -1]], new)
        mass = (between + 0.5 * (edge + new)).max(axis=1)
        return np.asarray(np.minimum(mass / (self.total_ + weight) + self.error_, 1.0))


def learn_weighted(
    method: str,
    law: Law | PredictiveDistribution,
    y: ArrayLike,
    weight: Float64Array,
    *,
    overlap: float = 1.0,
    seed: int | None = None,
    where: str = "",
) -> tuple[WeightedConformal | PitRecalibration, float]:
    """Return a correction for rows of another kind, and its effective rows.

    Parameters
    ----------
    method : {"conformal", "pit"}
    law : Law or PredictiveDistribution
        Of n rows that the forecaster has not seen.
    y : array-like of shape (n,)
    weight : ndarray of shape (n,)
    overlap : float
        Share of the new rows that weights can stand for.
    seed : int, optional
    where : str
        Which rows these are, for a refusal.

    Returns
    -------
    learned : WeightedConformal or PitRecalibration
    rows : float
    """
    rows = _check_effective(weight, overlap, where)
    if method == "conformal":
        return WeightedConformal(random_state=seed).fit(law, y, weight), rows
    # As many rows as they say: the strength of the pull counts in rows.
    counted = weight * (rows / weight.sum())
    return PitRecalibration(random_state=seed).fit(law, y, counted), rows


def _check_effective(
    weights: Float64Array, overlap: float = 1.0, where: str = ""
) -> float:
    """Return the effective number of rows; refuse too few.

    Parameters
    ----------
    weights : ndarray of shape (n,)
    overlap : float
        Share of the new rows that weights can stand for.
    where : str
        Which rows these are, for the refusal.

    Returns
    -------
    float
    """
    found = overlap * effective_rows(weights)
    if found < _LEAST_EFFECTIVE:
        msg = (
            f"`X_cal` must have at least {_LEAST_EFFECTIVE:g} effective rows{where}, "
            f"got {found:.1f} of {len(weights)}: their weights are on a few rows, as "
            "new rows are unlike most of them."
        )
        raise ValueError(msg)
    return found
