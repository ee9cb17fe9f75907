"""The best thing to do: order quantities, the best of some actions, what one costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import check_callable, check_flag, check_targets, show
from localexpert.distribution.predictive import (
    PredictiveDistribution,
    check_distribution,
)
from localexpert.risk.expectations import Loss, expected_losses


@dataclass(frozen=True, eq=False)
class NewsvendorDecision:
    """Decisions of least expected cost where over and under cost differently.

    Parameters
    ----------
    action : ndarray of shape (n,)
        The decisions.
    expected_cost : ndarray of shape (n,)
        What they cost in the mean.
    fractile : ndarray of shape (n,)
        Level of the quantiles that the decisions are.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.risk import newsvendor
    >>> rows = [[0.2, 0.5, 0.3]]
    >>> demand = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> newsvendor(demand, underage=3.0, overage=1.0).fractile
    array([0.75])
    """

    action: Float64Array
    expected_cost: Float64Array
    fractile: Float64Array


@dataclass(frozen=True, eq=False)
class BestAction:
    """For every row the action of least expected loss.

    Parameters
    ----------
    action : ndarray of shape (n,)
        The actions chosen.
    expected_loss : ndarray of shape (n,)
        Their expected losses.
    chosen : ndarray of shape (n,)
        Their places among the row's actions.
    table : ndarray of shape (n, A) or None
        Expected losses of all actions, if they were asked for.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.risk import best_action
    >>> rows = [[0.2, 0.5, 0.3]]
    >>> demand = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> best = best_action(demand, lambda y, a: (y - a) ** 2, [0.0, 1.0, 2.0])
    >>> best.action, best.chosen
    (array([1.]), array([1]))
    """

    action: Float64Array
    expected_loss: Float64Array
    chosen: NDArray[np.int64]
    table: Float64Array | None = None


def newsvendor(
    dist: PredictiveDistribution, *, underage: ArrayLike, overage: ArrayLike
) -> NewsvendorDecision:
    r"""Return the decisions of least expected cost for linear costs on both sides.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows: demand, price, or whatever is to be met.
    underage : float or array-like of shape (n,)
        Cost of each unit that the decision is too small by, positive.
    overage : float or array-like of shape (n,)
        Cost of each unit that the decision is too large by, positive.

    Returns
    -------
    NewsvendorDecision

    Notes
    -----
    With u the underage and o the overage, the cost of the decision a is

    .. math:: u \max(Y - a, 0) + o \max(a - Y, 0),

    least in the mean at the quantile of level u / (u + o), the critical fractile.
    Of several best decisions it is the smallest.

    References
    ----------
    Arrow, Harris & Marschak (1951), Optimal inventory policy.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.risk import newsvendor
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> demand = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> order = newsvendor(demand, underage=1.0, overage=1.0)
    >>> order.action, order.expected_cost
    (array([1., 2.]), array([0.5, 0.1]))
    """
    check_distribution(dist)
    under = check_costs(underage, "underage", len(dist), positive=True)
    over = check_costs(overage, "overage", len(dist), positive=True)
    # d/da of under E(Y - a)+ + over E(a - Y)+ is 0 where F(a) is this (Arrow et al.).
    fractile = under / (under + over)
    action = dist.ppf(fractile)
    too_large, too_small = dist.partial_means(action)
    return NewsvendorDecision(action, under * too_small + over * too_large, fractile)


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


def best_action(
    dist: PredictiveDistribution,
    loss: Loss,
    actions: ArrayLike,
    *,
    breaks: ArrayLike | None = None,
    keep_table: bool = False,
) -> BestAction:
    """Return for every row the action of least expected loss.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    loss : callable
        ``loss(y, action)`` as for `expected_loss`.
    actions : array-like of shape (A,) or (n, A)
        What may be done: the same for all rows, or each row's own.
    breaks : array-like of shape (b,) or (n, b), optional
        As for `expected_loss`.
    keep_table : bool
        Whether to return the expected losses of all actions, too.

    Returns
    -------
    BestAction
        Of several best actions the first.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.risk import best_action
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> demand = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> import numpy as np
    >>> def loss(y, action):  # a unit costs 1, a sale earns 3, a customer lost 1
    ...     sold = np.minimum(y, action)
    ...     return action - 3.0 * sold + (y - sold)
    >>> best = best_action(demand, loss, [0.0, 1.0, 2.0])
    >>> best.action, best.expected_loss
    (array([2., 2.]), array([-1.3, -3.7]))
    """
    check_distribution(dist)
    check_callable(loss, "loss")
    check_flag(keep_table, "keep_table")
    grid = _check_actions(actions, len(dist))
    table = expected_losses(dist, loss, grid, breaks)
    chosen = np.argmin(table, axis=1)
    rows = np.arange(len(dist))
    return BestAction(
        grid[rows, chosen],
        table[rows, chosen],
        chosen,
        table if keep_table else None,
    )


def _check_actions(actions: ArrayLike, n: int) -> Float64Array:
    """Return the actions of every row, (n, A)."""
    shape = np.shape(actions)
    fits = len(shape) == 1 or (len(shape) == 2 and shape[0] == n)
    if not fits or shape[-1] == 0:
        msg = (
            f"`actions` must have shape (A,) or ({n}, A) with A >= 1, "
            f"got shape {shape}."
        )
        raise ValueError(msg)
    columns = np.transpose(actions) if len(shape) == 2 else np.asarray(actions)[:, None]
    return check_targets(columns, "actions", n).T


def check_rows(values: ArrayLike, name: str, n: int) -> Float64Array:
    """Return finite values of shape (n,); a number stands for all rows."""
    array = check_targets(values, name, n)
    if array.ndim > 1:
        msg = (
            f"`{name}` must be a number or have shape ({n},), got shape {array.shape}."
        )
        raise ValueError(msg)
    return array


def check_costs(
    values: ArrayLike, name: str, n: int, *, positive: bool = False
) -> Float64Array:
    """Return costs of shape (n,), none negative, or all above 0 if `positive`."""
    costs = check_rows(values, name, n)
    wrong = costs <= 0.0 if positive else costs < 0.0
    if wrong.any():
        i = int(np.argmax(wrong))
        rule = "be positive" if positive else "not be negative"
        msg = f"`{name}` must {rule}, got {show(costs[i])} in row {i}."
        raise ValueError(msg)
    return costs
