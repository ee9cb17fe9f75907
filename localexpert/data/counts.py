"""Distinct values of a target, and how often they were met."""

from __future__ import annotations

import numpy as np

from calibration.typing import Float64Array


def count_values(
    y: Float64Array, weight: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the distinct values that have weight, increasing, and their weights.

    Parameters
    ----------
    y, weight : ndarrays of shape (n,)

    Returns
    -------
    values, weights : ndarrays of shape (V,)

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.counts import count_values
    >>> values, weights = count_values(np.array([2.0, 1.0, 2.0]), np.ones(3))
    >>> print(values, weights)
    [1. 2.] [1. 2.]
    """
    held = weight > 0.0
    values, place = np.unique(y[held], return_inverse=True)
    return values, np.bincount(place, weight[held]).astype(np.float64)
