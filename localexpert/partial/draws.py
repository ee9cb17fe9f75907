"""Draws of targets that are known only in part, in rounds of forecasts and draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import as_numbers, check_same_length, refuse, show
from calibration.typing import Float64Array
from localexpert.data.folds import Fold, Rows
from localexpert.data.target_values import range_without_outliers
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.experts.thresholds import is_discrete, lattice_step
from localexpert.law.law import Law
from localexpert.law.steps import cell_edges, clip_scores, scores_of
from localexpert.partial.outcomes import nearest_ends
from localexpert.partial.scores import losses_between

# A row that is seen stands for at most so many that are not, and fewer than the second
# number do not count.
_MOST_UNSEEN, _LEAST_UNSEEN = 20.0, 1e-3


@dataclass(frozen=True, eq=False)
class Draws:
    """Rows with drawn targets: some rows come several times, in parts of their weight.

    Parameters
    ----------
    rows : ndarray of int, shape (m,)
        Which of the n given rows each one is, increasing.
    y, weight : ndarrays of shape (m,)
    """

    rows: Rows
    y: Float64Array
    weight: Float64Array

    @property
    def repeats(self) -> bool:
        """Whether some rows come several times."""
        return len(self.rows) > int(self.rows[-1]) + 1

    def spread(self, folds: list[Fold]) -> list[Fold]:
        """Return folds of the given rows as folds of these: copies stay together."""
        spread = [[np.isin(self.rows, part) for part in fold] for fold in folds]
        return [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in spread]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What is known of the targets of n rows.

    Parameters
    ----------
    lower, upper : ndarrays of shape (n,)
        Closed intervals. Equal ends are known values.
    entry : ndarray of shape (n,)
        A row was only seen because its target lies above this value. -inf: always.
    weight : ndarray of shape (n,)
    least : float
        Targets of rows that are not seen lie at this value or above.
    """

    lower: Float64Array
    upper: Float64Array
    entry: Float64Array
    weight: Float64Array
    least: float = -np.inf

    @classmethod
    def of(
        cls,
        lower: Float64Array,
        upper: Float64Array,
        entry: ArrayLike | None,
        weight: Float64Array,
    ) -> Self:
        """Check entries. Of rows without weight nothing is known, and vice versa.

        Parameters
        ----------
        lower, upper : ndarrays of shape (n,)
        entry : array-like of shape (n,), optional
        weight : ndarray of shape (n,)
        """
        n = len(lower)
        late = np.full(n, -np.inf)
        if entry is not None:
            late = as_numbers(entry, "entry")
            if late.ndim != 1:
                refuse("entry", "have shape (n,)", f"shape {late.shape}")
            check_same_length(n, "`y`", len(late), "entry")
            wrong = ~(late < upper)
            if wrong.any():
                i = int(np.argmax(wrong))
                got = f"{show(late[i])} for y up to {show(upper[i])} at position {i}"
                refuse("entry", "lie below y", got)
        nothing = (lower == -np.inf) & (upper == np.inf)
        weight = np.where(nothing, 0.0, weight)
        if not weight.any():
            refuse("y", "have a finite end in a row with a weight", "none")
        absent, lower = weight == 0.0, np.maximum(lower, late)
        lower, late = (np.where(absent, -np.inf, part) for part in (lower, late))
        return cls(lower, np.where(absent, np.inf, upper), late, weight)

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def ends(self) -> Float64Array:
        """All finite ends of rows that have weight."""
        held = self.weight > 0.0
        ends = np.concatenate([self.lower[held], self.upper[held]])
        return np.asarray(ends[np.isfinite(ends)])

    def within(
        self, bounds: tuple[float, float], suspected: tuple[float, float]
    ) -> Self:
        """Return the same, with bounds of y in the place of ends that are not known.

        A bound that is only suspected holds for rows that are not seen.
        """
        lower, upper = np.clip([self.lower, self.upper], *bounds)
        least = max(bounds[0], suspected[0])
        return replace(self, lower=lower, upper=upper, least=least)

    def without_outliers(self) -> Self:
        """Return the same, with ends of far rows moved to the range of all others."""
        near = nearest_ends(self.lower, self.upper)
        low, high = range_without_outliers(near, self.weight)
        ends = np.stack([self.lower, self.upper])
        moved = ((near < low) | (near > high)) & np.isfinite(ends)
        lower, upper = np.where(moved, np.clip(ends, low, high), ends)
        entry = np.minimum(self.entry, high)
        return replace(self, lower=lower, upper=upper, entry=entry)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which targets are known, shape (n,)."""
        return np.asarray(self.lower == self.upper)

    @cached_property
    def values(self) -> Float64Array:
        """The known values, increasing, if they are few but several; else none."""
        held = self.known & (self.weight > 0.0)
        values = np.unique(self.lower[held])
        several = len(values) > 1
        few = several and is_discrete(self.lower[held], 100, self.weight[held])
        return values if few else np.empty(0)

    def draw(
        self,
        laws: Sequence[Law],
        shares: Float64Array,
        n_draws: int,
        rng: np.random.Generator,
    ) -> Draws:
        """Return each unknown target several times, in equal parts of its weight.

        A row with an entry also stands for rows that are not seen, because their
        targets lie at most there, and at least at `least`. Their number is
        P(least <= Y <= entry) / P(Y > entry), and their targets are drawn there. If
        these are not too many in all, none of them outweighs its row.

        Parameters
        ----------
        laws : sequence of m laws of the n rows
        shares : ndarray of shape (m, n)
            How often each law is drawn from.
        n_draws : int
        rng : Generator
        """
        known = self.known
        free, late = np.flatnonzero(~known), np.flatnonzero(self.entry > -np.inf)
        # Draws of a row lie apart: one in each part of its conditional law.
        turn, *start = rng.uniform(size=(3, len(self)))
        upto = np.cumsum(shares, axis=0)[:-1]
        least = np.full(len(self), self.least)
        parts = [(np.flatnonzero(known), self.lower[known], self.weight[known])]
        for number in range(n_draws):
            chosen = (upto <= np.mod(turn + number / n_draws, 1.0)).sum(axis=0)
            for place, law in enumerate(laws):
                own, entered = (part[chosen[part] == place] for part in (free, late))
                odds = _odds_of_unseen(
                    law.take(entered), self.least, self.entry[entered]
                )
                counts = odds >= _LEAST_UNSEEN
                entered, odds = entered[counts], odds[counts]
                # The value of a draw that outweighs its row would look frequent.
                each = n_draws * max(1.0, odds.sum() / _MOST_ROWS)
                times = np.ceil(odds / each).astype(np.intp)
                seen, unseen = self.weight / n_draws, np.repeat(entered, times)
                weight = seen[unseen] * np.repeat(odds / times, times)
                pieces = (
                    (own, np.zeros(len(own)), self.lower, self.upper, seen[own]),
                    (unseen, _parts_of_turns(times), least, self.entry, weight),
                )
                drawn = zip(start, pieces, strict=True)
                for level, (rows, part, low, high, weight) in drawn:
                    at = np.mod(level[rows] + (number + part) / n_draws, 1.0)
                    y = draw_between(law.take(rows), low[rows], high[rows], at)
                    y = np.clip(self._nearest_values(y), low[rows], high[rows])
                    parts.append((rows, y, weight))
        rows, y, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(rows, kind="stable")
        return Draws(rows[order], y[order], weight[order])

    def _nearest_values(self, y: Float64Array) -> Float64Array:
        """Return values like the known ones, if those are few: on their lattice."""
        values = self.values
        if len(values) == 0:
            return y
        step = lattice_step(values)
        if step is not None:
            return np.asarray(values[0] + step * np.round((y - values[0]) / step))
        return values[np.searchsorted(cell_edges(values)[1:-1], y)]


def draw_between(
    law: Law, lower: Float64Array, upper: Float64Array, share: Float64Array
) -> Float64Array:
    """Return quantiles of the laws of rows, given that they lie in closed intervals.

    Parameters
    ----------
    law : Law of n rows
    lower, upper : ndarrays of shape (n,)
    share : ndarray of shape (n,)
        Levels in (0, 1) within the intervals.

    Returns
    -------
    ndarray of shape (n,)
        If a law has no mass in its interval, the end that is nearest to it.
    """
    before, from_lower = (part[:, 0] for part in law.levels(lower[:, None], left=True))
    upto, beyond = (part[:, 0] for part in law.levels(upper[:, None]))
    below = before + share * (upto - before)
    above = from_lower + share * (beyond - from_lower)
    scores = clip_scores(scores_of(below, above))
    return np.clip(law.ppf_scores(scores[:, None])[:, 0], lower, upper)


def _parts_of_turns(times: NDArray[np.intp]) -> Float64Array:
    """Return the places k / t of t draws in one turn, for each t of `times`."""
    starts = np.repeat(np.cumsum(times) - times, times)
    return np.asarray((np.arange(times.sum()) - starts) / np.repeat(times, times))


def _odds_of_unseen(law: Law, least: float, entry: Float64Array) -> Float64Array:
    """Return P(least <= Y <= entry) / P(Y > entry) of each row, bounded."""
    upto, above = (part[:, 0] for part in law.levels(entry[:, None]))
    before = law.levels(np.full((len(entry), 1), least), left=True)[0][:, 0]
    below = np.maximum(upto - before, 0.0)
    return np.minimum(below / np.maximum(above, below / _MOST_UNSEEN), _MOST_UNSEEN)


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
    losses, better = [loss], _BETTER / np.count_nonzero(outcomes.weight)
    while len(losses) <= _MOST_ROUNDS and not _have_settled(losses, better):
        draws = outcomes.draw(laws, shares, 1, rng)
        law = forecast(draws, int(rng.integers(2**31)))
        laws = [first, *[*laws[1:], law][-_N_LAWS:]]
        each = [each[0], *[*each[1:], row_losses(outcomes, law)][-_N_LAWS:]]
        loss, shares = mix_laws(np.stack(each), outcomes.weight)
        losses.append(loss)
    unknown = ~outcomes.known & (outcomes.weight > 0.0)
    n_unknown = int(unknown.sum() + np.isfinite(outcomes.entry).sum())
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
    # Densities are in the unit of y, so bounds of their logarithms are as well.
    dense = outcomes.known & (len(outcomes.values) == 0)
    shift = np.where(
        dense, np.log(np.std(outcomes.without_outliers().ends) or 1.0), 0.0
    )
    # If neither the target nor its being seen is possible, the law is as bad as any.
    losses = np.where(np.isnan(losses), np.inf, losses)
    return np.clip(losses, shift - _WORST, shift + _WORST)


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
