"""The marginal distribution of a sample: smooth quantiles, and tails by likelihood."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri

from calibration.typing import Float64Array

# Most points that the quantile curve is smoothed from.
_MAX_POINTS = 2048
# Width of the Gaussian window in probit at n = 1, shrinking with n^(-1/5).
_WINDOW = 1.4
_LEAST_WINDOW = 0.06
# Least dr/dt as a share of the central spread, of the whole spread, and of max |r|.
_LEAST_CENTRAL, _LEAST_OVERALL, _LEAST_RELATIVE = 1e-3, 1e-6, 1e-12
# Most values that a tail is fitted to.
_MAX_EXCESSES = 600
# Spreads of a tail's priors: of its shape around 0, of log(scale) around the curve's.
# The second is narrow: a tail of another scale than the curve would put a kink in the
# density where the two meet.
_SHAPE_SPREAD, _SCALE_SPREAD = 0.15, 0.02
_LEAST_SHAPE = -0.5


def smooth_quantiles(
    values: Float64Array, weight: Float64Array, levels: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the smoothed quantile curve and its slope dr/dt at the levels.

    A line of Q with slope s_j between scores t_j and t_{j+1} adds, to the slope of
    the curve smoothed by a normal window h, s_j (Phi((t_{j+1} - t) / h) -
    Phi((t_j - t) / h)): a mean of slopes, so never negative. The value is its
    integral: Q(t_0) plus the kinks of Q times h psi((t - t_j) / h), psi' = Phi.
    """
    n = weight.sum()
    scores = ndtri((np.cumsum(weight) - 0.5 * weight) / n)
    overall = (weight * scores) @ values / max((weight * scores) @ scores, 1e-300)
    if len(values) > _MAX_POINTS:
        grid = np.linspace(scores[0], scores[-1], _MAX_POINTS)
        scores, values = grid, np.interp(grid, scores, values)
    # The rate n^(-1/5) is that of the least mean squared error of a smoothed curve.
    window = max(_WINDOW * max(n, 1.0) ** -0.2, _LEAST_WINDOW)
    first, last = _outer_slopes(scores, values)
    chords = np.concatenate([[first], np.diff(values) / np.diff(scores), [last]])
    gaps = (levels[:, None] - scores) / window
    below = ndtr(gaps)
    rates = chords[0] + below @ np.diff(chords)
    density = np.exp(-0.5 * gaps**2) / np.sqrt(2.0 * np.pi)
    kinks = (gaps * below + density) @ np.diff(chords)
    points = values[0] + chords[0] * (levels - scores[0]) + window * kinks
    # Ties give a narrow distribution, not a jump.
    central = (points[-1] - points[0]) / (levels[-1] - levels[0])
    least = _LEAST_RELATIVE * (np.abs(values).max() or 1.0)
    floor = max(_LEAST_CENTRAL * central, _LEAST_OVERALL * overall, least, 1e-150)
    steps = np.maximum(np.diff(points), floor * np.diff(levels))
    path = np.concatenate([[0.0], np.cumsum(steps)])
    middle = len(levels) // 2
    return points[middle] + (path - path[middle]), np.maximum(rates, floor)


def _outer_slopes(scores: Float64Array, values: Float64Array) -> Float64Array:
    """Return the slopes of Q over the last 3/4 of a probit unit at both ends, (2,)."""
    ends = scores[[0, -1]]
    inner = np.clip(ends + np.array([0.75, -0.75]), *ends)
    run, rise = ends - inner, values[[0, -1]] - np.interp(inner, scores, values)
    return np.asarray(np.divide(rise, run, out=np.zeros(2), where=run != 0.0))


def fit_tail(
    excess: Float64Array, weight: Float64Array, scale: float, max_shape: float
) -> tuple[float, float]:
    """Return scale and shape of a tail by penalised likelihood.

    `scale` is the curve's, the centre of the prior; without any excess it is kept.
    """
    start = min(0.0, max_shape)
    if len(excess) == 0:
        return scale, start
    v, weight = _condense(excess / scale, weight)
    n = weight.sum()

    def loss(theta: Float64Array) -> float:
        log_scale, shape = theta
        u = v * np.exp(-log_scale)
        if shape > 0.0:
            growth = np.log1p(shape * u)
            likelihood = weight @ (-growth - growth / shape)
        else:
            likelihood = weight @ (np.log1p(-shape * u) - u + 0.5 * shape * u * u)
        penalty = (log_scale / _SCALE_SPREAD) ** 2 + (shape / _SHAPE_SPREAD) ** 2
        return float((n * log_scale - likelihood + 0.5 * penalty) / max(n, 1.0))

    found = minimize(
        loss,
        np.array([0.0, start]),
        method="L-BFGS-B",
        bounds=[(-5.0, 5.0), (_LEAST_SHAPE, max_shape)],
    )
    return scale * float(np.exp(found.x[0])), float(found.x[1])


def _condense(
    values: Float64Array, weight: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Replace groups of increasing values by means; the largest stay single."""
    n = len(values)
    if n <= _MAX_EXCESSES:
        return values, weight
    ranks = np.unique(np.geomspace(1.0, n, _MAX_EXCESSES).astype(np.int64))
    starts = (n - ranks)[::-1]
    total = np.add.reduceat(weight, starts)
    return np.add.reduceat(weight * values, starts) / total, total
