"""Decisions: orders, the best of some actions, classes by their costs, letters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    check_callable,
    check_flag,
    check_in_unit,
    check_integer,
    check_level,
    check_same_length,
    check_weights,
    make_rng,
    refuse,
    show,
)
from calibration.typing import Float64Array
from localexpert._validation import check_array, check_probability_rows, check_targets
from localexpert.distribution.predictive import (
    PredictiveDistribution,
    check_distribution,
)
from localexpert.law.steps import scores_of
from localexpert.risk.expectations import Loss, expected_losses


@dataclass(frozen=True, eq=False)
class NewsvendorDecision:
    """Decisions of least expected cost if too much and too little cost differently.

    Parameters
    ----------
    action : ndarray of shape (n,)
        The decisions.
    expected_cost : ndarray of shape (n,)
        Their expected costs.
    fractile : ndarray of shape (n,)
        The decisions are the quantiles of these levels.

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
    """The action of least expected loss for every row.

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
        Forecasts of n rows, such as demand or price.
    underage : float or array-like of shape (n,)
        Cost of each missing unit if the decision is too small, positive.
    overage : float or array-like of shape (n,)
        Cost of each extra unit if the decision is too large, positive.

    Returns
    -------
    NewsvendorDecision

    Notes
    -----
    With u the underage and o the overage, the cost of the decision a is

    .. math:: u \max(Y - a, 0) + o \max(a - Y, 0).

    Its mean is least at the quantile of level u / (u + o), the critical fractile. If
    several decisions are best, the smallest is returned.

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
    short, long = np.array([under, over]) / np.maximum(under, over)
    fractile = short / (short + long)
    # A level that rounds to 1 still has a score.
    far = dist.law.ppf_scores(scores_of(fractile, long / (short + long))[:, None])
    action = np.where(fractile == 1.0, far[:, 0], dist.ppf(fractile))
    endless = ~np.isfinite(action)
    if endless.any():
        rule = "leave the decision finite"
        refuse("underage", rule, f"{show(under[endless][0])} beside a tail without end")
    too_large, too_small = dist.partial_means(action)
    with np.errstate(over="ignore"):
        cost = under * too_small + over * too_large
    return NewsvendorDecision(action, cost, fractile)


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
        for some of the rows. It returns finite losses of shape (m, k), element by
        element.
    action : float or array-like of shape (n,)
    breaks : array-like of shape (b,) or (n, b), optional
        More values of y at which the loss jumps or bends, such as a deductible or a
        cap. All rows share them, or each row has its own.

    Returns
    -------
    ndarray of shape (n,)

    Notes
    -----
    A loss may jump or bend where y passes the action or a break, as absolute, pinball
    and 0/1 losses do at the action. Such jumps and bends are found and integrated
    exactly. If the loss is smooth between them and grows no faster than the fourth
    power, the result is as exact as the moments of the forecast. A bend that is not
    named leaves two or three digits, and a jump leaves fewer. A forecast of a few
    values is summed, whatever the loss. The loss is also called for some values near
    the action or a break that y may not take.

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
    """Return the action of least expected loss for every row.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    loss : callable
        ``loss(y, action)`` as for `expected_loss`.
    actions : array-like of shape (A,) or (n, A)
        Possible actions: the same for all rows, or each row's own.
    breaks : array-like of shape (b,) or (n, b), optional
        As for `expected_loss`.
    keep_table : bool
        Whether to return the expected losses of all actions, too.

    Returns
    -------
    BestAction
        If several actions are best, the first.

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
    chosen, kept = np.argmin(table, axis=1), table if keep_table else None
    action = grid[np.arange(len(dist)), chosen]
    return BestAction(action, table.min(axis=1), chosen, kept)


def _check_actions(actions: ArrayLike, n: int) -> Float64Array:
    """Return the actions of every row, (n, A)."""
    shape = np.shape(actions)
    fits = len(shape) == 1 or (len(shape) == 2 and shape[0] == n)
    if not fits or shape[-1] == 0:
        refuse("actions", f"have shape (A,) or ({n}, A) with A >= 1", f"shape {shape}")
    columns = np.transpose(actions) if len(shape) == 2 else np.asarray(actions)[:, None]
    return check_targets(columns, "actions", n).T


def check_rows(values: ArrayLike, name: str, n: int) -> Float64Array:
    """Return finite values of shape (n,); a number stands for all rows."""
    array = check_targets(values, name, n)
    if array.shape != (n,):
        refuse(name, f"be a number or have shape ({n},)", f"shape {array.shape}")
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
        refuse(name, rule, f"{show(costs[i])} in row {i}")
    return costs


@dataclass(frozen=True, eq=False)
class CostDecision:
    """Decisions of least expected cost.

    Parameters
    ----------
    decision : ndarray of shape (n,)
        Row of the cost matrix that is chosen.
    expected_cost : ndarray of shape (n,)
        Its expected cost.

    Examples
    --------
    >>> from localexpert.risk import cost_decision
    >>> cost_decision([0.1, 0.4], [[0.0, 5.0], [1.0, 0.0]])
    CostDecision(decision=array([0, 1]), expected_cost=array([0.5, 0.6]))
    """

    decision: NDArray[np.int64]
    expected_cost: Float64Array


