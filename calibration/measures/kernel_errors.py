"""Squared kernel calibration error: residuals of similar forecasts, multiplied."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist, pdist

from calibration._validation import check_choice, check_class_forecasts, check_number
from calibration.typing import Float64Array

KernelEstimator: TypeAlias = Literal["quadratic", "linear"]

# The median distance is that of this many distinct forecasts at most.
_MEDIAN_ROWS = 1024
# Distances over less than this may overflow.
_LEAST_BANDWIDTH = float(np.finfo(np.float64).tiny)
# Numbers of a block of the kernel; bounds the memory.
_CHUNK = 1 << 22


def kernel_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    estimator: KernelEstimator = "quadratic",
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
        Numbers of repetitions; for "quadratic" only.
    classes : array-like of shape (k,), optional
        The labels that the columns stand for.
    estimator : {"quadratic", "linear"}
        "quadratic": all pairs of rows. "linear": rows 1 and 2, 3 and 4, ... as they
        come, which must be in no order; it has more variance and takes no time.
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
    :math:`h_{ij} = \exp(-\lVert p_i - p_j \rVert / \nu) \, e_i' e_j`, "quadratic" is
    the U-statistic :math:`\frac{2}{n (n - 1)} \sum_{i<j} h_{ij}` and "linear" the mean
    of :math:`h_{2i-1, 2i}`. Calibration is meant in full: of the whole row, not of its
    columns. A row of weight w is w rows, and pairs of these count.

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
    check_choice(estimator, "estimator", get_args(KernelEstimator))
    labels, rows, weights = read_rows(y_true, y_prob, sample_weight, classes)
    if estimator == "linear":
        refuse_weights(sample_weight)
        return float(multiply_neighbours(labels, rows, bandwidth).mean())
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
        msg = (
            "`y_true` must hold more than one row, counted by `sample_weight`, "
            f"got {weights.sum():g}."
        )
        raise ValueError(msg)
    if forecasts.ndim == 1:
        forecasts = np.column_stack([1.0 - forecasts, forecasts])
    return labels.astype(np.int64), forecasts, weights


def refuse_weights(sample_weight: ArrayLike | None) -> None:
    """Refuse weights where rows are paired as they come."""
    if sample_weight is not None:
        msg = (
            "`sample_weight` must be None with `estimator='linear'`, which pairs rows "
            f"as they come, got {type(sample_weight).__name__}."
        )
        raise ValueError(msg)


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


def multiply_neighbours(
    labels: NDArray[Any], rows: Float64Array, bandwidth: float | None
) -> Float64Array:
    """Return h of rows 1 and 2, 3 and 4, ..., shape (n // 2,)."""
    scale = find_bandwidth(np.unique(rows, axis=0), bandwidth)
    errors = -rows
    errors[np.arange(len(rows)), labels] += 1.0
    end = len(rows) // 2 * 2
    gaps = rows[0:end:2] - rows[1:end:2]
    kernel = np.exp(-np.sqrt(np.einsum("ij,ij->i", gaps, gaps)) / scale)
    products: Float64Array = kernel * np.einsum(
        "ij,ij->i", errors[0:end:2], errors[1:end:2]
    )
    return products
