"""`Step`: what is done to a target and to laws; `SteppedForecaster` does it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.task_record import TaskRecord
from localexpert.forecasters.forecaster import Forecaster, RoadForecaster
from localexpert.law.law import Law


class Step(ABC):
    """What is done to a target before a road learns it, and to its laws afterwards."""

    # Whether the road learns the target in its own units.
    same_units: ClassVar[bool] = True

    @abstractmethod
    def fit(self, sample: Sample) -> None:
        """Learn from the rows what the step asks of them.

        Parameters
        ----------
        sample : Sample
        """

    @abstractmethod
    def read(self, law: Law) -> Law:
        """Return the law of y for one of what the road learned.

        Parameters
        ----------
        law : Law

        Returns
        -------
        Law
        """

    def there(self, y: Float64Array) -> Float64Array:
        """Return what the road learns of targets (n,)."""
        return y

    def ahead(self, y: Float64Array) -> Float64Array:
        """Return the same of targets (n,) that new rows may have."""
        return self.there(y)

    def back(self, z: Float64Array) -> Float64Array:
        """Return numbers (n, k) that the road knows in units of y."""
        return z

    def recall(self, z: Float64Array) -> Float64Array:
        """Return the targets (n,) of which the road learned z."""
        return self.back(z[:, None])[:, 0]

    def check(self, law: Law, y: Float64Array) -> None:
        """Warn of laws of some rows that cannot be meant, given all targets (n,).

        Asked where the road learns in other units.
        """
        del law, y

    def choices(self) -> dict[str, Any]:
        """Return what there is to tell of the step."""
        return {}


# Rows whose laws a step looks at.
_ROWS_LOOKED_AT = slice(0, 500)


@dataclass
class SteppedForecaster(RoadForecaster):
    """Fit a road to what a step makes of the target, and read its laws by the step.

    Parameters
    ----------
    forecaster : RoadForecaster
        Unfitted.
    step : Step
        Unfitted.
    """

    forecaster: RoadForecaster
    step: Step

    def begin(self, sample: Sample) -> float:
        """Fit the step, and begin the road; its CRPS of other targets tells nothing."""
        self.step.fit(sample)
        trial = self.forecaster.begin(self._inner(sample))
        return trial if type(self.step).there is Step.there else 0.0

    def finish(self, sample: Sample) -> SteppedForecaster:
        """Finish the road."""
        self.forecaster.finish(self._inner(sample))
        self.judged_ = self.forecaster.judged_
        if not self.step.same_units:
            law = self.law_of(self.oof_placed(_ROWS_LOOKED_AT))
            self.step.check(law, sample.y[sample.weight > 0.0])
        return self

    def _inner(self, sample: Sample) -> Sample:
        """Return the rows with their target as the road learns it."""
        y = sample.y
        if not self.step.same_units:
            # Where y has no weight it may be anything.
            present = sample.weight > 0.0
            y = np.where(present, y, y[present][0])
        return replace(sample, y=self.step.there(y))

    def law_ahead(self, places: Rows, y: Float64Array) -> Law:
        """Return what is read in the road's laws."""
        return self.step.read(self.forecaster.law_ahead(places, self.step.ahead(y)))

    def law_of(self, placed: Any) -> Law:
        """Return what is read in the laws that follow."""
        return self.step.read(self.forecaster.law_of(placed))

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts of the road said out of fold."""
        return self.forecaster.tasks_

    def place(self, table: Table) -> Any:
        """Return what the road says of new rows."""
        return self.forecaster.place(table)

    def oof_placed(self, places: Rows | slice) -> Any:
        """Return what it says of some of the judged rows."""
        return self.forecaster.oof_placed(places)

    def _keep(self, places: Rows) -> None:
        """Let the road keep it."""
        self.forecaster.keep(places)

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        thresholds, p = self.forecaster.points(table)
        return self.step.back(thresholds), p

    @property
    def heaviest(self) -> Forecaster:
        """That of the road."""
        return self.forecaster.heaviest

    def recall_targets(self) -> Float64Array:
        """Return the targets of the judged rows."""
        return self.step.recall(self.forecaster.recall_targets())

    def recall_weights(self) -> Float64Array:
        """Return the weights of the judged rows."""
        return self.forecaster.recall_weights()

    def choices(self) -> dict[str, Any]:
        """Return what the step tells, and what the road chose."""
        return {**self.step.choices(), **self.forecaster.choices()}
