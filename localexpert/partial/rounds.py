"""Rounds of forecasts and draws, by which targets known in part are learned."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert.data.unseen import level_of_user
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.experts.thresholds import is_discrete
from localexpert.law.from_others import law_of_quantiles
from localexpert.law.law import Law
from localexpert.partial.draws import Draws, Outcomes
from localexpert.partial.scores import losses_between
from localexpert.partial.turnbull import turnbull

# At most so many rounds. They end if two in a row were not better than the best one
# before by this much, in log scores of all rows together.
_MOST_ROUNDS, _BETTER = 8, 4.0
# Each unknown target is drawn so often at last, from so many forecasts, but rows that
# come several times are not more than the third number.
_MOST_DRAWS, _N_LAWS, _MOST_ROWS = 4, 2, 20_000
# The curve of all targets together goes through at most so many points.
_MOST_POINTS = 60
# Smaller masses do not count, and log scores are no worse than the second number.
_LEAST_MASS, _WORST = 1e-9, 30.0


def draw_in_rounds(
    outcomes: Outcomes, forecast: Callable[[Draws, int], Law], seed: int
) -> tuple[Draws, dict[str, Any]]:
    """Draw unknown targets from forecasts that were learned from earlier draws.

    The first draws come from the law of all targets together (Turnbull's estimate),
    which knows no features. Each round learns a forecast of every row, out of fold,
    from the draws before, and then draws anew from it. So what is drawn comes to agree
    with what is known. Rounds end if the log score of what is known gets no better.

    Parameters
    ----------
    outcomes : Outcomes
    forecast : callable
        Gets draws and a seed. It returns the laws of the n rows out of fold.
    seed : int

    Returns
    -------
    draws : Draws
        The last ones: each unknown target several times, if there are few rows.
    told : dict
        What happened, for a report.

    References
    ----------
    Celeux & Diebolt (1985), The SEM algorithm. Wei & Tanner (1990), A Monte Carlo
    implementation of the EM algorithm.
    """
    rng = np.random.default_rng(seed)
    law = marginal_law(outcomes).take(np.zeros(len(outcomes), np.intp))
    laws, losses = [law], list[float]()
    better = _BETTER / len(outcomes)
    while len(losses) < _MOST_ROUNDS and not _have_settled(losses, better):
        draws = outcomes.draw(laws[-1:], rng)
        law = forecast(draws, int(rng.integers(2**31)))
        laws = [*laws, law][-_N_LAWS:]
        losses.append(log_loss(outcomes, law))
    n_unknown = int((~outcomes.known).sum() + np.isfinite(outcomes.entry).sum())
    n_draws = max(1, min(_MOST_DRAWS, _MOST_ROWS // max(n_unknown, 1)))
    draws = outcomes.draw([laws[-1 - k % len(laws)] for k in range(n_draws)], rng)
    known = outcomes.weight[outcomes.known].sum() / outcomes.weight.sum()
    told = {
        "chosen": f"{known:.0%} of targets known, {n_draws} draws of others",
        "known": float(known),
        "draws": n_draws,
        "losses": {f"round {k}": loss for k, loss in enumerate(losses, start=1)},
    }
    return draws, told


def log_loss(outcomes: Outcomes, law: Law) -> float:
    r"""Return the mean log score of what is known of targets.

    It is :math:`-\log p(y)` of a known target and :math:`-\log P(Y \in A)` of one in an
    interval A, given :math:`Y > e` if the row was only seen because of that.
    """
    losses = losses_between(outcomes.lower, outcomes.upper, PredictiveDistribution(law))
    with np.errstate(divide="ignore"):
        losses += np.log(law.sf(outcomes.entry[:, None])[:, 0])
    some = np.clip(losses, -_WORST, _WORST)
    return float(np.average(some, weights=outcomes.weight))


def marginal_law(outcomes: Outcomes) -> Law:
    """Return the law of all targets together, for one row.

    It has masses of values if the known targets have few values. Otherwise it is a
    curve through Turnbull's estimate. Its tails are normal, or log-normal if all ends
    are positive. If next to nothing is known, it is wide.
    """
    held = outcomes.weight > 0.0
    lower, upper, weight = (
        part[held] for part in (outcomes.lower, outcomes.upper, outcomes.weight)
    )
    low, high, mass = turnbull(lower, upper, weight, outcomes.entry[held])
    kept = mass > _LEAST_MASS
    low, high, mass = low[kept], high[kept], mass[kept]
    known = lower == upper
    if known.any() and is_discrete(lower[known], sample_weight=weight[known]):
        values, place = np.unique(
            np.where(np.isfinite(low), low, high), return_inverse=True
        )
        masses = np.bincount(place, mass)
        return Law.discrete(values, masses[None] / masses.sum())
    values, levels = _points_of(low, high, mass / mass.sum())
    if len(values) < 2:
        values, levels = _wide_points(lower, upper, outcomes.ends)
    bounds = (0.0, None) if outcomes.ends.min() > 0.0 else None
    return law_of_quantiles(values[None], levels, bounds)


def _have_settled(losses: list[float], better: float) -> bool:
    """Return whether the last two rounds were hardly better than one before them."""
    return len(losses) > 2 and min(losses[-2:]) > min(losses[:-2]) - better


def _points_of(
    low: Float64Array, high: Float64Array, mass: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return values and levels of a CDF, both strictly increasing.

    A known value has the level in the middle of its step. An interval has the levels at
    its ends.
    """
    upto = np.cumsum(mass)
    half = np.where(low == high, 0.5 * mass, 0.0)
    values = np.column_stack([low, high]).ravel()
    levels = np.column_stack([upto - mass + half, upto - half]).ravel()
    kept = np.isfinite(values) & (levels > _LEAST_MASS) & (levels < 1.0 - _LEAST_MASS)
    values, levels = values[kept], levels[kept]
    new = (np.diff(values, prepend=-np.inf) > 0.0) & (
        np.diff(levels, prepend=0.0) > _LEAST_MASS
    )
    values, levels = values[new], levels[new]
    n = min(_MOST_POINTS, len(values))
    some = np.unique(np.linspace(0.0, len(values) - 1.0, n).astype(np.intp))
    return values[some], levels[some]


def _wide_points(
    lower: Float64Array, upper: Float64Array, ends: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return two quantiles of a wide law, with warning: beyond ends nothing is known.

    Half of it lies beyond the range of all ends, by as much as the range.
    """
    msg = (
        "`y` holds hardly any known value or bounded interval: how far targets lie "
        "beyond their ends is an assumption, and forecasts are wide."
    )
    warnings.warn(msg, CalibrationWarning, stacklevel=level_of_user())
    low, high = float(ends.min()), float(ends.max())
    spread = high - low or abs(high) or 1.0
    if np.isfinite(lower).sum() < np.isfinite(upper).sum():
        return np.array([low - spread, low]), np.array([0.5, 0.9])
    return np.array([high, high + spread]), np.array([0.1, 0.5])
