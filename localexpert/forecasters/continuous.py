"""The road of a continuous target: frame, thresholds, experts, curves, law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.coordinate import Frame
from localexpert.curves.base_cdf import BaseCDF
from localexpert.curves.spline import CurveBuilder
from localexpert.data.folds import Fold
from localexpert.experts import Experts
from localexpert.experts.calibration import ExpertCalibration
from localexpert.experts.pooled_experts import PooledExperts
from localexpert.experts.task_record import TaskRecord
from localexpert.experts.thresholds import place_thresholds
from localexpert.laws import SplineLaw
from localexpert.progress import current_progress

# Rows on which curve builders are compared: their scores differ by more than the
# noise of this many.
_ROWS_TO_COMPARE = 5000


@dataclass
class ContinuousForecaster:
    """Fit smooth laws of a target without heavy values.

    Parameters
    ----------
    frame : Frame
        Unfitted.
    thresholds : {"quantile", "uniform"} or array of shape (N,)
    n_thresholds : int
    members : dict of str to Experts
        Unfitted strategies.
    calibration : ExpertCalibration
        Unfitted.
    builders : sequence of CurveBuilder
        The one with the least out-of-fold CRPS is taken.
    bounds : (float, float)
    random_state : int
    """

    frame: Frame
    thresholds: Any
    n_thresholds: int
    members: dict[str, Experts]
    calibration: ExpertCalibration
    builders: Sequence[CurveBuilder]
    bounds: tuple[float, float] = (-np.inf, np.inf)
    random_state: int = 0
    builder_losses_: dict[str, float] = field(default_factory=dict)

    def fit(
        self, X: Any, y: Float64Array, folds: list[Fold], weight: Float64Array
    ) -> ContinuousForecaster:
        """Fit every stage; each hands honest out-of-fold values to the next.

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
        self.experts_ = PooledExperts(self.members)
        progress = current_progress()
        with progress.stage("frame"):
            self.frame.fit(X, y, folds, weight)
        r, scale = self.frame.oof_coordinate_, self.frame.oof_scale_
        self.thresholds_ = place_thresholds(
            r, self.n_thresholds, self.thresholds, weight
        )
        table = self.frame.add_oof_features(X)
        with progress.stage("experts"):
            self.experts_.fit(table, r, self.thresholds_, folds, weight, scale)
        below = r[:, None] <= self.thresholds_
        p = self.experts_.oof_probabilities_
        with progress.stage("calibration"):
            self.calibration.fit(p, below, fold_numbers(folds, len(y)), weight)
        calibrated = self.calibration.calibrated_
        self.tasks_ = TaskRecord(self.thresholds_, p, calibrated, below, folds, weight)
        self.base_ = BaseCDF.fit(r, weight)
        self.n_ = float(weight.sum())
        with progress.stage("spline"):
            self._choose_builder(y, weight)
        self.oof_law_ = self._law(
            self.frame.oof_center_, scale, calibrated, self.builder_
        )
        return self

    def law(self, X: Any) -> SplineLaw:
        """Return the laws of new rows.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        SplineLaw
        """
        return self._law(*self._place(X), self.builder_)

    def points(self, X: Any) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        thresholds, probabilities : ndarrays of shape (n, N)
        """
        center, scale, p = self._place(X)
        return center[:, None] + scale[:, None] * self.thresholds_, p

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        return {
            "frame": self.frame.choices(),
            "experts": {
                "weights": self.experts_.weights_,
                "losses": self.experts_.losses_,
            },
            "calibration": self.calibration.report_.summary(),
            "spline": {"chosen": repr(self.builder_), "losses": self.builder_losses_},
        }

    def _place(self, X: Any) -> tuple[Float64Array, Float64Array, Float64Array]:
        center, scale = self.frame.locate(X)
        table = self.frame.add_features(X, center, scale)
        p = self.calibration.predict(self.experts_.predict(table))
        return center, scale, p

    def _law(
        self,
        center: Float64Array,
        scale: Float64Array,
        p: Float64Array,
        builder: CurveBuilder,
    ) -> SplineLaw:
        t = self.base_.t(self.thresholds_)
        curves = builder.build(p, t, self.n_, self.base_.least_slopes())
        return SplineLaw(
            center,
            scale,
            curves.knots,
            curves.values,
            curves.slopes,
            self.base_,
            self.bounds,
        )

    def _choose_builder(self, y: Float64Array, weight: Float64Array) -> None:
        """Take the builder with the least out-of-fold CRPS on a sample of rows."""
        self.builder_ = self.builders[0]
        if len(self.builders) == 1:
            return
        rng = np.random.default_rng(self.random_state)
        rows = rng.permutation(np.flatnonzero(weight))[:_ROWS_TO_COMPARE]
        for builder in current_progress().track(self.builders, len(self.builders)):
            law = self._law(
                self.frame.oof_center_[rows],
                self.frame.oof_scale_[rows],
                self.tasks_.calibrated[rows],
                builder,
            )
            score = law.crps(y[rows, None])[:, 0]
            self.builder_losses_[repr(builder)] = float(
                np.average(score, weights=weight[rows])
            )
        best = min(self.builder_losses_, key=self.builder_losses_.__getitem__)
        self.builder_ = next(b for b in self.builders if repr(b) == best)


def fold_numbers(folds: list[Fold], n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the number of the fold whose test part holds each row, shape (n,)."""
    numbers = np.zeros(n, dtype=np.int64)
    for number, (_, test) in enumerate(folds):
        numbers[test] = number
    return numbers
