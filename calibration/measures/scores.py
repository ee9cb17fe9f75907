"""Scores of probability forecasts that have a closed form, and the area under the ROC.

Forecasts (n,) are chances of class 1; forecasts (n, k) have a column for each class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import check_class_forecasts, check_number, refuse
from calibration.typing import Float64Array


def brier_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> float:
    r"""Brier score: mean squared difference of forecast and label.

    Of forecasts (n, k) it is the sum over the classes, as Brier defined it: with k = 2
    twice the score of the chance of class 1.

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

    Returns
    -------
    float
        In [0, 1] of forecasts (n,), in [0, 2] of forecasts (n, k).

    Notes
    -----
    .. math:: \frac{1}{\sum_i w_i} \sum_i w_i (p_i - y_i)^2, \qquad
        \frac{1}{\sum_i w_i} \sum_i w_i \sum_c (p_{ic} - 1\{y_i = c\})^2

    References
    ----------
    Brier (1950), Verification of forecasts expressed in terms of probability.

    Examples
    --------
    >>> from calibration.measures import brier_score
    >>> brier_score([0, 1], [0.5, 1.0])
    0.125
    >>> brier_score([0, 2], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    0.25
    """
    labels, forecasts, weights = check_class_forecasts(
        y_true, y_prob, sample_weight, classes
    )
    if forecasts.ndim == 1:
        return _weighted_mean((forecasts - labels) ** 2, weights)
    errors = forecasts.copy()
    errors[np.arange(len(labels)), labels] -= 1.0
    return _weighted_mean(np.einsum("ij,ij->i", errors, errors), weights)


def log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    clip: float = 0.0,
) -> float:
    r"""Logarithmic score: mean of -log of the chance given to what happened.

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
    clip : float
        Forecasts are clipped to [clip, 1 - clip], 0 <= clip <= 1/2. With 0 the
        score is what it is: infinite where an event of probability 0 happened.

    Returns
    -------
    float
        In [0, inf], in nats.

    Notes
    -----
    .. math:: -\frac{1}{\sum_i w_i} \sum_i w_i
        \{y_i \log p_i + (1 - y_i) \log(1 - p_i)\}, \qquad
        -\frac{1}{\sum_i w_i} \sum_i w_i \log p_{i y_i}

    References
    ----------
    Good (1952), Rational decisions.

    Examples
    --------
    >>> from calibration.measures import log_loss
    >>> round(log_loss([0, 1], [0.5, 0.5]), 4)
    0.6931
    >>> log_loss([0, 1], [0.5, 0.0])
    inf
    >>> round(log_loss(["b"], [[0.25, 0.5, 0.25]], classes=["a", "b", "c"]), 4)
    0.6931
    """
    labels, forecasts, weights = check_class_forecasts(
        y_true, y_prob, sample_weight, classes
    )
    clip = check_number(clip, "clip", 0.0, 0.5)
    with np.errstate(divide="ignore"):
        if forecasts.ndim == 1:
            losses = np.where(labels, -np.log(forecasts), -np.log1p(-forecasts))
        else:
            losses = -np.log(_chance_given(labels, forecasts)) + 0.0  # no -0.0
        # The loss falls with the chance given, so clipping it clips the chance.
        bounds = -np.log1p(-clip), -np.log(clip)
    return _weighted_mean(np.clip(losses, *bounds), weights)


def spherical_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> float:
    r"""Spherical score as a loss: mean of 1 - s.

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

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    With q the probability given to the label that happened,
    :math:`s = q / \sqrt{q^2 + (1 - q)^2}`, and of forecasts (n, k)
    :math:`s = q / \sqrt{\sum_c p_c^2}`.

    References
    ----------
    Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and
    estimation.

    Examples
    --------
    >>> from calibration.measures import spherical_score
    >>> round(spherical_score([0, 1], [0.5, 1.0]), 4)
    0.1464
    """
    labels, forecasts, weights = check_class_forecasts(
        y_true, y_prob, sample_weight, classes
    )
    if forecasts.ndim == 1:
        happened = np.where(labels, forecasts, 1.0 - forecasts)
        other = np.where(labels, 1.0 - forecasts, forecasts)
    else:
        happened = _chance_given(labels, forecasts)
        others = forecasts.copy()
        others[np.arange(len(labels)), labels] = 0.0
        other = np.sqrt(np.einsum("ij,ij->i", others, others))
    length = np.hypot(happened, other)
    # 1 - happened / length, without its cancellation for good forecasts.
    losses = other * other / (length * (length + happened))
    return _weighted_mean(losses, weights)


def _chance_given(columns: NDArray[Any], forecasts: Float64Array) -> Float64Array:
    """Probability that each row of (n, k) gives to what happened, shape (n,)."""
    chances: Float64Array = forecasts[np.arange(len(columns)), columns]
    return chances


def _weighted_mean(losses: Float64Array, weights: Float64Array) -> float:
    """Mean of losses that may be +inf; a row of weight 0 is not there."""
    # 0 times an infinite loss would be nan.
    held = weights > 0.0
    if not held.all():
        losses, weights = losses[held], weights[held]
    return float((losses * weights).sum() / weights.sum())


def auc_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> float:
    r"""Area under the ROC curve; of more than two classes Hand and Till's mean.

    No loss: higher is better, and 1/2 is what forecasts without any order reach.

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

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    With :math:`A(i | j)` the probability that a row of class i has a higher forecast of
    class i than a row of class j, ties counting half,

    .. math:: M = \frac{2}{k (k - 1)} \sum_{i < j} \frac{A(i | j) + A(j | i)}{2}.

    Pairs with a class that has no rows are left out of the mean. Each pair counts
    alike, whatever the rates of its classes.

    References
    ----------
    Hand & Till (2001), A simple generalisation of the area under the ROC curve for
    multiple class classification problems, equation 7.

    Examples
    --------
    >>> from calibration import auc_score
    >>> auc_score([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    >>> forecasts = [[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.5, 0.1, 0.4]]
    >>> round(auc_score([0, 1, 2], forecasts), 4)
    1.0
    """
    labels, forecasts, weights = check_class_forecasts(
        y_true, y_prob, sample_weight, classes
    )
    columns = np.asarray(labels, dtype=np.int64)
    k = 2 if forecasts.ndim == 1 else forecasts.shape[1]
    totals: Float64Array = np.bincount(columns, weights, k).astype(np.float64)
    held = np.flatnonzero(totals > 0.0).tolist()
    if len(held) < 2:
        refuse("y_true", "hold two classes or more", f"class {held[0]} only")
    # Each class in a unit of its own, a power of two, so that no product of weights
    # underflows: rates within pairs of classes know no unit.
    exponents = np.frexp(totals)[1]
    weights = np.ldexp(weights, -exponents[columns])
    totals = np.ldexp(totals, -exponents)
    if forecasts.ndim == 1:
        return float(_win_rates(forecasts, 1, columns, weights, totals)[0])
    wins = [
        # Of class i against itself ties and wins make 1/2.
        _win_rates(forecasts[:, i], i, columns, weights, totals)[held].sum() - 0.5
        for i in held
    ]
    return float(sum(wins) / (len(held) * (len(held) - 1)))


def _win_rates(
    chances: Float64Array,
    own: int,
    columns: NDArray[Any],
    weights: Float64Array,
    totals: Float64Array,
) -> Float64Array:
    """A(own | j): how often the own class has the higher chance, shape (k,)."""
    values, places = np.unique(chances, return_inverse=True)
    ours = np.bincount(places, np.where(columns == own, weights, 0.0), len(values))
    # Weight of the own class above each value, and half of that at it.
    above = totals[own] - np.cumsum(ours) + 0.5 * ours
    sums = np.bincount(columns, weights * above[places], len(totals))
    pairs = totals[own] * totals
    rates = np.zeros(len(totals))
    np.divide(sums, pairs, out=rates, where=pairs > 0.0)
    return rates
