"""`HeldOutThresholds`: boosting of all thresholds, watched by rows held out."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
from scipy.special import expit

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.experts.common_rounds import BrierSum
from localexpert.experts.draws import all_places
from localexpert.experts.tasks import Tasks
from localexpert.experts.threshold_trees import ThresholdTrees

# Rounds over which the step length rises to the learning rate.
_WARM_UP_ROUNDS = 20


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
        self.measure = BrierSum(tasks, rows)
        self.raw = np.tile(start[1:-1], (len(rows), 1))

    def advance(self, n_rounds: int) -> float:
        """Add rounds and return the mean loss on the held-out rows."""
        done = self.model.current_iteration()
        boost(self.model, n_rounds, self.learning_rate)
        n_done = self.model.current_iteration()
        if n_done > done:  # it is not where no leaf can be split any more
            added = ThresholdTrees.from_booster(self.model, done, n_done)
            self.raw += added.sum(self.X, all_places(self.raw.shape[1]))
        return self.measure(expit(self.raw))


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
