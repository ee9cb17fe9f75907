"""The road of a target with heavy values: their probabilities, and the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.task_record import TaskRecord
from localexpert.forecasters.discrete import DiscreteForecaster
from localexpert.forecasters.forecaster import Forecaster
from localexpert.laws.append_laws import append_laws
from localexpert.laws.law import Law
from localexpert.laws.mixed import MixedLaw
from localexpert.progress import current_progress

# An atom's cell is this share of the spread (interquartile range) of the other values,
# so that a hit is worth what a forecast of that sharpness would earn.
_CELL_SHARE = 0.01


@dataclass
class MixedForecaster:
    """Fit laws with mass on some values and a smooth rest.

    Which atom a row takes, if any, is a discrete target of its own (0 for none); the
    smooth part is learned on the rows that take none.

    Parameters
    ----------
    atoms : ndarray of shape (A,)
    choice : DiscreteForecaster
        Unfitted, of the atom's number.
    continuous : Forecaster
        Unfitted, of the rest: laws without jumps.
    """

    atoms: Float64Array
    choice: DiscreteForecaster
    continuous: Forecaster

    def fit(self, sample: Sample) -> MixedForecaster:
        """Fit both parts; out-of-fold laws are honest in both.

        Parameters
        ----------
        sample : Sample
            Of n rows.

        Returns
        -------
        self
        """
        y = sample.y
        number = (y[:, None] == self.atoms) @ np.arange(1.0, len(self.atoms) + 1.0)
        progress = current_progress()
        with progress.stage("atoms"):
            self.choice.fit(replace(sample, y=number))
        rest = number == 0.0
        rows = np.flatnonzero(rest)
        with progress.stage("rest"):
            part = sample.take(rows)
            self.continuous.begin(part)
            self.continuous.finish(part)
        # An atom has no density; the log score gives its probability a cell's width.
        held = rows[sample.weight[rows] > 0.0]
        low, high = np.quantile(
            y[held], [0.25, 0.75], weights=sample.weight[held], method="inverted_cdf"
        )
        spread = high - low if high > low else float(np.ptp(y[held])) or 1.0
        self.widths_ = np.full(len(self.atoms), _CELL_SHARE * spread)
        # Rows at an atom had no part in the smooth models: these are honest for them.
        laws = self.continuous.law(sample.table.take(np.flatnonzero(~rest)))
        order = np.argsort(np.concatenate([rows, np.flatnonzero(~rest)]))
        smooth = append_laws([self.continuous.oof_law_, laws]).take(order)
        self.oof_law_ = self._law(self.choice.oof_law_.probabilities, smooth)
        return self

    def begin(self, sample: Sample) -> float:
        """Learn nothing yet: both parts tell how good they are when they are fitted."""
        del sample
        return 0.0

    def finish(self, sample: Sample) -> MixedForecaster:
        """Fit all there is."""
        return self.fit(sample)

    def law_ahead(self, rows: Rows, y: Float64Array) -> Law:
        """Return the out-of-fold laws of some rows."""
        del y
        return self.oof_law_.take(rows)

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts of the rest said out of fold."""
        return self.continuous.tasks_

    def law(self, table: Table) -> MixedLaw:
        """Return the laws of new rows.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        MixedLaw
        """
        return self._law(
            self.choice.law(table).probabilities, self.continuous.law(table)
        )

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        thresholds, probabilities : ndarrays of shape (n, N)
        """
        values, p = self.continuous.points(table)
        masses = self.choice.law(table).probabilities[:, 1:]
        reached = self.atoms <= values[:, :, None]
        held = (reached * masses[:, None, :]).sum(axis=2)
        return values, held + (1.0 - masses.sum(axis=1, keepdims=True)) * p

    def choices(self) -> dict[str, Any]:
        """Return what both parts chose, and what the alternatives scored."""
        return {
            "atoms": self.atoms.tolist(),
            "choice": self.choice.choices(),
            **self.continuous.choices(),
        }

    def _law(self, choices: Float64Array, smooth: Law) -> MixedLaw:
        return MixedLaw(self.atoms, choices[:, 1:], smooth, self.widths_)
