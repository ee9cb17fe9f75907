"""The road of a target that never changes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.law.law import Law


@dataclass
class ConstantForecaster:
    """Forecast one value for every row.

    Parameters
    ----------
    value : float
    n : int
        Number of training rows.
    """

    value: float
    n: int
    oof_law_: Law = field(init=False)

    def __post_init__(self) -> None:
        self.oof_law_ = self._law(self.n)

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

    def recall_targets(self) -> Float64Array:
        """Return the one value, for every training row."""
        return np.full(self.n, self.value)
