"""`Forecaster`: what every fitted road from rows to laws can be asked."""

from __future__ import annotations

from typing import Any, Protocol

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.task_record import TaskRecord
from localexpert.laws.law import Law


class Forecaster(Protocol):
    """A road from rows to laws."""

    @property
    def oof_law_(self) -> Law:
        """Honest laws of the training rows."""
        ...

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts said out of fold."""
        ...

    def begin(self, sample: Sample) -> float:
        """Fit what tells cheaply how good the road will be.

        Returns
        -------
        float
            CRPS out of fold that the road will hardly reach less than a part of; 0 if
            nothing is known yet.
        """
        ...

    def finish(self, sample: Sample) -> Any:
        """Fit the other stages, on the rows of `begin`."""
        ...

    def law(self, table: Table) -> Law:
        """Return the laws of new rows."""
        ...

    def law_ahead(self, rows: Rows, y: Float64Array) -> Law:
        """Return laws that miss y of some training rows as those of new rows will.

        New rows get the mean of all folds' models, which errs less than the one model
        that never saw a training row.
        """
        ...

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say of new rows."""
        ...

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        ...
