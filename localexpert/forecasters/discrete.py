"""The road of a discrete target: thresholds between values, probabilities per value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.curves.spline import increase_probabilities
from localexpert.data.counts import count_values
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.calibrated_experts import CalibratedExperts
from localexpert.experts.task_record import TaskRecord
from localexpert.experts.thresholds import cuts_between
from localexpert.forecasters.support import Support
from localexpert.laws import DiscreteLaw


@dataclass
class DiscreteForecaster:
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

    def fit(self, sample: Sample) -> DiscreteForecaster:
        """Fit one task between each pair of neighbouring values.

        Parameters
        ----------
        sample : Sample
            Of n rows.

        Returns
        -------
        self
        """
        self.values_, weight = count_values(sample.y, sample.weight)
        self.support_ = Support.of(self.values_, weight, self.bounds)
        self.thresholds_ = cuts_between(self.values_)
        self.experts.fit(sample, self.thresholds_, np.ones(len(sample)))
        self.n_ = float(sample.weight.sum())
        self.judged_ = sample.judged
        return self

    def keep(self, places: Rows) -> None:
        """Keep what is known out of fold of some of the judged rows only."""
        self.judged_ = self.judged_[places]
        vars(self).pop("oof_law_", None)
        self.experts.keep(places)

    @cached_property
    def oof_law_(self) -> DiscreteLaw:
        """Honest laws of the rows that are judged, made when asked for."""
        return self._law(self.tasks_.calibrated)

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts said out of fold."""
        return self.experts.tasks_

    def law(self, table: Table) -> DiscreteLaw:
        """Return the laws of new rows.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        DiscreteLaw
        """
        return self._law(self.experts.predict(table))

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        thresholds, probabilities : ndarrays of shape (n, N)
        """
        p = self.experts.predict(table)
        return np.tile(self.thresholds_, (len(p), 1)), p

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        return self.experts.choices()

    def _law(self, p: Float64Array) -> DiscreteLaw:
        """Difference the increasing CDF; every value keeps a little probability.

        A value unseen near x may still come: each gets the weight of one row in
        (n + number of values), so that no log score is infinite. What was never met at
        all gets its part from its rare neighbours (`Support`).
        """
        cdf = increase_probabilities(p, self.n_)
        ends = np.zeros((len(p), 1)), np.ones((len(p), 1))
        masses = np.diff(np.column_stack([ends[0], cdf, ends[1]]), axis=1)
        share = len(self.values_) / (self.n_ + len(self.values_))
        masses = (1.0 - share) * masses + share / len(self.values_)
        return DiscreteLaw(self.support_.values, masses @ self.support_.shares)
