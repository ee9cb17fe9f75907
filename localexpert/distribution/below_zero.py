"""How much of forecasts lies below zero where targets never did."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from localexpert._validation import check_weights
from localexpert.distribution.predictive import PredictiveDistribution, check_outcomes


def mass_below_zero(
    dist: PredictiveDistribution,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float | None:
    r"""Return the mean probability of values below zero, if no target was there.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows, out of fold where they are those of training.
    y : array-like of shape (n,)
        Targets of the rows.
    sample_weight : array-like of shape (n,), optional
        Rows of weight zero do not count.

    Returns
    -------
    float or None
        Weighted mean of :math:`P(Y_i < 0)`; None if a target lies below zero, for
        then forecasts may as well.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.distribution.below_zero import mass_below_zero
    >>> rows = [[0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[-1, 0, 2], masses=rows)
    >>> round(mass_below_zero(dist, [0.0, 2.0]), 3)
    0.15
    >>> mass_below_zero(dist, [-1.0, 2.0]) is None
    True
    """
    target = check_outcomes(y, dist)
    weight = check_weights(sample_weight, len(target))
    if (target[weight > 0.0] < 0.0).any():
        return None
    below = dist.law.cdf_left(np.zeros((len(target), 1)))[:, 0]
    return float(below @ weight / weight.sum())
