"""`Frame`: where thresholds are placed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.coordinate.centre import CentreStack, single_precision
from localexpert.coordinate.refinement import Refinement
from localexpert.coordinate.scale import ScaleModel
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.progress import current_progress

# The mean of models is never credited with more than this share of the squared error.
_MOST_GAIN = 0.5


@dataclass(frozen=True)
class _Places:
    """A centre of the judged rows, its scale, and the CRPS of each kind's marginal."""

    centers: Float64Array
    scale: ScaleModel | None
    losses: dict[str | None, float]


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
    refinement_ : Refinement or None
        What rows beyond those of `fit` have added to centre and scale of new ones.
    """

    refinement_: Refinement | None = None

    def __init__(
        self,
        kind: str | None,
        center: Any = "stack",
        *,
        out_of_bag: bool = True,
        n_jobs: int | None = None,
        random_state: int = 0,
    ):
        self.kind = kind
        self.center = center
        self.out_of_bag = out_of_bag
        self.n_jobs = n_jobs
        self.random_state = random_state

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
        y, w, kind = part.y, part.weight, self.kind_
        tried: list[_Places] = []

        def judge(centers: Float64Array) -> float:
            tried.append(self._place(part, centers))
            return min(tried[-1].losses.values())

        self.centre_ = self._make_centre()
        with current_progress().stage("centre"):
            self.centre_.fit(tame, judge)
        # The centre has kept the first of those with the least loss.
        places = min(tried, key=lambda one: min(one.losses.values()))
        losses = places.losses
        if kind == "auto":
            losses = {**losses, None: marginal_crps(y, np.ones(len(y)), w)}
            self.kind_ = min(losses, key=losses.__getitem__)
            self.losses_ = {str(kind): loss for kind, loss in losses.items()}
        if places.scale is not None:
            self.scale_ = places.scale
        n = len(tame) if self.kind_ is None else len(y)
        self.oof_center_, self.oof_scale_ = np.zeros(n), np.ones(n)
        if self.kind_ is not None:
            self.loss_ = losses[self.kind_]
            self.oof_center_ = places.centers
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

    def _place(self, part: Sample, centers: Float64Array) -> _Places:
        """Return what a centre comes to, with a scale if one may be asked for."""
        y, w = part.y, part.weight
        losses: dict[str | None, float] = {}
        if self.kind_ != "standardize":
            losses["center"] = marginal_crps(y - centers, np.ones(len(y)), w)
        if self.kind_ == "center":
            return _Places(centers, None, losses)
        scale = ScaleModel(n_jobs=self.n_jobs, random_state=self.random_state)
        with current_progress().stage("scale"):
            scale.fit(replace(part, y=y - centers))
        coordinate = (y - centers) / scale.oof_
        losses["standardize"] = marginal_crps(coordinate, scale.oof_, w)
        return _Places(centers, scale, losses)

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
        placed = self.centre_.predict(table), self.shrinkage_ * scale
        if self.refinement_ is None:
            return placed
        return self.refinement_.apply(table.codes, *placed)

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
        return table.with_columns(**self._columns(center, log_scale))

    def more_features(self, center: Float64Array, scale: Float64Array) -> Float64Array:
        """Return what `add_features` adds to new rows, shape (n, 2); (n, 0) if nothing.

        Parameters
        ----------
        center, scale : ndarrays of shape (n,)

        Returns
        -------
        ndarray of shape (n, 2) or (n, 0)
        """
        if self.kind_ is None:
            return np.empty((len(center), 0))
        columns = self._columns(center, np.log(scale / self.shrinkage_))
        return np.column_stack(list(columns.values()))

    def _columns(
        self, center: Float64Array, log_scale: Float64Array
    ) -> dict[str, Float64Array]:
        center = (center - self.origin_) / self.unit_
        return {"center(x)": center, "log scale(x)": log_scale}

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, ready for JSON."""
        if not hasattr(self, "centre_"):
            return {"kind": None}
        told = {} if self.refinement_ is None else self.refinement_.choices()
        return {
            "kind": self.kind_,
            **({"refined": told} if told else {}),
            "losses": self.losses_,
            "weights": self.centre_.weights_,
            "nearness": self.nearness_,
            "shrinkage": self.shrinkage_,
            "families": self.centre_.report_,
        }


def marginal_crps(r: Float64Array, scale: Float64Array, w: Float64Array) -> float:
    """Return the CRPS, in units of y, of every row's forecast m + s R.

    R has the weighted distribution of `r`, for which
    CRPS_i = s_i (E|r_i - R| - E|R - R'| / 2), by sums over the sorted values.

    Parameters
    ----------
    r, scale, w : ndarrays of shape (n,)

    Returns
    -------
    float
    """
    order = np.argsort(r, kind="stable")
    x, v = r[order], w[order] / w.sum()
    below, sums = np.cumsum(v), np.cumsum(v * x)
    distance = x * (2.0 * below - 1.0) + sums[-1] - 2.0 * sums
    return float((v * scale[order]) @ (distance - 0.5 * v @ distance))
