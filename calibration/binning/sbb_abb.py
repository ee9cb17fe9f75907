"""Selection among and averaging over all binnings of the scores (SBB and ABB)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibration._validation import (
    check_choice,
    check_number,
    is_auto,
)
from calibration.base.calibrators import MapCalibrator, Scale, ScoreCalibrator
from calibration.binning.beta_prior import BIN_SCORES, AveragedBinsCalibrator, BinScore
from calibration.binning.law_of_binnings import law_of_binnings
from calibration.maps import CalibrationMap
from calibration.summary import ScoreSummary


class _AllBinningsCalibrator(ScoreCalibrator):
    """Base of what is learned from the law over all binnings: its prior."""

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


class SBBCalibrator(_AllBinningsCalibrator, MapCalibrator):
    r"""Selection over Bayesian binnings: the most probable of all binnings.

    Parameters
    ----------
    score : {"k2", "bdeu"}
        Beta prior of a bin's event rate, worth two rows. "k2" is uniform. "bdeu" has
        the middle of the bin as its mean, held within [.005, .995]. With
        ``scale="real"`` a middle is no probability, and the mean is the base rate.
    rate : float or "auto"
        Number of cuts expected in advance over the range of scores (lambda in eq. 3.7).
        "auto" takes the one of 1/2, 1, 2, ..., 1024 under which the labels are most
        probable, summed over all binnings.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        The steps, with class weights; bins end midway between scores. A step is the
        posterior mean :math:`(n_1 + 2 p_b) / (n + 2)` of the event rate.
    lambda_ : float
        The rate used. A constant fit has none.

    Notes
    -----
    A binning is cut between two neighbouring distinct scores with probability :math:`1
    - \exp(-\lambda d / D)`, where d is their distance and D the range. Its bins have
    the marginal likelihood of eq. 3.6 or 3.12. Dynamic programming finds the best of
    all :math:`2^{m - 1}` binnings of m distinct scores in O(m^2). Beyond 4096 scores,
    it finds the best of those whose cuts lie on an adaptive grid of 2048 cells.

    `predict_interval` treats the chosen bin as if it had been given.

    References
    ----------
    Pakdaman Naeini, Cooper & Hauskrecht (2015), Binary classifier calibration: a
    Bayesian non-parametric approach. Pakdaman Naeini (2016), Obtaining accurate
    probabilities using classifier calibration, section 3.2.1.

    Examples
    --------
    >>> from calibration.binning.sbb_abb import SBBCalibrator
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
        # One binning needs one rate: the most probable.
        self.lambda_ = float(rates[np.argmax(shares)])
        starts = law.best(self.lambda_)
        edges = law.cells.edges[starts[1:] - 1]
        self.map_ = CalibrationMap.step(
            np.concatenate([summary.scores[:1], edges]),
            law.bin_rates(starts),
            *law.bin_weights(starts),
        )


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
        Posterior mean of the event rate at every distinct score, linear between.
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
    >>> from calibration.binning.sbb_abb import ABBCalibrator
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
        # An average over rates has their mean to report.
        self.lambda_ = float(rates @ shares)
        moments = law.posterior(rates, shares)[:2]
        self._set_moments(CalibrationMap.linear, law.cells.scores, moments, summary.n)
