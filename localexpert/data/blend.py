"""Blends of forecasts: non-negative weights of sum 1 with the least squared error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array

# A column only enters the blend if it improves it by more than this many roundings.
_ROUNDINGS = 8.0 * np.finfo(np.float64).eps


def simplex_least_squares(gram: Float64Array, least: float = 0.0) -> Float64Array:
    """Return the w >= 0 of sum 1 with the least w' gram w.

    Let the columns of E be the errors of some forecasts, and gram = E' E. These are
    the weights of the blend with the least squared error: if weights sum to 1, the
    error of the blend is the blend of the errors. The algorithm is that of Wolfe
    (1976), Finding the nearest point in a polytope.

    Parameters
    ----------
    gram : ndarray of shape (M, M)
        Symmetric, positive semidefinite.
    least : float
        Columns with less weight are left out, and the rest is solved again. At most
        1 / M: the greatest weight is at least that.

    Returns
    -------
    ndarray of shape (M,)
        If several are the best, one that gives weight to few columns.
    """
    kept = np.arange(len(gram))
    while True:
        weights = _nearest_point(gram[np.ix_(kept, kept)])
        stays = weights >= least
        if stays.all():
            out = np.zeros(len(gram))
            out[kept] = weights
            return out
        kept = kept[stays]


def _nearest_point(gram: Float64Array) -> Float64Array:
    """Minimise w' gram w over the simplex by an active set that starts at a corner."""
    w = np.zeros(len(gram))
    w[np.argmin(gram.diagonal())] = 1.0
    tolerance = _ROUNDINGS * len(gram) * np.abs(gram).max()
    seen: set[bytes] = set()
    # Each set of columns is followed by one with a lesser optimum, so none comes again.
    # Only by rounding it may. Then there is nothing left to gain.
    while (held := w > 0.0).tobytes() not in seen:
        seen.add(held.tobytes())
        # Kuhn & Tucker: at the optimum no column has less slope than the blend.
        slopes = gram @ w
        slopes -= w @ slopes
        entering = np.argmin(slopes)
        if slopes[entering] >= -tolerance:
            break
        held[entering] = True
        w = _walk_inside(gram, w, held)
    return w


def _walk_inside(
    gram: Float64Array, w: Float64Array, held: NDArray[np.bool_]
) -> Float64Array:
    """Return the best blend of held columns. Columns that fall to 0 are dropped."""
    while True:
        goal = _best_of_sum_one(gram, held)
        falling = held & (goal <= 0.0)
        if not falling.any():
            return goal
        # Go towards the goal until the first weight becomes 0.
        descent = np.maximum(w[falling] - goal[falling], np.finfo(np.float64).tiny)
        step = np.min(w[falling] / descent)
        w = w + step * (goal - w)
        held = held & ~(falling & (w <= _ROUNDINGS))
        w = np.where(held, np.maximum(w, 0.0), 0.0)


def _best_of_sum_one(gram: Float64Array, held: NDArray[np.bool_]) -> Float64Array:
    """Minimise w' gram w over w with sum 1 of any sign. Weights not held are 0.

    Lagrange's conditions, gram w + c 1 = 0 and 1' w = 1, are one linear system. It is
    solved by least squares, so equal columns share their weight.
    """
    k = int(held.sum())
    system = np.ones((k + 1, k + 1))
    inner = gram[np.ix_(held, held)]
    system[:k, :k] = inner / (np.abs(inner).max() or 1.0)
    system[k, k] = 0.0
    out = np.zeros(len(gram))
    out[held] = np.linalg.lstsq(system, np.eye(k + 1)[k], rcond=None)[0][:k]
    return out


# Members with less weight cost more time than they are worth.
LEAST_WEIGHT = 0.05
# `robust_weights` takes at most this many steps, and stops if weights change less.
_MOST_STEPS, _LITTLE = 20, 1e-3


def blend_weights(
    answers: Mapping[str, Float64Array],
    goal: NDArray[Any],
    cost: Float64Array,
    *,
    least: float = LEAST_WEIGHT,
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
    least: float = LEAST_WEIGHT,
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
