"""A road to an increasing function of the target, whose laws are carried back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.forecasters.around import ForecasterAround
from localexpert.forecasters.forecaster import RoadForecaster
from localexpert.laws.law import Law
from localexpert.laws.transformed import TransformedLaw
from localexpert.laws.value_map import ValueMap


@dataclass
class TransformedForecaster(ForecasterAround):
    """Fit laws of z = func(y), and answer with those of y.

    Parameters
    ----------
    forecaster : RoadForecaster
        Unfitted, of smooth laws.
    values : ValueMap
        From z to y: `func` is the inverse of what is applied to the target.
    """

    forecaster: RoadForecaster
    values: ValueMap

    def begin(self, sample: Sample) -> float:
        """Begin the road to z; what it tells is in other units than those of y."""
        self.forecaster.begin(self._forward(sample))
        return 0.0

    def finish(self, sample: Sample) -> Self:
        """Finish the road to z."""
        return super().finish(self._forward(sample))

    def law_ahead(self, places: Rows, y: Float64Array) -> Law:
        """Return the laws of the road to z, carried back."""
        return super().law_ahead(places, self.values.inverse(y))

    def _read_law(self, law: Law) -> TransformedLaw:
        """Return a law carried back."""
        return TransformedLaw(law, self.values)

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        thresholds, p = self.forecaster.points(table)
        return self.values.forward(thresholds), p

    def recall_targets(self) -> Float64Array:
        """Return the targets of the judged rows."""
        z = self.forecaster.recall_targets()
        return self.values.forward(z[:, None])[:, 0]

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored, in units of z."""
        return {"transform": repr(self.values.inverse), **self.forecaster.choices()}

    def _forward(self, sample: Sample) -> Sample:
        """Return the rows with z; where y has no weight it may be anything."""
        present = sample.weight > 0.0
        y = np.where(present, sample.y, sample.y[present][0])
        return replace(sample, y=self.values.inverse(y))
