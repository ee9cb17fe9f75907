"""`Learner`: what learns laws from rows; `FittedRoad`, the stages of one road."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import clone

from calibration.typing import Float64Array
from localexpert.coordinate import Frame
from localexpert.coordinate.centre import marginal_crps
from localexpert.curves.spline import CurveBuilder, ProbitSpline, RawSpline
from localexpert.data.folds import Rows, check_learns
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.data.target_values import count_values
from localexpert.experts import Experts, IndependentExperts, JointForest, SharedBoosting
from localexpert.experts.base import Tasks
from localexpert.experts.calibrated_experts import CalibratedExperts
from localexpert.experts.calibration import ExpertCalibration
from localexpert.experts.task_record import TaskRecord
from localexpert.experts.thresholds import cuts_between, place_thresholds
from localexpert.law.law import Law
from localexpert.learn.roads import Road
from localexpert.learn.settings import Settings
from localexpert.learn.stages import Curves, Stages
from localexpert.learn.steps import Carry, Step
from localexpert.learn.values import Masses
from localexpert.progress import current_progress

# Rows whose laws a step looks at.
_ROWS_LOOKED_AT = slice(0, 500)


class Learner(ABC):
    """A road, atoms beside one, or a pool: stages, and steps that read their laws.

    What the stages say of rows before laws are drawn are their `answers`; laws follow
    from answers by `law_of`.

    Attributes
    ----------
    steps : tuple of Step
        The first is nearest to y.
    hopeless : float
        What `start` says is so many times the loss of another learner, if this one is
        of no use beside it.
    cost : float
        How many times as long it takes as the first learner of its pool.
    judged_ : ndarray of int of shape (m,)
        Rows that are forecast out of fold, of whom `oof_law_` and `tasks_` speak.
    """

    steps: tuple[Step, ...] = ()
    hopeless: float = np.inf
    cost: float = 1.0
    judged_: Rows

    def fit(self, sample: Sample) -> Self:
        """Fit every stage; each hands honest out-of-fold values to the next.

        Parameters
        ----------
        sample : Sample
            Of n rows.

        Returns
        -------
        self
        """
        self.start(sample)
        return self.finish(sample)

    def start(self, sample: Sample) -> float:
        """Fit what tells cheaply how good the forecasts may be.

        Returns
        -------
        float
            A CRPS out of fold of which the whole is hardly below a part; 0 where
            nothing less than the whole tells.
        """
        known, outer = True, sample
        for step in self.steps:
            step.fit(sample)
            outer, sample = sample, step.inner(sample)
            # A CRPS in other units tells nothing.
            known = known and not step.changes_target
        trial = self._start(sample, outer)
        return trial if known else 0.0

    def finish(self, sample: Sample) -> Self:
        """Fit the other stages, on the rows of `start`."""
        samples = [sample]
        for step in self.steps:
            samples.append(step.inner(samples[-1]))
        self._finish(samples.pop())
        if any(type(s).check_laws is not Step.check_laws for s in self.steps):
            law = self._law_of(self.oof_answers(_ROWS_LOOKED_AT))
            for step, outer in zip(self.steps[::-1], samples[::-1], strict=True):
                law = step.read(law)
                step.check_laws(law, outer.y[outer.weight > 0.0])
        return self

    def law_of(self, answers: Any) -> Law:
        """Return the laws that follow from answers."""
        return self._read(self._law_of(answers))

    def law(self, table: Table) -> Law:
        """Return the laws of new rows.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        Law
        """
        return self.law_of(self.answers(table))

    @cached_property
    def oof_law_(self) -> Law:
        """Honest laws of the rows that are judged.

        Made when asked for, of what is kept anyway: in a file they would be several
        times as much.
        """
        return self.law_of(self.oof_answers(slice(None)))

    def law_as_new(self, places: Rows, y: Float64Array) -> Law:
        """Return laws that miss y of some judged rows as those of new rows will.

        New rows get the mean of all folds' models, which errs less than the one model
        that never saw a training row.

        Parameters
        ----------
        places : ndarray of int of shape (k,)
            Among the judged rows.
        y : ndarray of shape (k,)

        Returns
        -------
        Law
        """
        for step in self.steps:
            y = step.there_anew(y)
        return self._read(self._law_as_new(places, y))

    def _read(self, law: Law) -> Law:
        for step in reversed(self.steps):
            law = step.read(law)
        return law

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        thresholds, probabilities : ndarrays of shape (n, N)
        """
        thresholds, p = self._points(table)
        for step in reversed(self.steps):
            thresholds = step.back(thresholds)
        return thresholds, p

    def keep_rows(self, places: Rows) -> None:
        """Keep what is known out of fold of some of the judged rows only."""
        self.judged_ = self.judged_[places]
        vars(self).pop("oof_law_", None)
        self._keep_rows(places)

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        choices = self._choices()
        for step in reversed(self.steps):
            choices = step.choices() | choices
        return choices

    @property
    @abstractmethod
    def tasks_(self) -> TaskRecord:
        """What the experts of the heaviest road said out of fold."""

    @property
    def heaviest(self) -> Learner:
        """What has the experts that `tasks_` and `points` speak of."""
        return self

    @abstractmethod
    def answers(self, table: Table) -> Any:
        """Return what the stages say of new rows."""

    @abstractmethod
    def oof_answers(self, places: Rows | slice) -> Any:
        """Return the same of some of the judged rows, by what has not seen them."""

    def _start(self, sample: Sample, outer: Sample) -> float:
        """Start with rows, given the same before the last step to their target."""
        del sample, outer
        return 0.0

    @abstractmethod
    def _finish(self, sample: Sample) -> None: ...

    @abstractmethod
    def _law_of(self, answers: Any) -> Law: ...

    def _law_as_new(self, places: Rows, y: Float64Array) -> Law:
        del y
        return self._law_of(self.oof_answers(places))

    @abstractmethod
    def _points(self, table: Table) -> tuple[Float64Array, Float64Array]: ...

    @abstractmethod
    def _keep_rows(self, places: Rows) -> None: ...

    @abstractmethod
    def _choices(self) -> dict[str, Any]: ...


