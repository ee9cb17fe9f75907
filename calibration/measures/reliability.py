"""Reliability curves, and the parts of scores that they explain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from calibration._kernels.cells import group_means
from calibration._kernels.pav import isotonic_rates
from calibration._validation import (
    check_callable,
    check_choice,
    check_integer,
    check_level,
    make_rng,
)
from calibration.maps import CalibrationMap
from calibration.measures.calibration_errors import bin_starts, summarise_forecasts
from calibration.measures.scores import brier_score
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

CurveBinning: TypeAlias = Literal["frequency", "width", "isotonic"]
Bands: TypeAlias = Literal["consistency", "confidence"]
RandomState: TypeAlias = int | np.random.Generator | None

# Labels are resampled on at most this many cells. A block of the isotonic regression of
# n rows holds about n^(2/3) rows, so for any n the band stays what it is.
_BAND_CELLS = 4096
# Beyond these bounds, scipy returns nan for quantiles of a beta distribution. With more
# rows the band would be narrower by less than 1e-8. With rarer events the band is the
# same up to rounding: both ends are 0.
_MOST_SIZE = 1e16
_LEAST_COUNT = float(np.finfo(np.float64).tiny)


# Number of equal parts of [0, 1] in which forecasts are counted.
_N_BARS = 50


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Event rate against forecast. Build it with `reliability_curve`.

    Parameters
    ----------
    mean_prob : ndarray of shape (k,)
        Increasing mean forecasts of the bins, or the distinct forecasts.
    event_rate : ndarray of shape (k,)
        Event rate of each bin, or the isotonic regression at each forecast.
    weight : ndarray of shape (k,)
        Number of rows in each bin. Repetitions count.
    lower, upper : ndarrays of shape (k,), or None
        Bounds of the band.
    binning : {"frequency", "width", "isotonic"}
        How forecasts were put into bins.
    bands : {"consistency", "confidence"} or None
        What the band means.
    level : float
        Level of the band at each point.
    histogram : ndarray of shape (50,)
        Number of rows with forecasts in each of 50 equal parts of [0, 1].

    Examples
    --------
    >>> from calibration import reliability_curve
    >>> curve = reliability_curve([0, 1, 0, 1], [0.2, 0.2, 0.6, 0.6], binning="width")
    >>> curve.mean_prob, curve.event_rate, curve.weight
    (array([0.2, 0.6]), array([0.5, 0.5]), array([2., 2.]))
    >>> round(curve.calibration_error, 3)
    0.2
    """

    mean_prob: Float64Array
    event_rate: Float64Array
    weight: Float64Array
    lower: Float64Array | None
    upper: Float64Array | None
    binning: CurveBinning
    bands: Bands | None
    level: float
    histogram: Float64Array

    @property
    def calibration_error(self) -> float:
        """Weighted mean of ``|event rate - forecast|``, the ECE over these bins."""
        gaps = np.abs(self.event_rate - self.mean_prob)
        return float((self.weight * gaps).sum() / self.weight.sum())


