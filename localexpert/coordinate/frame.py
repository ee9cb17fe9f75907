"""`Frame`: where thresholds are placed."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.coordinate.boosting import FoldBoosters
from localexpert.coordinate.centre import (
    CentreStack,
    marginal_crps,
    single_precision,
    spread_rows,
)
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.progress import current_progress

# The mean of models is never credited with more than this share of the squared error.
_MOST_GAIN = 0.5

# No row's scale is below this share of the typical one: a region without noise in
# training must not claim certainty.
_FLOOR = 0.02
_MOST_ROUNDS = 150


@dataclass(eq=False)
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

    n_jobs: int | None
    random_state: int

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
        self.boosters_ = FoldBoosters(parameters, _MOST_ROUNDS, n_jobs=self.n_jobs)
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
            some = spread_rows(len(w))
            each = self.boosters_.predict_each(sample.table.codes[some])
            self.ambiguity_ = float(w[some] @ each.var(axis=0) / (w[some].sum() or 1.0))
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
        "auto" takes the one whose coordinate alone, before any expert, makes the best
        forecast: the least out-of-fold CRPS of the marginal distribution of r, carried
        to each row's centre and scale.
    center : "stack", regressor, list of regressors or CentreStack
    out_of_bag : bool
        Whether a forest may predict rows out of bag instead of out of fold.

    Attributes
    ----------
    oof_center_, oof_scale_, oof_coordinate_ : ndarrays
        Of the training rows that have them (`located`), by models that have not seen
        them.
    kind_ : {"standardize", "center"} or None
        The kind taken.
    losses_ : dict of str to float
        By kind, the CRPS that "auto" compared; empty for a given kind.
    loss_ : float
        That of the kind taken; 0 for y itself, where it would say nothing.
    origin_, unit_ : float
        Experts are told the centre as (m(x) - origin) / unit.
    nearness_ : float
        Factor by which new rows, whose centre is the mean of all folds' models, miss
        it by less than training rows miss the out-of-fold centre of one model.
    shrinkage_ : float
        Factor of the scale of new rows: the same, and less by the noise that the mean
        of all folds' scales is without.
    """

    kind: str | None
    center: Any = "stack"
    _: KW_ONLY
    out_of_bag: bool = True
    n_jobs: int | None = None
    random_state: int = 0

    def fit(self, sample: Sample) -> Frame:
        """Fit centre and scale out of fold, and choose the kind."""
        # By squares one value far out would outweigh all rows together; where it lies
        # in the coordinate the thresholds and tails are told.
        tame = sample.without_outliers()
        # Rows that are not judged train the centre alone: theirs would have seen them.
        part = tame if tame.is_whole else tame.take(tame.judged)
        self.origin_, self.unit_ = single_precision(tame.y)
        self.nearness_, self.shrinkage_ = 1.0, 1.0
        self.kind_, self.loss_ = self._admit_kind(part), 0.0
        self.losses_: dict[str, float] = {}
        if self.kind_ is None:
            self.oof_center_, self.oof_scale_ = np.zeros(len(tame)), np.ones(len(tame))
        else:
            self._fit_places(tame, part)
        own = sample.y[self.located(sample)]
        self.oof_coordinate_ = (own - self.oof_center_) / self.oof_scale_
        return self

    def _fit_places(self, tame: Sample, part: Sample) -> None:
        """Fit centre and scale, and take the kind that is asked for or the best."""
        y, w = part.y, part.weight
        self.centre_ = self._make_centre()
        with current_progress().stage("centre"):
            self.centre_.fit(tame)
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
        n = len(tame) if self.kind_ is None else len(y)
        self.oof_center_, self.oof_scale_ = np.zeros(n), np.ones(n)
        if self.kind_ is not None:
            self.loss_ = losses[self.kind_]
            self.oof_center_ = centers
            self._credit(y, w)

    def _make_centre(self) -> CentreStack:
        if isinstance(self.center, CentreStack):
            return self.center
        return CentreStack(
            self.center,
            out_of_bag=self.out_of_bag,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def _credit(self, y: Float64Array, w: Float64Array) -> None:
        """Say how much nearer new rows are than those that were judged."""
        # New rows get the mean of the folds' models, whose squared error is less by
        # the ambiguity; the scale was learned from the error of single ones.
        error = float(w @ (y - self.oof_center_) ** 2 / w.sum()) or 1.0
        gain = min(self.centre_.ambiguity_ / error, _MOST_GAIN)
        self.nearness_ = self.shrinkage_ = float(np.sqrt(1.0 - gain))
        if self.kind_ == "standardize":
            self.oof_scale_ = self.scale_.oof_
            # exp(-e) r for a normal e of variance v: the mean square is exp(2 v) as
            # much, and of the mean of the models v is less by the ambiguity.
            self.shrinkage_ *= float(np.exp(-self.scale_.ambiguity_))

    def located(self, sample: Sample) -> Rows:
        """Return the rows of the sample of `fit` that have a coordinate.

        All have y itself; an honest centre only those that a fold tests.
        """
        return np.arange(len(sample)) if self.kind_ is None else sample.judged

    def _admit_kind(self, judged: Sample) -> str | None:
        """Return the kind, or None where no fold of the rows with a centre is left.

        What is learned around a centre is learned from rows that have one: of a single
        fold, or of a first one whose training rows are never tested, there are none.
        """
        if judged.folds or self.kind is None:
            return self.kind
        if self.kind == "auto":
            return None
        msg = (
            f'`frame` must be None or "auto" where no fold of `cv` trains on rows that '
            f"another one tests, got {self.kind!r}."
        )
        raise ValueError(msg)

    def keep(self, places: Rows) -> None:
        """Keep what is known out of fold of some of the rows only."""
        for name in ("oof_center_", "oof_scale_", "oof_coordinate_"):
            setattr(self, name, getattr(self, name)[places])

    def locate(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return centre and scale of new rows, shapes (n,)."""
        n = len(table)
        if self.kind_ is None:
            return np.zeros(n), np.ones(n)
        scale = np.ones(n) if self.kind_ == "center" else self.scale_.predict(table)
        return self.centre_.predict(table), self.shrinkage_ * scale

    def add_oof_features(self, table: Table) -> Table:
        """Return training rows with their out-of-fold centre and log scale."""
        return self._append(table, self.oof_center_, np.log(self.oof_scale_))

    def add_features(
        self, table: Table, center: Float64Array, scale: Float64Array
    ) -> Table:
        """Return located rows with centre and log scale as two more columns."""
        return self._append(table, center, np.log(scale / self.shrinkage_))

    def _append(
        self, table: Table, center: Float64Array, log_scale: Float64Array
    ) -> Table:
        if self.kind_ is None:
            return table
        center = (center - self.origin_) / self.unit_
        return table.with_columns(**{"center(x)": center, "log scale(x)": log_scale})

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
