"""Histogram binning, and bounds on its error and on the AUC that it can lose."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibration._kernels.cells import group_starts
from calibration._validation import (
    check_choice,
    check_integer,
    check_level,
    check_number,
    check_span,
    is_auto,
)
from calibration.base.calibrators import BlockCalibrator, Scale
from calibration.maps import CalibrationMap, block_starts
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class HistogramCalibrator(BlockCalibrator):
    r"""Histogram binning: the event rate of the bin that a score falls in.

    Parameters
    ----------
    n_bins : int or "auto"
        Number of bins. "auto" takes n^(1/3), rounded. This order is optimal for a
        smooth map.
    binning : {"frequency", "width"}
        "frequency": bins of equal weight. Ties are never split, and edges lie midway
        between scores. "width": bins of equal width, closed on the left. They cover [0,
        1], or on the other scales the range seen in training.
    smoothing : float
        Rows at the base rate that are added to every bin. 0 gives plain event
        rates, which may be 0 or 1.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        The steps, with class weights. An equal-width bin without rows joins the bin
        below it. The first bins join the bin above.

    References
    ----------
    Zadrozny & Elkan (2001), Obtaining calibrated probability estimates from decision
    trees and naive Bayesian classifiers.

    Examples
    --------
    >>> from calibration import HistogramCalibrator
    >>> bins = HistogramCalibrator(2).fit([0.1, 0.3, 0.6, 0.9], [0, 1, 1, 1])
    >>> bins.predict([0.2, 0.7])
    array([0.5, 1. ])
    >>> bins.predict_interval([0.7], coverage=0.8).round(2)
    array([[0.55, 1.  ]])
    """

    def __init__(
        self,
        n_bins: int | Literal["auto"] = "auto",
        binning: Literal["frequency", "width"] = "frequency",
        *,
        smoothing: float = 0.0,
        scale: Scale = "probability",
    ):
        self.n_bins = n_bins
        self.binning = binning
        self.smoothing = smoothing
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_auto(self.n_bins):
            check_integer(self.n_bins, "n_bins", 1)
        check_choice(self.binning, "binning", ("frequency", "width"))
        check_number(self.smoothing, "smoothing", 0.0)

    def _fit(self, summary: ScoreSummary) -> None:
        # This rate balances the bias and the noise of a histogram.
        auto = max(1, round(summary.n ** (1.0 / 3.0)))
        n_bins = auto if self.n_bins == "auto" else self.n_bins
        if self.binning == "frequency":
            first = group_starts(summary.weight, n_bins)
            starts = block_starts(summary.scores, first)
        else:
            first, starts = self._equal_width(summary.scores, n_bins)
        weight0 = np.add.reduceat(summary.weight0, first)
        weight1 = np.add.reduceat(summary.weight1, first)
        pseudo = self.smoothing
        rate = (weight1 + pseudo * summary.base_rate) / (weight0 + weight1 + pseudo)
        self.map_ = CalibrationMap.step(starts, rate, weight0, weight1)

    def _equal_width(
        self, scores: Float64Array, n_bins: int
    ) -> tuple[NDArray[np.int64], Float64Array]:
        """Return the first cell and the left edge of every bin that holds a cell."""
        unit = self.scale == "probability"
        low, high = (0.0, 1.0) if unit else (scores[0], scores[-1])
        check_span(low, high)
        # Take k / B instead of k * (1 / B), so that the edge at 0.3 is the float 0.3.
        edges = low + (high - low) * (np.arange(n_bins) / n_bins)
        bins = np.searchsorted(edges, scores, side="right") - 1
        held, first = np.unique(np.maximum(bins, 0), return_index=True)
        return first.astype(np.int64), edges[held]


def mce_bound(n: float, n_bins: int, delta: float) -> float:
    r"""Return a bound that the maximum calibration error breaks with chance <= delta.

    Parameters
    ----------
    n : float
        Number of rows (sum of weights) that the calibrator was fitted on.
    n_bins : int
        Number of bins of equal frequency.
    delta : float
        Chance that the bound may fail, in (0, 1).

    Returns
    -------
    float
        The bound. Above 1 it says nothing.

    Notes
    -----
    Theorem 5.2.1: with probability at least :math:`1 - \delta`

    .. math:: MCE \le \sqrt{\frac{2 B \log(2 B / \delta)}{N}} .

    The bound is for the population's error, between the calibrated probabilities and
    the *known* event rates. An estimate on test data also has the noise of the test
    set, and may exceed it. Hoeffding's inequality in every bin and a union bound
    already give half of this. The rest is slack of the thesis's eq. 5.3.

    References
    ----------
    Pakdaman Naeini (2016), Obtaining accurate probabilities using classifier
    calibration, theorem 5.2.1.

    Examples
    --------
    >>> from calibration.binning.histogram import mce_bound
    >>> round(mce_bound(100_000, 10, delta=0.05), 3)
    0.035
    """
    n = check_number(n, "n", 0.0, open_low=True)
    n_bins = check_integer(n_bins, "n_bins", 1)
    delta = check_level(delta, "delta")
    return math.sqrt(2.0 * n_bins * math.log(2.0 * n_bins / delta) / n)


def ece_bound(n: float, n_bins: int) -> float:
    r"""Return a bound on the mean of the expected calibration error.

    Parameters
    ----------
    n : float
        Number of rows (sum of weights) that the calibrator was fitted on.
    n_bins : int
        Number of bins of equal frequency.

    Returns
    -------
    float
        Bound on the mean over training sets. Above 1 it says nothing.

    Notes
    -----
    Theorem 5.2.2 gives the rate :math:`C \sqrt{B / N}`. Its proof integrates the tails.
    With the tails of eq. 5.1 for each bin, this gives the constant:

    .. math::

        E|\hat\theta_b - \theta_b|
        \le \int_0^\infty 2 e^{-2 N t^2 / B} \, dt = \sqrt{\frac{\pi B}{2 N}} .

    The error of a union of bins is at most the mean of their errors (eq. 5.2), and ECE
    is a mean over bins. It is the population's error, against the known rates.

    References
    ----------
    Pakdaman Naeini (2016), Obtaining accurate probabilities using classifier
    calibration, theorem 5.2.2.

    Examples
    --------
    >>> from calibration.binning.histogram import ece_bound
    >>> round(ece_bound(100_000, 10), 4)
    0.0125
    """
    n = check_number(n, "n", 0.0, open_low=True)
    n_bins = check_integer(n_bins, "n_bins", 1)
    return math.sqrt(math.pi * n_bins / (2.0 * n))


def auc_loss_bound(n_bins: int) -> float:
    r"""Return the most AUC that binning can lose as n grows, 1 / (2 B).

    Parameters
    ----------
    n_bins : int
        Number of bins of equal frequency.

    Returns
    -------
    float
        Bound on AUC(scores) - AUC(calibrated).

    Notes
    -----
    Theorem 5.2.5. As N grows, the order of the bins becomes that of their true rates,
    which loses nothing. Pairs within a bin lose at most

    .. math::

        \frac{\sum_b \theta_b (1 - \theta_b)}
             {2 \sum_b \theta_b \sum_b (1 - \theta_b)} \le \frac{1}{2 B}

    by Chebyshev's sum inequality. If the rates of the bins are not in the order of the
    scores, calibration gains AUC.

    References
    ----------
    Pakdaman Naeini (2016), Obtaining accurate probabilities using classifier
    calibration, theorem 5.2.5.

    Examples
    --------
    >>> from calibration.binning.histogram import auc_loss_bound
    >>> auc_loss_bound(10)
    0.05
    """
    return 0.5 / check_integer(n_bins, "n_bins", 1)
