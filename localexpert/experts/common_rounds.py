"""Boosting in step: one number of rounds for the models of all folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.parallel import Parallel, delayed

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.experts.tasks import Tasks
from localexpert.experts.threshold_trees import ThresholdTrees
from localexpert.progress import current_progress

# Rounds between two looks at the held-out loss, as a share of the rounds done.
_STEP = 0.1
_LEAST_STEP, _MOST_STEP = 2, 20
# A gain counts if it is a share of the loss: beyond, rounds cost more than they give.
_LEAST_GAIN = 5e-4
# Rounds over which the step length rises to the learning rate.
_WARM_UP_ROUNDS = 20
# Boosting goes on until the best number of rounds is passed by so much.
_PATIENCE = 0.25
_LEAST_PATIENCE = 16


class Boosted(Protocol):
    """A model under way that knows its held-out loss."""

    def advance(self, n_rounds: int) -> float:
        """Add rounds and return the mean loss on held-out rows."""


class HeldOutBooster:
    """A LightGBM model under way, and the raw scores of held-out rows.

    Parameters
    ----------
    booster : lightgbm.Booster
    X : ndarray of shape (m, p)
        Held-out rows.
    measure : function of an ndarray of shape (m,)
        Their mean loss, given raw scores.
    """

    def __init__(
        self,
        booster: lgb.Booster,
        X: NDArray[Any],
        measure: Callable[[Float64Array], float],
    ):
        self.booster = booster
        self.X = X
        self.measure = measure
        self.raw = np.zeros(len(X))

    def advance(self, n_rounds: int) -> float:
        """Add rounds and return the mean loss on the held-out rows."""
        done = self.booster.current_iteration()
        # For its silence alone, see `predict_booster`.
        predict_booster(self.booster, self.X[:1])
        for _ in range(n_rounds):
            self.booster.update()
        added = self.booster.current_iteration() - done
        if added > 0:  # none where no leaf can be split any more
            self.raw += predict_booster(
                self.booster,
                self.X,
                raw_score=True,
                start_iteration=done,
                num_iteration=added,
            )
        return self.measure(self.raw)


class HeldOutThresholds:
    """A model of all thresholds under way, and the raw scores of held-out rows.

    Parameters
    ----------
    model : lightgbm.Booster
    start : ndarray of shape (N + 2,)
        Where it started, see `start_scores`.
    learning_rate : float
    tasks : Tasks
    encoded : ndarray of shape (n, p)
        Features of the rows of the tasks.
    rows : ndarray of int, shape (m,)
        Those that are held out.
    """

    def __init__(
        self,
        model: lgb.Booster,
        start: Float64Array,
        learning_rate: float,
        tasks: Tasks,
        encoded: Float64Array,
        rows: Rows,
    ):
        self.model = model
        self.learning_rate = learning_rate
        self.X = encoded[rows]
        self.labels = tasks.r[rows][:, None] <= tasks.thresholds
        self.widths = tasks.widths
        # Where no row has a weight the fold has none in the mean either.
        weights = tasks.weights[rows]
        self.weights = weights / max(weights.sum(), np.finfo(float).tiny)
        self.raw = np.tile(start[1:-1], (len(rows), 1))

    def advance(self, n_rounds: int) -> float:
        """Add rounds and return the mean loss on the held-out rows."""
        done = self.model.current_iteration()
        boost(self.model, n_rounds, self.learning_rate)
        n_done = self.model.current_iteration()
        if n_done > done:  # it is not where no leaf can be split any more
            added = ThresholdTrees.from_booster(self.model, done, n_done)
            self.raw += added.sum(self.X, np.arange(1.0, self.raw.shape[1] + 1.0))
        # The mean Brier score, summed over thresholds by their spacing, is the CRPS
        # between the outermost ones.
        gaps = expit(self.raw) - self.labels
        return float(self.weights @ (gaps**2 @ self.widths))


def boost(model: lgb.Booster, n_rounds: int, learning_rate: float) -> None:
    """Add rounds; the first ones take short steps.

    In a good frame hardly anything is left to learn, and one full step is too far.

    Parameters
    ----------
    model : lightgbm.Booster
    n_rounds : int
    learning_rate : float
    """
    for _ in range(n_rounds):
        warmth = (1 + model.current_iteration()) / _WARM_UP_ROUNDS
        rate = learning_rate * min(1.0, warmth)
        # LightGBM asks each thread anew how much it may say.
        model.reset_parameter({"learning_rate": rate, "verbosity": -1})
        model.update()


def find_rounds(
    models: Sequence[Boosted],
    weights: Sequence[float],
    max_rounds: int,
    pool: Parallel,
    least_gain: float = _LEAST_GAIN,
) -> int:
    """Boost all models in step and return the rounds after which little is gained.

    One number for all folds, from the mean of their curves: were each fold to stop
    at its own best, its out-of-fold predictions would be tuned on their own labels.

    Parameters
    ----------
    models : sequence of Boosted
    weights : sequence of float
        Shares in the mean, for instance the weight of the held-out rows.
    max_rounds : int
    pool : Parallel
        Runs the models side by side, in threads.
    least_gain : float
        Share of the loss below which a gain is none.

    Returns
    -------
    int
        At least 1; the models have been boosted so far or farther.
    """
    rounds, best_rounds, best_loss = 0, 0, np.inf
    progress = current_progress()
    while rounds < min(max_rounds, _reach(best_rounds)):
        step = int(np.clip(_STEP * rounds, _LEAST_STEP, _MOST_STEP))
        step = min(step, max_rounds - rounds)
        losses = pool(delayed(model.advance)(step) for model in models)
        rounds += step
        loss = float(np.average(losses, weights=weights))
        if not loss >= best_loss * (1.0 - least_gain):
            best_rounds, best_loss = rounds, loss
        # The last round unless a better loss is found before.
        progress.reach(rounds, min(max_rounds, max(rounds, int(_reach(best_rounds)))))
    return best_rounds


def _reach(best_rounds: int) -> float:
    """Return the rounds at which a better loss is no longer waited for."""
    return best_rounds + max(_LEAST_PATIENCE, _PATIENCE * best_rounds)


def predict_booster(booster: lgb.Booster, X: NDArray[Any], **options: Any) -> Any:
    """Return LightGBM's predictions by one thread.

    It has to be said at every call: LightGBM keeps the number of threads of whichever
    call was the last, and its threads wait for one another in a busy loop. So it does
    with how much it says on stdout, thread by thread, and a model is grown in other
    threads than the one that made it.
    """
    return booster.predict(X, num_threads=1, verbosity=-1, **options)


def freeze_booster(booster: lgb.Booster, n_rounds: int) -> lgb.Booster:
    """Return the first rounds as a model of its own, without the training data."""
    return lgb.Booster(model_str=booster.model_to_string(num_iteration=n_rounds))
