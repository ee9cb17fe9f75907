"""`Learner` learns laws from rows: one road, or atoms beside one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import clone

from calibration.typing import Float64Array
from localexpert.coordinate.centre import CentreStack, marginal_crps
from localexpert.coordinate.frame import Frame
from localexpert.curves.spline import CurveBuilder, ProbitSpline
from localexpert.data.folds import Rows, Sample, check_learns
from localexpert.data.table import Table
from localexpert.data.target_values import count_values
from localexpert.experts import Experts, IndependentExperts, JointForest, SharedBoosting
from localexpert.experts.base import Tasks
from localexpert.experts.calibration import CalibratedExperts, ExpertCalibration
from localexpert.experts.report import TaskRecord
from localexpert.experts.thresholds import cuts_between, place_thresholds
from localexpert.law.join import gather_laws
from localexpert.law.law import Law
from localexpert.learn.roads import Road
from localexpert.learn.settings import Settings
from localexpert.learn.stages import Answers, Curves, Stages
from localexpert.learn.steps import Carry, Step, atom_widths
from localexpert.learn.values import Masses
from localexpert.progress import current_progress

# The weight of a road, and its laws by the centre of each fold.
Member: TypeAlias = tuple[float, list[Law]]
# New rows, or the positions of judged rows.
Asked: TypeAlias = Table | Rows | slice

# A step checks the laws of these rows.
_ROWS_LOOKED_AT = slice(0, 500)


class Learner(ABC):
    """A road, atoms beside a road, or a pool. It has stages, and steps that read laws.

    Attributes
    ----------
    steps : tuple of Step
        The first step is nearest to y.
    hopeless : float
        This learner is useless beside another one if `start` returns at least this many
        times the loss of the other.
    is_sketch : bool
        Whether the whole learner may be much better than what `start` has fitted. Then
        the other learner's `start` is what counts.
    cost : float
        This learner takes this many times as long as the first learner of its pool.
    judged_ : ndarray of int of shape (m,)
        Rows with a forecast out of fold. `oof_law_` and `tasks_` describe these rows.
    """

    steps: tuple[Step, ...] = ()
    hopeless: float = np.inf
    is_sketch: bool = False
    cost: float = 1.0
    judged_: Rows

    def fit(self, sample: Sample) -> Self:
        """Fit every stage. Each stage hands its out-of-fold values to the next.

        Parameters
        ----------
        sample : Sample
            The n rows.

        Returns
        -------
        self
        """
        self.start(sample)
        return self.finish()

    def start(self, sample: Sample) -> float:
        """Fit a cheap part that tells how good the forecasts may become.

        Returns
        -------
        float
            A CRPS out of fold. The whole learner hardly gets below a certain share of
            it. 0 if only the whole learner can tell.
        """
        self._samples = [sample]
        for step in self.steps:
            step.fit(self._samples[-1])
            self._samples.append(step.inner(self._samples[-1]))
        trial = self._start(self._samples[-1])
        # A CRPS in other units cannot be compared.
        changed = any(step.changes_target for step in self.steps)
        return 0.0 if changed else trial

    def finish(self) -> Self:
        """Fit the other stages, on the rows of `start`."""
        samples = self._samples
        del self._samples
        self._finish(samples.pop())
        if any(type(s).check_laws is not Step.check_laws for s in self.steps):
            law = self._law(_ROWS_LOOKED_AT)
            for step, outer in zip(self.steps[::-1], samples[::-1], strict=True):
                law = step.read(law)
                step.check_laws(law, outer.y[outer.weight > 0.0])
        return self

    def law(self, asked: Asked, y: Float64Array | None = None) -> Law:
        """Return the laws of new rows, or laws of judged rows that are out of fold.

        Parameters
        ----------
        asked : Table, ndarray of int or slice
            New rows, or positions among the judged rows.
        y : ndarray of shape (n,), optional
            Targets of the judged rows. If they are given, laws have errors as small as
            those of new rows. New rows get the mean of all folds' models. This mean has
            smaller errors than the single model that has not seen a training row.

        Returns
        -------
        Law
        """
        if y is not None:
            for step in self.steps:
                y = step.there_anew(y)
        return self._read(self._law(asked, y))

    def members(self, table: Table) -> list[Member]:
        """Return the forecasts that are averaged, road by road and fold by fold.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        list of (float, list of laws)
            For each road its weight, and the laws that it would have if the centre
            were that of one fold's models alone.
        """
        return [
            (weight, [self._read(law) for law in laws])
            for weight, laws in self._members(table)
        ]

    @cached_property
    def oof_law_(self) -> Law:
        """Out-of-fold laws of the judged rows.

        They are made on demand from parts that are stored anyway. In a file the laws
        themselves would take several times as much space.
        """
        return self.law(slice(None))

    def _read(self, law: Law) -> Law:
        for step in reversed(self.steps):
            law = step.read(law)
        return law

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and the experts' answers, (n, N) each.

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
        """Drop what is known out of fold, except that of some judged rows."""
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
        """Out-of-fold answers of the experts of the heaviest road."""

    def _start(self, sample: Sample) -> float:
        """Start with the rows as the last step has made them."""
        del sample
        return 0.0

    @abstractmethod
    def _finish(self, sample: Sample) -> None: ...

    @abstractmethod
    def _law(self, asked: Asked, y: Float64Array | None = None) -> Law: ...

    @abstractmethod
    def _members(self, table: Table) -> list[Member]: ...

    @abstractmethod
    def _points(self, table: Table) -> tuple[Float64Array, Float64Array]: ...

    @abstractmethod
    def _keep_rows(self, places: Rows) -> None: ...

    @abstractmethod
    def _choices(self) -> dict[str, Any]: ...


# Number of trees of a forest in a pool (with twice as many, a pool scores the same),
# and of a small forest that tells whether the whole forest is worth its time. A tree of
# the small one draws at most this many rows.
_TREES, _TRIAL_TREES, _TRIAL_ROWS = 100, 20, 4_000
# Above this many rows the forest of "auto" costs more time than it gains score.
_MOST_ROWS_FOR_FOREST = 200_000


class FittedRoad(Learner):
    """Fit the stages that a road describes.

    Parameters
    ----------
    road : Road
    settings : Settings
        Parameters of the regressor.
    stages : Stages
        Stages that other roads have fitted.

    Attributes
    ----------
    frame : Frame
    experts : CalibratedExperts
    laws : Curves or Masses
    thresholds_ : ndarray of shape (N,)
        In the coordinate of the frame.
    """

    def __init__(self, road: Road, settings: Settings, stages: Stages):
        self.hopeless, self.stages, self.settings = road.hopeless, stages, settings
        self.road = own = settings.settle(road)
        self.is_sketch = own.strategy == "deep"
        self.steps, limits = road.bind(settings.limits, settings.seed)
        common = settings.common
        center = CentreStack(settings.center, settings.out_of_bag, **common)
        self.frame = Frame(own.frame, center, **common)
        self.laws: Masses | Curves = Masses(limits.bounds)
        if not own.asks_of_values:
            builders: list[CurveBuilder] = [*map(ProbitSpline, own.smoothings)]
            if settings.builder is not None:
                builders = [settings.builder]
            self.laws = Curves(
                builders, limits, settings.seed, ordered=settings.monotone is not None
            )

    def _start(self, sample: Sample) -> float:
        """Fit the frame, or the experts if there is none, and tell how good they are.

        For a frame this is the CRPS of the marginal, moved to the centre and scale of
        each row. For experts it is their CRPS after the simplest calibration.
        """
        last = self.steps[-1] if self.steps else None
        carry = last if isinstance(last, Carry) else None
        stage = current_progress().stage("frame") if self.frame.kind else nullcontext()
        with stage:
            # The rows before the last step, or these.
            outer = self._samples[-2:][0]
            self.frame = self.stages.fit_frame(self.frame, sample, carry, outer)
        del self.stages
        if self.frame.kind_ is not None:
            return self.frame.loss_
        if self.road.strategy == "marginal":
            y = sample.without_outliers().y[sample.judged]
            return marginal_crps(y, np.ones(len(y)), sample.weight[sample.judged])
        if self.road.asks_of_values:
            return 0.0
        if self.is_sketch:
            # A small forest tells whether a whole one is worth its time.
            forest = _deep_forest(self.settings, _TRIAL_TREES)
            if np.count_nonzero(sample.weight) > _TRIAL_ROWS:
                forest.set_params(max_samples=_TRIAL_ROWS)
            return self._ask(sample, {"deep": forest}).estimate_loss()
        self.experts = self._ask(sample)
        return self.experts.estimate_loss()

    def _finish(self, sample: Sample) -> None:
        if not hasattr(self, "experts"):
            self.experts = self._ask(sample)
        del self.settings, self.road
        rows, part = self._locate(sample)
        self.experts.calibrate()
        self.judged_ = rows[part.judged]
        self.frame.keep_rows(part.judged)
        y = sample.without_outliers().y[self.judged_]
        self.laws.fit(part, self.thresholds_, self._answers(slice(None)), y)

    def _locate(self, sample: Sample) -> tuple[Rows, Sample]:
        """Return the rows that have a coordinate, and a sample with it as target."""
        rows = self.frame.located(sample)
        # Folds without a training row that has a coordinate are dropped.
        part = sample if len(rows) == len(sample) else sample.take(rows)
        return rows, replace(part, y=self.frame.oof_coordinate_)

    def _ask(
        self, sample: Sample, members: dict[str, Experts] | None = None
    ) -> CalibratedExperts:
        """Place thresholds, and ask experts there: the road's own, or others."""
        if members is None:
            members = _make_members(self.road.strategy, self.settings, sample.weight)
        _, part = self._locate(sample)
        check_learns(part.folds, part.weight)
        if self.road.asks_of_values:
            self.thresholds_ = cuts_between(count_values(part.y, part.weight)[0])
        else:
            self.thresholds_ = place_thresholds(
                part.y, self.road.n_thresholds, self.road.thresholds, part.weight
            )
        center, scale = self.frame.oof_center_, self.frame.oof_scale_
        table = self.frame.add_features(part.table, center, scale)
        calibration = ExpertCalibration(
            self.road.calibrator,
            increasing=self.settings.monotone is not None,
            random_state=self.settings.seed,
        )
        experts = CalibratedExperts(members, calibration)
        experts.ask(replace(part, table=table), self.thresholds_, scale)
        return experts

    @property
    def tasks_(self) -> TaskRecord:
        """Out-of-fold answers of the experts."""
        return self.experts.tasks_

    def _answers(self, asked: Asked) -> Answers:
        """Return the centre, the scale and the experts' answers."""
        frame = self.frame
        if isinstance(asked, Table):
            center, scale = frame.locate(asked)
            located = frame.add_features(asked, center, scale / frame.shrinkage_)
            return Answers(center, scale, self.experts.predict(located))
        p = self.tasks_.calibrated[asked]
        return Answers(frame.oof_center_[asked], frame.oof_scale_[asked], p)

    def _law(self, asked: Asked, y: Float64Array | None = None) -> Law:
        center, scale, p = answers = self._answers(asked)
        if y is not None:
            # The frame knows by which factor new rows are nearer to their centres.
            nearer = self.frame.nearness_
            answers = Answers(y + nearer * (center - y), nearer * scale, p)
        return self.laws.law(answers)

    def _members(self, table: Table) -> list[Member]:
        answers, each = self._answers(table), self.frame.locate_each(table)
        laws = [self.laws.law(answers._replace(center=center)) for center in each]
        return [(1.0, laws)]

    def _points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        center, scale, p = self._answers(table)
        return center[:, None] + scale[:, None] * self.thresholds_, p

    def _keep_rows(self, places: Rows) -> None:
        """Pass the rows on to the frame and the experts."""
        self.frame.keep_rows(places)
        self.experts.tasks_ = self.tasks_.take(places)

    def _choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        frame = {} if isinstance(self.laws, Masses) else {"frame": self.frame.choices()}
        return {**frame, **self.experts.choices(), **self.laws.choices()}


