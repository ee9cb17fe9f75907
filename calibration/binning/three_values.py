"""Rueping's three values: below, between and above the margins."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from calibration._validation import check_number
from calibration.base.calibrators import MapCalibrator, Scale
from calibration.maps import CalibrationMap
from calibration.summary import ScoreSummary


class ThreeValueCalibrator(MapCalibrator):
    r"""One event rate below a support vector machine's margins, one between, one above.

    Parameters
    ----------
    margin : float
        The regions are scores <= -margin, between, and >= margin. On the probability
        scale the margin is for the score's log-odds.
    smoothing : float
        Rows at the base rate that are added to every region. 0 gives plain event
        rates, which may be 0 or 1.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        The three steps, with class weights. A region without rows joins the one
        below it (the lowest the one above).

    Notes
    -----
    The hinge loss max(0, 1 - y f), y = -+1, is least at f = sign(2 P(y = 1) - 1). So a
    machine learns only on which side of 1/2 the probability lies. How far a score lies
    beyond the margin carries no reliable information. The rate of each region can be
    estimated: rows that the machine places beyond a margin, and rows that it leaves
    undecided.

    References
    ----------
    Rueping (2004), A simple method for estimating conditional probabilities for
    SVMs. The three regions and their rates are derived here from the hinge loss, as
    the report was not at hand.

    Examples
    --------
    >>> from calibration.binning.three_values import ThreeValueCalibrator
    >>> scores, y = [-2.0, -1.0, -0.5, 0.2, 1.0, 3.0], [0, 0, 1, 0, 0, 1]
    >>> three = ThreeValueCalibrator(scale="real").fit(scores, y)
    >>> three.predict([-9.0, -1.0, 0.9, 1.0])
    array([0. , 0. , 0.5, 0.5])
    """

    def __init__(
        self,
        margin: float = 1.0,
        *,
        smoothing: float = 0.0,
        scale: Scale = "probability",
    ):
        self.margin = margin
        self.smoothing = smoothing
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self.margin, "margin", 0.0, open_low=True)
        check_number(self.smoothing, "smoothing", 0.0)

    def _fit(self, summary: ScoreSummary) -> None:
        low, high = -float(self.margin), float(self.margin)
        if self.scale == "probability":
            low, high = float(expit(low)), float(expit(high))
        # A step holds its left end, so that of the middle lies just above `low`.
        starts = np.array([low, np.nextafter(low, np.inf), high])
        region = np.searchsorted(starts[1:], summary.scores, side="right")
        # A region without rows has no rate; leaving it out gives it to the one below.
        held, first = np.unique(region, return_index=True)
        weight0 = np.add.reduceat(summary.weight0, first)
        weight1 = np.add.reduceat(summary.weight1, first)
        ones = weight1 + self.smoothing * summary.base_rate
        rate = ones / (weight0 + weight1 + self.smoothing)
        self.map_ = CalibrationMap.step(starts[held], rate, weight0, weight1)
