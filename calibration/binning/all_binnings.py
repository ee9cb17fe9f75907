"""The law over all binnings, selection among them, and their mean (SBB and ABB)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibration._kernels.binnings import (
    all_bin_evidences,
    best_binning,
    bin_moments,
    count_bins,
    forward_sums,
    posterior_sums,
)
from calibration._kernels.cells import group_means, group_starts
from calibration._validation import check_choice, check_number, is_auto
from calibration.base.calibrators import BlockCalibrator, Scale, ScoreCalibrator
from calibration.binning.bbq import (
    BIN_SCORES,
    AveragedBinsCalibrator,
    BinScore,
    edge_rates,
)
from calibration.maps import CalibrationMap, edges_between
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array, Int64Array

# Up to this many cells the law is exact. More cells are grouped on a grid of at most so
# many.
EXACT_CELLS = 4096
GRID_CELLS = 2048
# The cells of the grid are placed after a look at a grid that is this much coarser.
_COARSER = 4
# Rates that `rate="auto"` weighs. All are equally likely beforehand.
_RATES: Float64Array = np.exp2(np.arange(-1.0, 11.0))


@dataclass(frozen=True, eq=False)
class BinCells:
    """The cells of which bins are made: a summary's own, or groups of neighbours.

    Parameters
    ----------
    scores : ndarray of shape (m,)
        Mean score of each cell.
    edges : ndarray of shape (m - 1,)
        Where a bin may end. Each edge is midway between the scores on either side.
    position : ndarray of shape (m,)
        Scores mapped to [0, 1]. The first cell is at 0 and the last at 1, so that the
        prior's distances add up to the range of the scores on any grid.
    sum0, sum1 : ndarrays of shape (m + 1,)
        Weight of each class below every edge.
    """

    scores: Float64Array
    edges: Float64Array
    position: Float64Array
    sum0: Float64Array
    sum1: Float64Array

    @classmethod
    def group(cls, summary: ScoreSummary, starts: Int64Array) -> BinCells:
        """Return the cells that start at some of a summary's cells."""
        scores = summary.scores
        last = np.append(starts[1:], summary.n_cells) - 1
        means = group_means(scores, summary.weight, starts)
        means = np.clip(means, scores[starts], scores[last])
        return cls(
            means,
            edges_between(scores[last[:-1]], scores[starts[1:]]),
            _position(np.concatenate([scores[:1], means[1:-1], scores[-1:]])),
            np.concatenate([[0.0], np.cumsum(summary.weight0)[last]]),
            np.concatenate([[0.0], np.cumsum(summary.weight1)[last]]),
        )


