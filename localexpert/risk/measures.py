"""Risk by name: `PredictiveDistribution` asked in the words of those who bear it."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import check_callable, check_targets, show
from localexpert.distribution.predictive import (
    PredictiveDistribution,
    check_distribution,
)
from localexpert.risk._validation import check_rows
from localexpert.risk.expectations import Loss, expected_losses


def exceedance(dist: PredictiveDistribution, threshold: ArrayLike) -> Float64Array:
    """Return P(Y > threshold), accurate where it is small.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    threshold : array-like that broadcasts against (n,)
        A number, or one for each row.

    Returns
    -------
    ndarray of the broadcast shape

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.risk import exceedance
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> demand = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> exceedance(demand, 1.0)
    array([0.3, 0.9])
    """
    check_distribution(dist)
    return dist.sf(check_targets(threshold, "threshold", len(dist), finite=False))


def probability_between(
    dist: PredictiveDistribution, low: ArrayLike, high: ArrayLike
) -> Float64Array:
    """Return P(low <= Y <= high).

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    low, high : array-likes that broadcast against (n,)
        Ends of the interval, both belong to it; either may be infinite.

    Returns
    -------
    ndarray of the broadcast shape

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.risk import probability_between
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> demand = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> probability_between(demand, 0.0, [1.0, 0.5])
    array([0.7, 0. ])
    """
    check_distribution(dist)
    low, high = np.broadcast_arrays(
        check_targets(low, "low", len(dist), finite=False),
        check_targets(high, "high", len(dist), finite=False),
    )
    crossed = low > high
    if crossed.any():
        msg = (
            "`low` must not be above `high`, "
            f"got {show(low[crossed].flat[0])} and {show(high[crossed].flat[0])}."
        )
        raise ValueError(msg)
    return dist.prob_between(low, high)


def value_at_risk(
    dist: PredictiveDistribution,
    level: ArrayLike,
    tail: Literal["upper", "lower"] = "upper",
) -> Float64Array:
    """Return the value that a share 1 - level of the probability lies beyond.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    level : array-like that broadcasts against (n,)
        Confidence in (0, 1).
    tail : {"upper", "lower"}
        Where the bad outcomes are. "upper" (large targets are losses): the quantile
        at `level`; "lower" (large targets are gains): the quantile at 1 - `level`.

    Returns
    -------
    ndarray of the broadcast shape

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.risk import value_at_risk
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> demand = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> value_at_risk(demand, 0.6)
    array([1., 2.])
    """
    return check_distribution(dist).value_at_risk(level, tail)


def expected_shortfall(
    dist: PredictiveDistribution,
    level: ArrayLike,
    tail: Literal["upper", "lower"] = "upper",
) -> Float64Array:
    r"""Return the mean of Y beyond its value at risk.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    level : array-like that broadcasts against (n,)
        Confidence in (0, 1).
    tail : {"upper", "lower"}
        As for `value_at_risk`.

    Returns
    -------
    ndarray of the broadcast shape

    Notes
    -----
    With v the value at risk at the level :math:`\alpha` of the upper tail,

    .. math:: v + \frac{E \max(Y - v, 0)}{1 - \alpha},

    the mean of the quantiles beyond the level; likewise below. Of a v with
    probability of its own only as much counts as makes up the share
    :math:`1 - \alpha`.

    References
    ----------
    Acerbi & Tasche (2002), On the coherence of expected shortfall.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.risk import expected_shortfall
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> demand = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> expected_shortfall(demand, [0.6, 0.5]).round(2)
    array([1.75, 2.  ])
    """
    return check_distribution(dist).expected_shortfall(level, tail)


def expected_loss(
    dist: PredictiveDistribution,
    loss: Loss,
    action: ArrayLike,
    *,
    breaks: ArrayLike | None = None,
) -> Float64Array:
    """Return E loss(Y, action).

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    loss : callable
        ``loss(y, action)`` gets values of shape (m, k) and actions of shape (m, 1)
        of some of the rows and returns finite losses of shape (m, k), element by
        element.
    action : float or array-like of shape (n,)
    breaks : array-like of shape (b,) or (n, b), optional
        Values of y besides the action at which the loss jumps or bends: a
        deductible, a cap; shared by all rows, or each row's own.

    Returns
    -------
    ndarray of shape (n,)

    Notes
    -----
    A loss may jump or bend where y passes the action or a break, as absolute,
    pinball and 0/1 losses do at the action: what jumps is found and integrated
    exactly. Losses that are smooth between and grow no faster than the fourth power
    are as exact as the moments of the forecast. Bends that are not named cost
    digits (two or three are left) and jumps more. A forecast of a few values is
    summed, whatever the loss. Beside values that y may take the loss is asked for
    some that are near the action or a break.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.risk import expected_loss
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> demand = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> expected_loss(demand, lambda y, action: abs(y - action), [1.0, 2.0])
    array([0.5, 0.1])
    """
    check_distribution(dist)
    check_callable(loss, "loss")
    actions = check_rows(action, "action", len(dist))
    return expected_losses(dist, loss, actions[:, None], breaks)[:, 0]
