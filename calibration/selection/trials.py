"""Held-out trials of calibrators on one summary, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import clone

from calibration._validation import check_mapping
from calibration.base.calibrators import Scale, ScoreCalibrator
from calibration.base.log_odds import LogOddsCalibrator
from calibration.base.rank_folds import deal_by_rank
from calibration.logistic.identity import IdentityCalibrator
from calibration.selection.held_weights import Derivatives, learn_held_weights
from calibration.selection.row_losses import RowLosses, simplest_of_best
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# Trials are held on at most this many cells: far finer than any map, and cheap.
_TRIAL_CELLS = 16_384


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out log-odds of some candidates on cells with class weights.

    Parameters
    ----------
    log_odds : ndarray of shape (k, m)
        Log-odds of the k candidates, each fitted without the fold of the cell.
    weight0, weight1 : ndarrays of shape (m,)
        Weight of each class.
    """

    log_odds: Float64Array
    weight0: Float64Array
    weight1: Float64Array

    def losses(self, log_odds: Float64Array) -> RowLosses:
        """Return the log losses of log-odds (m,), of rows of both classes."""
        # -log P of either label, without going through a probability that rounds to 1.
        either = [np.logaddexp(0.0, log_odds), np.logaddexp(0.0, -log_odds)]
        weight = np.concatenate([self.weight0, self.weight1])
        return RowLosses(np.concatenate(either), weight)

    def simplest_of_best(self) -> int:
        """First candidate within one standard error of the one of least loss."""
        losses = [self.losses(row) for row in self.log_odds]
        return simplest_of_best(losses, near=1.0)

    def stack(self, ridge: float) -> Float64Array:
        """Non-negative weights of the candidates, shape (k,), of least log loss.

        The log-odds sum_k w_k z_k are scored; the total loss grows by ridge / 2 times
        the squared distance of w from the first candidate alone.
        """
        mass = self.weight0 + self.weight1

        def loss(weights: Float64Array) -> Derivatives:
            total = weights @ self.log_odds
            value = self.weight0 @ np.logaddexp(0.0, total)
            value += self.weight1 @ np.logaddexp(0.0, -total)
            p = expit(total)
            gradient = self.log_odds @ (mass * p - self.weight1)
            curvature = self.log_odds * (mass * p * (1.0 - p))
            return float(value), gradient, curvature @ self.log_odds.T

        return learn_held_weights(loss, np.eye(1, len(self.log_odds)).ravel(), ridge)


def check_menu(
    menu: Mapping[str, object],
    name: str,
    kinds: tuple[type, ...] = (ScoreCalibrator,),
) -> None:
    """Refuse an empty menu, and what is no calibrator of these kinds."""
    wanted = " or ".join(kind.__name__ for kind in kinds)
    check_mapping(menu, name, f"names to {wanted}")
    if not menu:
        msg = f"`{name}` must hold at least one calibrator, got an empty mapping."
        raise ValueError(msg)
    for key, one in menu.items():
        if not isinstance(one, kinds):
            msg = f"`{name}[{key!r}]` must be a {wanted}, got {one!r}."
            raise TypeError(msg)


def check_candidates(
    candidates: Mapping[str, Any], kind: type, doing_nothing: type
) -> None:
    """Refuse what is no menu, and another calibrator by the name of doing nothing."""
    check_menu(candidates, "candidates", (kind,))
    first = candidates.get("identity")
    if first is not None and not isinstance(first, doing_nothing):
        msg = f'`candidates["identity"]` is the name of doing nothing, got {first!r}.'
        raise ValueError(msg)


def set_menu(
    menu: Mapping[str, ScoreCalibrator], scale: Scale
) -> dict[str, ScoreCalibrator]:
    """Return clones on a scale; where it has doing nothing, that comes first."""
    if scale != "real":
        menu = {"identity": IdentityCalibrator(), **menu}
    return {name: clone(one).set_params(scale=scale) for name, one in menu.items()}


def read_log_odds(
    calibrator: ScoreCalibrator, x: Float64Array, n: float
) -> Float64Array:
    """Return a fitted calibrator's log-odds, shape (m,), finite whatever it says.

    Maps of steps and lines may say 0 and 1, which n rows cannot know: they are
    clipped to [1/(2n+2), 1 - 1/(2n+2)].
    """
    if isinstance(calibrator, LogOddsCalibrator):
        return calibrator.predict_log_odds(x)
    # As in the other average of maps, ELiTE's: half a row in n + 1.
    edge = 0.5 / (n + 1.0)
    return np.asarray(logit(np.clip(calibrator.predict(x), edge, 1.0 - edge)))


def deal_folds(
    cells: ScoreSummary, n_folds: int, random_state: int | None
) -> list[tuple[ScoreSummary, ScoreSummary]]:
    """Return (rest, fold) pairs of a summary whose rest can be learned from.

    A rest of one score teaches nothing but a constant. None: too few rows.
    """
    pairs = deal_by_rank(cells, n_folds, random_state)
    return [(rest, fold) for rest, fold in pairs if rest.n_cells > 1]


def hold_trials(
    candidates: Mapping[str, ScoreCalibrator],
    cells: ScoreSummary,
    n_folds: int,
    random_state: int | None,
) -> HeldOut | None:
    """Return every candidate's held-out log-odds; None where no fold can be learned.

    Each candidate is fitted once per fold, on the summary less the fold: a
    subtraction of cells, without sorting anything again.
    """
    pairs = deal_folds(cells.condense(_TRIAL_CELLS), n_folds, random_state)
    if not pairs:
        return None
    columns = []
    for rest, fold in pairs:
        fitted = [clone(one).fit_summary(rest) for one in candidates.values()]
        odds = [read_log_odds(one, fold.scores, rest.n) for one in fitted]
        columns.append(np.stack(odds))
    return HeldOut(
        np.concatenate(columns, axis=1),
        np.concatenate([fold.weight0 for _, fold in pairs]),
        np.concatenate([fold.weight1 for _, fold in pairs]),
    )