class BaseRates(Experts):
    """Answer every row with the share of training rows below each threshold.

    In a frame the forecast consists of the centre, the scale and the law of the
    residuals. Without a frame it is climatology.

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

    def _fit(self, tasks: Tasks) -> Float64Array:
        oof = np.empty((len(tasks), tasks.n_thresholds))
        for train, test in tasks.folds:
            oof[test] = tasks.base_rates(train)
        self.rates_ = tasks.base_rates(tasks.present)
        return oof

    def _predict(self, table: Table) -> Float64Array:
        return np.tile(self.rates_, (len(table), 1))


def _make_members(
    strategy: str | Experts, settings: Settings, weight: Float64Array
) -> dict[str, Experts]:
    """Return the unfitted experts of a strategy for rows with weights, by name."""
    if isinstance(strategy, Experts):
        members = {type(strategy).__name__: strategy}
    else:
        common = settings.common
        order = {"monotone": settings.monotone, **common}
        made = {
            "shared": SharedBoosting(**order),
            "joint": JointForest(**common),
            "independent": IndependentExperts(settings.expert, **order),
            "deep": _deep_forest(settings, _TREES),
            "marginal": BaseRates(),
        }
        # The two are different in kind and make errors on different rows. So a pool of
        # both is better than either on most sets. If one is of no help, its weight in
        # the pool becomes 0.
        few = np.count_nonzero(weight) <= _MOST_ROWS_FOR_FOREST
        both = ["shared", "joint"] if few else ["shared"]
        names = both if strategy == "auto" else [strategy]
        members = {name: made[name] for name in names}
    if settings.out_of_bag:
        return members
    return {name: _out_of_fold(experts) for name, experts in members.items()}


def _deep_forest(settings: Settings, n_trees: int) -> JointForest:
    """Return an unfitted forest whose trees grow until each leaf has one row."""
    bags = settings.out_of_bag
    return JointForest(n_trees, max_features=1.0, out_of_bag=bags, **settings.common)


def _out_of_fold(experts: Experts) -> Experts:
    """Return experts whose forests do not predict rows out of bag.

    A tree that did not draw a row may have drawn a copy of it, or a row of its group.
    """
    bags = {
        name: False
        for name, value in experts.get_params().items()
        if name.split("__")[-1] in ("out_of_bag", "oob_score") and value
    }
    return clone(experts).set_params(**bags) if bags else experts


class BesideAtoms(Learner):
    """Fit laws with mass on some values and a smooth rest.

    The number of a row's atom is a discrete target of its own, 0 if the row has no
    atom. The smooth part is learned on the rows without an atom.

    Parameters
    ----------
    atoms : ndarray of shape (A,)
    choice : FittedRoad
        Unfitted. It learns the atom's number.
    rest : Learner
        Unfitted. It learns laws without jumps.
    """

    def __init__(self, atoms: Float64Array, choice: FittedRoad, rest: Learner):
        self.atoms, self.choice, self.rest = atoms, choice, rest

    def _finish(self, sample: Sample) -> None:
        """Fit both parts. The out-of-fold laws are out of fold in both."""
        number = self._number(sample.y)
        free = number == 0.0
        with current_progress().stage("atoms"):
            self.choice.fit(replace(sample, y=number))
        # Rows at an atom get forecasts from their folds. They do not train the rest,
        # and do not count there.
        weight = np.where(free, sample.weight, 0.0)
        folds = [
            (train[free[train]], test)
            for train, test in sample.folds
            if weight[train].any()
        ]
        with current_progress().stage("rest"):
            self.rest.fit(replace(sample, weight=weight, folds=folds))
        self.widths_ = atom_widths(self.atoms, sample.y[free], sample.weight[free])
        self.judged_ = self.rest.judged_
        judged = np.isin(self.choice.judged_, self.judged_)
        self.choice.keep_rows(np.flatnonzero(judged))

    def _number(self, y: Float64Array) -> Float64Array:
        """Return the number of each target's atom, or 0 if it has none."""
        numbers = np.arange(1.0, len(self.atoms) + 1.0)
        return np.asarray((y[:, None] == self.atoms) @ numbers)

    @property
    def tasks_(self) -> TaskRecord:
        """Out-of-fold answers of the experts of the rest."""
        return self.rest.tasks_

    def _law(self, asked: Asked, y: Float64Array | None = None) -> Law:
        if y is None:
            return self._beside(self.choice.law(asked), self.rest.law(asked))
        assert isinstance(asked, np.ndarray)
        # An atom has no such errors, so rows at an atom keep their laws.
        free = self._number(y) == 0.0
        laws = self.rest.law(asked[free], y[free]), self.rest.law(asked[~free])
        smooth = gather_laws(laws, map(np.flatnonzero, (free, ~free)))
        return self._beside(self.choice.law(asked), smooth)

    def _members(self, table: Table) -> list[Member]:
        choice = self.choice.law(table)
        return [
            (weight, [self._beside(choice, law) for law in laws])
            for weight, laws in self.rest.members(table)
        ]

    def _beside(self, choice: Law, smooth: Law) -> Law:
        """Join the chances of the atoms with the laws of the rest."""
        return Law(smooth.curve, self.atoms, choice.masses[:, 1:], self.widths_)

    def _keep_rows(self, places: Rows) -> None:
        """Pass the rows on to both parts."""
        self.rest.keep_rows(places)
        self.choice.keep_rows(places)

    def _points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        values, p = self.rest.points(table)
        masses = self.choice.law(table).masses[:, 1:]
        reached = self.atoms <= values[:, :, None]
        held = (reached * masses[:, None, :]).sum(axis=2)
        return values, held + (1.0 - masses.sum(axis=1, keepdims=True)) * p

    def _choices(self) -> dict[str, Any]:
        """Return what both parts chose, and what the alternatives scored."""
        return {
            "atoms": self.atoms.tolist(),
            "choice": self.choice.choices(),
            **self.rest.choices(),
        }
