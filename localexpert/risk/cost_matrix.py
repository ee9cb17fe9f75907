"""Decisions from calibrated class probabilities where errors differ in cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import (
    check_array,
    check_in_unit,
    check_probability_rows,
    check_same_length,
    check_weights,
    show,
)


@dataclass(frozen=True, eq=False)
class CostDecision:
    """Decisions of least expected cost.

    Parameters
    ----------
    decision : ndarray of shape (n,)
        Row of the cost matrix that is decided for.
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
    r"""Return for every row the decision of least expected cost.

    Parameters
    ----------
    probabilities : array-like of shape (n,) or (n, k)
        Calibrated probabilities: of class 1 of two, or of all k classes.
    costs : array-like of shape (d, k)
        ``costs[i, j]`` is the cost of the decision i if class j comes; a gain is
        negative. Often d = k and to decide i is to act as if class i came.

    Returns
    -------
    CostDecision
        Of several best decisions the first.

    Notes
    -----
    The expected cost of the decision i is :math:`\sum_j P(j | x) C_{ij}`.

    References
    ----------
    Elkan (2001), The foundations of cost-sensitive learning.

    Examples
    --------
    Give a loan (0) or refuse it (1), to those who repay (0) or default (1): a loan
    that is lost costs five times what a refused customer would have brought.

    >>> from localexpert.risk import cost_decision
    >>> cost_decision([0.1, 0.4], costs=[[0.0, 5.0], [1.0, 0.0]]).decision
    array([0, 1])
    """
    matrix = _check_matrix(costs)
    expected = _class_probabilities(probabilities, matrix.shape[1]) @ matrix.T
    decision = np.argmin(expected, axis=1)
    least = np.take_along_axis(expected, decision[:, None], axis=1)[:, 0]
    return CostDecision(decision, least)


def decision_threshold(costs: ArrayLike) -> float:
    r"""Return the probability of class 1 above which to decide 1, of two classes.

    Parameters
    ----------
    costs : array-like of shape (2, 2)
        ``costs[i, j]`` is the cost of deciding i if class j comes. To decide wrongly
        must cost more than to decide rightly, whichever class comes.

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
        msg = (
            "`costs` must be higher for the wrong decision than for the right one, "
            f"got {matrix.tolist()}."
        )
        raise ValueError(msg)
    return float(false_alarm / (false_alarm + miss))


def realised_cost(
    decision: ArrayLike,
    y_true: ArrayLike,
    costs: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean cost of decisions, now that the classes are known.

    Parameters
    ----------
    decision : array-like of shape (n,)
        Rows of the cost matrix.
    y_true : array-like of shape (n,)
        Classes that came, coded 0 to k - 1.
    costs : array-like of shape (d, k)
        As for `cost_decision`.
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions.

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
        msg = (
            "`costs` must have a row per decision and a column for each of at least "
            f"two classes, got shape {matrix.shape}."
        )
        raise ValueError(msg)
    return matrix


def _class_probabilities(probabilities: ArrayLike, k: int) -> Float64Array:
    """Return the probabilities of all classes, (n, k)."""
    if np.ndim(probabilities) != 1:
        return check_probability_rows(probabilities, "probabilities", k)
    if k != 2:
        msg = (
            f"`probabilities` must have shape (n, {k}) for {k} classes, "
            f"got shape {np.shape(probabilities)}."
        )
        raise ValueError(msg)
    p = check_array(probabilities, "probabilities", (None,))
    if p.size:
        check_in_unit(float(p.min()), float(p.max()), "probabilities")
    return np.column_stack([1.0 - p, p])


def _check_codes(values: ArrayLike, name: str, k: int) -> NDArray[np.int64]:
    """Return whole numbers from 0 to k - 1, at least one."""
    codes = check_array(values, name, (None,))
    if codes.size == 0:
        msg = f"`{name}` must hold at least one value, got none."
        raise ValueError(msg)
    wrong = (codes < 0.0) | (codes >= k) | (codes != np.floor(codes))
    if wrong.any():
        i = int(np.argmax(wrong))
        msg = (
            f"`{name}` must hold whole numbers from 0 to {k - 1}, "
            f"got {show(codes[i])} at position {i}."
        )
        raise ValueError(msg)
    return codes.astype(np.int64)
