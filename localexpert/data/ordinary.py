"""The ordinary range of a target: what lies far outside must not steer a fit."""

from __future__ import annotations

import warnings

import numpy as np

from calibration import CalibrationWarning
from calibration.typing import Float64Array

# Values are far out where the distance to the median grows at once by this factor...
_LEAST_JUMP = 50.0
# ...whose logarithm is so many times the mean log excess of those below it: of values
# with a power law as their tail one jump in e^15 is so long, whatever the power.
_LEAST_EXCESSES = 15.0
# That mean is taken over the upper tenth of those below, and over so many at least.
_TENTH, _LEAST_BELOW = 10, 20
# Values that hold more than this share of the weight are a part of the target.
_MOST_SHARE = 0.02
# One value in more rows than that, up to this share, may be a code for missing ones.
_MOST_CODES = 0.4


def ordinary_range(
    y: Float64Array, weight: Float64Array, most_share: float = _MOST_SHARE
) -> tuple[float, float]:
    """Return the least and the greatest value that are not far out.

    Parameters
    ----------
    y, weight : ndarrays of shape (n,)
        Rows of weight zero are absent.
    most_share : float
        Far values hold no more of the weight than this, or than a row on average.

    Returns
    -------
    (float, float)
        Infinite on both sides where nothing is far out, as of nearly all targets.

    Notes
    -----
    With d the distances to the median in increasing order, the values from d_(j + 1)
    on are far out if log(d_(j + 1) / d_j) is at least log(50) and 15 times Hill's
    estimate (1975) of the tail's index from the distances up to d_j. The spacings of
    the logarithms of a Pareto tail are exponential with at most that index as their
    mean, so heavy tails have such a jump once in a million samples.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.ordinary import ordinary_range
    >>> y = np.append(np.linspace(0.0, 1.0, 100), 1e20)
    >>> ordinary_range(y, np.ones(101))
    (0.0, 1.0)
    """
    present = weight > 0.0
    y, weight = y[present], weight[present]
    order = np.argsort(y, kind="stable")
    upto = np.cumsum(weight[order])
    total = upto[-1]
    # Halved, for the distance of two finite numbers may be infinite.
    distance = np.abs(0.5 * y - 0.5 * y[order][np.searchsorted(upto, 0.5 * total)])
    order = np.argsort(distance, kind="stable")
    beyond = total - np.cumsum(weight[order])
    # Values at the median itself say nothing of a spread.
    apart = distance[order] > 0.0
    steps, beyond = distance[order][apart], beyond[apart]
    few = beyond <= max(most_share * total, total / len(y))
    logs = np.log(steps)
    jumps = np.diff(logs)
    for j in np.flatnonzero(few[:-1] & (jumps > np.log(_LEAST_JUMP))).tolist():
        n_below = max(_LEAST_BELOW, (j + 1) // _TENTH)
        below = logs[max(j + 1 - n_below, 0) : j + 1]
        if n_below <= j + 1 and jumps[j] > _LEAST_EXCESSES * (below - below[0]).mean():
            held = y[distance <= steps[j]]
            return float(held.min()), float(held.max())
    return -np.inf, np.inf


def warn_of_far(y: Float64Array, weight: Float64Array) -> None:
    """Name the values that are far out: most often they stand for missing ones."""
    low, high = ordinary_range(y, weight)
    rule = "how far out they are has no say in the fit, only that they are."
    if np.isinf(high):
        # So many rows are a part of the target, but they may still be a code.
        low, high = ordinary_range(y, weight, _MOST_CODES)
        rule = "they are forecast like any other value."
    values, counts = np.unique(
        y[(weight > 0.0) & ((y < low) | (y > high))], return_counts=True
    )
    n_far = counts.sum()
    is_code = len(values) == 1 and values[0] != 0.0
    if n_far == 0 or not (is_code or n_far <= max(_MOST_SHARE * len(y), 1.0)):
        return
    msg = (
        f"`y` is far from all its other values, {low:g} to {high:g}, in {n_far} of "
        f"{len(y)} rows, most often {values[np.argmax(counts)]:g} ({counts.max()}). "
        f"Leave these rows out if they stand for missing values; {rule}"
    )
    warnings.warn(msg, CalibrationWarning, stacklevel=3)