def cost_decision(probabilities: ArrayLike, costs: ArrayLike) -> CostDecision:
    r"""Return the decision of least expected cost for every row.

    Parameters
    ----------
    probabilities : array-like of shape (n,) or (n, k)
        Calibrated probabilities: of class 1 if there are two, or of all k classes.
    costs : array-like of shape (d, k)
        ``costs[i, j]`` is the cost of the decision i if class j comes; a gain is
        negative. Often d = k, and decision i means to act as if class i came.

    Returns
    -------
    CostDecision
        If several decisions are best, the first.

    Notes
    -----
    The expected cost of the decision i is :math:`\sum_j P(j | x) C_{ij}`.

    References
    ----------
    Elkan (2001), The foundations of cost-sensitive learning.

    Examples
    --------
    Give a loan (0) or refuse it (1). Customers repay (0) or default (1). A lost loan
    costs five times as much as a good customer who was refused.

    >>> from localexpert.risk import cost_decision
    >>> cost_decision([0.1, 0.4], costs=[[0.0, 5.0], [1.0, 0.0]]).decision
    array([0, 1])
    """
    matrix = _check_matrix(costs)
    expected = _class_probabilities(probabilities, matrix.shape[1]) @ matrix.T
    return CostDecision(np.argmin(expected, axis=1), expected.min(axis=1))


def decision_threshold(costs: ArrayLike) -> float:
    r"""Return the probability of class 1 above which decision 1 is best, of two.

    Parameters
    ----------
    costs : array-like of shape (2, 2)
        ``costs[i, j]`` is the cost of decision i if class j comes. For each class the
        wrong decision must cost more than the right one.

    Returns
    -------
    float
        In (0, 1).

    Notes
    -----
    .. math:: \frac{C_{10} - C_{00}}{C_{10} - C_{00} + C_{01} - C_{11}}

    References
    ----------
    Elkan (2001), The foundations of cost-sensitive learning, eq. 2.

    Examples
    --------
    >>> from localexpert.risk import decision_threshold
    >>> decision_threshold([[0.0, 4.0], [1.0, 0.0]])
    0.2
    """
    matrix = check_array(costs, "costs", (2, 2))
    false_alarm = matrix[1, 0] - matrix[0, 0]
    miss = matrix[0, 1] - matrix[1, 1]
    if false_alarm <= 0.0 or miss <= 0.0:
        rule = "be higher for the wrong decision than for the right one"
        refuse("costs", rule, matrix.tolist())
    return float(false_alarm / (false_alarm + miss))