def reliability_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: int = 10,
    binning: CurveBinning = "frequency",
    bands: Bands | None = "consistency",
    level: float = 0.9,
    n_resamples: int = 200,
    random_state: RandomState = None,
) -> ReliabilityCurve:
    r"""Return the event rate as a function of the forecast, with a band.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1.
    y_prob : array-like of shape (n,)
        Forecast probabilities of class 1.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.
    n_bins : int
        Number of bins. "isotonic" does not use it.
    binning : {"frequency", "width", "isotonic"}
        "frequency" and "width" are those of `expected_calibration_error`. Bins without
        rows are left out. "isotonic" is the isotonic regression of the labels at every
        distinct forecast (CORP). It needs no choice of bins.
    bands : {"consistency", "confidence"} or None
        "consistency" says where the event rate would lie if the forecasts were
        calibrated. A curve that leaves it speaks against calibration. "confidence" says
        where the true event rate may lie.
    level : float
        Level of the band at each point, in (0, 1).
    n_resamples : int
        Number of label vectors that are drawn for the bands of "isotonic".
    random_state : int, Generator or None
        Seed of these draws.

    Returns
    -------
    ReliabilityCurve
        Arrays with one entry per bin, or per distinct forecast.

    Notes
    -----
    If the forecasts are right, the number of events in a bin of W rows is
    Poisson-binomial with mean :math:`\sum_i p_i` and variance
    :math:`\sum_i p_i (1 - p_i)`. The consistency band takes its quantiles from the beta
    distribution of the same mean and variance, rounded to whole events. So its level is
    at least the one asked for, as far as the approximation holds. The confidence band
    of a bin is the Jeffreys interval of `CalibrationMap.interval`.

    The bands of "isotonic" draw labels from the forecasts (consistency) or from the
    isotonic regression (confidence). They repeat the regression, and take pointwise
    quantiles. If forecasts are calibrated, observed and drawn curves are exchangeable.
    Then quantiles of rank :math:`(R + 1) q` make the level of the consistency band
    exact, except for ties, if R = `n_resamples` is at least 2 / (1 - level) - 1. The
    confidence band of "isotonic" is too narrow. At level .9 it held the true rate at 72
    to 84 % of the forecasts of 300 to 2000 rows. The intervals of bins hold their
    level. Beyond 4096 distinct forecasts the labels are drawn for as many groups of
    neighbours.

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for
    probabilistic classifiers. Brocker & Smith (2007), Increasing the reliability of
    reliability diagrams.

    Examples
    --------
    >>> from calibration import reliability_curve
    >>> curve = reliability_curve([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2)
    >>> curve.mean_prob, curve.event_rate
    (array([0.2 , 0.75]), array([0.5, 0.5]))
    >>> curve.lower, curve.upper
    (array([0., 0.]), array([1., 1.]))
    """
    rng = make_rng(random_state)
    summary = summarise_forecasts(y_true, y_prob, sample_weight)
    check_choice(binning, "binning", get_args(CurveBinning))
    if bands is not None:
        check_choice(bands, "bands", get_args(Bands))
    level = check_level(level, "level")
    n_resamples = check_integer(n_resamples, "n_resamples", 1)
    if binning == "isotonic":
        mean_prob, weight = summary.scores, summary.weight
        event_rate = isotonic_rates(summary.weight0, summary.weight1)
    else:
        starts = bin_starts(summary, n_bins, binning)
        weight = np.add.reduceat(summary.weight, starts)
        mean_prob = group_means(summary.scores, summary.weight, starts)
        event_rate = np.add.reduceat(summary.weight1, starts) / weight
    lower, upper = None, None
    if bands is not None and binning == "isotonic":
        lower, upper = _isotonic_band(summary, bands, level, n_resamples, rng)
    elif bands == "consistency":
        # These are quantiles under the bins' own forecasts. The variance is the mean
        # over independent labels with their own chances. That of their mean is this
        # over the weight, whose square may underflow.
        variance = summary.weight * summary.scores * (1.0 - summary.scores)
        moments = mean_prob, np.add.reduceat(variance, starts) / weight, weight
        tail = 0.5 * (1.0 - level)
        lower, upper = (_event_quantile(*moments, q) for q in (tail, 1.0 - tail))
    elif bands == "confidence":
        # These are Jeffreys intervals.
        events, first = np.add.reduceat(summary.weight1, starts), summary.scores[starts]
        others = np.add.reduceat(summary.weight0, starts)
        rates = CalibrationMap.step(first, event_rate, others, events)
        lower, upper = rates.interval(first, level).T.copy()
    bars, _ = np.histogram(summary.scores, _N_BARS, (0.0, 1.0), weights=summary.weight)
    return ReliabilityCurve(
        mean_prob, event_rate, weight, lower, upper, binning, bands, level, bars
    )


def _event_quantile(
    mean: Float64Array, variance: Float64Array, weight: Float64Array, q: float
) -> Float64Array:
    """Return quantiles of event rates in steps of 1 / weight, from a fitted beta."""
    out = mean.copy()  # the value of forecasts that are certain
    certain = variance == 0.0
    size = np.zeros(len(mean))
    with np.errstate(over="ignore"):
        np.divide(mean * (1.0 - mean), variance, out=size, where=~certain)
    size = np.minimum(size * weight - 1.0, _MOST_SIZE)
    # One event happens or not. A beta of such a variance has its mass at 0 and 1.
    single = ~certain & (size < 1e-6)
    out[single] = q > 1.0 - mean[single]
    spread = ~(certain | single)
    m, s, w = mean[spread], size[spread], weight[spread]
    value = betaincinv(np.maximum(m * s, _LEAST_COUNT), (1.0 - m) * s, q)
    # This is a continuity correction. k events fill the rates from (k - 1/2) / w on.
    events = np.maximum(np.ceil(w * value - 0.5), 0.0)
    out[spread] = np.minimum(events / w, 1.0) + 0.0  # turns -0.0 into 0.0
    return out


