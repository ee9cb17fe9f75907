"""Blends of forecasts: the shares of a whole that have the least squared error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert._kernels.simplex import simplex_least_squares


def blend_weights(
    answers: Mapping[str, Float64Array],
    goal: NDArray[Any],
    cost: Float64Array,
    *,
    least: float,
) -> dict[str, float]:
    """Return the w >= 0 of sum 1 with the least sum of cost (sum w answer - goal)^2.

    Parameters
    ----------
    answers : mapping of str to ndarray
        Forecasts by name, all of the shape of `goal`.
    goal, cost : ndarrays
        What came, and what a squared error costs there.
    least : float
        Members with less weight are left out and the rest is solved for again.

    Returns
    -------
    dict of str to float
        Of the members that are kept, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.blend import blend_weights
    >>> answers = {"low": np.array([0.0, 0.0]), "high": np.array([4.0, 4.0])}
    >>> weights = blend_weights(answers, np.array([1.0, 1.0]), np.ones(2), least=0.05)
    >>> {name: round(weight, 12) for name, weight in weights.items()}
    {'low': 0.75, 'high': 0.25}
    """
    root = np.sqrt(cost)
    errors = np.stack([(root * (p - goal)).ravel() for p in answers.values()])
    weights = simplex_least_squares(errors @ errors.T, least).tolist()
    return {name: w for name, w in zip(answers, weights, strict=True) if w > 0.0}
