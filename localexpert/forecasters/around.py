"""`ForecasterAround`: a road that reads another road's laws in its own way."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.task_record import TaskRecord
from localexpert.forecasters.forecaster import Forecaster, RoadForecaster
from localexpert.law.law import Law


class ForecasterAround(RoadForecaster):
    """What a road around another one leaves to it: all but the laws.

    Attributes
    ----------
    forecaster : RoadForecaster
    """

    forecaster: RoadForecaster

    @abstractmethod
    def _read_law(self, law: Law) -> Law:
        """Return the road's own law for one of the inner road."""

    def finish(self, sample: Sample) -> Self:
        """Finish the inner road."""
        self.forecaster.finish(sample)
        self.judged_ = self.forecaster.judged_
        return self

    def law_ahead(self, places: Rows, y: Float64Array) -> Law:
        """Return what is read in the inner road's laws."""
        return self._read_law(self.forecaster.law_ahead(places, y))

    def law_of(self, placed: Any) -> Law:
        """Return what is read in the laws that follow."""
        return self._read_law(self.forecaster.law_of(placed))

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts of the inner road said out of fold."""
        return self.forecaster.tasks_

    def place(self, table: Table) -> Any:
        """Return what the inner road says of new rows."""
        return self.forecaster.place(table)

    def oof_placed(self, places: Rows | slice) -> Any:
        """Return what it says of some of the judged rows."""
        return self.forecaster.oof_placed(places)

    def _keep(self, places: Rows) -> None:
        """Let the inner road keep it."""
        self.forecaster.keep(places)

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        return self.forecaster.points(table)

    @property
    def heaviest(self) -> Forecaster:
        """That of the inner road."""
        return self.forecaster.heaviest

    def recall_targets(self) -> Float64Array:
        """Return the targets of the judged rows."""
        return self.forecaster.recall_targets()

    def recall_weights(self) -> Float64Array:
        """Return the weights of the judged rows."""
        return self.forecaster.recall_weights()

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        return self.forecaster.choices()
