"""Send or not: what a campaign earns that writes only to those who are worth it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import (
    check_array,
    check_in_unit,
    check_integer,
    check_level,
    make_rng,
)
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.risk.decisions import check_costs, check_rows

# Draws of the bootstrap held in memory at a time.
_CHUNK = 2**21


@dataclass(frozen=True, eq=False)
class PolicyProfit:
    """What sending to those with probability x amount > cost earns.

    Parameters
    ----------
    send : ndarray of shape (n,)
        Who is sent to.
    share_sent : float
        Share of the rows that are sent to.
    expected_profit : float
        What the forecasts promise, all rows together.
    realised_profit : float
        What came, less what sending cost, all rows together.
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
    r"""Return the profit of sending where probability times amount exceeds the cost.

    Parameters
    ----------
    probability : float or array-like of shape (n,)
        Calibrated probabilities of a response. 1 if `amount` counts those who do not
        respond as 0.
    amount : float, array-like of shape (n,), or PredictiveDistribution of n rows
        Expected amounts of those who respond; of a forecast, the means.
    cost : float or array-like of shape (n,)
        What sending costs, not negative.
    received : array-like of shape (n,)
        What came, or would have come, had one sent: 0 from those who do not respond.
    coverage : float
        Of the bootstrap interval, in (0, 1).
    n_bootstrap : int
        Resamples of the rows.
    random_state : int or Generator, optional
        Seed or source of the resamples; None draws a seed.

    Returns
    -------
    PolicyProfit

    Notes
    -----
    With probabilities p, amounts a, costs c and receipts r the row i is sent to if
    :math:`p_i a_i > c_i`; expected and realised profit are

    .. math:: \sum_{sent} (p_i a_i - c_i), \qquad \sum_{sent} (r_i - c_i).

    The interval holds the middle share of the realised profits of campaigns whose n
    rows are drawn from the rows at hand, with replacement. The forecasts are taken
    as given: it does not tell how they would differ on other training data.

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
        msg = "`received` must hold at least one value, got none."
        raise ValueError(msg)
    p = check_rows(probability, "probability", n)
    check_in_unit(float(p.min()), float(p.max()), "probability")
    each = check_costs(cost, "cost", n)
    coverage = check_level(coverage, "coverage")
    n_bootstrap = check_integer(n_bootstrap, "n_bootstrap", 1)
    gain = p * _expected_amounts(amount, n)
    send = gain > each
    profits = np.where(send, came - each, 0.0)
    rng = make_rng(random_state)
    sums = _resampled_sums(profits, n_bootstrap, rng)
    low, high = np.quantile(sums, [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
    return PolicyProfit(
        send,
        float(send.mean()),
        float(np.where(send, gain - each, 0.0).sum()),
        float(profits.sum()),
        (float(low), float(high)),
    )


def _expected_amounts(
    amount: ArrayLike | PredictiveDistribution, n: int
) -> Float64Array:
    """Return the amounts (n,); of a forecast its means."""
    if not isinstance(amount, PredictiveDistribution):
        return check_rows(amount, "amount", n)
    if len(amount) != n:
        msg = f"`amount` must have a row for each of the {n} rows, got {len(amount)}."
        raise ValueError(msg)
    return check_rows(amount.mean(), "amount", n)


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