def _isotonic_band(
    summary: ScoreSummary,
    bands: Bands,
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[Float64Array, Float64Array]:
    """Return pointwise quantiles of isotonic regressions on resampled labels."""
    # The cost is the number of cells times the number of resamples.
    coarse = summary.condense(_BAND_CELLS)
    if bands == "consistency":
        chance = np.clip(coarse.scores, 0.0, 1.0)
    else:
        chance = isotonic_rates(coarse.weight0, coarse.weight1)
    whole = np.floor(coarse.weight).astype(np.int64)
    rest = coarse.weight - whole
    draws = np.empty((n_resamples, coarse.n_cells))
    for draw in draws:
        # A weight of 2.5 means two rows, and half of one more.
        parts = rest * (rng.random(len(chance)) < chance)
        events = rng.binomial(whole, chance) + parts
        draw[:] = isotonic_rates(coarse.weight - events, events)
    tail = 0.5 * (1.0 - level)
    # The plotting positions of Weibull are the ranks (R + 1) q of the notes.
    bounds = np.quantile(draws, [tail, 1.0 - tail], axis=0, method="weibull")
    lower, upper = (np.interp(summary.scores, coarse.scores, b) for b in bounds)
    return lower, upper


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
        What unequal forecasts within a bin add. It is 0 if bins are distinct forecasts.
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
        What recalibration would gain (MCB). It is >= 0.
    discrimination : float
        What recalibrated forecasts gain on the base rate (DSC). It is >= 0.
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
        How often each row counts.
    n_bins : int, optional
        Number of bins of about equal weight. Ties are never split. By default each
        distinct forecast is a bin.

    Returns
    -------
    BrierDecomposition
        The parts and the score.

    Notes
    -----
    Let :math:`\pi_b` be the share, :math:`e_b` the mean forecast and :math:`o_b` the
    event rate of bin b. Let o be the event rate of all rows. Then

    .. math::
        BS = \underbrace{\sum_b \pi_b (e_b - o_b)^2}_{calibration}
        + \underbrace{\sum_b \pi_b o_b (1 - o_b)}_{refinement} + within, \qquad
        refinement = \underbrace{o (1 - o)}_{uncertainty}
        - \underbrace{\sum_b \pi_b (o_b - o)^2}_{resolution}.

    The part within is the variance of the forecasts in a bin, less twice their
    covariance with the labels.

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
    # Take sums of weights instead of shares, which may vanish beside a great weight.
    rate = np.add.reduceat(summary.weight1, starts) / weight
    # The mean of a single forecast is right to the last digit.
    forecast = group_means(summary.scores, summary.weight, starts)
    sizes = np.diff(starts, append=summary.n_cells)
    ahead = summary.scores - np.repeat(forecast, sizes)
    # The terms within bins are the variance of the forecasts, less twice their
    # covariance with labels.
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
        How often each row counts.
    score : callable
        A proper score `score(y_true, y_prob, *, sample_weight)` such as `brier_score`,
        `log_loss` or `spherical_score`. Bind further arguments with
        `functools.partial`. The parts of a score that is not proper still add up, but
        may be negative.

    Returns
    -------
    CorpDecomposition
        The parts and the score.

    Notes
    -----
    Let S(q) be the mean score of forecasts q, :math:`\hat p` the isotonic regression of
    the labels on the forecasts (PAV), and o the base rate. Then
    :math:`MCB = S(p) - S(\hat p)`, :math:`DSC = S(o) - S(\hat p)` and
    :math:`UNC = S(o)`. Binned parts depend on the choice of bins, but these do not. An
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
    # All three scores are on the same rows in the same order. If recalibration changes
    # no forecast, miscalibration is then exactly 0.
    weights = np.concatenate([summary.weight0, summary.weight1])
    labels = np.repeat([0, 1], summary.n_cells)
    held = weights > 0.0

    def mean_score(forecasts: Float64Array) -> float:
        both = np.concatenate([forecasts, forecasts])
        return float(score(labels[held], both[held], sample_weight=weights[held]))

    given, best = mean_score(summary.scores), mean_score(recalibrated)
    base = mean_score(np.full(summary.n_cells, summary.base_rate))
    # Both losses may be infinite, for instance if a rate rounds to 1. Then they do not
    # differ.
    return CorpDecomposition(
        miscalibration=0.0 if given == best else given - best,
        discrimination=0.0 if base == best else base - best,
        uncertainty=base,
        score=given,
    )
