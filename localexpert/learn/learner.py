"""`Learner`: what learns laws from rows, alone or as a member of a pool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.task_record import TaskRecord
from localexpert.law.law import Law
from localexpert.learn.steps import Step

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
