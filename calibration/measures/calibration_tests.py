"""Tests of calibration without bins, and the kernel calibration error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist, pdist
from scipy.special import ndtr

from calibration._validation import (
    check_class_forecasts,
    check_integer,
    check_number,
    make_rng,
    refuse,
)
from calibration.measures.binned_errors import summarise_forecasts
from calibration.measures.reliability import RandomState
from calibration.typing import Float64Array

# The median distance is that of this many distinct forecasts at most.
_MEDIAN_ROWS = 1024
# Distances over less than this may overflow.
_LEAST_BANDWIDTH = float(np.finfo(np.float64).tiny)
# Numbers of a block of the kernel, or of labels drawn at once; bounds the memory.
_CHUNK = 1 << 22


def kernel_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    bandwidth: float | None = None,
) -> float:
    r"""Squared kernel calibration error (SKCE), without bins and without bias.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1, or column numbers, or what `classes` names.
    y_prob : array-like of shape (n,) or (n, k)
        Forecast probabilities of class 1, or of each class.
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions.
    classes : array-like of shape (k,), optional
        The labels that the columns stand for.
    bandwidth : float, optional
        Of the kernel, > 0. Default: median distance of distinct forecasts, of 1024 of
        them if there are more; 1 if there is one.

    Returns
    -------
    float
        At most 2; 0 on average if the forecasts are calibrated, so it may be negative.

    Notes
    -----
    With :math:`e_i` the one-hot label of row i less its forecast :math:`p_i` and
    :math:`h_{ij} = \exp(-\lVert p_i - p_j \rVert / \nu) \, e_i' e_j`, it is the
    U-statistic :math:`\frac{2}{n (n - 1)} \sum_{i<j} h_{ij}`. Calibration is meant in
    full: of the whole row, not of its columns. A row of weight w is w rows, and pairs
    of these count.

    References
    ----------
    Widmann, Lindsten & Zachariah (2019), Calibration tests in multi-class
    classification: a unifying framework.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import kernel_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1.0, 1.0, 1.0], size=400)
    >>> y = (rng.uniform(size=(400, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    >>> abs(kernel_calibration_error(y, p)) < 0.002
    True
    >>> kernel_calibration_error(y, sharp) > 0.01
    True
    """
    labels, rows, weights = read_rows(y_true, y_prob, sample_weight, classes)
    distinct, counts = merge_rows(labels, rows, weights)
    kernel = find_bandwidth(distinct, bandwidth)
    return float(multiply_pairs(distinct, counts[None], kernel)[0])


def read_rows(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    sample_weight: ArrayLike | None,
    classes: ArrayLike | None,
) -> tuple[NDArray[Any], Float64Array, Float64Array]:
    """Return columns, forecasts (n, k) and weights that add up to more than one row."""
    labels, forecasts, weights = check_class_forecasts(
        y_true, y_prob, sample_weight, classes
    )
    if weights.sum() <= 1.0:
        rule = "hold more than one row, counted by `sample_weight`"
        refuse("y_true", rule, f"{weights.sum():g}")
    if forecasts.ndim == 1:
        forecasts = np.column_stack([1.0 - forecasts, forecasts])
    return labels.astype(np.int64), forecasts, weights


def merge_rows(
    labels: NDArray[Any], rows: Float64Array, weights: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return distinct forecasts (m, k) and the weight of each label there (m, k)."""
    held = weights > 0.0
    labels, rows, weights = labels[held], rows[held], weights[held]
    distinct, places = np.unique(rows, axis=0, return_inverse=True)
    m, k = distinct.shape
    counts = np.zeros((m, k))
    np.add.at(counts, (places.ravel(), labels), weights)
    return np.ascontiguousarray(distinct), counts


def find_bandwidth(distinct: Float64Array, bandwidth: float | None) -> float:
    """Return the bandwidth given, or the median distance of distinct forecasts."""
    if bandwidth is not None:
        given = check_number(bandwidth, "bandwidth", 0.0, open_low=True)
        return max(given, _LEAST_BANDWIDTH)
    if len(distinct) < 2:
        return 1.0
    places = np.linspace(0, len(distinct) - 1, min(len(distinct), _MEDIAN_ROWS))
    median = float(np.median(pdist(distinct[places.astype(np.int64)])))
    # Squares of the distances between tiny forecasts underflow.
    return max(median, _LEAST_BANDWIDTH)


def multiply_pairs(
    distinct: Float64Array, counts: Float64Array, bandwidth: float
) -> Float64Array:
    """Return the U-statistic of r draws of labels (r, m, k), shape (r,)."""
    n_draws, m, k = counts.shape
    sizes = counts.sum(axis=2, keepdims=True)
    residuals = counts - sizes * distinct
    flat = residuals.transpose(1, 0, 2).reshape(m, n_draws * k)
    sums = np.zeros(n_draws)
    step = max(1, _CHUNK // m)
    for start in range(0, m, step):
        some = slice(start, start + step)
        kernel = np.exp(-cdist(distinct[some], distinct) / bandwidth)
        products = (kernel @ flat) * flat[some]
        sums += products.sum(axis=0).reshape(n_draws, k).sum(axis=1)
    # The squares of single rows' residuals, which are no pairs:
    # |e_c - p|^2 = 1 - 2 p_c + |p|^2.
    squares = 1.0 - 2.0 * distinct + (distinct**2).sum(axis=1, keepdims=True)
    sums -= np.einsum("rmk,mk->r", counts, squares)
    n = sizes.sum(axis=(1, 2))
    pairs: Float64Array = sums / (n * (n - 1.0))
    return pairs


# Terms of either series for the range of Brownian motion: the first left out is below
# 1e-16 on its side of the switch.
_TERMS = np.arange(12)
_SWITCH = 2.0
# A range below it has a probability that no float holds.
_SURE = 0.05


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
        Numbers of repetitions.
    classes : array-like of shape (k,), optional
        The labels that the columns stand for.
    bandwidth : float, optional
        See `kernel_calibration_error`.
    n_resamples : int
        Label vectors that are drawn.
    random_state : int, Generator or None
        Seed of these draws.

    Returns
    -------
    CalibrationTest
        `error` and `statistic` are `kernel_calibration_error`.

    Notes
    -----
    Labels are drawn from the forecasts themselves, R = `n_resamples` times, and the
    p-value is (1 + number of errors at least as large) / (R + 1): its level is exact
    for any number of rows. All pairs of distinct forecasts are compared: of very many
    rows take some thousands.

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
    rng = make_rng(random_state)
    n_resamples = check_integer(n_resamples, "n_resamples", 1)
    labels, rows, weights = read_rows(y_true, y_prob, sample_weight, classes)
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
