"""`Forecaster`: all stages of a fit; `RoadForecaster`: those that may be pooled."""

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


class Forecaster(ABC):
    """All stages from rows to laws.

    Attributes
    ----------
    judged_ : ndarray of int of shape (m,)
        Rows that are forecast out of fold, of whom `oof_law_` and `tasks_` speak.
    """

    judged_: Rows

    @abstractmethod
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

    @property
    @abstractmethod
    def tasks_(self) -> TaskRecord:
        """What the experts said out of fold."""

    @cached_property
    @abstractmethod
    def oof_law_(self) -> Law:
        """Honest laws of the rows that are judged.

        Made when asked for, of what is kept anyway: in a file they would be several
        times as much.
        """

    @abstractmethod
    def law(self, table: Table) -> Law:
        """Return the laws of new rows.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        Law
        """

    @abstractmethod
    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        thresholds, probabilities : ndarrays of shape (n, N)
        """

    @abstractmethod
    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""

    @property
    def heaviest(self) -> Forecaster:
        """The forecaster whose experts `tasks_` and `points` speak of."""
        return self

    @abstractmethod
    def recall_targets(self) -> Float64Array:
        """Return the targets of the judged rows, up to rounding, shape (m,)."""

    def recall_weights(self) -> Float64Array:
        """Return the weights of the judged rows, shape (m,)."""
        return self.tasks_.weight


def first_law(forecaster: Any) -> Law:
    """Return the law of the first judged row, which says where laws end.

    Parameters
    ----------
    forecaster : Forecaster
        Fitted.

    Returns
    -------
    Law
    """
    if isinstance(forecaster, RoadForecaster):
        return forecaster.law_of(forecaster.oof_placed(np.arange(1)))
    law: Law = forecaster.oof_law_
    return law.take(slice(0, 1))


class RoadForecaster(Forecaster):
    """The stages of one road, or of several that are pooled.

    What they say of rows before laws are drawn is `placed`: of new rows `place` says
    it, of training rows `oof_placed`, and laws follow from it by `law_of`.
    """

    def fit(self, sample: Sample) -> Self:
        """Fit every stage."""
        self.begin(sample)
        return self.finish(sample)

    def begin(self, sample: Sample) -> float:
        """Fit what tells cheaply how good the road may be.

        Returns
        -------
        float
            A CRPS out of fold of which the whole road is hardly below a part; 0 where
            nothing less than the whole road tells.
        """
        del sample
        return 0.0

    @abstractmethod
    def finish(self, sample: Sample) -> Self:
        """Fit the other stages, on the rows of `begin`."""

    @abstractmethod
    def place(self, table: Table) -> Any:
        """Return what the stages say of new rows."""

    @abstractmethod
    def oof_placed(self, places: Rows | slice) -> Any:
        """Return the same of some of the judged rows, by what has not seen them."""

    @abstractmethod
    def law_of(self, placed: Any) -> Law:
        """Return the laws that follow."""

    def law(self, table: Table) -> Law:
        """Return the laws of new rows."""
        return self.law_of(self.place(table))

    @cached_property
    def oof_law_(self) -> Law:
        """Honest laws of the rows that are judged."""
        return self.law_of(self.oof_placed(slice(None)))

    def law_ahead(self, places: Rows, y: Float64Array) -> Law:
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
        del y
        return self.law_of(self.oof_placed(places))

    def keep(self, places: Rows) -> None:
        """Keep what is known out of fold of some of the judged rows only."""
        self.judged_ = self.judged_[places]
        vars(self).pop("oof_law_", None)
        self._keep(places)

    @abstractmethod
    def _keep(self, places: Rows) -> None:
        """Let the stages keep it."""
