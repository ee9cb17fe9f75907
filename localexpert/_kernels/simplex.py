"""The blend of columns with the least square: weights that are shares of a whole."""

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array

# How far, in roundings, a column must promise to improve the blend before it enters.
_ROUNDINGS = 8.0 * np.finfo(np.float64).eps


def simplex_least_squares(gram: Float64Array, least: float = 0.0) -> Float64Array:
    """Return the w >= 0 of sum 1 with the least w' gram w.

    With the columns of E the errors of some forecasts and gram = E' E these are the
    weights of the blend with the least squared error: where weights sum to 1 the
    blend's error is the blend of the errors. Its kind of problem is as old as Wolfe
    (1976), Finding the nearest point in a polytope, whose algorithm this is.

    Parameters
    ----------
    gram : ndarray of shape (M, M)
        Symmetric, positive semidefinite.
    least : float
        Columns of less weight are left out and the rest is solved for again; at most
        1 / M, which the greatest weight has.

    Returns
    -------
    ndarray of shape (M,)
        Of several best ones one that gives weight to few columns.
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
    # Every set of columns is left for one with a lesser optimum, so that none comes
    # again; by rounding one may, and then there is nothing left to gain.
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
    """Return the best blend of held columns, or of those left where some fall to 0."""
    while True:
        goal = _best_of_sum_one(gram, held)
        falling = held & (goal <= 0.0)
        if not falling.any():
            return goal
        # As far towards the goal as no weight becomes negative.
        descent = np.maximum(w[falling] - goal[falling], np.finfo(np.float64).tiny)
        step = np.min(w[falling] / descent)
        w = w + step * (goal - w)
        held = held & ~(falling & (w <= _ROUNDINGS))
        w = np.where(held, np.maximum(w, 0.0), 0.0)


def _best_of_sum_one(gram: Float64Array, held: NDArray[np.bool_]) -> Float64Array:
    """Minimise w' gram w over w of sum 1 of any sign, 0 where not held.

    The conditions of Lagrange, gram w + c 1 = 0 and 1' w = 1, as one linear system;
    by least squares, which shares out weight between columns that are the same.
    """
    k = int(held.sum())
    system = np.ones((k + 1, k + 1))
    inner = gram[np.ix_(held, held)]
    system[:k, :k] = inner / (np.abs(inner).max() or 1.0)
    system[k, k] = 0.0
    out = np.zeros(len(gram))
    out[held] = np.linalg.lstsq(system, np.eye(k + 1)[k], rcond=None)[0][:k]
    return out
