"""Held-out forecasts of two classes or more, in one form for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from calibration.base.calibrators import ScoreCalibrator
from calibration.multiclass.base import MulticlassCalibrator
from calibration.multiclass.class_scores import ClassScores
from calibration.multiclass.class_trials import hold_class_trials
from calibration.selection.row_losses import RowLosses
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

    @classmethod
    def judge(
        cls,
        names: tuple[str, ...],
        losses: Sequence[RowLosses],
        labels: NDArray[Any],
        forecasts: Sequence[Float64Array],
    ) -> HeldOutForecasts:
        """Return forecasts with what their losses tell, the first the reference.

        Parameters
        ----------
        names : tuple of str
        losses : sequence of RowLosses
        labels : ndarray of shape (n,)
        forecasts : sequence of ndarrays of shape (n,) or (n, k)

        Returns
        -------
        HeldOutForecasts
        """
        return cls(
            names=names,
            log_loss=np.array([one.mean for one in losses]),
            standard_error=np.array([one.error for one in losses]),
            probability_of_harm=np.array([one.harm(losses[0]) for one in losses]),
            labels=labels,
            weight=losses[0].weight,
            forecasts=tuple(forecasts),
        )

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
    # A cell is two rows, one per class, with the weight of each.
    return HeldOutForecasts.judge(
        tuple(menu),
        [trials.losses(row) for row in log_odds],
        np.repeat([0.0, 1.0], log_odds.shape[1]),
        [np.tile(expit(row), 2) for row in log_odds],
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
    tables = [np.ascontiguousarray(np.exp(logs).T) for logs in trials.logs]
    return HeldOutForecasts.judge(
        tuple(menu),
        [trials.losses(logs) for logs in trials.logs],
        trials.labels,
        [p / p.sum(axis=1, keepdims=True) for p in tables],
    )
