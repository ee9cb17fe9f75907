"""`Frame`: where thresholds are placed."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from calibration._validation import refuse
from calibration.typing import Float64Array
from localexpert.coordinate.boosting import FoldBoosters
from localexpert.coordinate.centre import (
    ROWS_OF_A_MEAN,
    CentreStack,
    marginal_crps,
    single_precision,
)
from localexpert.data.folds import Rows, Sample, spread_rows
from localexpert.data.table import Table
from localexpert.progress import current_progress

# The mean of the models never counts as better by more than this share of the squared
# error.
_MOST_GAIN = 0.5

# No scale is below this share of the typical one. Even if training had no noise in a
# region, forecasts there must not be certain.
_FLOOR = 0.02
_MOST_ROUNDS = 150


@dataclass(eq=False)
class ScaleModel:
    """Boosted trees of log(|r| + .01 sd(r)), cross-fitted and smooth.

    Attributes
    ----------
    oof_ : ndarray of shape (n,)
        Positive. It is normalised so that the median of |r| / oof_ is the median of |r|
        over the spread of r. If a fold has no model, all its rows have the same value.
    ambiguity_ : float
        Variance of the folds' models of the logarithm around their mean. 0 if folds
        leave rows untested.
    """

    n_jobs: int | None
    random_state: int

    def fit(self, sample: Sample) -> ScaleModel:
        """Fit one model per fold to residuals, with common rounds."""
        r, w = sample.y, sample.weight
        spread = float(np.sqrt(w @ r**2 / w.sum())) or 1.0
        # Without the added share, a residual of zero would be an outlier in the log.
        target = np.log(np.abs(r) + 0.01 * spread)
        # Use few leaves, many rows in each, and a strong ridge. One residual says
        # little about the scale, and a scale that follows noise makes some forecasts
        # too sure.
        parameters = {
            "learning_rate": 0.05,
            "num_leaves": 8,
            "min_data_in_leaf": int(np.clip(np.count_nonzero(w) // 20, 5, 50)),
            "lambda_l2": 5.0,
            "bagging_fraction": 0.7,
            "bagging_freq": 1,
            "feature_fraction_bynode": 0.7,
            "seed": self.random_state,
        }
        # The scale of a category with many values is read from its mean log residual.
        self.boosters_ = FoldBoosters(
            parameters,
            _MOST_ROUNDS,
            n_jobs=self.n_jobs,
            n_values=sample.table.reader.n_values or None,
        )
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
        # As for the centre, but of the logarithm. The noise of each fold's scale makes
        # some coordinates too long and others too short. Its variance adds to their
        # spread.
        self.ambiguity_ = 0.0
        if sample.is_whole:
            rows = spread_rows(np.flatnonzero(w), ROWS_OF_A_MEAN)
            each = self.boosters_.predict_each(sample.table.codes[rows])
            self.ambiguity_ = float(w[rows] @ each.var(axis=0) / (w[rows].sum() or 1.0))
        return self

    def predict(self, table: Table) -> Float64Array:
        """Return the scale of new rows, shape (n,)."""
        logs = self.boosters_.predict_each(table.codes)
        return self._finish(logs.mean(axis=0))

    def _finish(self, logs: Float64Array) -> Float64Array:
        return np.maximum(np.exp(logs + self.shift_), self.floor_)


@dataclass(eq=False)
class Frame:
    """The coordinate r = (y - m(x)) / s(x), or parts of it.

    Parameters
    ----------
    kind : {"auto", "standardize", "center"} or None
        "auto" takes the kind whose coordinate makes the best forecast alone, before any
        expert. This forecast is the marginal distribution of r, moved to each row's
        centre and scale. The best one has the least out-of-fold CRPS.
    center : CentreStack
        Unfitted.

    Attributes
    ----------
    oof_center_, oof_scale_, oof_coordinate_ : ndarrays
        Values of the training rows that have them (`located`), from models that have
        not seen these rows.
    kind_ : {"standardize", "center"} or None
        The chosen kind.
    losses_ : dict of str to float
        The CRPS of each kind that "auto" compared. Empty for a given kind.
    loss_ : float
        The CRPS of the chosen kind. 0 for y itself, where it would tell nothing.
    origin_, unit_ : float
        Experts see the centre as (m(x) - origin) / unit.
    nearness_ : float
        New rows have smaller errors around their centre than training rows, by this
        factor. Their centre is the mean of all folds' models. The out-of-fold centre of
        a training row comes from one model.
    shrinkage_ : float
        Factor of the scale of new rows. It is the same factor, made smaller because the
        mean of all folds' scales has less noise.
    """

    kind: str | None
    center: CentreStack
    _: KW_ONLY
    n_jobs: int | None = None
    random_state: int = 0

    def fit(self, sample: Sample) -> Frame:
        """Fit centre and scale out of fold, and choose the kind."""
        # In squares, one value far out would outweigh all other rows together. The
        # thresholds and tails still see where it lies in the coordinate.
        clipped = sample.without_outliers()
        # Rows that are not judged only train the centre. Their own centre would come
        # from models that have seen them.
        part = clipped if clipped.is_whole else clipped.take(clipped.judged)
        self.origin_, self.unit_ = single_precision(clipped.y)
        self.nearness_, self.shrinkage_ = 1.0, 1.0
        self.kind_, self.loss_ = self._admit_kind(part), 0.0
        self.losses_: dict[str, float] = {}
        if self.kind_ is None:
            n = len(clipped)
            self.oof_center_, self.oof_scale_ = np.zeros(n), np.ones(n)
        else:
            self._fit_places(clipped, part)
        own = sample.y[self.located(sample)]
        self.oof_coordinate_ = (own - self.oof_center_) / self.oof_scale_
        return self

    def _fit_places(self, clipped: Sample, part: Sample) -> None:
        """Fit centre and scale, and take the wanted kind or the best one."""
        y, w = part.y, part.weight
        with current_progress().stage("centre"):
            self.centre_ = self.center.fit(clipped)
        centers, flat = self.centre_.oof_, np.ones(len(y))
        losses: dict[str | None, float] = {
            "center": marginal_crps(y - centers, flat, w)
        }
        if self.kind_ != "center":
            self.scale_ = ScaleModel(n_jobs=self.n_jobs, random_state=self.random_state)
            with current_progress().stage("scale"):
                self.scale_.fit(replace(part, y=y - centers))
            scale = self.scale_.oof_
            losses["standardize"] = marginal_crps((y - centers) / scale, scale, w)
        if self.kind_ == "auto":
            losses[None] = marginal_crps(y, flat, w)
            self.kind_ = min(losses, key=losses.__getitem__)
            self.losses_ = {str(kind): loss for kind, loss in losses.items()}
        n = len(clipped) if self.kind_ is None else len(y)
        self.oof_center_, self.oof_scale_ = np.zeros(n), np.ones(n)
        if self.kind_ is not None:
            self.loss_ = losses[self.kind_]
            self.oof_center_ = centers
            self._credit(y, w)

    def _credit(self, y: Float64Array, w: Float64Array) -> None:
        """Compute how much nearer new rows are to their centre than judged rows."""
        # New rows get the mean of the folds' models. Its squared error is less by the
        # ambiguity. The scale was learned from the errors of single models.
        error = float(w @ (y - self.oof_center_) ** 2 / w.sum()) or 1.0
        gain = min(self.centre_.ambiguity_ / error, _MOST_GAIN)
        self.nearness_ = self.shrinkage_ = float(np.sqrt(1.0 - gain))
        if self.kind_ == "standardize":
            self.oof_scale_ = self.scale_.oof_
            # Noise e makes the coordinate exp(-e) r. If e is normal with variance v,
            # the mean square is exp(2 v) times as large. For the mean of the models v
            # is less by the ambiguity.
            self.shrinkage_ *= float(np.exp(-self.scale_.ambiguity_))

    def located(self, sample: Sample) -> Rows:
        """Return the rows of the sample of `fit` that have a coordinate.

        All rows have y itself. Only rows that a fold tests have an out-of-fold centre.
        """
        return np.arange(len(sample)) if self.kind_ is None else sample.judged

    def _admit_kind(self, judged: Sample) -> str | None:
        """Return the kind, or None if no fold of the rows with a centre is left.

        Whatever is learned around a centre needs training rows that have one. With a
        single fold, or if the training rows of a fold are never tested, there are none.
        """
        if judged.folds or self.kind is None:
            return self.kind
        if self.kind != "auto":
            where = "where no fold of `cv` trains on rows that another one tests"
            refuse("frame", f'be None or "auto" {where}', repr(self.kind))
        return None

    def keep_rows(self, places: Rows) -> None:
        """Keep the out-of-fold values of some of the rows only."""
        for name in ("oof_center_", "oof_scale_", "oof_coordinate_"):
            setattr(self, name, getattr(self, name)[places])

    def locate(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return centre and scale of new rows, shapes (n,)."""
        n = len(table)
        if self.kind_ is None:
            return np.zeros(n), np.ones(n)
        scale = np.ones(n) if self.kind_ == "center" else self.scale_.predict(table)
        return self.centre_.predict(table), self.shrinkage_ * scale

    def locate_each(self, table: Table) -> Float64Array:
        """Return the centre of new rows by each fold's models, shape (n_folds, n)."""
        if self.kind_ is None:
            return np.zeros((1, len(table)))
        return self.centre_.predict_each(table)

    def add_features(
        self, table: Table, center: Float64Array, scale: Float64Array
    ) -> Table:
        """Return rows with centre and log scale as two more columns.

        The scale is that of judged rows, which for new ones is greater than located.
        """
        if self.kind_ is None:
            return table
        center = (center - self.origin_) / self.unit_
        columns = {"center(x)": center, "log scale(x)": np.log(scale)}
        return table.with_columns(**columns)

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, ready for JSON."""
        if not hasattr(self, "centre_"):
            return {"kind": None}
        return {
            "kind": self.kind_,
            "losses": self.losses_,
            "weights": self.centre_.weights_,
            "nearness": self.nearness_,
            "shrinkage": self.shrinkage_,
            "families": self.centre_.report_,
        }
