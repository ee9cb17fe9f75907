"""Losses of probability forecasts, any proper score, and the area under the ROC curve.

Forecasts (n,) are chances of class 1. Forecasts (n, k) have a column for each class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from calibration._validation import check_level, check_number, read_labelled, refuse
from calibration.measures.calibration_errors import summarise_forecasts
from calibration.typing import Float64Array


def brier_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> float:
    r"""Return the Brier score: the mean squared difference of forecast and label.

    For forecasts (n, k) it is the sum over the classes, as Brier defined it. With k = 2
    it is twice the score of the chance of class 1.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1, or column numbers, or what `classes` names.
    y_prob : array-like of shape (n,) or (n, k)
        Forecast probabilities of class 1, or of each class.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.
    classes : array-like of shape (k,), optional
        The labels for which the columns stand.

    Returns
    -------
    float
        In [0, 1] for forecasts (n,), in [0, 2] for forecasts (n, k).

    Notes
    -----
    .. math:: \frac{1}{\sum_i w_i} \sum_i w_i (p_i - y_i)^2, \qquad
        \frac{1}{\sum_i w_i} \sum_i w_i \sum_c (p_{ic} - 1\{y_i = c\})^2

    References
    ----------
    Brier (1950), Verification of forecasts expressed in terms of probability.

    Examples
    --------
    >>> from calibration import brier_score
    >>> brier_score([0, 1], [0.5, 1.0])
    0.125
    >>> brier_score([0, 2], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    0.25
    """
    labels, forecasts, weights = read_labelled(y_true, y_prob, sample_weight, classes)
    if forecasts.ndim == 1:
        return _weighted_mean((forecasts - labels) ** 2, weights)
    errors = forecasts.copy()
    errors[np.arange(len(labels)), labels] -= 1.0
    return _weighted_mean(np.einsum("ij,ij->i", errors, errors), weights)


def log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    clip: float = 0.0,
) -> float:
    r"""Return the logarithmic score: the mean of -log of the chance of what happened.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1, or column numbers, or what `classes` names.
    y_prob : array-like of shape (n,) or (n, k)
        Forecast probabilities of class 1, or of each class.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.
    classes : array-like of shape (k,), optional
        The labels for which the columns stand.
    clip : float
        Forecasts are clipped to [clip, 1 - clip], 0 <= clip <= 1/2. With 0 nothing is
        clipped: the score is infinite if an event of probability 0 happened.

    Returns
    -------
    float
        In [0, inf], in nats.

    Notes
    -----
    .. math:: -\frac{1}{\sum_i w_i} \sum_i w_i
        \{y_i \log p_i + (1 - y_i) \log(1 - p_i)\}, \qquad
        -\frac{1}{\sum_i w_i} \sum_i w_i \log p_{i y_i}

    References
    ----------
    Good (1952), Rational decisions.

    Examples
    --------
    >>> from calibration import log_loss
    >>> round(log_loss([0, 1], [0.5, 0.5]), 4)
    0.6931
    >>> log_loss([0, 1], [0.5, 0.0])
    inf
    >>> round(log_loss(["b"], [[0.25, 0.5, 0.25]], classes=["a", "b", "c"]), 4)
    0.6931
    """
    labels, forecasts, weights = read_labelled(y_true, y_prob, sample_weight, classes)
    clip = check_number(clip, "clip", 0.0, 0.5)
    with np.errstate(divide="ignore"):
        if forecasts.ndim == 1:
            losses = np.where(labels, -np.log(forecasts), -np.log1p(-forecasts))
        else:
            given = forecasts[np.arange(len(labels)), labels]
            losses = -np.log(given) + 0.0  # avoids -0.0
        # The loss falls if the chance grows. So clipping the loss clips the chance.
        bounds = -np.log1p(-clip), -np.log(clip)
    return _weighted_mean(np.clip(losses, *bounds), weights)


def spherical_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> float:
    r"""Return the spherical score as a loss: the mean of 1 - s.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1, or column numbers, or what `classes` names.
    y_prob : array-like of shape (n,) or (n, k)
        Forecast probabilities of class 1, or of each class.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.
    classes : array-like of shape (k,), optional
        The labels for which the columns stand.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    Let q be the probability given to the label that happened. Then
    :math:`s = q / \sqrt{q^2 + (1 - q)^2}`, and for forecasts (n, k)
    :math:`s = q / \sqrt{\sum_c p_c^2}`.

    References
    ----------
    Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and
    estimation.

    Examples
    --------
    >>> from calibration import spherical_score
    >>> round(spherical_score([0, 1], [0.5, 1.0]), 4)
    0.1464
    """
    labels, forecasts, weights = read_labelled(y_true, y_prob, sample_weight, classes)
    if forecasts.ndim == 1:
        happened = np.where(labels, forecasts, 1.0 - forecasts)
        other = np.where(labels, 1.0 - forecasts, forecasts)
    else:
        places = np.arange(len(labels)), labels
        happened, others = forecasts[places], forecasts.copy()
        others[places] = 0.0
        other = np.sqrt(np.einsum("ij,ij->i", others, others))
    length = np.hypot(happened, other)
    # This is 1 - happened / length, without its cancellation for good forecasts.
    losses = other * other / (length * (length + happened))
    return _weighted_mean(losses, weights)


def _weighted_mean(losses: Float64Array, weights: Float64Array) -> float:
    """Return the mean of losses that may be +inf. A row of weight 0 does not count."""
    # 0 times an infinite loss would be nan.
    losses, weights = losses[weights > 0.0], weights[weights > 0.0]
    return float((losses * weights).sum() / weights.sum())


def auc_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> float:
    r"""Return the area under the ROC curve, or for more classes Hand and Till's mean.

    This is no loss: higher is better. Forecasts without any order reach 1/2.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1, or column numbers, or what `classes` names.
    y_prob : array-like of shape (n,) or (n, k)
        Forecast probabilities of class 1, or of each class.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.
    classes : array-like of shape (k,), optional
        The labels for which the columns stand.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    Let :math:`A(i | j)` be the probability that a row of class i has a higher forecast
    of class i than a row of class j. Ties count half. The mean is

    .. math:: M = \frac{2}{k (k - 1)} \sum_{i < j} \frac{A(i | j) + A(j | i)}{2}.

    Pairs with a class that has no rows are left out of the mean. Each pair counts
    alike, whatever the rates of its classes.

    References
    ----------
    Hand & Till (2001), A simple generalisation of the area under the ROC curve for
    multiple class classification problems, equation 7.

    Examples
    --------
    >>> from calibration import auc_score
    >>> auc_score([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    >>> forecasts = [[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.5, 0.1, 0.4]]
    >>> round(auc_score([0, 1, 2], forecasts), 4)
    1.0
    """
    labels, forecasts, weights = read_labelled(y_true, y_prob, sample_weight, classes)
    columns = np.asarray(labels, dtype=np.int64)
    k = 2 if forecasts.ndim == 1 else forecasts.shape[1]
    totals: Float64Array = np.bincount(columns, weights, k).astype(np.float64)
    held = np.flatnonzero(totals > 0.0).tolist()
    if len(held) < 2:
        refuse("y_true", "hold two classes or more", f"class {held[0]} only")
    # Each class has a unit of its own, a power of two, so that no product of weights
    # underflows. Rates within pairs of classes do not depend on units.
    exponents = np.frexp(totals)[1]
    weights = np.ldexp(weights, -exponents[columns])
    totals = np.ldexp(totals, -exponents)
    if forecasts.ndim == 1:
        return float(_win_rates(forecasts, 1, columns, weights, totals)[0])
    wins = [
        # If class i is compared with itself, ties and wins make 1/2.
        _win_rates(forecasts[:, i], i, columns, weights, totals)[held].sum() - 0.5
        for i in held
    ]
    return float(sum(wins) / (len(held) * (len(held) - 1)))


def _win_rates(
    chances: Float64Array,
    chosen: int,
    columns: NDArray[Any],
    weights: Float64Array,
    totals: Float64Array,
) -> Float64Array:
    """Return A(chosen | j), how often the chosen class has the higher chance, (k,)."""
    values, places = np.unique(chances, return_inverse=True)
    ours = np.bincount(places, np.where(columns == chosen, weights, 0.0), len(values))
    # This is the weight of the chosen class above each value, and half of that at it.
    above = totals[chosen] - np.cumsum(ours) + 0.5 * ours
    sums = np.bincount(columns, weights * above[places], len(totals))
    pairs = totals[chosen] * totals
    rates = np.zeros(len(totals))
    np.divide(sums, pairs, out=rates, where=pairs > 0.0)
    return rates


Density: TypeAlias = Callable[[Float64Array], ArrayLike]

# The quadrature works in log-odds u between the two ends. Beyond them the density is
# continued as a power of the distance to 0 or 1. Up to 1 - 2**-30 floats still resolve
# 1 - e to six digits. Towards 0 they always do.
_LOW_END = float(expit(-700.0))
_HIGH_END = 2.0**-30
_EDGES = np.concatenate(
    [
        np.linspace(-700.0, -25.0, 135, endpoint=False),
        np.linspace(-25.0, np.log((1.0 - _HIGH_END) / _HIGH_END), 201),
    ]
)
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
# The power is measured this many doublings of the distance inside.
_DOUBLINGS = 10
# A measured power this near to 0 or 1 is taken as 0 or 1, where the integrals diverge.
_SAME_POWER = 1e-6
# Number of forecasts that are integrated at once. It bounds the memory.
_CHUNK = 1 << 16


def proper_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    weight: Density | Mapping[float, float],
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the mean proper score that weighs the errors at cost e by w(e).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1.
    y_prob : array-like of shape (n,)
        Forecast probabilities of class 1.
    weight : callable or mapping
        A callable is the density w. It takes an array of e in (0, 1) and returns
        values >= 0. It should be smooth on (0, 1), but at the ends it may grow without
        bound like a power. A mapping {cost: mass} puts point masses on costs in (0, 1).
        The score is then a sum of cost-weighted errors of the decisions "1 when
        q >= cost". So a forecast equal to a cost decides for class 1.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.

    Returns
    -------
    float
        In [0, inf]. For smooth densities it is accurate to 1e-9, relative if the score
        exceeds 1. If the density has no bound at 1, it is accurate to 1e-8.

    Notes
    -----
    If class 1 or class 0 happened, a forecast q costs

    .. math:: L_1(q) = \int_q^1 \frac{w(e)}{e} de, \qquad
        L_0(q) = \int_0^q \frac{w(e)}{1 - e} de.

    w = 1 gives the log loss. w = 6 e (1 - e) gives three times the Brier score. A mass
    of 1/2 at cost 1/2 gives the error rate. The integrals are taken in log-odds, once
    for each distinct forecast, by Gauss-Legendre rules on fixed panels.

    References
    ----------
    Brummer & du Preez (2013), The PAV algorithm optimizes binary proper scoring
    rules, equation 1. Buja, Stuetzle & Shen (2005), Loss functions for binary class
    probability estimation and classification.

    Examples
    --------
    >>> from calibration import proper_score
    >>> y_true, y_prob = [0, 1, 1], [0.2, 0.5, 0.9]
    >>> round(proper_score(y_true, y_prob, lambda e: 6 * e * (1 - e)), 6)
    0.3
    >>> proper_score([0, 1, 1, 0], [0.2, 0.5, 0.4, 0.7], {0.5: 0.5})
    0.5
    """
    summary = summarise_forecasts(y_true, y_prob, sample_weight)
    if callable(weight):
        loss0, loss1 = _density_losses(weight, summary.scores)
    elif isinstance(weight, Mapping):
        loss0, loss1 = _mass_losses(weight, summary.scores)
    else:
        rule = "be a callable density or a mapping {cost: mass}"
        refuse("weight", rule, type(weight).__name__, TypeError)
    total = 0.0
    for losses, counts in (loss0, summary.weight0), (loss1, summary.weight1):
        held = counts > 0.0  # a loss that no row has may be infinite
        total += float((losses[held] * counts[held]).sum())
    return total / summary.n


def _mass_losses(
    masses: Mapping[float, float], forecasts: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return L0 and L1 at each forecast for point masses on costs."""
    if not masses:
        refuse("weight", "hold at least one cost", "an empty mapping")
    pairs = sorted(
        (check_level(cost, "weight` costs"), check_number(mass, "weight` masses", 0.0))
        for cost, mass in masses.items()
    )
    costs, mass = np.array(pairs).T
    below = np.searchsorted(costs, forecasts, side="right")
    up_to = np.concatenate([[0.0], np.cumsum(mass / (1.0 - costs))])
    # Sum from the top, so that the sum is exactly 0 if no cost is above.
    beyond = np.concatenate([np.cumsum((mass / costs)[::-1])[::-1], [0.0]])
    return up_to[below], beyond[below]


@dataclass(frozen=True)
class _Tail:
    """A density C d**-power of the distance d to 0 or 1, for d below `distance`.

    Arguments `ratio` are distance / d >= 1.
    """

    distance: float
    height: float
    power: float

    @classmethod
    def of(cls, density: Density, end: float, distance: float) -> _Tail:
        """Measure the power far inside, where other terms are negligible."""
        inside = distance * 2.0**-_DOUBLINGS * np.array([1.0, 0.5])
        outer, inner = _evaluate(density, 1.0 - inside if end else inside)
        if outer == 0.0 or inner == 0.0:
            return cls(distance, 0.0, 0.0)
        power = float(np.log2(inner / outer))
        near = float(round(power))
        if near in (0.0, 1.0) and abs(power - near) < _SAME_POWER:
            power = near
        return cls(distance, float(outer * 2.0 ** (-_DOUBLINGS * power)), power)

    def within(self, ratio: Float64Array) -> Float64Array:
        """Return the integral of the density from 0 to d, or inf if it diverges."""
        if self.power >= 1.0:
            return np.full(len(ratio), np.inf)
        mass = self.height * self.distance / (1.0 - self.power)
        return mass * ratio ** (self.power - 1.0)

    def outside(self, ratio: Float64Array) -> Float64Array:
        """Return the integral of density / d from d to `distance`."""
        if self.height == 0.0:
            return np.zeros(len(ratio))
        steps = np.log(ratio)
        if self.power == 0.0:
            return self.height * steps
        return self.height * np.expm1(self.power * steps) / self.power


def _density_losses(
    density: Density, forecasts: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return L0 and L1 at each forecast for a density.

    With e = expit(u), de = e (1 - e) du. So L1 integrates w (1 - e) over u, and L0
    integrates w e.
    """
    low = _Tail.of(density, 0.0, _LOW_END)
    high = _Tail.of(density, 1.0, _HIGH_END)
    panel0, panel1 = _integrate(density, _EDGES[:-1], _EDGES[1:])
    one = np.ones(1)
    # These are integrals from 0 up to each edge, and from each edge up to 1.
    up_to = np.cumsum(np.concatenate([low.within(one), panel0]))
    beyond = np.cumsum(np.concatenate([high.within(one), panel1[::-1]]))[::-1]
    loss0, loss1 = np.empty(len(forecasts)), np.empty(len(forecasts))
    with np.errstate(divide="ignore", over="ignore"):
        left, right = forecasts < _LOW_END, 1.0 - forecasts < _HIGH_END
        ratio = _LOW_END / forecasts[left]
        loss0[left], loss1[left] = low.within(ratio), beyond[0] + low.outside(ratio)
        ratio = _HIGH_END / (1.0 - forecasts[right])
        loss0[right] = up_to[-1] + high.outside(ratio)
        loss1[right] = high.within(ratio)
    inner = np.flatnonzero(~(left | right))
    for some in np.split(inner, range(_CHUNK, len(inner), _CHUNK)):
        u = np.clip(logit(forecasts[some]), _EDGES[0], _EDGES[-1])
        panel = np.searchsorted(_EDGES[1:-1], u, side="right")
        part0, part1 = _integrate(density, _EDGES[panel], u)
        loss0[some] = up_to[panel] + part0
        loss1[some] = beyond[panel] - part1
    return loss0, loss1


def _integrate(
    density: Density, low: Float64Array, high: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return integrals (k,) of w e and of w (1 - e) over [low, high] in log-odds."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    u = middle[:, None] + half[:, None] * _NODES
    e = expit(u)
    terms = _evaluate(density, e) * _NODE_WEIGHTS
    return half * (terms * e).sum(axis=1), half * (terms * expit(-u)).sum(axis=1)


def _evaluate(density: Density, e: Float64Array) -> Float64Array:
    """Return values of the density. Refuse negative or infinite ones."""
    values = np.asarray(density(e.copy()), dtype=np.float64)
    if values.shape not in ((), e.shape):
        rule = "return one value per cost or one for all"
        refuse("weight", rule, f"shape {values.shape} for {e.shape}")
    valid = np.isfinite(values) & (values >= 0.0)
    if not valid.all():
        rule = "be finite and not negative on (0, 1)"
        refuse("weight", rule, np.extract(~valid, values)[0])
    return np.broadcast_to(values, e.shape)