def realised_cost(
    decision: ArrayLike,
    y_true: ArrayLike,
    costs: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean cost of decisions when the classes are known.

    Parameters
    ----------
    decision : array-like of shape (n,)
        Rows of the cost matrix.
    y_true : array-like of shape (n,)
        Classes that came, coded 0 to k - 1.
    costs : array-like of shape (d, k)
        As for `cost_decision`.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.

    Returns
    -------
    float

    Examples
    --------
    >>> from localexpert.risk import realised_cost
    >>> realised_cost([0, 1, 1, 0], [0, 1, 0, 1], [[0.0, 5.0], [1.0, 0.0]])
    1.5
    """
    matrix = _check_matrix(costs)
    decided = _check_codes(decision, "decision", matrix.shape[0])
    came = _check_codes(y_true, "y_true", matrix.shape[1])
    check_same_length(len(decided), "`decision`", len(came), "y_true")
    paid = matrix[decided, came]
    weights = check_weights(sample_weight, len(paid))
    return float(weights @ paid / weights.sum())


def _check_matrix(costs: ArrayLike) -> Float64Array:
    """Return a cost matrix of at least one decision and two classes."""
    matrix = check_array(costs, "costs", (None, None))
    if matrix.shape[0] < 1 or matrix.shape[1] < 2:
        rule = "have a row per decision and a column for each of at least two classes"
        refuse("costs", rule, f"shape {matrix.shape}")
    return matrix


def _class_probabilities(probabilities: ArrayLike, k: int) -> Float64Array:
    """Return the probabilities of all classes, (n, k)."""
    if np.ndim(probabilities) != 1:
        return check_probability_rows(probabilities, "probabilities", k)
    if k != 2:
        rule = f"have shape (n, {k}) for {k} classes"
        refuse("probabilities", rule, f"shape {np.shape(probabilities)}")
    p = check_array(probabilities, "probabilities", (None,))
    if p.size:
        check_in_unit(float(p.min()), float(p.max()), "probabilities")
    return np.column_stack([1.0 - p, p])


def _check_codes(values: ArrayLike, name: str, k: int) -> NDArray[np.int64]:
    """Return whole numbers from 0 to k - 1, at least one."""
    codes = check_array(values, name, (None,))
    if codes.size == 0:
        refuse(name, "hold at least one value", "none")
    wrong = (codes < 0.0) | (codes >= k) | (codes != np.floor(codes))
    if wrong.any():
        i = int(np.argmax(wrong))
        rule = f"hold whole numbers from 0 to {k - 1}"
        refuse(name, rule, f"{show(codes[i])} at position {i}")
    return codes.astype(np.int64)


# Draws of the bootstrap held in memory at a time.
_CHUNK = 2**21


@dataclass(frozen=True, eq=False)
class PolicyProfit:
    """Profit of sending to those with probability x amount > cost.

    Parameters
    ----------
    send : ndarray of shape (n,)
        Whether a row is sent to.
    share_sent : float
        Share of the rows that are sent to.
    expected_profit : float
        Profit that the forecasts expect, all rows together.
    realised_profit : float
        Receipts less the cost of sending, all rows together.
    interval : (float, float)
        Bootstrap interval of the realised profit.

    Examples
    --------
    >>> from localexpert.risk import policy_profit
    >>> received = [0.0, 5.0, 0.0, 4.0]
    >>> result = policy_profit([0.5, 0.5, 0.1, 0.9], 4.0, cost=1.0, received=received)
    >>> result.send, result.share_sent
    (array([ True,  True, False,  True]), 0.75)
    """

    send: NDArray[np.bool_]
    share_sent: float
    expected_profit: float
    realised_profit: float
    interval: tuple[float, float]


def policy_profit(
    probability: ArrayLike,
    amount: ArrayLike | PredictiveDistribution,
    *,
    cost: ArrayLike,
    received: ArrayLike,
    coverage: float = 0.9,
    n_bootstrap: int = 1000,
    random_state: int | np.random.Generator | None = None,
) -> PolicyProfit:
    r"""Return the profit of sending if probability times amount exceeds the cost.

    Parameters
    ----------
    probability : float or array-like of shape (n,)
        Calibrated probabilities of a response. Give 1 if `amount` counts those who do
        not respond as 0.
    amount : float, array-like of shape (n,), or PredictiveDistribution of n rows
        Expected amounts of those who respond; a forecast counts by its means.
    cost : float or array-like of shape (n,)
        Cost of sending, not negative.
    received : array-like of shape (n,)
        Receipts if everyone is sent to: 0 from those who do not respond.
    coverage : float
        Probability of the bootstrap interval, in (0, 1).
    n_bootstrap : int
        Resamples of the rows.
    random_state : int or Generator, optional
        Seed or source of the resamples; None draws a seed.

    Returns
    -------
    PolicyProfit

    Notes
    -----
    With probabilities p, amounts a, costs c and receipts r, row i is sent to if
    :math:`p_i a_i > c_i`. Expected and realised profit are

    .. math:: \sum_{sent} (p_i a_i - c_i), \qquad \sum_{sent} (r_i - c_i).

    The interval holds the middle share of the realised profits of resampled campaigns:
    their n rows are drawn from the given rows with replacement. The forecasts stay as
    they are: the interval does not show how other training data would change them.

    References
    ----------
    Zadrozny & Elkan (2001), Learning and making decisions when costs and
    probabilities are both unknown. Pakdaman Naeini (2016), thesis, section 4.1
    (letters of a charity, KDD-98).

    Examples
    --------
    >>> from localexpert.risk import policy_profit
    >>> received = [0.0, 5.0, 0.0, 4.0]
    >>> result = policy_profit([0.5, 0.5, 0.1, 0.9], 4.0, cost=1.0, received=received)
    >>> round(result.expected_profit, 6), result.realised_profit
    (4.6, 6.0)
    """
    came = check_array(received, "received", (None,))
    n = len(came)
    if n == 0:
        refuse("received", "hold at least one value", "none")
    p = check_rows(probability, "probability", n)
    check_in_unit(float(p.min()), float(p.max()), "probability")
    costs = check_costs(cost, "cost", n)
    coverage = check_level(coverage, "coverage")
    n_bootstrap = check_integer(n_bootstrap, "n_bootstrap", 1)
    if isinstance(amount, PredictiveDistribution):
        if len(amount) != n:
            refuse("amount", f"have a row for each of the {n} rows", len(amount))
        amount = amount.mean()
    gain = p * check_rows(amount, "amount", n)
    send = gain > costs
    profits = np.where(send, came - costs, 0.0)
    rng = make_rng(random_state)
    sums = _resampled_sums(profits, n_bootstrap, rng)
    low, high = np.quantile(sums, [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
    return PolicyProfit(
        send,
        float(send.mean()),
        float(np.where(send, gain - costs, 0.0).sum()),
        float(profits.sum()),
        (float(low), float(high)),
    )


def _resampled_sums(
    values: Float64Array, n_bootstrap: int, rng: np.random.Generator
) -> Float64Array:
    """Return sums of n draws with replacement, (n_bootstrap,), in chunks."""
    n = len(values)
    sums = np.empty(n_bootstrap)
    size = max(_CHUNK // n, 1)
    for start in range(0, n_bootstrap, size):
        part = sums[start : start + size]
        part[:] = values[rng.integers(n, size=(len(part), n))].sum(axis=1)
    return sums
