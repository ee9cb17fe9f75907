"""Tests of the hypothesis that forecasts are calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from calibration._validation import check_choice, check_integer, make_rng
from calibration.measures.binned_errors import summarise_forecasts
from calibration.measures.kernel_errors import (
    KernelEstimator,
    find_bandwidth,
    merge_rows,
    multiply_neighbours,
    multiply_pairs,
    read_rows,
    refuse_weights,
)
from calibration.measures.reliability import RandomState
from calibration.typing import Float64Array

# Terms of either series for the range of Brownian motion: the first left out is below
# 1e-16 on its side of the switch.
_TERMS = np.arange(12)
_SWITCH = 2.0
# A range below it has a probability that no float holds.
_SURE = 0.05
# Numbers of labels drawn at once; bounds the memory.
_CHUNK = 1 << 23


@dataclass(frozen=True)
class CalibrationTest:
    """What a test of calibration says.

    Parameters
    ----------
    error : float
        The calibration error that the test is about.
    statistic : float
        The error in the unit in which its law is known.
    p_value : float
        How probable a statistic at least as large is if the forecasts are calibrated.

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
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> CalibrationTest:
    r"""Test of calibration of two classes by cumulative differences (Kuiper's).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1.
    y_prob : array-like of shape (n,)
        Forecast probabilities of class 1.
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions.

    Returns
    -------
    CalibrationTest
        `error` is the estimated cumulative calibration error (ECCE-R), in [0, 1].

    Notes
    -----
    With the rows sorted by forecast and :math:`C(p) = \sum_{p_i \le p} w_i (y_i - p_i)
    / \sum_i w_i`, the error is max C - min C, where C begins at 0: no interval of
    forecasts has a greater sum of differences. There is nothing to choose. If the
    forecasts are calibrated, the error over :math:`\sigma = \sqrt{\sum_i w_i p_i (1 -
    p_i)} / \sum_i w_i` is, for many rows, the range R of Brownian motion on [0, 1],

    .. math:: P(R \le x) = \sum_{j \ge 0} \Bigl\{\frac{8}{x^2}
        + \frac{2}{(j + 1/2)^2 \pi^2}\Bigr\} e^{-2 (j + 1/2)^2 \pi^2 / x^2}.

    A walk of n steps sees less than all of that range, so that the test rejects too
    seldom, by a little: at level .05 in .039 of samples of 100 rows, .044 of those of
    1000 and .049 of those of 10 000.

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
        # Certain forecasts are right, or cannot be.
        return CalibrationTest(error, np.inf if error else 0.0, float(error == 0.0))
    return CalibrationTest(error, error / sigma, _range_tail(error / sigma))


def _range_tail(x: float) -> float:
    """P(R >= x) of the range R of Brownian motion on [0, 1]."""
    if x < _SURE:
        return 1.0
    if x < _SWITCH:
        squares = ((_TERMS + 0.5) * np.pi) ** 2
        terms = (8.0 / x**2 + 2.0 / squares) * np.exp(-2.0 * squares / x**2)
        return float(1.0 - terms.sum())
    # Feller's density 8 sum (-1)^(j-1) j^2 phi(j x), integrated: in the tail it keeps
    # the digits that 1 - P loses.
    j = _TERMS + 1.0
    return float(8.0 * ((-1.0) ** _TERMS * j * ndtr(-j * x)).sum())


def kernel_calibration_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    estimator: KernelEstimator = "quadratic",
    bandwidth: float | None = None,
    n_resamples: int = 200,
    random_state: RandomState = None,
) -> CalibrationTest:
    r"""Test of calibration of any number of classes by the kernel error (SKCE).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1, or column numbers, or what `classes` names.
    y_prob : array-like of shape (n,) or (n, k)
        Forecast probabilities of class 1, or of each class.
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions; for "quadratic" only.
    classes : array-like of shape (k,), optional
        The labels that the columns stand for.
    estimator : {"quadratic", "linear"}
        See `kernel_calibration_error`. "linear" needs four rows or more.
    bandwidth : float, optional
        See `kernel_calibration_error`.
    n_resamples : int
        Label vectors drawn by "quadratic".
    random_state : int, Generator or None
        Seed of these draws.

    Returns
    -------
    CalibrationTest
        `error` is `kernel_calibration_error`; `statistic` the same for "quadratic", and
        for "linear" the error over its standard error.

    Notes
    -----
    "quadratic" draws labels from the forecasts themselves, R = `n_resamples` times, and
    the p-value is (1 + number of errors at least as large) / (R + 1): its level is
    exact for any number of rows. "linear" is a mean of independent products, whose law
    is normal for many rows; it has less power, and its time is that of n rows.

    References
    ----------
    Widmann, Lindsten & Zachariah (2019), Calibration tests in multi-class
    classification: a unifying framework. Vaicenavicius et al. (2019), Evaluating model
    calibration in classification (labels drawn from the forecasts).

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import kernel_calibration_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1.0, 1.0, 1.0], size=300)
    >>> y = (rng.uniform(size=(300, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> kernel_calibration_test(y, p, random_state=0).p_value > 0.05
    True
    >>> sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    >>> round(kernel_calibration_test(y, sharp, random_state=0).p_value, 3)
    0.005
    """
    check_choice(estimator, "estimator", get_args(KernelEstimator))
    rng = make_rng(random_state)
    n_resamples = check_integer(n_resamples, "n_resamples", 1)
    labels, rows, weights = read_rows(y_true, y_prob, sample_weight, classes)
    if estimator == "linear":
        refuse_weights(sample_weight)
        return _test_neighbours(multiply_neighbours(labels, rows, bandwidth))
    distinct, counts = merge_rows(labels, rows, weights)
    scale = find_bandwidth(distinct, bandwidth)
    error = float(multiply_pairs(distinct, counts[None], scale)[0])
    at_once = max(1, _CHUNK // counts.size)
    as_large = 0
    for start in range(0, n_resamples, at_once):
        n_draws = min(at_once, n_resamples - start)
        draws = _draw_labels(distinct, counts.sum(axis=1), n_draws, rng)
        # Of forecasts of 0 and 1 all draws are what was seen, but for rounding.
        as_large += int((multiply_pairs(distinct, draws, scale) >= error - 1e-15).sum())
    return CalibrationTest(error, error, (1.0 + as_large) / (1.0 + n_resamples))


def _test_neighbours(products: Float64Array) -> CalibrationTest:
    """Test whether the mean of independent products is 0 or greater."""
    m = len(products)
    if m < 2:
        msg = f"`y_true` must hold four rows or more with 'linear', got {m} pairs."
        raise ValueError(msg)
    error = float(products.mean())
    deviation = float(products.std(ddof=1) / np.sqrt(m))
    if deviation == 0.0:
        statistic = float(np.copysign(np.inf, error)) if error else 0.0
        return CalibrationTest(error, statistic, float(error <= 0.0))
    return CalibrationTest(error, error / deviation, float(ndtr(-error / deviation)))


def _draw_labels(
    distinct: Float64Array,
    weight: Float64Array,
    n_draws: int,
    rng: np.random.Generator,
) -> Float64Array:
    """Return how often each label is drawn from each forecast, (n_draws, m, k)."""
    chances = distinct / distinct.sum(axis=1, keepdims=True)
    whole = np.floor(weight).astype(np.int64)
    counts = rng.multinomial(whole, chances, (n_draws, len(weight))).astype(np.float64)
    rest = weight - whole
    if rest.any():
        # A weight of 2.5 is two rows and a half of one more.
        parts = rng.multinomial(1, chances, (n_draws, len(weight)))
        counts += rest[:, None] * parts
    return counts
