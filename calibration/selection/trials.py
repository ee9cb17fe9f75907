"""Held-out trials of calibrators on one summary, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.special import expit, logit, ndtr
from sklearn.base import clone

from calibration._validation import check_mapping
from calibration.base.calibrators import Scale, ScoreCalibrator
from calibration.base.log_odds import LogOddsCalibrator
from calibration.base.rank_folds import deal_by_rank
from calibration.logistic.identity import IdentityCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# Trials are held on at most this many cells: far finer than any map, and cheap.
_TRIAL_CELLS = 16_384
_MAX_STEPS = 100
_MAX_HALVINGS = 40
# Newton's decrement, in squared standard errors, at which the weights stand still.
_LAST_DECREMENT = 1e-18


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

    @property
    def n(self) -> float:
        """Total weight of the rows scored."""
        return float(self.weight0.sum() + self.weight1.sum())

    def mean_and_error(
        self, log_odds: Float64Array, other: Float64Array | None = None
    ) -> tuple[float, float]:
        """Mean log loss of shape (m,) log-odds, and its standard error.

        With `other`, those of the paired difference to it. The weights count rows,
        so the error is that of n independent losses.
        """
        # -log P of either label, without going through a probability that rounds to 1.
        loss0, loss1 = np.logaddexp(0.0, log_odds), np.logaddexp(0.0, -log_odds)
        if other is not None:
            loss0 = loss0 - np.logaddexp(0.0, other)
            loss1 = loss1 - np.logaddexp(0.0, -other)
        n = self.n
        mean = float(self.weight0 @ loss0 + self.weight1 @ loss1) / n
        spread = self.weight0 @ (loss0 - mean) ** 2 + self.weight1 @ (loss1 - mean) ** 2
        # n - 1: the mean is taken from the same rows.
        error = float(np.sqrt(spread / n / (n - 1.0))) if n > 1.0 else np.inf
        return mean, error

    def harm(self, log_odds: Float64Array, reference: Float64Array) -> float:
        """Probability that log-odds are worse than the reference, shape (m,) each.

        The smaller of two: the normal approximation to the mean of paired
        differences, and one over the likelihood ratio, which bounds the chance of
        such a ratio if the reference were right (Markov's inequality). The second
        speaks where a few rows that the reference holds to be impossible make both
        the mean difference and its error. 0 where nothing differs.
        """
        mean, error = self.mean_and_error(log_odds, reference)
        if error == 0.0:
            return float(mean > 0.0)
        return float(min(ndtr(mean / error), np.exp(min(self.n * mean, 0.0))))

    def simplest_of_best(self) -> int:
        """First candidate within one standard error of the one of least loss.

        The error is that of the paired difference, which is what the choice is about.
        """
        means = [self.mean_and_error(row)[0] for row in self.log_odds]
        best = self.log_odds[int(np.argmin(means))]
        for place, row in enumerate(self.log_odds):
            gap, error = self.mean_and_error(row, best)
            if gap <= error:
                return place
        return int(np.argmin(means))

    def stack(self, ridge: float) -> Float64Array:
        """Non-negative weights of the candidates, shape (k,), of least log loss.

        The log-odds sum_k w_k z_k are scored; the total loss grows by ridge / 2 times
        the squared distance of w from the first candidate alone. Each Newton step is
        a non-negative least-squares problem, so bounds hold exactly.
        """
        weights = np.eye(1, len(self.log_odds)).ravel()
        for _ in range(_MAX_STEPS):
            gradient, hessian = self._derivatives(weights, ridge)
            # With H = R'R, min g'd + d'Hd / 2 over w + d >= 0 is
            # min |R v - R'^-1 (H w - g)| over v = w + d >= 0. No curvature is below the
            # ridge, but by rounding, where log-odds are as large as 1e8.
            curvatures, axes = np.linalg.eigh(hessian)
            roots = np.sqrt(np.maximum(curvatures, ridge))
            goal = axes.T @ (hessian @ weights - gradient) / roots
            step = nnls(roots[:, None] * axes.T, goal)[0] - weights
            if -gradient @ step < _LAST_DECREMENT:
                break
            weights = self._descend(weights, step, ridge, float(gradient @ step))
        return weights

    def _objective(self, weights: Float64Array, ridge: float) -> float:
        """Total log loss of the weighted sum, plus the penalty."""
        total = weights @ self.log_odds
        loss = self.weight0 @ np.logaddexp(0.0, total)
        loss += self.weight1 @ np.logaddexp(0.0, -total)
        return float(loss + 0.5 * ridge * (_from_start(weights) ** 2).sum())

    def _derivatives(
        self, weights: Float64Array, ridge: float
    ) -> tuple[Float64Array, Float64Array]:
        """Gradient (k,) and Hessian (k, k) of `_objective`."""
        p = expit(weights @ self.log_odds)
        mass = self.weight0 + self.weight1
        gradient = self.log_odds @ (mass * p - self.weight1)
        gradient += ridge * _from_start(weights)
        curvature = self.log_odds * (mass * p * (1.0 - p))
        # The ridge makes it positive definite, even if two candidates say the same.
        hessian = curvature @ self.log_odds.T + ridge * np.eye(len(weights))
        return gradient, hessian

    def _descend(
        self, weights: Float64Array, step: Float64Array, ridge: float, slope: float
    ) -> Float64Array:
        """Take the step, halved until it descends."""
        value = self._objective(weights, ridge)
        # Close to the optimum rounding of the value hides the descent of a sure step.
        if -slope < 1e-10 * (1.0 + abs(value)):
            return np.maximum(weights + step, 0.0)
        scale = 1.0
        for _ in range(_MAX_HALVINGS):
            # On the segment between two feasible points; the maximum takes back
            # rounding only.
            trial = np.maximum(weights + scale * step, 0.0)
            if self._objective(trial, ridge) <= value + 1e-4 * scale * slope:
                return trial
            scale *= 0.5
        return weights


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


def _from_start(weights: Float64Array) -> Float64Array:
    """Return the weights less those of doing nothing, the first candidate alone."""
    return weights - np.eye(1, len(weights)).ravel()


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
