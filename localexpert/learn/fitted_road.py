"""`FittedRoad`: the stages of one road: frame, thresholds, experts, laws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from calibration.typing import Float64Array
from localexpert.coordinate.centre import marginal_crps
from localexpert.data.folds import Rows, check_learns
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.data.target_values import count_values
from localexpert.experts.calibrated_experts import CalibratedExperts
from localexpert.experts.task_record import TaskRecord
from localexpert.experts.thresholds import cuts_between, place_thresholds
from localexpert.law.law import Law
from localexpert.learn.base_rates import BaseRates
from localexpert.learn.learner import Learner
from localexpert.learn.roads import Road
from localexpert.learn.settings import Settings
from localexpert.learn.smooth import Curves
from localexpert.learn.stages import Stages
from localexpert.learn.steps import Carry
from localexpert.learn.values import Masses
from localexpert.progress import current_progress

_TRIAL_TREES = 20

# Centre, scale, and what the experts say, (n,), (n,) and (n, N).
Answers: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]


class FittedRoad(Learner):
    """Fit the stages that a road describes.

    Parameters
    ----------
    road : Road
    settings : Settings
        What the regressor was given.
    n : int
        Number of rows.
    stages : Stages, optional
        What other roads have fitted.

    Attributes
    ----------
    frame : Frame
    experts : CalibratedExperts
    laws : Curves or Masses
    thresholds_ : ndarray of shape (N,)
        In the coordinate of the frame.
    """

    def __init__(
        self, road: Road, settings: Settings, n: int, stages: Stages | None = None
    ):
        self.stages = Stages() if stages is None else stages
        own, self.steps = road.bind(settings)
        self.hopeless = road.hopeless
        self.thresholds, self.n_thresholds = own.thresholds, own.n_thresholds
        self.frame = own.make_frame()
        self.experts = CalibratedExperts(own.members(n), own.make_calibration())
        # A small forest says whether a whole one is worth its time.
        self._trial: CalibratedExperts | None = None
        if own.strategy == "deep":
            few = {"deep": own.deep_forest(_TRIAL_TREES)}
            self._trial = CalibratedExperts(few, own.make_calibration())
        self.laws = Masses(own.bounds) if self._asks_of_values else Curves(own)

    @property
    def _asks_of_values(self) -> bool:
        return isinstance(self.thresholds, str) and self.thresholds == "values"

    def _start(self, sample: Sample, outer: Sample) -> float:
        """Fit the frame, or without one the experts, and say what may come of it.

        Of a frame it is the CRPS of the marginal carried to its rows, of experts theirs
        after the most simple calibration.
        """
        self._fit_frame(sample, outer)
        if self.frame.kind_ is not None:
            return self.frame.loss_
        if isinstance(self.experts.members.get("marginal"), BaseRates):
            y = sample.without_outliers().y[sample.judged]
            return marginal_crps(y, np.ones(len(y)), sample.weight[sample.judged])
        if self._asks_of_values:
            return 0.0
        experts = self._trial or self.experts
        asked = self._ask(experts, sample)
        return experts.prospect(asked, self.thresholds_, self.frame.oof_scale_)

    def _fit_frame(self, sample: Sample, outer: Sample) -> None:
        if self._asks_of_values:
            self.frame.fit(sample)
            return
        last = self.steps[-1] if self.steps else None
        carry = last if isinstance(last, Carry) else None
        with current_progress().stage("frame"):
            self.frame = self.stages.fit_frame(self.frame, sample, carry, outer)

    def _finish(self, sample: Sample) -> None:
        """Fit the other stages, on the rows of `start`."""
        if not hasattr(self.experts, "fitted_"):
            self._ask(self.experts, sample)
        del self.stages, self._trial
        rows, part = self._locate(sample)
        self.experts.calibrate(part, self.thresholds_)
        self.judged_ = rows[part.judged]
        self.frame.keep(part.judged)
        self.laws.fit(
            part,
            thresholds=self.thresholds_,
            answers=self.oof_answers(slice(None)),
            y=sample.without_outliers().y[self.judged_],
            weight=sample.weight[self.judged_],
        )

    def _locate(self, sample: Sample) -> tuple[Rows, Sample]:
        """Return the rows that have a coordinate, and them with it as their target."""
        rows = self.frame.located(sample)
        # Folds without a training row that has a coordinate are dropped.
        part = sample if len(rows) == len(sample) else sample.take(rows)
        return rows, replace(part, y=self.frame.oof_coordinate_)

    def _ask(self, experts: CalibratedExperts, sample: Sample) -> Sample:
        """Place thresholds, ask experts at them, and return what was asked."""
        _, part = self._locate(sample)
        check_learns(part.folds, part.weight)
        if self._asks_of_values:
            self.thresholds_ = cuts_between(count_values(part.y, part.weight)[0])
        else:
            self.thresholds_ = place_thresholds(
                part.y, self.n_thresholds, self.thresholds, part.weight
            )
        located = replace(part, table=self.frame.add_oof_features(part.table))
        experts.ask(located, self.thresholds_, self.frame.oof_scale_)
        return located

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts said out of fold."""
        return self.experts.tasks_

    def answers(self, table: Table) -> Answers:
        """Return centre, scale, and what the experts say of new rows."""
        center, scale = self.frame.locate(table)
        located = self.frame.add_features(table, center, scale)
        return center, scale, self.experts.predict(located)

    def oof_answers(self, places: Rows | slice) -> Answers:
        """Return the same of some of the judged rows, out of fold."""
        frame = self.frame
        known = frame.oof_center_, frame.oof_scale_, self.tasks_.calibrated
        center, scale, p = (x[places] for x in known)
        return center, scale, p

    def _law_of(self, answers: Answers) -> Law:
        return self.laws.law(*answers)

    def _law_as_new(self, places: Rows, y: Float64Array) -> Law:
        """Return laws that miss y as those of new rows will.

        Their centres are nearer to y, and their scales less, by the factor that the
        frame expects of the mean of the folds' centres.
        """
        center, scale, p = self.oof_answers(places)
        nearer = self.frame.nearness_
        return self._law_of((y + nearer * (center - y), nearer * scale, p))

    def _points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        center, scale, p = self.answers(table)
        return center[:, None] + scale[:, None] * self.thresholds_, p

    def _keep_rows(self, places: Rows) -> None:
        """Let frame and experts keep it."""
        self.frame.keep(places)
        self.experts.keep(places)

    def _choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        frame = {} if self._asks_of_values else {"frame": self.frame.choices()}
        return {**frame, **self.experts.choices(), **self.laws.choices()}

    def _leaves(self, y: Float64Array) -> Iterator[tuple[Any, Float64Array, Rows]]:
        yield self, y, np.arange(len(y))
