"""The road of a target with heavy values: their probabilities, and the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.task_record import TaskRecord
from localexpert.forecasters.discrete import DiscreteForecaster
from localexpert.forecasters.forecaster import Forecaster, RoadForecaster
from localexpert.laws.append_laws import append_laws
from localexpert.laws.join_laws import parts_of
from localexpert.laws.law import Law
from localexpert.laws.mixed import MixedLaw
from localexpert.progress import current_progress

# An atom's cell is this share of the spread (interquartile range) of the other values,
# so that a hit is worth what a forecast of that sharpness would earn.
_CELL_SHARE = 0.01


@dataclass
class MixedForecaster(Forecaster):
    """Fit laws with mass on some values and a smooth rest.

    Which atom a row takes, if any, is a discrete target of its own (0 for none); the
    smooth part is learned on the rows that take none.

    Parameters
    ----------
    atoms : ndarray of shape (A,)
    choice : DiscreteForecaster
        Unfitted, of the atom's number.
    continuous : RoadForecaster
        Unfitted, of the rest: laws without jumps.
    """

    atoms: Float64Array
    choice: DiscreteForecaster
    continuous: RoadForecaster

    def fit(self, sample: Sample) -> MixedForecaster:
        """Fit both parts; out-of-fold laws are honest in both."""
        y = sample.y
        number = (y[:, None] == self.atoms) @ np.arange(1.0, len(self.atoms) + 1.0)
        progress = current_progress()
        with progress.stage("atoms"):
            self.choice.fit(replace(sample, y=number))
        rest = number == 0.0
        with progress.stage("rest"):
            self._fit_rest(sample, rest)
        # An atom has no density; the log score gives its probability a cell's width.
        held = np.flatnonzero(rest & (sample.weight > 0.0))
        low, high = np.quantile(
            y[held], [0.25, 0.75], weights=sample.weight[held], method="inverted_cdf"
        )
        spread = high - low if high > low else float(np.ptp(y[held])) or 1.0
        self.widths_ = np.full(len(self.atoms), _CELL_SHARE * spread)
        return self

    def _fit_rest(self, sample: Sample, rest: NDArray[np.bool_]) -> None:
        """Fit the smooth part, and keep what it says of rows at an atom."""
        part = sample.take(np.flatnonzero(rest))
        if sample.is_whole and part.is_whole:
            self.continuous.fit(part)
            self.judged_, self.rest_ = sample.judged, rest
            # Rows at an atom had no part in the smooth models: these are honest for
            # them.
            at_atoms = sample.table.take(np.flatnonzero(~rest))
            self.placed_ = self.continuous.place(at_atoms)
            return
        # Some of the models may be of later rows, so those at an atom are tested with
        # their folds, and neither train nor count.
        folds = [(train[rest[train]], test) for train, test in sample.folds]
        weight = np.where(rest, sample.weight, 0.0)
        tested = replace(sample, weight=weight, folds=folds)
        self.continuous.fit(tested.take(np.arange(len(sample))))
        self.judged_ = self.continuous.judged_
        self.rest_ = rest[self.judged_]
        self.placed_ = self.continuous.oof_placed(np.flatnonzero(~self.rest_))
        self.continuous.keep(np.flatnonzero(self.rest_))
        judged = np.isin(self.choice.judged_, self.judged_)
        self.choice.keep(np.flatnonzero(judged))

    @cached_property
    def oof_law_(self) -> MixedLaw:
        """Honest laws of the rows that are judged, made when asked for."""
        laws = self.continuous.law_of(self.placed_)
        place = np.concatenate(
            [np.flatnonzero(self.rest_), np.flatnonzero(~self.rest_)]
        )
        smooth = append_laws([self.continuous.oof_law_, laws]).take(np.argsort(place))
        return self._law(self.choice.oof_law_, smooth)

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts of the rest said out of fold."""
        return self.continuous.tasks_

    def law(self, table: Table) -> MixedLaw:
        """Return the laws of new rows."""
        return self._law(self.choice.law(table), self.continuous.law(table))

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        values, p = self.continuous.points(table)
        masses = parts_of(self.choice.law(table)).masses[:, 1:]
        reached = self.atoms <= values[:, :, None]
        held = (reached * masses[:, None, :]).sum(axis=2)
        return values, held + (1.0 - masses.sum(axis=1, keepdims=True)) * p

    def recall_targets(self) -> Float64Array:
        """Return the targets of the judged rows."""
        number = self.choice.recall_targets().astype(np.intp)
        whole = np.concatenate([[0.0], self.atoms])[number]
        whole[number == 0] = self.continuous.recall_targets()
        return np.asarray(whole)

    def choices(self) -> dict[str, Any]:
        """Return what both parts chose, and what the alternatives scored."""
        return {
            "atoms": self.atoms.tolist(),
            "choice": self.choice.choices(),
            **self.continuous.choices(),
        }

    def _law(self, choice: Law, smooth: Law) -> MixedLaw:
        masses = parts_of(choice).masses[:, 1:]
        return MixedLaw(self.atoms, masses, smooth, self.widths_)