# Trees of a forest that is one member of a pool (with twice as many a pool scores the
# same), and of one that says whether the whole is worth its time.
_TREES, _TRIAL_TREES = 100, 20
# Above this many rows the forest of "auto" costs more time than it gains score.
_MOST_ROWS_FOR_FOREST = 200_000

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
    stages : Stages
        What other roads have fitted.

    Attributes
    ----------
    frame : Frame
    experts : CalibratedExperts
    laws : Curves or Masses
    thresholds_ : ndarray of shape (N,)
        In the coordinate of the frame.
    """

    def __init__(self, road: Road, settings: Settings, n: int, stages: Stages):
        self.stages, self.hopeless = stages, road.hopeless
        own = settings.settle(road)
        self.steps, limits = road.bind(settings.limits, settings.seed)
        self.thresholds, self.n_thresholds = own.thresholds, own.n_thresholds
        self.frame = Frame(
            own.frame,
            settings.center,
            out_of_bag=settings.out_of_bag,
            n_jobs=settings.n_jobs,
            random_state=settings.seed,
        )
        ordered = settings.monotone is not None

        def ask(members: dict[str, Experts]) -> CalibratedExperts:
            calibration = ExpertCalibration(
                own.calibrator, increasing=ordered, random_state=settings.seed
            )
            return CalibratedExperts(members, calibration)

        self.experts = ask(_make_members(own.strategy, settings, n))
        # A small forest says whether a whole one is worth its time.
        self._trial: CalibratedExperts | None = None
        if isinstance(own.strategy, str) and own.strategy == "deep":
            self._trial = ask({"deep": _deep_forest(settings, _TRIAL_TREES)})
        self._asks_of_values = own.asks_of_values
        self.laws: Masses | Curves = Masses(limits.bounds)
        if not own.asks_of_values:
            builders = _make_builders(settings.smoothing, own.smoothings)
            self.laws = Curves(builders, limits, settings.seed, ordered=ordered)

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


class BaseRates(Experts):
    """Say for every row which share of the training rows lies below each threshold.

    In a frame the forecast is centre, scale and the law of the residuals; without one
    it is climatology.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.folds import make_folds
    >>> from localexpert.learn.learner import BaseRates
    >>> x = np.arange(98.0)[:, None]
    >>> folds = make_folds(98, 2, random_state=0)
    >>> BaseRates().fit(x, x[:, 0], [24.0, 73.0], folds).predict(x[:1])
    array([[0.26, 0.75]])
    """

    rates_: Float64Array

    def _check_parameters(self) -> None:
        """There are none."""

    def _fit(self, tasks: Tasks) -> Float64Array:
        oof = np.empty((tasks.n, tasks.n_thresholds))
        for train, test in tasks.folds:
            oof[test] = tasks.base_rates(train)
        self.rates_ = tasks.base_rates(tasks.present)
        return oof

    def _predict(self, table: Table) -> Float64Array:
        return np.tile(self.rates_, (len(table), 1))


def _make_members(
    strategy: str | Experts, settings: Settings, n: int
) -> dict[str, Experts]:
    """Return the unfitted experts of a strategy for `n` rows, by name."""
    common: dict[str, Any] = {"n_jobs": settings.n_jobs, "random_state": settings.seed}
    shared = SharedBoosting(monotone=settings.monotone, **common)
    members: dict[str, Experts]
    if isinstance(strategy, Experts):
        members = {type(strategy).__name__: strategy}
    elif strategy == "auto":
        # Unlike in kind, they err on different rows, so a pool of both is better than
        # either on most sets; weights of the pool drop the one that is not.
        members = {"shared": shared}
        if n <= _MOST_ROWS_FOR_FOREST:
            members["joint"] = JointForest(**common)
    elif strategy == "independent":
        one = IndependentExperts(settings.expert, monotone=settings.monotone, **common)
        members = {strategy: one}
    else:
        made = {
            "shared": shared,
            "joint": JointForest(**common),
            "deep": _deep_forest(settings, _TREES),
            "marginal": BaseRates(),
        }
        members = {strategy: made[strategy]}
    if settings.out_of_bag:
        return members
    return {name: _out_of_fold(experts) for name, experts in members.items()}


def _deep_forest(settings: Settings, n_trees: int) -> JointForest:
    """Return the unfitted forest whose trees grow until rows are alone."""
    return JointForest(
        n_trees,
        max_features=1.0,
        out_of_bag=settings.out_of_bag,
        n_jobs=settings.n_jobs,
        random_state=settings.seed,
    )


def _out_of_fold(experts: Experts) -> Experts:
    """Return experts whose forests predict no row out of bag.

    A tree that did not draw a row may have drawn another of its group, or a copy.
    """
    bags = {
        name: False
        for name, value in experts.get_params().items()
        if name.split("__")[-1] in ("out_of_bag", "oob_score") and value
    }
    return clone(experts).set_params(**bags) if bags else experts


def _make_builders(
    smoothing: float | str, steps: tuple[float, ...]
) -> list[CurveBuilder]:
    """Return the splines to choose from."""
    if smoothing == "auto":
        return [ProbitSpline(step) for step in steps]
    if isinstance(smoothing, str):
        return [RawSpline(smoothing)]  # type: ignore[arg-type]
    return [ProbitSpline(float(smoothing))]
