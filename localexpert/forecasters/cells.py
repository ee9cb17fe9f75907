"""A smooth road to a discrete target: its mass is collected around the values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.counts import count_values
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.task_record import TaskRecord
from localexpert.experts.thresholds import cuts_between
from localexpert.forecasters.forecaster import Forecaster, RoadForecaster
from localexpert.forecasters.support import Support
from localexpert.laws import DiscreteLaw
from localexpert.laws.law import Law


@dataclass
class CellForecaster(RoadForecaster):
    """Fit smooth laws, and give each value the mass nearest to it.

    Where a target of many values is nearly a function of the features, a centre tells
    more than a question for each value does.

    Parameters
    ----------
    forecaster : RoadForecaster
        Unfitted, of smooth laws.
    bounds : (float, float)
        Least and greatest value that is possible, met or not.
    """

    forecaster: RoadForecaster
    bounds: tuple[float, float] = (-np.inf, np.inf)

    def begin(self, sample: Sample) -> float:
        """Begin the smooth road."""
        values, weight = count_values(sample.y, sample.weight)
        self.values_ = Support.of(values, weight, self.bounds).values
        self.n_ = float(sample.weight.sum())
        return self.forecaster.begin(sample)

    def finish(self, sample: Sample) -> CellForecaster:
        """Finish the smooth road."""
        self.forecaster.finish(sample)
        self.judged_ = self.forecaster.judged_
        return self

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts of the smooth road said out of fold."""
        return self.forecaster.tasks_

    def place(self, table: Table) -> Any:
        """Return what the smooth road says of new rows."""
        return self.forecaster.place(table)

    def oof_placed(self, places: Rows | slice) -> Any:
        """Return what it says of some of the judged rows."""
        return self.forecaster.oof_placed(places)

    def law_ahead(self, places: Rows, y: Float64Array) -> DiscreteLaw:
        """Return the cells of the smooth laws."""
        return self._collect(self.forecaster.law_ahead(places, y))

    def law_of(self, placed: Any) -> DiscreteLaw:
        """Return the cells of the smooth laws that follow."""
        return self._collect(self.forecaster.law_of(placed))

    def _keep(self, places: Rows) -> None:
        """Let the smooth road keep it."""
        self.forecaster.keep(places)

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        return self.forecaster.points(table)

    @property
    def heaviest(self) -> Forecaster:
        """The smooth road."""
        return self.forecaster.heaviest

    def recall_targets(self) -> Float64Array:
        """Return the targets of the judged rows."""
        return self.forecaster.recall_targets()

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        return self.forecaster.choices()

    def _collect(self, law: Law) -> DiscreteLaw:
        """Return the law of the nearest value; every value keeps a little probability.

        As much as a row in (n + number of values), so that no log score is infinite.
        """
        n_values = len(self.values_)
        cuts = np.tile(cuts_between(self.values_), (len(law), 1))
        cdf = np.maximum.accumulate(law.cdf(cuts), axis=1)
        ends = np.zeros((len(law), 1)), np.ones((len(law), 1))
        masses = np.diff(np.hstack([ends[0], cdf, ends[1]]), axis=1)
        share = n_values / (self.n_ + n_values)
        return DiscreteLaw(self.values_, (1.0 - share) * masses + share / n_values)
