"""Held-out forecasts of calibrators of several classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from calibration.multiclass.base import MulticlassCalibrator
from calibration.multiclass.class_folds import deal_by_class, draw_rows
from calibration.multiclass.class_scores import ClassScores
from calibration.multiclass.identity import MulticlassIdentityCalibrator
from calibration.multiclass.log_probabilities import log_softmax, mix_uniform
from calibration.multiclass.pool import LogPool, pool_logs
from calibration.selection.row_losses import RowLosses, simplest_of_best
from calibration.typing import Float64Array, Int64Array

# Trials are held on at most so many rows, whose forecasts hold at most so many numbers.
_TRIAL_ROWS = 16_384
_TRIAL_NUMBERS = 20_000_000


@dataclass(frozen=True, eq=False)
class ClassTrials:
    """Held-out log-probabilities of candidates.

    Parameters
    ----------
    logs : ndarray of shape (c, k, n)
        Of c candidates, each fitted without the fold of the row; the reference first.
    labels : ndarray of shape (n,)
        Column numbers.
    weight : ndarray of shape (n,)
        Numbers of repetitions.
    """

    logs: Float64Array
    labels: Int64Array
    weight: Float64Array

    def losses(self, log_p: Float64Array) -> RowLosses:
        """Return the losses of log-probabilities (k, n)."""
        places = np.arange(len(self.labels))
        return RowLosses(-log_p[self.labels, places], self.weight)

    def simplest_of_best(self) -> int:
        """Return the place of the first candidate about as good as the best."""
        return simplest_of_best([self.losses(one) for one in self.logs])

    def stack(self, ridge: float) -> Float64Array:
        """Return the weights of the logarithmic pool of least loss, shape (c,).

        They are held, by `ridge`, to the best single candidate.
        """
        prior = np.eye(len(self.logs))[self.simplest_of_best()]
        return LogPool(self.logs, self.labels, self.weight, ridge).learn(prior)

    def pooled(self, weights: Float64Array) -> RowLosses:
        """Return the losses of the pool with weights (c,)."""
        return self.losses(pool_logs(weights, self.logs))


def set_class_menu(
    menu: Mapping[str, MulticlassCalibrator], scale: str
) -> dict[str, MulticlassCalibrator]:
    """Return clones for numbered columns on a scale; doing nothing comes first.

    Parameters
    ----------
    menu : mapping of names to MulticlassCalibrator
    scale : {"probability", "logit"}

    Returns
    -------
    dict of str to MulticlassCalibrator
    """
    found: dict[str, MulticlassCalibrator] = {}
    for name, one in {"identity": MulticlassIdentityCalibrator(), **menu}.items():
        found[name] = clone(one).set_params(scale=scale, classes=None)
        found[name]._check_parameters()
    return found


def read_logs(
    calibrator: MulticlassCalibrator, table: Float64Array, n: float
) -> Float64Array:
    """Return a fitted candidate's log-probabilities as a pool takes them.

    Mixed with the uniform law as by n rows, which cannot rule a class out; but for
    those of doing nothing, which are what they are.

    Parameters
    ----------
    calibrator : MulticlassCalibrator
    table : ndarray of shape (m, k)
        Checked scores.
    n : float
        Weight of the rows learned from.

    Returns
    -------
    ndarray of shape (k, m)
    """
    logs = log_softmax(calibrator.log_predict(table))
    if isinstance(calibrator, MulticlassIdentityCalibrator):
        return logs
    return mix_uniform(logs, n)


def hold_class_trials(
    candidates: Mapping[str, MulticlassCalibrator],
    data: ClassScores,
    n_folds: int,
    random_state: int | None,
) -> ClassTrials | None:
    """Return every candidate's held-out forecasts; None of rows too few for folds.

    Parameters
    ----------
    candidates : mapping of names to MulticlassCalibrator
        On the scale of the data.
    data : ClassScores
    n_folds : int
    random_state : int or None

    Returns
    -------
    ClassTrials or None
    """
    k = data.scores.shape[1]
    most = min(_TRIAL_ROWS, _TRIAL_NUMBERS // (k * len(candidates)))
    data = draw_rows(data, most, random_state)
    folds = deal_by_class(data, n_folds, random_state)
    if not folds:
        return None
    logs = np.empty((len(candidates), k, len(data.labels)))
    for rest, fold in folds:
        known, held = data.take(rest), data.scores[fold]
        for one, out in zip(candidates.values(), logs, strict=True):
            out[:, fold] = read_logs(clone(one).fit_rows(known), held, known.n)
    return ClassTrials(logs, data.labels, data.weight)
