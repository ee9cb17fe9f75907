"""Values of a target: how frequent they are, and which are outliers."""

from __future__ import annotations

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.unseen import warn_user

# Values are far out if the distance to the median jumps by at least this factor...
_LEAST_JUMP = 50.0
# ...and if the jump is very rare. If the tail were a power law of any power, one sample
# in this many would have such a jump.
_SAMPLES = 1e6
# With few rows the tail is hardly known. Then this logarithm of the factor is enough.
_SURE = 25.0
# Distances to the median that are below this share of its size are rounding errors.
_ROUNDING = 1e-12
# The power is estimated from the upper tenth of the distances below the jump. At least
# this many of them are used, but no more than half.
_TENTH, _LEAST_BELOW = 10, 20
# Values that hold more than this share of the weight are a part of the target.
_MOST_SHARE = 0.02
# Values in as many rows as make an atom are also a part, if the sample is not small.
_MOST_ROWS, _MOST_SHARE_OF_FEW = 5.0, 0.1
# A value with more rows than that, up to this share, may be a code for missing values.
_MOST_CODES = 0.4


def range_without_outliers(
    y: Float64Array, weight: Float64Array, most_share: float = _MOST_SHARE
) -> tuple[float, float]:
    """Return the least and the greatest value that are not far out.

    Parameters
    ----------
    y, weight : ndarrays of shape (n,)
        Rows of weight zero are absent.
    most_share : float
        Far values hold at most this share of the weight, or that of an average row.

    Returns
    -------
    (float, float)
        Infinite on both sides if nothing is far out, which is the usual case.

    Notes
    -----
    Let d be the distances to the median in increasing order. The values from d_(j + 1)
    on are far out if the jump J = log(d_(j + 1) / d_j) is at least log(50), and

        (1 + J / (k H))^(-k) < 1e-6,

    where H is the mean of log(d_i / d_(j - k)), i = j - k + 1, ..., j. This is Hill's
    estimate (1975). The logarithms of a Pareto tail have exponential spacings, and the
    last one is the longest. Its scale is about H, and the left side is the chance that
    it is this long. For k < 20 a J above 25 is enough.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.target_values import range_without_outliers
    >>> y = np.append(np.linspace(0.0, 1.0, 100), 1e20)
    >>> range_without_outliers(y, np.ones(101))
    (0.0, 1.0)
    """
    present = weight > 0.0
    y, weight = y[present], weight[present]
    order = np.argsort(y, kind="stable")
    upto = np.cumsum(weight[order])
    total = upto[-1]
    # Take halves, because the distance of two finite numbers may be infinite.
    median = y[order][np.searchsorted(upto, 0.5 * total)]
    distance = np.abs(0.5 * y - 0.5 * median)
    order = np.argsort(distance, kind="stable")
    beyond = total - np.cumsum(weight[order])
    # Values at the median itself tell nothing about the spread.
    apart = distance[order] > _ROUNDING * abs(median)
    steps, beyond = distance[order][apart], beyond[apart]
    atom = min(_MOST_ROWS, _MOST_SHARE_OF_FEW * total) * (1.0 - 1e-9)
    few = beyond <= max(most_share * total, total / len(y), atom)
    logs = np.log(steps)
    jumps = np.diff(logs)
    for j in np.flatnonzero(few[:-1] & (jumps > np.log(_LEAST_JUMP))).tolist():
        k = min(max(_LEAST_BELOW, j // _TENTH), j // 2)
        excesses = logs[j - k + 1 : j + 1] - logs[j - k]
        # The formula, solved for J. A few equal distances have no scale. Many equal
        # ones are a scale of their own.
        longest = k * (_SAMPLES ** (1.0 / k) - 1.0) * excesses.mean() if k else 0.0
        if k < _LEAST_BELOW:
            longest = min(longest or np.inf, _SURE)
        if jumps[j] > longest:
            held = y[distance <= steps[j]]
            return float(held.min()), float(held.max())
    return -np.inf, np.inf


def warn_of_outliers(y: Float64Array, weight: Float64Array) -> None:
    """Warn of values that are far out. Most often they stand for missing values."""
    low, high = range_without_outliers(y, weight)
    rule = "how far out they are has no say in the fit, only that they are."
    if np.isinf(high):
        # This many rows are a part of the target, but their value may still be a code.
        low, high = range_without_outliers(y, weight, _MOST_CODES)
        rule = "they are forecast like any other value."
    far = y[(weight > 0.0) & ((y < low) | (y > high))]
    values, counts = np.unique(far, return_counts=True)
    n_far = len(far)
    is_code = len(values) == 1 and values[0] != 0.0
    if n_far == 0 or not (is_code or n_far <= max(_MOST_SHARE * len(y), 1.0)):
        return
    warn_user(
        f"`y` is far from all its other values, {low:g} to {high:g}, in {n_far} of "
        f"{len(y)} rows, most often {values[np.argmax(counts)]:g} ({counts.max()}). "
        f"Leave these rows out if they stand for missing values; {rule}"
    )


# The ninth decile over the first, from which on the logarithm may be simpler.
_MAGNITUDES = 30.0


def is_skewed(y: Float64Array) -> bool:
    """Say whether the logarithm of a target may be simpler.

    That is so if its skewness is above 1 (that of an exponential law is 2, that of a
    normal one is 0), or if most of it spreads over more than a magnitude.
    """
    low, high = np.quantile(y, [0.1, 0.9])
    wide = 0.0 < _MAGNITUDES * low < high
    return bool(wide or np.mean((y - y.mean()) ** 3) > np.std(y) ** 3)


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
    >>> from localexpert.data.target_values import count_values
    >>> values, weights = count_values(np.array([2.0, 1.0, 2.0]), np.ones(3))
    >>> print(values, weights)
    [1. 2.] [1. 2.]
    """
    held = weight > 0.0
    values, place = np.unique(y[held], return_inverse=True)
    return values, np.bincount(place, weight[held]).astype(np.float64)
