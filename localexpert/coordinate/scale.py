"""`ScaleModel`: how far a target may be from its centre, row by row."""

from __future__ import annotations

import numpy as np

from calibration.typing import Float64Array
from localexpert.coordinate.fold_boosters import FoldBoosters
from localexpert.data.sample import Sample
from localexpert.data.table import Table

# No row's scale is below this share of the typical one: a region without noise in
# training must not claim certainty.
_FLOOR = 0.02
_MOST_ROUNDS = 150


class ScaleModel:
    """Boosted trees of log(|r| + .01 sd(r)), cross-fitted and smooth.

    Attributes
    ----------
    oof_ : ndarray of shape (n,)
        Positive; normalised so that the median of |r| / oof_ is the median of |r|
        over the spread of r. The same in all rows of folds without a model.
    ambiguity_ : float
        Variance of the folds' models of the logarithm around their mean; 0 where folds
        leave rows untested.
    """

    def __init__(self, *, n_jobs: int | None, random_state: int):
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, sample: Sample) -> ScaleModel:
        """Fit one model per fold to residuals, with common rounds."""
        r, w = sample.y, sample.weight
        spread = float(np.sqrt(w @ r**2 / w.sum())) or 1.0
        # Without the added share a residual of zero would be an outlier of the logs.
        target = np.log(np.abs(r) + 0.01 * spread)
        # Few leaves, many rows in each, a strong ridge: one residual says little of the
        # scale, and one that follows the noise makes forecasts too sure of some rows.
        parameters = {
            "learning_rate": 0.05,
            "num_leaves": 8,
            "min_data_in_leaf": int(np.clip(len(target) // 20, 5, 50)),
            "lambda_l2": 5.0,
            "bagging_fraction": 0.7,
            "bagging_freq": 1,
            "feature_fraction_bynode": 0.7,
            "seed": self.random_state,
        }
        self.boosters_ = FoldBoosters(parameters, _MOST_ROUNDS, 50, n_jobs=self.n_jobs)
        logs = self.boosters_.fit(sample.table.codes, target, sample.folds, w)
        known = np.isfinite(logs)
        typical = np.average(logs[known], weights=w[known])
        logs = np.where(known, logs, typical)
        # exp(typical) is the geometric mean; rescale so that r / s has the spread of 1.
        self.shift_ = 0.0
        ratio = r / np.exp(logs - typical)
        self.shift_ = float(np.log(np.sqrt(w @ ratio**2 / w.sum()) or 1.0)) - typical
        self.floor_ = _FLOOR * spread
        self.oof_ = self._finish(logs)
        # As that of the centre, of the logarithm: each fold's noise in it makes some
        # coordinates too long and others too short, by its variance in their spread.
        self.ambiguity_ = 0.0
        if sample.is_whole:
            each = self.boosters_.predict_each(sample.table.codes)
            self.ambiguity_ = float(w @ each.var(axis=0) / w.sum())
        return self

    def predict(self, table: Table) -> Float64Array:
        """Return the scale of new rows, shape (n,)."""
        logs = self.boosters_.predict_each(table.codes)
        return self._finish(logs.mean(axis=0))

    def _finish(self, logs: Float64Array) -> Float64Array:
        return np.maximum(np.exp(logs + self.shift_), self.floor_)
