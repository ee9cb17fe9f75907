"""The road of a target with heavy values: their probabilities, and the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.task_record import TaskRecord
from localexpert.forecasters.discrete import DiscreteForecaster
from localexpert.forecasters.forecaster import RoadForecaster
from localexpert.law.join import append_laws
from localexpert.law.law import Law
from localexpert.progress import current_progress

# An atom's cell is this share of the spread (interquartile range) of the other values,
# so that a hit is worth what a forecast of that sharpness would earn.
_CELL_SHARE = 0.01

# What is said of the choice, and the laws of the rest.
Placed: TypeAlias = tuple[Float64Array, Law]


@dataclass
class MixedForecaster(RoadForecaster):
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

    def finish(self, sample: Sample) -> MixedForecaster:
        """Fit both parts; out-of-fold laws are honest in both."""
        y = sample.y
        number = (y[:, None] == self.atoms) @ np.arange(1.0, len(self.atoms) + 1.0)
        progress = current_progress()
        with progress.stage("atoms"):
            self.choice.fit(replace(sample, y=number))
        rest = number == 0.0
        with progress.stage("rest"):
            self._fit_rest(sample, rest)
        self.told_ = np.arange(np.sum(~self.rest_))
        self.widths_ = atom_widths(self.atoms, y[rest], sample.weight[rest])
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

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts of the rest said out of fold."""
        return self.continuous.tasks_

    def place(self, table: Table) -> Placed:
        """Return what is said of the choice, and the laws of the rest."""
        return self.choice.place(table), self.continuous.law(table)

    def oof_placed(self, places: Rows | slice) -> Placed:
        """Return the same of some of the judged rows."""
        rows = np.arange(len(self.judged_))[places]
        own = np.flatnonzero(self.rest_[rows])
        smooth = self.continuous.oof_law_.take(self._places_of_rest(rows[own]))
        return self.choice.oof_placed(rows), self._with_atoms(rows, own, smooth)

    def law_ahead(self, places: Rows, y: Float64Array) -> Law:
        """Return laws whose smooth part misses y as that of new rows will."""
        own = np.flatnonzero(self.rest_[places])
        of_rest = self._places_of_rest(places[own])
        smooth = self.continuous.law_ahead(of_rest, y[own])
        said = self.choice.oof_placed(places), self._with_atoms(places, own, smooth)
        return self.law_of(said)

    def law_of(self, placed: Placed) -> Law:
        """Return atoms beside the rest."""
        choice, smooth = placed
        masses = self.choice.law_of(choice).masses[:, 1:]
        return Law(smooth.curve, self.atoms, masses, self.widths_)

    def _places_of_rest(self, rows: Rows) -> Rows:
        """Return where judged rows without an atom are among all such."""
        return np.cumsum(self.rest_)[rows] - 1

    def _with_atoms(self, rows: Rows, own: Rows, smooth: Law) -> Law:
        """Return the laws of judged rows, given those of the ones that take no atom."""
        others = np.flatnonzero(~self.rest_[rows])
        at = self.told_[np.cumsum(~self.rest_)[rows[others]] - 1]
        laws = self.continuous.law_of(self.placed_).take(at)
        order = np.argsort(np.concatenate([own, others]), kind="stable")
        return append_laws([smooth, laws]).take(order)

    def _keep(self, places: Rows) -> None:
        """Let both parts keep it."""
        held = self.rest_[places]
        self.continuous.keep(self._places_of_rest(places[held]))
        self.told_ = self.told_[np.cumsum(~self.rest_)[places[~held]] - 1]
        self.choice.keep(places)
        self.rest_ = held

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        values, p = self.continuous.points(table)
        masses = self.choice.law(table).masses[:, 1:]
        reached = self.atoms <= values[:, :, None]
        held = (reached * masses[:, None, :]).sum(axis=2)
        return values, held + (1.0 - masses.sum(axis=1, keepdims=True)) * p

    def recall_targets(self) -> Float64Array:
        """Return the targets of the judged rows."""
        number = self.choice.recall_targets().astype(np.intp)
        whole = np.concatenate([[0.0], self.atoms])[number]
        whole[number == 0] = self.continuous.recall_targets()
        return np.asarray(whole)

    def recall_weights(self) -> Float64Array:
        """Return the weights of the judged rows: the choice saw them all."""
        return self.choice.recall_weights()

    def choices(self) -> dict[str, Any]:
        """Return what both parts chose, and what the alternatives scored."""
        return {
            "atoms": self.atoms.tolist(),
            "choice": self.choice.choices(),
            **self.continuous.choices(),
        }


def atom_widths(
    atoms: Float64Array, rest: Float64Array, weight: Float64Array
) -> Float64Array:
    """Return the widths of atoms' cells, given the other targets and their weights.

    An atom has no density; the log score gives its probability a cell's width.

    Parameters
    ----------
    atoms : ndarray of shape (A,)
    rest, weight : ndarrays of shape (n,)

    Returns
    -------
    ndarray of shape (A,)
    """
    held = weight > 0.0
    rest, weight = rest[held], weight[held]
    low, high = np.quantile(rest, [0.25, 0.75], weights=weight, method="inverted_cdf")
    spread = high - low if high > low else float(np.ptp(rest)) or 1.0
    return np.full(len(atoms), _CELL_SHARE * spread)
