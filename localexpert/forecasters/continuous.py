"""The road of a continuous target: frame, thresholds, experts, curves, law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.coordinate import Frame
from localexpert.curves.base_cdf import BaseCDF, law_of_curves
from localexpert.curves.spline import CurveBuilder
from localexpert.data.folds import Rows, check_learns
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.calibrated_experts import CalibratedExperts
from localexpert.experts.task_record import TaskRecord
from localexpert.experts.thresholds import place_thresholds
from localexpert.forecasters.forecaster import RoadForecaster
from localexpert.forecasters.mixed import atom_widths
from localexpert.law.bounds import clip, cut
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap
from localexpert.progress import current_progress

# Rows on which curve builders are compared: their scores differ by more than the
# noise of this many.
_ROWS_TO_COMPARE = 5000
# A nat of the log score is worth so much of the logarithm of CRPS.
WEIGHT_OF_CRPS = 10.0
# Least gain in the log score of all rows together by one more knot, in nats.
_PRICE_OF_KNOTS = 2.0
# Thresholds that are nearer in probits of the marginal are one.
_LEAST_GAP = 1e-4
# A bound is believed where forecasts expected so many rows beyond it.
_EXPECTED_BEYOND = 5.0

# Centre, scale, and what the experts say, (n,), (n,) and (n, N).
Placed: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]


@dataclass
class ContinuousForecaster(RoadForecaster):
    """Fit smooth laws of a target without heavy values.

    After `fit`, `judged_` are the rows that `oof_law_` and `tasks_` speak of.

    Parameters
    ----------
    frame : Frame
        Unfitted.
    thresholds : {"quantile", "uniform"} or array of shape (N,)
    n_thresholds : int
    experts : CalibratedExperts
        Unfitted.
    builders : sequence of CurveBuilder
        The one with the least loss out of fold is taken: log score and CRPS together.
    bounds : (float, float)
        What is beyond is cut off, or where order is to be kept put at them.
    suspected : (float, float)
        Ends that are bounds if forecasts without them expected targets beyond.
    max_shape : float
        Of the tails of the marginal, see `BaseCDF.fit`.
    ordered : bool
        Whether laws keep the order of rows exactly.
    random_state : int
    """

    frame: Frame
    thresholds: Any
    n_thresholds: int
    experts: CalibratedExperts
    builders: Sequence[CurveBuilder]
    bounds: tuple[float, float] = (-np.inf, np.inf)
    suspected: tuple[float, float] = (-np.inf, np.inf)
    max_shape: float = 0.2
    ordered: bool = False
    random_state: int = 0
    builder_losses_: dict[str, float] = field(default_factory=dict)

    def begin(self, sample: Sample) -> float:
        """Fit the frame, or without one the experts, and say what may come of it.

        Of a frame it is the CRPS of the marginal carried to its rows, of experts theirs
        after the most simple calibration.
        """
        with current_progress().stage("frame"):
            self.frame.fit(sample)
        if self.frame.kind_ is not None:
            return self.frame.loss_
        asked = self._ask_experts(sample)
        return self.experts.prospect(asked, self.thresholds_, self.frame.oof_scale_)

    def finish(self, sample: Sample) -> ContinuousForecaster:
        """Fit the other stages, on the rows of `begin`."""
        if self.frame.kind_ is not None:
            self._ask_experts(sample)
        rows, part = self._locate(sample)
        self.experts.calibrate(part, self.thresholds_)
        # The marginal of r is the axis on which forecasts are drawn: where experts have
        # nothing to say a forecast is the marginal itself, a straight line there.
        self.base_ = BaseCDF.fit(part.y, part.weight, max_shape=self.max_shape)
        self.n_ = float(part.weight.sum())
        self.judged_ = rows[part.judged]
        self.frame.keep(part.judged)
        with current_progress().stage("spline"):
            tame = sample.without_outliers().y[self.judged_]
            weight = sample.weight[self.judged_]
            self.width_ = float(atom_widths(np.zeros(1), tame, weight)[0])
            self._believe_bounds(weight)
            self._choose_builder(tame, weight)
        return self

    def _locate(self, sample: Sample) -> tuple[Rows, Sample]:
        """Return the rows that have a coordinate, and them with it as their target."""
        rows = self.frame.located(sample)
        # Folds without a training row that has a coordinate are dropped.
        part = sample if len(rows) == len(sample) else sample.take(rows)
        return rows, replace(part, y=self.frame.oof_coordinate_)

    def _ask_experts(self, sample: Sample) -> Sample:
        """Place thresholds, ask experts at them, and return what was asked."""
        _, part = self._locate(sample)
        check_learns(part.folds, part.weight)
        self.thresholds_ = place_thresholds(
            part.y, self.n_thresholds, self.thresholds, part.weight
        )
        located = replace(part, table=self.frame.add_oof_features(part.table))
        self.experts.ask(located, self.thresholds_, self.frame.oof_scale_)
        return located

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts said out of fold."""
        return self.experts.tasks_

    def law_ahead(self, places: Rows, y: Float64Array) -> Law:
        """Return laws that miss y of some judged rows as those of new rows will.

        Their centres are nearer to y, and their scales less, by the factor that the
        frame expects of the mean of the folds' centres.

        Parameters
        ----------
        places : ndarray of int of shape (k,)
        y : ndarray of shape (k,)

        Returns
        -------
        Law
        """
        center, scale, p = self.oof_placed(places)
        nearer = self.frame.nearness_
        return self.law_of((y + nearer * (center - y), nearer * scale, p))

    def _keep(self, places: Rows) -> None:
        """Let frame and experts keep it."""
        self.frame.keep(places)
        self.experts.keep(places)

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        center, scale, p = self.place(table)
        return center[:, None] + scale[:, None] * self.thresholds_, p

    def recall_targets(self) -> Float64Array:
        """Return the targets of the judged rows: centre, scale and coordinate."""
        frame = self.frame
        return np.asarray(frame.oof_center_ + frame.oof_scale_ * frame.oof_coordinate_)

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        return {
            "frame": self.frame.choices(),
            **self.experts.choices(),
            "spline": {"chosen": repr(self.builder_), "losses": self.builder_losses_},
        }

    def oof_placed(self, places: Rows | slice) -> Placed:
        """Return what `place` does, of some of the judged rows, out of fold."""
        frame = self.frame
        placed = frame.oof_center_, frame.oof_scale_, self.tasks_.calibrated
        center, scale, p = (x[places] for x in placed)
        return center, scale, p

    def place(self, table: Table) -> Placed:
        """Return centre, scale, and what the experts say of new rows."""
        center, scale = self.frame.locate(table)
        located = self.frame.add_features(table, center, scale)
        return center, scale, self.experts.predict(located)

    def law_of(self, placed: Placed) -> Law:
        """Return the laws that follow from centre, scale and the experts."""
        center, scale, p = placed
        return self._law(center, scale, self._curves(p, self.builder_))

    def _curves(self, p: Float64Array, builder: CurveBuilder) -> LevelMap:
        t = self.base_.t(self.thresholds_)
        kept = _told_apart(t)
        slopes = self.base_.least_slopes()
        return builder.build(p[:, kept], t[kept], self.n_, slopes)

    def _law(self, center: Float64Array, scale: Float64Array, curves: LevelMap) -> Law:
        law = law_of_curves(center, scale, curves, self.base_, ordered=self.ordered)
        if self.ordered:
            return clip(law, *self.bounds, self.width_)
        return cut(law, *self.bounds)

    def _believe_bounds(self, weight: Float64Array) -> None:
        """Take a suspected end as a bound if many targets were expected beyond it.

        None came. Had forecasts without the bound been right, so many as 5 would have
        stayed away by chance in 1 of 150 cases.
        """
        if not np.isfinite(self.suspected).any():
            return
        rows = self._some_rows(weight)
        placed = self.frame.oof_center_[rows], self.frame.oof_scale_[rows]
        curves = self._curves(self.tasks_.calibrated[rows], self.builders[0])
        law = law_of_curves(*placed, curves, self.base_, ordered=self.ordered)
        share = weight[rows] * (weight.sum() / weight[rows].sum())
        found = []
        for side, (end, own) in enumerate(
            zip(self.suspected, self.bounds, strict=True)
        ):
            expected = 0.0
            if np.isfinite(end):
                beyond = law.levels(np.full((len(law), 1), end), left=side == 0)[side]
                expected = float(share @ beyond[:, 0])
            believed = expected >= _EXPECTED_BEYOND
            tighter = max(own, end) if side == 0 else min(own, end)
            found.append(tighter if believed else own)
        self.bounds = found[0], found[1]

    def _some_rows(self, weight: Float64Array) -> Rows:
        """Return some of the judged rows that have weight."""
        rng = np.random.default_rng(self.random_state)
        return rng.permutation(np.flatnonzero(weight))[:_ROWS_TO_COMPARE]

    def _choose_builder(self, y: Float64Array, weight: Float64Array) -> None:
        """Take the builder with the least loss out of fold on a sample of rows.

        The loss is the mean log score, ten times the logarithm of the mean CRPS (so
        that a percent of CRPS is worth a tenth of a nat), and 2 / n for each knot
        between the thresholds. For experts were calibrated on the same rows: a knot
        that follows their noise gains about 1 / n (Akaike 1974), and must do better.
        """
        self.builder_ = self.builders[0]
        if len(self.builders) == 1:
            return
        rows = self._some_rows(weight)
        first, last = self.base_.t(self.thresholds_[[0, -1]])
        for builder in current_progress().track(self.builders, len(self.builders)):
            curves = self._curves(self.tasks_.calibrated[rows], builder)
            placed = self.frame.oof_center_[rows], self.frame.oof_scale_[rows]
            law = self._law(*placed, curves)
            scores = -law.logpdf(y[rows, None]), law.crps(y[rows, None])
            missed, crps = np.average(np.hstack(scores), axis=0, weights=weight[rows])
            n_knots = np.sum((first < curves.knots) & (curves.knots < last))
            loss = (
                missed
                + WEIGHT_OF_CRPS * np.log(crps)
                + _PRICE_OF_KNOTS * n_knots / self.n_
            )
            self.builder_losses_[repr(builder)] = float(loss)
        best = min(self.builder_losses_, key=self.builder_losses_.__getitem__)
        self.builder_ = next(b for b in self.builders if repr(b) == best)


def _told_apart(t: Float64Array) -> NDArray[np.intp]:
    """Return places of thresholds in t, the middle one of several that coincide.

    As some do where the greatest of few values is very far out: the marginal is then
    nearly a jump on its scale, and says nothing of what lies between them.
    """
    starts = np.flatnonzero(np.diff(t, prepend=-np.inf) > _LEAST_GAP)
    places: NDArray[np.intp] = (starts + np.append(starts[1:], len(t)) - 1) // 2
    return places
