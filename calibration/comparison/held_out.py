"""Held-out forecasts of two classes or more, in one form for both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from calibration.base.calibrators import ScoreCalibrator
from calibration.multiclass.base import MulticlassCalibrator
from calibration.multiclass.class_scores import ClassScores
from calibration.multiclass.class_trials import hold_class_trials
from calibration.selection.trials import hold_trials
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


@dataclass(frozen=True, eq=False)
class HeldOutForecasts:
    """What c calibrators say of rows that they were not fitted on.

    Parameters
    ----------
    names : tuple of str
        The reference first.
    log_loss, standard_error, probability_of_harm : ndarrays of shape (c,)
    labels : ndarray of shape (n,)
        Labels coded 0 and 1, or column numbers.
    weight : ndarray of shape (n,)
        Numbers of repetitions.
    forecasts : tuple of c ndarrays of shape (n,) or (n, k)
        Of class 1, or of all classes.
    """

    names: tuple[str, ...]
    log_loss: Float64Array
    standard_error: Float64Array
    probability_of_harm: Float64Array
    labels: NDArray[Any]
    weight: Float64Array
    forecasts: tuple[Float64Array, ...]

    def accuracy(self, forecast: Float64Array) -> float:
        """Return the share of rows whose label has the highest probability."""
        if forecast.ndim == 1:
            hits = (forecast > 0.5) == (self.labels > 0)
        else:
            hits = forecast.argmax(axis=1) == self.labels
        return float(self.weight @ hits / self.weight.sum())


def hold_out_binary(
    menu: Mapping[str, ScoreCalibrator],
    summary: ScoreSummary,
    n_folds: int,
    random_state: int | None,
) -> HeldOutForecasts:
    """Return forecasts of two classes.

    Parameters
    ----------
    menu : mapping of names to ScoreCalibrator
    summary : ScoreSummary
    n_folds : int
    random_state : int or None

    Returns
    -------
    HeldOutForecasts
    """
    trials = hold_trials(menu, summary, n_folds, random_state)
    if trials is None:
        msg = (
            "`y` must leave both classes, at two scores or more, when a fold is held "
            f"out, got {summary!r}."
        )
        raise ValueError(msg)
    log_odds = trials.log_odds
    means = np.array([trials.mean_and_error(row) for row in log_odds])
    return HeldOutForecasts(
        names=tuple(menu),
        log_loss=means[:, 0],
        standard_error=means[:, 1],
        probability_of_harm=np.array([trials.harm(z, log_odds[0]) for z in log_odds]),
        # A cell is two rows, one per class, with the weight of each.
        labels=np.repeat([0.0, 1.0], log_odds.shape[1]),
        weight=np.concatenate([trials.weight0, trials.weight1]),
        forecasts=tuple(np.tile(expit(row), 2) for row in log_odds),
    )


def hold_out_multiclass(
    menu: Mapping[str, MulticlassCalibrator],
    data: ClassScores,
    n_folds: int,
    random_state: int | None,
) -> HeldOutForecasts:
    """Return forecasts of k classes.

    Parameters
    ----------
    menu : mapping of names to MulticlassCalibrator
    data : ClassScores
    n_folds : int
    random_state : int or None

    Returns
    -------
    HeldOutForecasts
    """
    trials = hold_class_trials(menu, data, n_folds, random_state)
    if trials is None:
        counts = ", ".join(f"{count:g}" for count in data.counts)
        msg = (
            "`y` must leave two classes or more when a fold is held out, got classes "
            f"of {counts} rows."
        )
        raise ValueError(msg)
    losses = [trials.losses(logs) for logs in trials.logs]
    tables = [np.ascontiguousarray(np.exp(logs).T) for logs in trials.logs]
    return HeldOutForecasts(
        names=tuple(menu),
        log_loss=np.array([one.mean for one in losses]),
        standard_error=np.array([one.error for one in losses]),
        probability_of_harm=np.array([one.harm(losses[0]) for one in losses]),
        labels=trials.labels,
        weight=trials.weight,
        forecasts=tuple(p / p.sum(axis=1, keepdims=True) for p in tables),
    )
