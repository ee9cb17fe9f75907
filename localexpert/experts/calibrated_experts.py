"""`CalibratedExperts`: pooled strategies and calibrators of thresholds, one stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibration import QuadraticCalibrator
from calibration.typing import Float64Array
from localexpert.data.folds import (
    Rows,
    join_parts,
    known_folds,
    number_folds,
    renumber_folds,
)
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.base import Experts
from localexpert.experts.calibration import ExpertCalibration
from localexpert.experts.pooled_experts import PooledExperts
from localexpert.experts.task_record import TaskRecord, round_odds
from localexpert.experts.thresholds import threshold_widths
from localexpert.progress import current_progress

# Pairs of a probability and an outcome that tell what calibration may do.
_PAIRS = 100_000
# Calibrators of few parameters lose little by a few rows less, and one is fitted for
# each threshold and part.
_MOST_PARTS = 5


class CalibratedExperts:
    """What every road asks of its thresholds, out of fold and of new rows.

    Parameters
    ----------
    members : mapping of str to Experts
        Unfitted strategies by name.
    calibration : ExpertCalibration
        Unfitted.

    Attributes
    ----------
    pool_ : PooledExperts
    tasks_ : TaskRecord
        What was said out of fold, before and after calibration, of the m rows that
        are judged.
    """

    pool_: PooledExperts
    tasks_: TaskRecord

    def __init__(self, members: Mapping[str, Experts], calibration: ExpertCalibration):
        self.members = members
        self.calibration = calibration

    def fit(
        self, sample: Sample, thresholds: Float64Array, importance: Float64Array
    ) -> CalibratedExperts:
        """Fit the strategies and their pool, then the calibrators; see `ask`."""
        self.ask(sample, thresholds, importance)
        return self.calibrate(sample, thresholds)

    def ask(
        self, sample: Sample, thresholds: Float64Array, importance: Float64Array
    ) -> None:
        """Fit the strategies and their pool.

        Parameters
        ----------
        sample : Sample
            Of n rows.
        thresholds : ndarray of shape (N,)
        importance : ndarray of shape (n,)
            What a unit of y is worth in units of the score: the scale of the row.
        """
        with current_progress().stage("experts"):
            pool = PooledExperts(self.members)
            self.pool_ = pool.fit(sample, thresholds, importance)

    def prospect(
        self, sample: Sample, thresholds: Float64Array, importance: Float64Array
    ) -> float:
        """Say what may come of the pool, before it is calibrated.

        Parameters
        ----------
        sample, thresholds, importance
            Those of `ask`.

        Returns
        -------
        float
            The CRPS between the outermost thresholds, calibrated by one quadratic on
            the logit for all thresholds.
        """
        judged = sample.judged
        # Spread over the rows, which may be sorted.
        places = np.arange(0, len(judged), 1 + len(judged) * len(thresholds) // _PAIRS)
        rows = judged[places]
        weight = sample.weight[rows] * importance[rows]
        if not weight.any():
            return 0.0
        p = self.pool_.oof_probabilities_[places]
        below = sample.y[rows, None] <= thresholds
        pairs = p.ravel(), below.ravel(), np.repeat(weight, len(thresholds))
        p = QuadraticCalibrator(1.0).fit(*pairs).predict(pairs[0]).reshape(p.shape)
        widths = threshold_widths(thresholds, sample.y, sample.weight)
        return float(weight @ ((p - below) ** 2 @ widths) / sample.weight[rows].sum())

    def calibrate(self, sample: Sample, thresholds: Float64Array) -> CalibratedExperts:
        """Fit the calibrators, on what `ask` was given."""
        pool, judged = self.pool_, sample.judged
        folds = renumber_folds(sample.folds, judged, len(sample))
        weight = sample.weight[judged]
        below = sample.y[judged, None] <= thresholds
        raw = pool.oof_probabilities_
        with current_progress().stage("calibration"):
            number = number_folds(folds, len(judged))
            known = known_folds(folds, len(judged))
            number, known = join_parts(number, known, _MOST_PARTS)
            self.calibration.fit(raw, below, number, weight, known)
        calibrated = self.calibration.calibrated_
        # Kept once, in the record.
        del pool.oof_probabilities_, self.calibration.calibrated_
        kept = round_odds(raw)
        said = kept if calibrated is raw else round_odds(calibrated)
        self.tasks_ = TaskRecord(thresholds, kept, said, below, folds, weight)
        return self

    def predict(self, table: Table) -> Float64Array:
        """Return calibrated probabilities of new rows, shape (n, N)."""
        return self.calibration.predict(self.pool_.predict(table))

    def keep(self, places: Rows) -> None:
        """Keep what was said of some of the judged rows only."""
        self.tasks_ = self.tasks_.take(places)

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        return {
            "experts": {"weights": self.pool_.weights_, "losses": self.pool_.losses_},
            "calibration": self.calibration.report_.summary(),
        }
