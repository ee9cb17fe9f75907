"""Proper scores of probability forecasts that have a closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import check_forecasts, check_number
from calibration.typing import Float64Array


def brier_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Brier score: mean squared difference of forecast and label.

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
    float
        In [0, 1].

    Notes
    -----
    .. math:: \frac{1}{\sum_i w_i} \sum_i w_i (p_i - y_i)^2

    References
    ----------
    Brier (1950), Verification of forecasts expressed in terms of probability.

    Examples
    --------
    >>> from calibration.measures import brier_score
    >>> brier_score([0, 1], [0.5, 1.0])
    0.125
    """
    ones, probabilities, weights = check_forecasts(y_true, y_prob, sample_weight)
    return _weighted_mean((probabilities - ones) ** 2, weights)


def log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    clip: float = 0.0,
) -> float:
    r"""Logarithmic score: mean of -log of the chance given to what happened.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1.
    y_prob : array-like of shape (n,)
        Forecast probabilities of class 1.
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions.
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
        \{y_i \log p_i + (1 - y_i) \log(1 - p_i)\}

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
    """
    ones, probabilities, weights = check_forecasts(y_true, y_prob, sample_weight)
    clip = check_number(clip, "clip", 0.0, 0.5)
    with np.errstate(divide="ignore"):
        losses = np.where(ones, -np.log(probabilities), -np.log1p(-probabilities))
        # The loss falls with the chance given, so clipping it clips the chance.
        bounds = -np.log1p(-clip), -np.log(clip)
    return _weighted_mean(np.clip(losses, *bounds), weights)


def spherical_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Spherical score as a loss: mean of 1 - s.

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
    float
        In [0, 1].

    Notes
    -----
    With q the probability given to the label that happened,
    :math:`s = q / \sqrt{q^2 + (1 - q)^2}`.

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
    ones, probabilities, weights = check_forecasts(y_true, y_prob, sample_weight)
    happened = np.where(ones, probabilities, 1.0 - probabilities)
    other = np.where(ones, 1.0 - probabilities, probabilities)
    length = np.hypot(probabilities, 1.0 - probabilities)
    # 1 - happened / length, without its cancellation for good forecasts.
    losses = other * other / (length * (length + happened))
    return _weighted_mean(losses, weights)


def _weighted_mean(losses: Float64Array, weights: Float64Array) -> float:
    """Mean of losses that may be +inf; a row of weight 0 is not there."""
    # 0 times an infinite loss would be nan.
    held = weights > 0.0
    if not held.all():
        losses, weights = losses[held], weights[held]
    return float((losses * weights).sum() / weights.sum())
