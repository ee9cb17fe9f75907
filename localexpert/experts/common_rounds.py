"""Boosting in step: one number of rounds for the models of all folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.experts.tasks import Tasks
from localexpert.progress import current_progress

# Rounds between two looks at the held-out loss, as a share of the rounds done.
_STEP = 0.1
_LEAST_STEP, _MOST_STEP = 2, 20
# A gain counts if it is a share of the loss: beyond, rounds cost more than they give.
_LEAST_GAIN = 5e-4
# Boosting goes on until the best number of rounds is passed by so much.
_PATIENCE = 0.25
_LEAST_PATIENCE = 30


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


class BrierSum:
    """Mean over rows of the Brier score summed over thresholds by their spacing.

    It is the CRPS between the outermost thresholds.
    """

    def __init__(self, tasks: Tasks, rows: Rows):
        self.labels = tasks.r[rows][:, None] <= tasks.thresholds
        self.widths = tasks.widths
        # Where no row has a weight the fold has none in the mean either.
        weights = tasks.weights[rows]
        self.weights = weights / max(weights.sum(), np.finfo(float).tiny)

    def __call__(self, probabilities: Float64Array) -> float:
        """Return the loss of probabilities, shape (m, N)."""
        gaps = probabilities - self.labels
        return float(self.weights @ (gaps**2 @ self.widths))


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
