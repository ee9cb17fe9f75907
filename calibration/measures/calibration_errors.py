"""Calibration errors over bins, and a test of calibration without bins.

With more than two classes, forecasts are seen as one or several sets of binary
forecasts (`View`). Each set has the error of two classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from calibration._kernels.cells import group_starts
from calibration._validation import (
    check_choice,
    check_forecasts,
    check_integer,
    read_labelled,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array, Int64Array

View: TypeAlias = Literal["micro", "classwise", "top_label", "confidence"]


def part_forecasts(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    sample_weight: ArrayLike | None,
    classes: ArrayLike | None,
    view: View,
) -> Iterator[tuple[float, ScoreSummary]]:
    """Yield sets of binary forecasts, and the share of each in a mean over the sets.

    Forecasts (n,) are one set already, whatever the view is.

    Parameters
    ----------
    y_true : array-like of shape (n,)
    y_prob : array-like of shape (n,) or (n, k)
    sample_weight : array-like of shape (n,), optional
    classes : array-like of shape (k,), optional
    view : {"micro", "classwise", "top_label", "confidence"}

    Yields
    ------
    share : float
        The shares of all sets add up to 1.
    forecasts : ScoreSummary
        Distinct forecasts of the set, with the weights of both outcomes.
    """
    check_choice(view, "view", get_args(View))
    labels, forecasts, weights = read_labelled(y_true, y_prob, sample_weight, classes)
    if forecasts.ndim == 1:
        yield 1.0, ScoreSummary.from_scores(forecasts, labels, weights)
    elif view == "micro":
        k = forecasts.shape[1]
        hits = labels[:, None] == np.arange(k)
        # The sum of weights stays below 2^53. A power of two rounds nothing.
        unit = 2.0 ** np.ceil(np.log2(k))
        repeated = None if sample_weight is None else np.repeat(weights / unit, k)
        yield 1.0, ScoreSummary.from_scores(forecasts.ravel(), hits.ravel(), repeated)
    elif view == "classwise":
        for column, chances in enumerate(forecasts.T):
            hits = labels == column
            summary = ScoreSummary.from_scores(chances, hits, weights)
            yield 1.0 / forecasts.shape[1], summary
    else:
        top = np.argmax(forecasts, axis=1)
        chances, hits = forecasts[np.arange(len(top)), top], labels == top
        # There is a set of rows for each forecast label, or one set of all rows.
        sets = np.unique(top[weights > 0.0]) if view == "top_label" else [top]
        for label in sets:
            rows = top == label
            share = float(weights[rows].sum() / weights.sum())
            some = chances[rows], hits[rows], weights[rows]
            yield share, ScoreSummary.from_scores(*some)


Binning: TypeAlias = Literal["frequency", "width", "rank"]


def summarise_forecasts(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None
) -> ScoreSummary:
    """Check forecasts and return their distinct values with class weights."""
    ones, probabilities, weights = check_forecasts(y_true, y_prob, sample_weight)
    return ScoreSummary.from_scores(probabilities, ones, weights)


def bin_starts(summary: ScoreSummary, n_bins: int, binning: str) -> Int64Array:
    """Return the first cell of every bin that holds a cell, shape (<= n_bins,)."""
    n_bins = check_integer(n_bins, "n_bins", 1)
    if binning == "frequency":
        return group_starts(summary.weight, n_bins)
    # k / n_bins is the float that the decimal k / n_bins reads as. A multiple of the
    # rounded width is another float (3 * 0.1 > 0.3), and would send 0.3 one bin down.
    inner = np.arange(1, n_bins) / n_bins
    bins = np.searchsorted(inner, summary.scores, side="right")
    return np.unique(bins, return_index=True)[1].astype(np.int64)


def expected_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: int = 10,
    binning: Binning = "frequency",
    view: View = "micro",
    classes: ArrayLike | None = None,
) -> float:
    r"""Return the expected calibration error: mean gap of event rate and forecast.

    The number depends on the bins, so name them when you report it.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1, or column numbers, or what `classes` names.
    y_prob : array-like of shape (n,) or (n, k)
        Forecast probabilities of class 1, or of each class.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.
    n_bins : int
        Number of bins.
    binning : {"frequency", "width", "rank"}
        "frequency": sorted forecasts are divided into bins of about equal weight. Equal
        forecasts are never split, so there may be fewer bins. "width": bins are
        [0, 1/B), [1/B, 2/B), ..., [1 - 1/B, 1], closed on the left. A forecast of 1 is
        in the last bin, and 0.3 is in [0.3, 0.4). "rank": sorted forecasts are cut into
        exactly B bins of equal weight, as in the thesis. If a cut goes through equal
        forecasts, both sides have the event rate of all of them.
    view : {"micro", "classwise", "top_label", "confidence"}
        Which sets of forecasts (n, k) are binned. Each set has its own bins. "micro":
        one set holds all n * k forecasts. The event of each is that its class happened.
        "classwise": each column is a set. The error is the mean of the columns' errors.
        "confidence": one set holds the greatest forecast of each row. The event is that
        this forecast was right. "top_label": the same forecasts are grouped by the
        label that they name. Each group is a set, and the error is the mean over rows.
    classes : array-like of shape (k,), optional
        The labels for which the columns stand.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    Let :math:`o_b` be the event rate, :math:`e_b` the mean forecast and :math:`\pi_b`
    the share of the weight in bin b. Then

    .. math:: ECE = \sum_b \pi_b |o_b - e_b|.

    "micro" is the thesis's ECE_micro. A class without rows counts as others do.

    References
    ----------
    Naeini, Cooper & Hauskrecht (2015), Obtaining well calibrated probabilities
    using Bayesian binning. Naeini (2016), Obtaining accurate probabilities using
    classifier calibration, sections 2.4.3 (rank) and 6.1 (micro). Gupta & Ramdas
    (2022), Top-label calibration and multiclass-to-binary reductions.

    Examples
    --------
    >>> from calibration import expected_calibration_error
    >>> y_true, y_prob = [0, 1, 1, 1], [0.2, 0.4, 0.6, 0.8]
    >>> round(expected_calibration_error(y_true, y_prob, n_bins=2), 3)
    0.25
    >>> y_true, y_prob = [0, 1], [[0.7, 0.2, 0.1], [0.4, 0.4, 0.2]]
    >>> round(expected_calibration_error(y_true, y_prob, view="confidence"), 3)
    0.35
    """
    total = 0.0
    parts = part_forecasts(y_true, y_prob, sample_weight, classes, view)
    for share, forecasts in parts:
        gaps, weights = _gaps(forecasts, n_bins, binning)
        total += share * float(gaps.sum() / weights.sum())
    return total


def maximum_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: int = 10,
    binning: Binning = "frequency",
    view: View = "micro",
    classes: ArrayLike | None = None,
) -> float:
    r"""Return the maximum calibration error: the greatest gap of rate and forecast.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1, or column numbers, or what `classes` names.
    y_prob : array-like of shape (n,) or (n, k)
        Forecast probabilities of class 1, or of each class.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.
    n_bins : int
        Number of bins.
    binning : {"frequency", "width", "rank"}
        See `expected_calibration_error`.
    view : {"micro", "classwise", "top_label", "confidence"}
        See `expected_calibration_error`. The greatest gap of all sets counts. "micro"
        is the thesis's MCE_micro.
    classes : array-like of shape (k,), optional
        The labels for which the columns stand.

    Returns
    -------
    float
        Greatest :math:`|o_b - e_b|` of the bins, in [0, 1].

    References
    ----------
    Naeini, Cooper & Hauskrecht (2015), Obtaining well calibrated probabilities
    using Bayesian binning. Naeini (2016), Obtaining accurate probabilities using
    classifier calibration, chapter 6.1 (micro).

    Examples
    --------
    >>> from calibration import maximum_calibration_error
    >>> y_true, y_prob = [0, 1, 1, 1], [0.2, 0.4, 0.6, 0.8]
    >>> round(maximum_calibration_error(y_true, y_prob, n_bins=2), 3)
    0.3
    """
    worst = 0.0
    for _, forecasts in part_forecasts(y_true, y_prob, sample_weight, classes, view):
        gaps, weights = _gaps(forecasts, n_bins, binning)
        worst = max(worst, float((gaps / weights).max()))
    return worst


def _gaps(
    summary: ScoreSummary, n_bins: int, binning: Binning
) -> tuple[Float64Array, Float64Array]:
    """Return |events - sum of forecasts| and weight of bins, shapes (n_held_bins,)."""
    # Take sums of gaps, not gaps of means: pi_b |o_b - e_b| is |events - expected| / n.
    surplus = summary.weight1 - summary.weight * summary.scores
    check_choice(binning, "binning", get_args(Binning))
    if binning == "rank":
        n_bins = check_integer(n_bins, "n_bins", 1)
        ends = summary.n / n_bins * np.arange(n_bins + 1)
        upto = np.append(0.0, np.cumsum(summary.weight))
        sums = np.interp(ends, upto, np.append(0.0, np.cumsum(surplus)))
        return np.abs(np.diff(sums)), np.full(n_bins, summary.n / n_bins)
    starts = bin_starts(summary, n_bins, binning)
    gaps: Float64Array = np.abs(np.add.reduceat(surplus, starts))
    return gaps, np.add.reduceat(summary.weight, starts)


# Terms of both series for the range of Brownian motion. On its side of the switch, the
# first term that is left out is below 1e-16.
_TERMS = np.arange(12)
_SWITCH = 2.0
# The probability of a smaller range is too small for a float.
_SURE = 0.05


@dataclass(frozen=True)
class CalibrationTest:
    """What a test of calibration says.

    Parameters
    ----------
    error : float
        The calibration error that the test is about.
    statistic : float
        The error in a unit in which its law is known.
    p_value : float
        Probability of a statistic at least as large, if the forecasts are calibrated.

    Examples
    --------
    >>> from calibration import cumulative_calibration_test
    >>> test = cumulative_calibration_test([1, 1, 1, 1], [0.5, 0.5, 0.6, 0.9])
    >>> round(test.error, 3), round(test.statistic, 2), round(test.p_value, 2)
    (0.375, 1.65, 0.39)
    """

    error: float
    statistic: float
    p_value: float


def cumulative_calibration_test(
    y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> CalibrationTest:
    r"""Test the calibration of two classes by cumulative differences (Kuiper's test).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1.
    y_prob : array-like of shape (n,)
        Forecast probabilities of class 1.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.

    Returns
    -------
    CalibrationTest
        `error` is the estimated cumulative calibration error (ECCE-R), in [0, 1].

    Notes
    -----
    Rows are sorted by forecast, and
    :math:`C(p) = \sum_{p_i \le p} w_i (y_i - p_i) / \sum_i w_i`. The error is
    max C - min C, where C begins at 0: no interval of forecasts has a greater sum of
    differences. There is nothing to choose. Let
    :math:`\sigma = \sqrt{\sum_i w_i p_i (1 - p_i)} / \sum_i w_i`. If the forecasts are
    calibrated and there are many rows, the error over :math:`\sigma` is the range R of
    Brownian motion on [0, 1],

    .. math:: P(R \le x) = \sum_{j \ge 0} \Bigl\{\frac{8}{x^2}
        + \frac{2}{(j + 1/2)^2 \pi^2}\Bigr\} e^{-2 (j + 1/2)^2 \pi^2 / x^2}.

    A walk of n steps sees less than all of that range. So the test rejects a little too
    seldom. At level .05 it rejects .039 of samples of 100 rows, .044 of those of 1000,
    and .049 of those of 10 000.

    If there are k classes, each column is tested against the others, `y == j` with
    `p[:, j]`. The least p-value counts k times (Bonferroni).

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu (2022), Metrics of calibration for
    probabilistic predictions. Feller (1951), The asymptotic distribution of the range
    of sums of independent random variables.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import cumulative_calibration_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < p
    >>> cumulative_calibration_test(y, p).p_value > 0.05
    True
    >>> cumulative_calibration_test(y, p**1.2).p_value < 0.001
    True
    """
    summary = summarise_forecasts(y_true, y_prob, sample_weight)
    steps = summary.weight1 - summary.weight * summary.scores
    walk = np.concatenate([[0.0], np.cumsum(steps)]) / summary.n
    error = float(np.ptp(walk))
    variance = summary.weight * summary.scores * (1.0 - summary.scores)
    sigma = float(np.sqrt(variance.sum())) / summary.n
    if sigma == 0.0:
        # Forecasts that are certain are right, or they cannot be right.
        return CalibrationTest(error, np.inf if error else 0.0, float(error == 0.0))
    return CalibrationTest(error, error / sigma, _range_tail(error / sigma))


def _range_tail(x: float) -> float:
    """Return P(R >= x) for the range R of Brownian motion on [0, 1]."""
    if x < _SURE:
        return 1.0
    if x < _SWITCH:
        squares = ((_TERMS + 0.5) * np.pi) ** 2
        terms = (8.0 / x**2 + 2.0 / squares) * np.exp(-2.0 * squares / x**2)
        return float(1.0 - terms.sum())
    # This is the integral of Feller's density 8 sum (-1)^(j-1) j^2 phi(j x). In the
    # tail it keeps the digits that 1 - P loses.
    j = _TERMS + 1.0
    return float(8.0 * ((-1.0) ** _TERMS * j * ndtr(-j * x)).sum())
