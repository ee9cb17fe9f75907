"""The road of a discrete target: thresholds between values, probabilities per value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.curves.spline import increase_probabilities
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.data.target_values import count_values
from localexpert.experts.calibrated_experts import CalibratedExperts
from localexpert.experts.task_record import TaskRecord
from localexpert.experts.thresholds import cuts_between
from localexpert.forecasters.forecaster import RoadForecaster
from localexpert.forecasters.support import Support
from localexpert.law.law import Law


@dataclass
class DiscreteForecaster(RoadForecaster):
    """Fit laws on the few values that a target takes.

    After `fit`, `judged_` are the rows that `oof_law_` and `tasks_` speak of.

    Parameters
    ----------
    experts : CalibratedExperts
        Unfitted.
    bounds : (float, float)
        Least and greatest value that is possible, met or not.
    """

    experts: CalibratedExperts
    bounds: tuple[float, float] = (-np.inf, np.inf)

    def finish(self, sample: Sample) -> DiscreteForecaster:
        """Fit one task between each pair of neighbouring values."""
        self.values_, weight = count_values(sample.y, sample.weight)
        self.support_ = Support.of(self.values_, weight, self.bounds)
        self.thresholds_ = cuts_between(self.values_)
        self.experts.fit(sample, self.thresholds_, np.ones(len(sample)))
        self.n_ = float(sample.weight.sum())
        self.judged_ = sample.judged
        return self

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts said out of fold."""
        return self.experts.tasks_

    def place(self, table: Table) -> Float64Array:
        """Return what the experts say of new rows."""
        return self.experts.predict(table)

    def oof_placed(self, places: Rows | slice) -> Float64Array:
        """Return what they say of some of the judged rows."""
        return self.tasks_.calibrated[places]

    def _keep(self, places: Rows) -> None:
        """Let the experts keep it."""
        self.experts.keep(places)

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        p = self.experts.predict(table)
        return np.tile(self.thresholds_, (len(p), 1)), p

    def recall_targets(self) -> Float64Array:
        """Return the targets of the judged rows."""
        return np.asarray(self.values_[(~self.tasks_.below).sum(axis=1)])

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        return self.experts.choices()

    def law_of(self, placed: Float64Array) -> Law:
        """Difference the increasing CDF; every value keeps a little probability.

        A value unseen near x may still come: all share the weight of one row in n + 1,
        so that no log score is infinite, and means of many values stay where they are.
        What was never met at all gets its part from its rare neighbours (`Support`).
        """
        cdf = increase_probabilities(placed, self.n_)
        masses = masses_between(cdf, self.n_)
        return Law.discrete(self.support_.values, self.support_.spread(masses))


def masses_between(
    cdf: Float64Array, n: float, extra: Float64Array | None = None
) -> Float64Array:
    """Return the probabilities of values that cuts part, all of them positive.

    They share as much as one row has, so that no log score is infinite: what was not
    seen near x may still come.

    Parameters
    ----------
    cdf : ndarray of shape (m, V - 1)
        At the cuts, increasing along a row.
    n : float
        Number of training rows.
    extra : ndarray of shape (V,), optional
        Their shares of the row, of sum 1; by default equal ones.

    Returns
    -------
    ndarray of shape (m, V)
    """
    ends = np.zeros((len(cdf), 1)), np.ones((len(cdf), 1))
    masses = np.diff(np.column_stack([ends[0], cdf, ends[1]]), axis=1)
    shares = 1.0 / masses.shape[1] if extra is None else extra
    return np.asarray((n * masses + shares) / (n + 1.0))
