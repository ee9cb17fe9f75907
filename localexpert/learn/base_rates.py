"""`BaseRates`: what can be said of a target without any feature."""

from __future__ import annotations

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.experts import Experts
from localexpert.experts.base import Tasks


class BaseRates(Experts):
    """Say for every row which share of the training rows lies below each threshold.

    In a frame the forecast is centre, scale and the law of the residuals; without one
    it is climatology.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.data.folds import make_folds
    >>> from localexpert.learn.base_rates import BaseRates
    >>> x = np.arange(98.0)[:, None]
    >>> folds = make_folds(98, 2, random_state=0)
    >>> BaseRates().fit(x, x[:, 0], [24.0, 73.0], folds).predict(x[:1])
    array([[0.26, 0.75]])
    """

    rates_: Float64Array

    def _check_parameters(self) -> None:
        """There are none."""

    def _fit(self, tasks: Tasks) -> Float64Array:
        oof = np.empty((tasks.n, tasks.n_thresholds))
        for train, test in tasks.folds:
            oof[test] = tasks.base_rates(train)
        self.rates_ = tasks.base_rates(tasks.present)
        return oof

    def _predict(self, table: Table) -> Float64Array:
        return np.tile(self.rates_, (len(table), 1))
