"""The road of a discrete target: thresholds between values, probabilities per value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.curves.spline import increase_probabilities
from localexpert.data.folds import Fold
from localexpert.experts import Experts
from localexpert.experts.calibration import ExpertCalibration
from localexpert.experts.pooled_experts import PooledExperts
from localexpert.experts.task_record import TaskRecord
from localexpert.forecasters.continuous import fold_numbers
from localexpert.laws import DiscreteLaw
from localexpert.progress import current_progress


@dataclass
class DiscreteForecaster:
    """Fit laws on the few values that a target takes.

    Parameters
    ----------
    members : dict of str to Experts
        Unfitted strategies.
    calibration : ExpertCalibration
        Unfitted.
    """

    members: dict[str, Experts]
    calibration: ExpertCalibration

    def fit(
        self, X: Any, y: Float64Array, folds: list[Fold], weight: Float64Array
    ) -> DiscreteForecaster:
        """Fit one task between each pair of neighbouring values.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        y : ndarray of shape (n,)
        folds : list of (train, test)
        weight : ndarray of shape (n,)

        Returns
        -------
        self
        """
        self.values_ = np.unique(y[weight > 0.0])
        self.thresholds_ = 0.5 * (self.values_[:-1] + self.values_[1:])
        self.experts_ = PooledExperts(self.members)
        progress = current_progress()
        n = len(y)
        with progress.stage("experts"):
            self.experts_.fit(X, y, self.thresholds_, folds, weight, np.ones(n))
        below = y[:, None] <= self.thresholds_
        p = self.experts_.oof_probabilities_
        with progress.stage("calibration"):
            self.calibration.fit(p, below, fold_numbers(folds, n), weight)
        calibrated = self.calibration.calibrated_
        self.tasks_ = TaskRecord(self.thresholds_, p, calibrated, below, folds, weight)
        self.n_ = float(weight.sum())
        self.oof_law_ = self._law(calibrated)
        return self

    def law(self, X: Any) -> DiscreteLaw:
        """Return the laws of new rows.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        DiscreteLaw
        """
        return self._law(self.calibration.predict(self.experts_.predict(X)))

    def points(self, X: Any) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        thresholds, probabilities : ndarrays of shape (n, N)
        """
        p = self.calibration.predict(self.experts_.predict(X))
        return np.tile(self.thresholds_, (len(p), 1)), p

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        return {
            "experts": {
                "weights": self.experts_.weights_,
                "losses": self.experts_.losses_,
            },
            "calibration": self.calibration.report_.summary(),
        }

    def _law(self, p: Float64Array) -> DiscreteLaw:
        """Difference the increasing CDF; every value keeps a little probability.

        A value unseen near x may still come: each gets the weight of one row in
        (n + number of values), so that no log score is infinite.
        """
        cdf = increase_probabilities(p, self.n_)
        ends = np.zeros((len(p), 1)), np.ones((len(p), 1))
        masses = np.diff(np.column_stack([ends[0], cdf, ends[1]]), axis=1)
        share = len(self.values_) / (self.n_ + len(self.values_))
        masses = (1.0 - share) * masses + share / len(self.values_)
        return DiscreteLaw(self.values_, masses)
