"""Blends of forecasts: non-negative weights of sum 1 with the least squared error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert._kernels.simplex import simplex_least_squares

# `robust_weights` takes at most this many steps, and stops if weights change less.
_MOST_STEPS, _LITTLE = 20, 1e-3


def blend_weights(
    answers: Mapping[str, Float64Array],
    goal: NDArray[Any],
    cost: Float64Array,
    *,
    least: float,
    spared: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Return the w >= 0 with sum 1 and the least sum of cost (sum w answer - goal)^2.

    Parameters
    ----------
    answers : mapping of str to ndarray
        Forecasts by name, all of the shape of `goal`.
    goal, cost : ndarrays
        The outcomes, and the cost of a squared error at each.
    least : float
        Members with less weight are left out, and the rest is solved again.
    spared : mapping of str to float, optional
        For each member, the part of its sum that comes from independent noise. New rows
        do not have this noise.

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
    gram = errors @ errors.T
    if spared:
        less = gram - np.diag([spared[name] for name in answers])
        # Keep sums of squares positive, even if the noise was less than assumed.
        sizes, directions = np.linalg.eigh(less)
        gram = (directions * np.maximum(sizes, 0.0)) @ directions.T
    weights = simplex_least_squares(gram, least).tolist()
    return {name: w for name, w in zip(answers, weights, strict=True) if w > 0.0}


def robust_weights(
    answers: Mapping[str, Float64Array],
    y: Float64Array,
    w: Float64Array,
    *,
    least: float,
) -> dict[str, float]:
    """Return the weights with the least Huber loss, so few large errors matter little.

    The loss is quadratic up to the median of the blend's absolute errors and linear
    beyond. It is minimised by repeated least squares, with costs that follow the
    errors.

    Parameters
    ----------
    answers : mapping of str to ndarray of shape (n,)
    y, w : ndarrays of shape (n,)
        The outcomes, and their weights.
    least : float
        As in `blend_weights`.

    Returns
    -------
    dict of str to float
        Of the members that are kept, in their order.

    References
    ----------
    Huber (1964), Robust estimation of a location parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.blend import robust_weights
    >>> answers = {"low": np.zeros(5), "high": np.full(5, 4.0)}
    >>> y = np.array([0.9, 1.0, 1.0, 1.1, 99.0])  # by squares: "high" alone
    >>> weights = robust_weights(answers, y, np.ones(5), least=0.05)
    >>> {name: round(weight, 1) for name, weight in weights.items()}
    {'low': 0.7, 'high': 0.3}
    """
    cost = w
    before: dict[str, float] = {}
    for _ in range(_MOST_STEPS):
        weights = blend_weights(answers, y, cost, least=least)
        missed = np.abs(sum(x * answers[name] for name, x in weights.items()) - y)
        middle = np.quantile(missed, 0.5, weights=w, method="inverted_cdf")
        moved = max(abs(weights.get(n, 0.0) - before.get(n, 0.0)) for n in answers)
        if middle == 0.0 or moved < _LITTLE:
            break
        cost, before = w * (middle / np.maximum(missed, middle)), weights
    return weights
