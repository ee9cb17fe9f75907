"""Rounds of forecasts and draws, by which targets known in part are learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.law import Law
from localexpert.partial.draws import Draws, Outcomes
from localexpert.partial.scores import losses_between

# At most so many rounds. They end if two in a row were not better than the best one
# before by this much, in log scores of all rows together.
_MOST_ROUNDS, _BETTER = 8, 4.0
# Each unknown target is drawn so often at last, from the first law and so many later
# ones, but rows that come several times are not more than the third number.
_MOST_DRAWS, _N_LAWS, _MOST_ROWS = 4, 2, 20_000
# Log scores of rows are bounded. Steps by which shares of laws are found.
_WORST, _N_STEPS = 30.0, 100


def draw_in_rounds(
    outcomes: Outcomes, first: Law, forecast: Callable[[Draws, int], Law], seed: int
) -> tuple[Draws, dict[str, Any]]:
    """Draw unknown targets from forecasts that were learned from earlier draws.

    Each round learns a forecast of every row, out of fold, from the draws before. Then
    it draws anew, from this forecast, the one before, and the first law together. They
    have the shares with which what is known is most probable. Rounds end if the log
    score of what is known gets no better.

    Parameters
    ----------
    outcomes : Outcomes
    first : Law
        Of n rows, from which the first draws come.
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
    laws, each = [first], [row_losses(outcomes, first)]
    loss, shares = mix_laws(np.stack(each), outcomes.weight)
    losses, better = [loss], _BETTER / len(outcomes)
    while len(losses) <= _MOST_ROUNDS and not _have_settled(losses, better):
        draws = outcomes.draw(laws, shares, 1, rng)
        law = forecast(draws, int(rng.integers(2**31)))
        laws = [first, *[*laws[1:], law][-_N_LAWS:]]
        each = [each[0], *[*each[1:], row_losses(outcomes, law)][-_N_LAWS:]]
        loss, shares = mix_laws(np.stack(each), outcomes.weight)
        losses.append(loss)
    n_unknown = int((~outcomes.known).sum() + np.isfinite(outcomes.entry).sum())
    n_draws = max(1, min(_MOST_DRAWS, _MOST_ROWS // max(n_unknown, 1)))
    draws = outcomes.draw(laws, shares, n_draws, rng)
    known = outcomes.weight[outcomes.known].sum() / outcomes.weight.sum()
    names = ("linear", *(f"round {k}" for k in range(1, len(losses))))
    told = {
        "chosen": f"{known:.0%} of targets known, {n_draws} draws of others",
        "known": float(known),
        "draws": n_draws,
        "losses": dict(zip(names, losses, strict=True)),
    }
    return draws, told


def row_losses(outcomes: Outcomes, law: Law) -> Float64Array:
    r"""Return the log score of what is known of each target, bounded.

    It is :math:`-\log p(y)` of a known target and :math:`-\log P(Y \in A)` of one in an
    interval A, given :math:`Y > e` if the row was only seen because of that.
    """
    losses = losses_between(outcomes.lower, outcomes.upper, PredictiveDistribution(law))
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = losses + np.log(law.sf(outcomes.entry[:, None])[:, 0])
    # If neither the target nor its being seen is possible, the law is as bad as any.
    return np.clip(np.where(np.isnan(losses), _WORST, losses), -_WORST, _WORST)


def mix_laws(losses: Float64Array, weight: Float64Array) -> tuple[float, Float64Array]:
    """Return the mean loss of the best mixture, and each law's share in each row.

    Parameters
    ----------
    losses : ndarray of shape (m, n)
        Log scores of m laws.
    weight : ndarray of shape (n,)

    Returns
    -------
    loss : float
    shares : ndarray of shape (m, n)
        How probable it is that a row's target comes from each law, given what is known
        of it. They sum to 1 over laws.
    """
    least = losses.min(axis=0)
    odds = np.exp(least - losses)
    parts = np.full(len(losses), 1.0 / len(losses))
    for _ in range(_N_STEPS):
        together = parts @ odds
        parts = parts * (odds @ (weight / together)) / weight.sum()
    together = parts @ odds
    loss = np.average(least - np.log(together), weights=weight)
    return float(loss), parts[:, None] * odds / together


def _have_settled(losses: list[float], better: float) -> bool:
    """Return whether the last two rounds were hardly better than one before them."""
    return len(losses) > 2 and min(losses[-2:]) > min(losses[:-2]) - better
