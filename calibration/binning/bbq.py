"""Bayesian binning into quantiles (BBQ)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from calibration._kernels.binnings import (
    average_quantile_bins,
    quantile_starts,
    running_sums,
    score_quantile_bins,
)
from calibration._validation import check_choice, check_number
from calibration.base.calibrators import Scale
from calibration.base.information import criterion_logs
from calibration.binning.beta_prior import (
    BIN_SCORES,
    AveragedBinsCalibrator,
    BinScore,
    edge_rates,
)
from calibration.maps import CalibrationMap, block_starts, edges_between
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array, Int64Array

# A bin needs room for as many rows on average.
_LEAST_ROWS = 5
# Bins that are tried of more than 1e8 rows: time is the square of their number.
_MOST_BINS = 5000


class BBQCalibrator(AveragedBinsCalibrator):
    r"""Bayesian binning into quantiles: an average of equal-frequency binnings.

    Parameters
    ----------
    score : {"bdeu", "k2"}
        Beta prior of a bin's event rate, worth two rows. "bdeu" has the middle of the
        bin as its mean, held within [.005, .995]. With ``scale="real"`` a middle is no
        probability, and the mean is the base rate. "k2" is uniform.
    spread : float
        C. Numbers of bins from n^(1/3) / C to C n^(1/3) are tried, but at least 1 and
        at most n / 5 and 5000, rounded outwards.
    elbow : float
        The alpha of the elbow rule, which drops improbable binnings. inf keeps only the
        best.
    criterion : {"evidence", "bic", "aicc"}
        The weight of a binning: its marginal likelihood, or :math:`e^{-BIC/2}` or
        :math:`e^{-AICc/2}` at the bins' event rates, with a parameter per bin.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        The weighted mean of the binnings, as steps.
    variance_ : CalibrationMap
        Posterior variance of the event rate, in the same form.
    n_bins_ : ndarray of shape (k,)
        Numbers of bins that were asked for, for the binnings kept, best first. A
        constant fit has none.
    weights_ : ndarray of shape (k,)
        Their weights in the average, which add up to one.

    Notes
    -----
    All B bins but the last should hold floor(n / B) rows, as in the program of the
    method's authors. Ties are never split, and bins end midway between scores. All
    binnings are equally likely in advance, and weigh by the probability S of the
    labels. If two numbers of bins give the same binning, it counts once. S is
    normalised to maximum 1 and sorted downwards. The first k are averaged, where k is
    the least number with :math:`S_k - S_{k+1} \le \alpha \operatorname{var}(S)`. A tie
    with the best is kept. A bin predicts the posterior mean :math:`(n_1 + 2 p_b) / (n +
    2)` of its event rate.

    References
    ----------
    Pakdaman Naeini, Cooper & Hauskrecht (2015), Obtaining well calibrated
    probabilities using Bayesian binning. Pakdaman Naeini (2016), Obtaining accurate
    probabilities using classifier calibration, section 3.2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.binning.bbq import BBQCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=5000)
    >>> y = rng.uniform(size=5000) < scores**2
    >>> bbq = BBQCalibrator().fit(scores, y)
    >>> np.abs(bbq.predict([0.2, 0.5, 0.8]) - [0.04, 0.25, 0.64]).max() < 0.1
    np.True_
    """

    n_bins_: Int64Array
    weights_: Float64Array

    def __init__(
        self,
        score: BinScore = "bdeu",
        *,
        spread: float = 10.0,
        elbow: float = 0.001,
        criterion: Literal["evidence", "bic", "aicc"] = "evidence",
        scale: Scale = "probability",
    ):
        self.score = score
        self.spread = spread
        self.elbow = elbow
        self.criterion = criterion
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.score, "score", BIN_SCORES)
        check_number(self.spread, "spread", 1.0)
        check_number(self.elbow, "elbow", 0.0, open_high=False)
        check_choice(self.criterion, "criterion", ("evidence", "bic", "aicc"))

    def _fit(self, summary: ScoreSummary) -> None:
        scores, n, base_rate = summary.scores, summary.n, summary.base_rate
        # Between all neighbours: any binning's edges are some of these.
        edges = edges_between(scores[:-1], scores[1:])
        sums = running_sums(summary.weight0, summary.weight1)
        rates = edge_rates(edges, self.score, self.scale, base_rate)
        numbers = self._numbers(n)
        if self.criterion == "evidence":
            log_scores = score_quantile_bins(*sums, rates, numbers)
        else:
            fits = np.array([_fit_bins(sums, number) for number in numbers])
            log_scores = criterion_logs(
                self.criterion, fits[:, 0], fits[:, 1].astype(np.int64), n
            )
        distinct = _distinct(sums, numbers, log_scores)
        numbers, log_scores = numbers[distinct], log_scores[distinct]
        # The greatest is 1, as the elbow rule has it, and none overflows.
        relative = np.exp(log_scores - log_scores.max())
        kept = select_by_elbow(relative, self.elbow)
        self.n_bins_ = numbers[kept]
        self.weights_ = relative[kept] / relative[kept].sum()
        starts, mean, square = average_quantile_bins(
            *sums, rates, self.n_bins_, self.weights_
        )
        knots = block_starts(scores, starts)
        self._set_moments(CalibrationMap.step, knots, (mean, square), n)

    def _numbers(self, n: float) -> Int64Array:
        """Return the numbers of bins to try."""
        # n^(1/3) bins: the rate at which the bias and the noise of a histogram balance.
        # Without its last digits, which differ from machine to machine.
        root = round(float(np.cbrt(n)), 9)
        wanted = math.ceil(min(root * self.spread, _MOST_BINS))
        most = max(1, min(math.ceil(n / _LEAST_ROWS), wanted))
        least = min(max(1, math.floor(root / self.spread)), most)
        return np.arange(least, most + 1)


def _fit_bins(
    sums: tuple[Float64Array, Float64Array], n_bins: int
) -> tuple[float, int]:
    """Return the log-likelihood at the event rates of a binning, and its bins."""
    starts = quantile_starts(*sums, n_bins)
    edges = np.append(starts, len(sums[0]) - 1)
    n0, n1 = (np.maximum(np.diff(total[edges]), 0.0) for total in sums)
    rate = n1 / (n0 + n1)
    return float((xlogy(n1, rate) + xlogy(n0, 1.0 - rate)).sum()), len(starts)


def select_by_elbow(scores: Float64Array, elbow: float) -> NDArray[np.intp]:
    """Return the places of the best scores, up to the first small drop.

    Parameters
    ----------
    scores : ndarray of shape (k,)
        Non-negative scores, the greatest 1.
    elbow : float
        A drop is small if it is at most `elbow` times the variance of the scores.

    Returns
    -------
    ndarray of shape (k_kept,)
        Best first; with k_kept = min{k : S_k - S_(k+1) <= elbow * var(S)}, where k
        is at least the number of scores that tie with the best.
    """
    order = np.argsort(-scores, kind="stable")
    drops = -np.diff(scores[order])
    ties = int((scores == scores[order[0]]).sum())
    # Start from the last tie: a drop of 0 among the best is no elbow.
    most = elbow * np.var(scores) if elbow < np.inf else np.inf
    small = np.flatnonzero(drops[ties - 1 :] <= most)
    n_kept = ties + int(small[0]) if len(small) else len(scores)
    return order[:n_kept]


def _distinct(
    sums: tuple[Float64Array, Float64Array], numbers: Int64Array, scores: Float64Array
) -> Int64Array:
    """Return the places of the first of every set of equal binnings.

    Equal binnings have equal scores, so only those are compared cell by cell.
    """
    _, value, count = np.unique(scores, return_inverse=True, return_counts=True)
    seen: dict[int, list[Int64Array]] = {}
    kept = []
    for place, number in enumerate(numbers):
        if count[value[place]] > 1:
            starts = quantile_starts(*sums, number)
            others = seen.setdefault(int(value[place]), [])
            if any(np.array_equal(starts, other) for other in others):
                continue
            others.append(starts)
        kept.append(place)
    return np.array(kept)
