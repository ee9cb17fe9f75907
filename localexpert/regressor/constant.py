"""`ConstantLaws`: what a regressor forecasts of a target of one value."""

from __future__ import annotations

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.law.law import Law


class ConstantLaws:
    """One value for every row.

    Parameters
    ----------
    value : float
    n : int
        Number of training rows.
    """

    def __init__(self, value: float, n: int):
        self.value = value
        self.oof_law_ = self._law(n)

    def law(self, table: Table) -> Law:
        """Return the law of new rows.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        Law
        """
        return self._law(len(table))

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return the one value, which the target never passes, (n, 1) each.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        thresholds, probabilities : ndarrays of shape (n, 1)
        """
        return np.full((len(table), 1), self.value), np.ones((len(table), 1))

    def _law(self, n: int) -> Law:
        return Law.discrete(np.array([self.value]), np.ones((n, 1)))
