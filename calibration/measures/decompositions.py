"""What a score is made of: calibration, discrimination and uncertainty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration._kernels.pav import isotonic_rates
from calibration._validation import check_callable
from calibration.measures.calibration_errors import bin_starts, summarise_forecasts
from calibration.measures.scores import brier_score
from calibration.typing import Float64Array


@dataclass(frozen=True)
class BrierDecomposition:
    """Parts of a Brier score.

    brier = calibration + refinement + within_bin, and refinement = uncertainty -
    resolution.

    Parameters
    ----------
    calibration : float
        Mean squared difference of mean forecast and event rate of the bins.
    refinement : float
        Mean variance of the labels within bins.
    resolution : float
        Variance of the event rate between bins.
    uncertainty : float
        Variance of the labels.
    within_bin : float
        What unequal forecasts within a bin add; 0 where bins are distinct forecasts.
    brier : float
        The score itself.

    Examples
    --------
    >>> from calibration import brier_decomposition
    >>> parts = brier_decomposition([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0], n_bins=2)
    >>> parts.uncertainty - parts.resolution, parts.refinement
    (0.125, 0.125)
    >>> parts.calibration + parts.refinement + parts.within_bin, parts.brier
    (0.09375, 0.09375)
    """

    calibration: float
    refinement: float
    resolution: float
    uncertainty: float
    within_bin: float
    brier: float


@dataclass(frozen=True)
class CorpDecomposition:
    """Parts of a proper score: score = miscalibration - discrimination + uncertainty.

    Parameters
    ----------
    miscalibration : float
        What recalibration would gain (MCB), >= 0.
    discrimination : float
        What recalibrated forecasts gain on the base rate (DSC), >= 0.
    uncertainty : float
        Score of the base rate (UNC).
    score : float
        The score itself.

    Examples
    --------
    >>> from calibration import corp_decomposition
    >>> corp_decomposition([0, 0, 1, 1], [0.0, 0.5, 0.5, 0.5])
    CorpDecomposition(miscalibration=0.0208333..., discrimination=0.0833333...,
                      uncertainty=0.25, score=0.1875)
    """

    miscalibration: float
    discrimination: float
    uncertainty: float
    score: float


def brier_decomposition(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: int | None = None,
) -> BrierDecomposition:
    r"""Split the Brier score into calibration and refinement.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1.
    y_prob : array-like of shape (n,)
        Forecast probabilities of class 1.
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions.
    n_bins : int, optional
        Bins of about equal weight, ties never split; default one bin per distinct
        forecast.

    Returns
    -------
    BrierDecomposition
        The parts and the score.

    Notes
    -----
    With :math:`\pi_b` the share, :math:`e_b` the mean forecast and :math:`o_b` the
    event rate of bin b, and o that of all rows,

    .. math::
        BS = \underbrace{\sum_b \pi_b (e_b - o_b)^2}_{calibration}
        + \underbrace{\sum_b \pi_b o_b (1 - o_b)}_{refinement} + within, \qquad
        refinement = \underbrace{o (1 - o)}_{uncertainty}
        - \underbrace{\sum_b \pi_b (o_b - o)^2}_{resolution}.

    Within a bin, the variance of the forecasts less twice their covariance with the
    labels remains.

    References
    ----------
    Murphy (1973), A new vector partition of the probability score. DeGroot &
    Fienberg (1983), The comparison and evaluation of forecasters. Stephenson, Coelho
    & Jolliffe (2008), Two extra components in the Brier score decomposition.

    Examples
    --------
    >>> from calibration import brier_decomposition
    >>> parts = brier_decomposition([0, 0, 1, 1, 1], [0.4, 0.4, 0.4, 0.9, 0.9])
    >>> round(parts.calibration, 4), round(parts.refinement, 4), round(parts.brier, 4)
    (0.0067, 0.1333, 0.14)
    """
    summary = summarise_forecasts(y_true, y_prob, sample_weight)
    if n_bins is None:
        starts = np.arange(summary.n_cells)
    else:
        starts = bin_starts(summary, n_bins, "frequency")
    weight = np.add.reduceat(summary.weight, starts)
    # Sums of weights and not of shares, which may vanish beside a great weight.
    rate = np.add.reduceat(summary.weight1, starts) / weight
    # Mean forecasts by way of deviations from the bin's first: one forecast alone is
    # its mean to the last digit.
    sizes = np.diff(starts, append=summary.n_cells)
    first = summary.scores[starts]
    ahead = summary.scores - np.repeat(first, sizes)
    offset = np.add.reduceat(summary.weight * ahead, starts) / weight
    forecast = first + offset
    ahead = ahead - np.repeat(offset, sizes)
    # Within-bin terms: variance of the forecasts less twice their covariance with
    # labels.
    event = summary.weight1 / summary.weight - np.repeat(rate, sizes)
    share, binned = summary.weight / summary.n, weight / summary.n
    return BrierDecomposition(
        calibration=float((binned * (forecast - rate) ** 2).sum()),
        refinement=float((binned * rate * (1.0 - rate)).sum()),
        resolution=float((binned * (rate - summary.base_rate) ** 2).sum()),
        uncertainty=summary.base_rate * (1.0 - summary.base_rate),
        within_bin=float((share * ahead * (ahead - 2.0 * event)).sum()),
        brier=brier_score(y_true, y_prob, sample_weight=sample_weight),
    )


def corp_decomposition(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    score: Callable[..., float] = brier_score,
) -> CorpDecomposition:
    r"""Split a proper score by recalibrating the forecasts (CORP).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1.
    y_prob : array-like of shape (n,)
        Forecast probabilities of class 1.
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions.
    score : callable
        A proper score `score(y_true, y_prob, *, sample_weight)` such as
        `brier_score`, `log_loss` or `spherical_score`; bind further arguments with
        `functools.partial`. For a score that is not proper the parts still add up
        but may be negative.

    Returns
    -------
    CorpDecomposition
        The parts and the score.

    Notes
    -----
    With S(q) the mean score of forecasts q, :math:`\hat p` the isotonic regression
    of the labels on the forecasts (PAV) and o the base rate,
    :math:`MCB = S(p) - S(\hat p)`, :math:`DSC = S(o) - S(\hat p)`,
    :math:`UNC = S(o)`. Unlike binned parts these need no choice of bins. An
    infinite score has infinite miscalibration.

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for
    probabilistic classifiers.

    Examples
    --------
    >>> from calibration import corp_decomposition, log_loss
    >>> parts = corp_decomposition([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.9], score=log_loss)
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4)
    (0.2362, 0.3466)
    >>> round(parts.uncertainty, 4), round(parts.score, 4)
    (0.6931, 0.5827)
    """
    summary = summarise_forecasts(y_true, y_prob, sample_weight)
    check_callable(score, "score")
    recalibrated = isotonic_rates(summary.weight0, summary.weight1)
    # All three on the same rows in the same order: forecasts that recalibration
    # leaves alone are miscalibrated by exactly 0.
    weights = np.concatenate([summary.weight0, summary.weight1])
    labels = np.repeat([0, 1], summary.n_cells)
    held = weights > 0.0

    def mean_score(forecasts: Float64Array) -> float:
        both = np.concatenate([forecasts, forecasts])
        return float(score(labels[held], both[held], sample_weight=weights[held]))

    given, best = mean_score(summary.scores), mean_score(recalibrated)
    base = mean_score(np.full(summary.n_cells, summary.base_rate))
    # Infinite losses of both, as where a rate rounds to 1, do not differ.
    return CorpDecomposition(
        miscalibration=0.0 if given == best else given - best,
        discrimination=0.0 if base == best else base - best,
        uncertainty=base,
        score=given,
    )