class AllBinnings:
    """The law over all 2^(m - 1) binnings of m cells, given their labels.

    Parameters
    ----------
    cells : BinCells
    score : {"k2", "bdeu"}
    scale : {"probability", "logit", "real"}
    """

    def __init__(self, cells: BinCells, score: BinScore, scale: Scale):
        # Real scores have no middle on the axis of probabilities. See `edge_rates`.
        base_rate = cells.sum1[-1] / (cells.sum0[-1] + cells.sum1[-1])
        self.cells = cells
        self.edge_rates = edge_rates(cells.edges, score, scale, float(base_rate))
        self._evidences = all_bin_evidences(cells.sum0, cells.sum1, self.edge_rates)

    def weigh_rates(
        self, rate: float | Literal["auto"]
    ) -> tuple[Float64Array, Float64Array]:
        """Return rates and the posterior probability of each: 1 for a given rate."""
        if rate != "auto":
            return np.array([float(rate)]), np.ones(1)
        priors = (self._log_prior(value) for value in _RATES)
        # The log probability of the labels under each rate, summed over all binnings.
        evidence = np.array([forward_sums(self._evidences, *one)[-1] for one in priors])
        # Bayes' rule with a flat prior over the rates.
        share = np.exp(evidence - evidence.max())
        return _RATES.copy(), share / share.sum()

    def posterior(
        self, rates: Float64Array, shares: Float64Array
    ) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return the moments of every cell's event rate, and where cuts lie.

        Parameters
        ----------
        rates, shares : ndarrays of shape (k,)
            Rates of cuts, and the probability of each rate.

        Returns
        -------
        mean, square : ndarrays of shape (m,)
            Posterior means of the event rate and of its square.
        cut : ndarray of shape (m + 1,)
            Posterior probability of a cut at every edge.
        """
        cells = self.cells
        m = len(cells.scores)
        mean, square, cut = np.zeros(m), np.zeros(m), np.zeros(m + 1)
        for rate, share in zip(rates, shares, strict=True):
            # A rate with less probability changes nothing in double precision.
            if share < 1e-18:
                continue
            prior = self._log_prior(rate)
            forward = forward_sums(self._evidences, *prior)
            sums = (cells.sum0, cells.sum1, self.edge_rates)
            moments = posterior_sums(self._evidences, *prior, forward, *sums)
            mean += share * moments[0]
            square += share * moments[1]
            cut += share * moments[2]
        return mean, square, cut

    def best(self, rate: float) -> Int64Array:
        """Return the first cell of every bin of the most probable binning."""
        return best_binning(self._evidences, *self._log_prior(rate))

    def _log_prior(self, rate: float) -> tuple[Float64Array, Float64Array]:
        """Split the log prior of a bin (eqs. 3.7 and 3.8) over its first and last cell.

        A gap of width d, as a share of the range, is cut with probability
        1 - exp(-rate d). The gaps within a bin are not cut. They add up to the distance
        between its ends.
        """
        position = self.cells.position
        # A gap may be cut even if it is too small for a float. log 0 would forbid it.
        gaps = np.maximum(rate * np.diff(position), np.finfo(np.float64).tiny)
        # The first cell opens a bin, and needs no cut for that. -expm1 keeps the digits
        # of small gaps.
        cut = np.concatenate([[0.0], np.log(-np.expm1(-gaps))])
        return cut + rate * position, -rate * position


def law_of_binnings(
    summary: ScoreSummary,
    score: BinScore,
    scale: Scale,
    rate: float | Literal["auto"],
    *,
    exact: int = EXACT_CELLS,
    grid: int = GRID_CELLS,
) -> AllBinnings:
    """Return the law over all binnings, exact or on an adaptive grid of cells.

    One half of the grid's cells is dealt out equally by weight and by score. A law on a
    coarser grid, dealt out in this way, says where cuts are likely. The other half goes
    there.

    Parameters
    ----------
    summary : ScoreSummary
    score : {"k2", "bdeu"}
    scale : {"probability", "logit", "real"}
    rate : float or "auto"
    exact : int
        Greatest number of cells that are all kept.
    grid : int
        Greatest number of cells of the grid.

    Returns
    -------
    AllBinnings
    """
    if summary.n_cells <= exact:
        starts = np.arange(summary.n_cells)
        return AllBinnings(BinCells.group(summary, starts), score, scale)
    # A coarse first pass says where cuts are likely. The second pass spends cells
    # there.
    measure = _spread_evenly(summary)
    starts = group_starts(measure, grid // _COARSER)
    coarse = AllBinnings(BinCells.group(summary, starts), score, scale)
    cut = coarse.posterior(*coarse.weigh_rates(rate))[2]
    # A cut between two groups may belong anywhere in them.
    inner = np.concatenate([[0.0], cut[1:-1], [0.0]])
    near = inner[:-1] + inner[1:]
    if near.sum() > 0.0:
        density = near / near.sum() / np.add.reduceat(measure, starts)
        sizes = np.diff(starts, append=summary.n_cells)
        measure = measure * (1.0 + np.repeat(density, sizes))
    starts = group_starts(measure, grid)
    return AllBinnings(BinCells.group(summary, starts), score, scale)


def _spread_evenly(summary: ScoreSummary) -> Float64Array:
    """Return the mean of each cell's shares in weight and in the range of scores."""
    gaps = np.diff(_position(summary.scores))
    width = np.concatenate([gaps, [0.0]]) + np.concatenate([[0.0], gaps])
    return np.asarray(0.5 * summary.weight / summary.n + 0.25 * width)


def _position(scores: Float64Array) -> Float64Array:
    """Return scores as shares of their range, halved first so that it is finite."""
    half = 0.5 * scores
    return np.asarray((half - half[0]) / (half[-1] - half[0]))


class _AllBinningsCalibrator(ScoreCalibrator):
    """Base of calibrators that are learned from the law over all binnings."""

    lambda_: float

    def __init__(
        self,
        score: BinScore = "k2",
        rate: float | Literal["auto"] = 2.0,
        *,
        scale: Scale = "probability",
    ):
        self.score = score
        self.rate = rate
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.score, "score", BIN_SCORES)
        if not is_auto(self.rate):
            check_number(self.rate, "rate", 0.0, open_low=True)


