"""The Beta prior of a bin's event rate, and the base of averages of such bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, expit

from calibration._validation import check_level
from calibration.base.calibrators import Scale, ScoreCalibrator, constant_map
from calibration.maps import CalibrationMap
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

BinScore: TypeAlias = Literal["k2", "bdeu"]

BIN_SCORES: tuple[str, ...] = ("k2", "bdeu")


def edge_rates(
    edges: Float64Array, score: BinScore, scale: Scale, base_rate: float
) -> Float64Array:
    """Return the rates at the edges of cells whose mean over a bin is its prior mean.

    With the score "k2" that mean is 1/2. With "bdeu" it is the middle of the bin on
    the axis of probabilities, which end at 0 and 1; real scores have no such middle
    and take the base rate.

    Parameters
    ----------
    edges : ndarray of shape (m - 1,)
        Scores between neighbouring cells.
    score : {"k2", "bdeu"}
    scale : {"probability", "logit", "real"}
    base_rate : float

    Returns
    -------
    ndarray of shape (m + 1,)
    """
    if score == "k2":
        return np.full(len(edges) + 2, 0.5)
    if scale == "real":
        return np.full(len(edges) + 2, base_rate)
    inner = expit(edges) if scale == "logit" else edges
    return np.concatenate([[0.0], inner, [1.0]])


def settle_moments(
    mean: Float64Array, square: Float64Array, n: float
) -> tuple[Float64Array, Float64Array]:
    """Return mean and variance of averages of bins' rates, rid of rounding.

    Every bin is a Beta law of at most n + 2 counts, with at least .01 of either class,
    so mixtures of them keep to the bounds imposed here.

    Parameters
    ----------
    mean, square : ndarrays of shape (k,)
        Posterior means of the rate and of its square.
    n : float
        Weight of all rows.

    Returns
    -------
    mean, variance : ndarrays of shape (k,)
    """
    least = 0.01 / (n + 2.0)
    mean = np.clip(mean, least, 1.0 - least)
    # The variance of a 0/1 variable of that mean, which no law on [0, 1] exceeds.
    most = mean * (1.0 - mean)
    return mean, np.clip(square - mean**2, most / (n + 3.0), most)


class AveragedBinsCalibrator(ScoreCalibrator):
    """Base of calibrators that average binnings into a mean and a variance."""

    map_: CalibrationMap
    variance_: CalibrationMap

    def predict_interval(
        self, scores: ArrayLike, coverage: float = 0.9
    ) -> Float64Array:
        """Return a posterior interval for the event rate at each score.

        The posterior of the rate is a mixture over binnings. It mixes the Beta laws of
        the bins that hold the score. The interval is the equal-tailed interval of one
        Beta law that has the mixture's mean (`map_`) and variance (`variance_`). So it
        allows for the doubt about the binning, and for the doubt within a bin. If
        binnings disagree sharply, its share of the mixture is only near `coverage`. The
        model assumes steps: it covers a smooth slope less often than it says (in
        simulation about 80 % at a `coverage` of 90 %, and steps 91 to 99 %). Between
        the knots of a linear map the bounds are linear, as the map is.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
        coverage : float
            Posterior probability of the interval, in (0, 1).

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper bounds.
        """
        values = self._read_scores(scores)
        coverage = check_level(coverage, "coverage")
        mean = self.map_.at
        # The Beta law's a + b from its mean and variance: v = m (1 - m) / (a + b + 1).
        count = mean * (1.0 - mean) / self.variance_.at - 1.0
        shapes = mean * count, (1.0 - mean) * count
        tail = 0.5 * (1.0 - coverage)
        step = self.map_.kind == "step"
        make = CalibrationMap.step if step else CalibrationMap.linear
        bounds = np.array([betaincinv(*shapes, q) for q in (tail, 1.0 - tail)])
        return np.column_stack([make(self.map_.knots, b)(values) for b in bounds])

    def _set_moments(
        self,
        make: Callable[[Float64Array, Float64Array], CalibrationMap],
        knots: Float64Array,
        moments: tuple[Float64Array, Float64Array],
        n: float,
    ) -> None:
        """Keep the posterior mean of the rate and of its square as maps."""
        self.map_, self.variance_ = (
            make(knots, values) for values in settle_moments(*moments, n)
        )

    def _fit_constant(self, summary: ScoreSummary, constant: float) -> None:
        # The law Beta(n1 + 1, n0 + 1) of one bin under a uniform prior.
        variance = constant * (1.0 - constant) / (summary.n + 3.0)
        self.map_ = constant_map(summary, constant)
        self.variance_ = constant_map(summary, variance)

    def _predict(self, values: Float64Array) -> Float64Array:
        return self.map_(values)
