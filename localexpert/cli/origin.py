"""`Origin`: where a model comes from, and how well it did out of fold."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration import __version__
from calibration.typing import Float64Array
from localexpert.cli.read_file import name_input
from localexpert.cli.scores import ScoreTable, score_both
from localexpert.distribution.predictive import PredictiveDistribution, mass_below_zero
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.climatology import Climatology
from localexpert.reporting.evidence import recall_training


@dataclass(frozen=True)
class Origin:
    """What `localexpert fit` notes of a fit.

    Parameters
    ----------
    table : str
        Name of the training file, without its folder.
    rows : int
        Training rows that have a target.
    fitted : str
        Day (UTC) as YYYY-MM-DD; the variable SOURCE_DATE_EPOCH overrides the clock.
    version : str
        Of the package.
    scores : ScoreTable
        Out of fold, beside climatology.
    below_zero : float or None
        Mean probability of values below zero out of fold, if no target is there.
    """

    table: str
    rows: int
    fitted: str
    version: str
    scores: ScoreTable
    below_zero: float | None

    @classmethod
    def of(
        cls,
        path: str,
        model: LocalExpertRegressor,
        y: Float64Array,
        weight: Float64Array | None,
        climatology: Climatology,
    ) -> Origin:
        """Note a fit to targets (n,)."""
        rows, dist = model.fitted_rows_, model.oof_distribution_
        held = (np.ones(len(y)) if weight is None else weight)[rows]
        name = os.path.basename(name_input(path))
        return cls.of_forecasts(name, len(y), dist, y[rows], held, climatology)

    @classmethod
    def of_forecasts(
        cls,
        table: str,
        n_rows: int,
        dist: PredictiveDistribution,
        y: Float64Array,
        weight: Float64Array,
        climatology: Climatology,
    ) -> Origin:
        """Note a fit by forecasts out of fold of targets (m,), of so many rows."""
        scores = score_both(y, dist, climatology, weight)
        below = mass_below_zero(dist, y, weight)
        return cls(table, n_rows, _today(), __version__, scores, below)


def recall_scores(model: Any) -> ScoreTable | None:
    """Return the scores out of fold that a regressor still knows of itself."""
    training = recall_training(model)
    if training is None or training.oof is None:
        return None
    y, weight = training.y, training.weight
    climatology = Climatology.of(model, y, weight)
    return score_both(y, training.oof, climatology, weight)


def _today() -> str:
    """Return the day; the time would make two files of one model differ."""
    told = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = dt.datetime.now(dt.UTC)
    if told.isdecimal():
        now = dt.datetime.fromtimestamp(int(told), dt.UTC)
    return now.date().isoformat()
