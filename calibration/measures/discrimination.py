"""How well forecasts tell classes apart, whatever their calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import check_class_forecasts
from calibration.typing import Float64Array


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
        msg = f"`y_true` must hold two classes or more, got class {held[0]} only."
        raise ValueError(msg)
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