class SBBCalibrator(_AllBinningsCalibrator, BlockCalibrator):
    r"""Selection over Bayesian binnings: the most probable of all binnings.

    Parameters
    ----------
    score : {"k2", "bdeu"}
        Beta prior of a bin's event rate, worth two rows. "k2" is uniform. "bdeu" has
        the middle of the bin as its mean, held within [.005, .995]. With
        ``scale="real"`` a middle is no probability, and the mean is the base rate.
    rate : float or "auto"
        Number of cuts expected in advance over the range of scores (lambda in eq. 3.7).
        "auto" takes one of 1/2, 1, 2, ..., 1024. Under this rate the labels are most
        probable, summed over all binnings.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        The steps, with class weights. Bins end midway between scores. A step is the
        posterior mean :math:`(n_1 + 2 p_b) / (n + 2)` of the event rate.
    lambda_ : float
        The rate used. A constant fit has none.

    Notes
    -----
    A binning is cut between two neighbouring distinct scores with probability
    :math:`1 - \exp(-\lambda d / D)`, where d is their distance and D the range. Its
    bins have the marginal likelihood of eq. 3.6 or 3.12. Dynamic programming finds the
    best of all :math:`2^{m - 1}` binnings of m distinct scores in O(m^2). Beyond 4096
    scores, it finds the best of those binnings whose cuts lie on an adaptive grid of
    2048 cells.

    `predict_interval` treats the chosen bin as if it had been given.

    References
    ----------
    Pakdaman Naeini, Cooper & Hauskrecht (2015), Binary classifier calibration: a
    Bayesian non-parametric approach. Pakdaman Naeini (2016), Obtaining accurate
    probabilities using classifier calibration, section 3.2.1.

    Examples
    --------
    >>> from calibration.binning.all_binnings import SBBCalibrator
    >>> scores = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> sbb = SBBCalibrator().fit(scores, [0, 0, 0, 0, 1, 1, 1, 1])
    >>> sbb.map_.knots
    array([0.1, 0.5])
    >>> sbb.predict([0.2, 0.7]).round(3)
    array([0.167, 0.833])
    """

    def _fit(self, summary: ScoreSummary) -> None:
        law = law_of_binnings(summary, self.score, self.scale, self.rate)
        rates, shares = law.weigh_rates(self.rate)
        # One binning needs one rate. Take the most probable.
        self.lambda_ = float(rates[np.argmax(shares)])
        starts = law.best(self.lambda_)
        cells, ends = law.cells, np.append(starts[1:], len(law.cells.scores))
        knots = np.concatenate([summary.scores[:1], cells.edges[starts[1:] - 1]])
        bins = count_bins(cells.sum0, cells.sum1, law.edge_rates, starts, ends)
        self.map_ = CalibrationMap.step(knots, bin_moments(*bins)[0], *bins[:2])


class ABBCalibrator(_AllBinningsCalibrator, AveragedBinsCalibrator):
    r"""Averaging over Bayesian binnings: the mean of all binnings.

    Parameters
    ----------
    score : {"k2", "bdeu"}
        Beta prior of a bin's event rate. See `SBBCalibrator`.
    rate : float or "auto"
        Number of cuts expected in advance. See `SBBCalibrator`. Here "auto" averages
        over the rates, by the probability of the labels under each.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        Posterior mean of the event rate at every distinct score. It is linear between
        scores.
    variance_ : CalibrationMap
        Posterior variance of the event rate, in the same form.
    lambda_ : float
        The rate of cuts. With "auto" it is the posterior mean. A constant fit has none.

    Notes
    -----
    The law over binnings is that of `SBBCalibrator`. Forward sums in log space give the
    probability of the labels. A walk back from the last score gives the probability of
    every bin, and so the posterior mean at all scores at once, in O(m^2). (The thesis'
    eq. 3.11 costs as much for one score.) Beyond 4096 distinct scores, the average is
    over binnings whose cuts lie on an adaptive grid of 2048 cells.

    References
    ----------
    Pakdaman Naeini, Cooper & Hauskrecht (2015), Binary classifier calibration: a
    Bayesian non-parametric approach. Pakdaman Naeini (2016), Obtaining accurate
    probabilities using classifier calibration, section 3.2.1.

    Examples
    --------
    >>> from calibration.binning.all_binnings import ABBCalibrator
    >>> scores = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> abb = ABBCalibrator().fit(scores, [0, 0, 0, 0, 1, 1, 1, 1])
    >>> abb.predict([0.2, 0.5, 0.7]).round(2)
    array([0.21, 0.5 , 0.78])
    >>> abb.predict_interval([0.7]).round(2)
    array([[0.41, 0.99]])
    """

    def _fit(self, summary: ScoreSummary) -> None:
        law = law_of_binnings(summary, self.score, self.scale, self.rate)
        rates, shares = law.weigh_rates(self.rate)
        # Several rates were averaged. Report their mean.
        self.lambda_ = float(rates @ shares)
        mean, square, _ = law.posterior(rates, shares)
        knots = law.cells.scores
        self._set_moments(CalibrationMap.linear, knots, mean, square, summary.n)
