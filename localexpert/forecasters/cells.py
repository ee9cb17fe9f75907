"""`Cells`: smooth laws of a discrete target, collected around its values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localexpert.data.counts import count_values
from localexpert.data.sample import Sample
from localexpert.experts.thresholds import cuts_between
from localexpert.forecasters.discrete import masses_between
from localexpert.forecasters.stepped import Step
from localexpert.forecasters.support import Support
from localexpert.law.law import Law


@dataclass
class Cells(Step):
    """Give each value the mass of a smooth law that is nearest to it.

    Where a target of many values is nearly a function of the features, a centre tells
    more than a question for each value does.

    Parameters
    ----------
    bounds : (float, float)
        Least and greatest value that is possible, met or not.
    """

    bounds: tuple[float, float] = (-np.inf, np.inf)

    def fit(self, sample: Sample) -> None:
        """Look at which values there are."""
        values, weight = count_values(sample.y, sample.weight)
        self.support_ = Support.of(values, weight, self.bounds)
        self.n_ = float(sample.weight.sum())

    def read(self, law: Law) -> Law:
        """Return the law of the nearest value.

        The row that each value met has besides is shared with those that were not met
        as a forecast's own mass would be: these are many, and may lie far out.
        """
        values, extra = self.support_.values, self.support_.shares.sum(axis=0)
        cuts = np.tile(cuts_between(values), (len(law), 1))
        cdf = np.maximum.accumulate(law.cdf(cuts), axis=1)
        return Law.discrete(values, masses_between(cdf, self.n_, extra))
