"""`FittedRoad`: the stages of one road: frame, thresholds, experts, laws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.counts import count_values
from localexpert.data.folds import Rows, check_learns
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.calibrated_experts import CalibratedExperts
from localexpert.experts.thresholds import cuts_between, place_thresholds
from localexpert.law.law import Law
from localexpert.learn.learner import Learner
from localexpert.learn.roads import Road
from localexpert.learn.settings import Settings
from localexpert.learn.smooth import Curves
from localexpert.learn.values import Masses
from localexpert.progress import current_progress

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

    Attributes
    ----------
    frame : Frame
    experts : CalibratedExperts
    laws : Curves or Masses
    thresholds_ : ndarray of shape (N,)
        In the coordinate of the frame.
    """

    def __init__(self, road: Road, settings: Settings, n: int):
        own, self.steps = road.bind(settings)
        self.thresholds, self.n_thresholds = own.thresholds, own.n_thresholds
        self.frame = own.make_frame()
        self.experts = CalibratedExperts(own.members(n), own.make_calibration())
        self.laws = Masses(own.bounds) if self._asks_of_values else Curves(own)

    @property
    def _asks_of_values(self) -> bool:
        return isinstance(self.thresholds, str) and self.thresholds == "values"

    def _start(self, sample: Sample) -> float:
        """Fit the frame, or without one the experts, and say what may come of it.

        Of a frame it is the CRPS of the marginal carried to its rows, of experts theirs
        after the most simple calibration.
        """
        with current_progress().stage("frame"):
            self.frame.fit(sample)
        if self.frame.kind_ is not None:
            return self.frame.loss_
        asked = self._ask_experts(sample)
        if self._asks_of_values:
            return 0.0
        return self.experts.prospect(asked, self.thresholds_, self.frame.oof_scale_)

    def _finish(self, sample: Sample) -> None:
        """Fit the other stages, on the rows of `start`."""
        if self.frame.kind_ is not None:
            self._ask_experts(sample)
        rows, part = self._locate(sample)
        self.experts.calibrate(part, self.thresholds_)
        self.judged_ = rows[part.judged]
        self.frame.keep(part.judged)
        self.laws.fit(
            part,
            thresholds=self.thresholds_,
            answers=self.oof_answers(slice(None)),
            y=sample.tame().y[self.judged_],
            weight=sample.weight[self.judged_],
        )

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
        if self._asks_of_values:
            self.thresholds_ = cuts_between(count_values(part.y, part.weight)[0])
        else:
            self.thresholds_ = place_thresholds(
                part.y, self.n_thresholds, self.thresholds, part.weight
            )
        located = replace(part, table=self.frame.add_oof_features(part.table))
        self.experts.ask(located, self.thresholds_, self.frame.oof_scale_)
        return located

    @property
    def heaviest(self) -> FittedRoad:
        """The road itself."""
        return self

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
