"""Targets with heavy values: each with a probability of its own, beside the rest."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.task_record import TaskRecord
from localexpert.law.curve import read_curve
from localexpert.law.join import append_laws
from localexpert.law.law import Law
from localexpert.law.steps import scores_of
from localexpert.learn.learner import FittedRoad, Learner
from localexpert.learn.stages import Stages, atom_widths
from localexpert.learn.steps import Step
from localexpert.progress import current_progress

# What is near a value holds so many times its own weight at most...
_MOST_NEAR = 2.0
# ...and no less than half a row besides, so that something is left between values.
_LEAST_BESIDE = 0.5

# What is said of the choice, and the laws of the rest.
Answers: TypeAlias = tuple[Any, Law]


class BesideAtoms(Learner):
    """Fit laws with mass on some values and a smooth rest.

    Which atom a row takes, if any, is a discrete target of its own (0 for none); the
    smooth part is learned on the rows that take none.

    Parameters
    ----------
    atoms : ndarray of shape (A,)
    choice : FittedRoad
        Unfitted, of the atom's number.
    rest : Learner
        Unfitted: laws without jumps.
    stages : Stages
        What the roads to the rest, and to all rows, have fitted.
    """

    def __init__(
        self, atoms: Float64Array, choice: FittedRoad, rest: Learner, stages: Stages
    ):
        self.atoms, self.choice, self.rest = atoms, choice, rest
        self.stages = stages

    def _finish(self, sample: Sample) -> None:
        """Fit both parts; out-of-fold laws are honest in both."""
        y, number = sample.y, self._number(sample.y)
        progress = current_progress()
        with progress.stage("atoms"):
            self.choice.fit(replace(sample, y=number))
        free = number == 0.0
        with progress.stage("rest"):
            self._fit_rest(sample, free)
        self.widths_ = atom_widths(self.atoms, y[free], sample.weight[free])
        # Where judged rows are: among those without an atom, or in `answers_`.
        own = self.free_
        self.places_ = np.where(own, np.cumsum(own), np.cumsum(~own)) - 1
        del self.stages

    def _number(self, y: Float64Array) -> Float64Array:
        """Return the number of each target's atom, 0 for none."""
        numbers = np.arange(1.0, len(self.atoms) + 1.0)
        return np.asarray((y[:, None] == self.atoms) @ numbers)

    def _fit_rest(self, sample: Sample, free: NDArray[np.bool_]) -> None:
        """Fit the smooth part, and keep what it says of rows at an atom."""
        part = sample.take(np.flatnonzero(free))
        if sample.is_whole and part.is_whole:
            self.stages.note_part(part, sample, np.flatnonzero(free))
            self.rest.fit(part)
            self.judged_, self.free_ = sample.judged, free
            # Rows at an atom had no part in the smooth models: these are honest for
            # them.
            at_atoms = sample.table.take(np.flatnonzero(~free))
            self.answers_ = self.rest.answers(at_atoms)
            return
        # Some of the models may be of later rows, so those at an atom are tested with
        # their folds, and neither train nor count.
        folds = [(train[free[train]], test) for train, test in sample.folds]
        weight = np.where(free, sample.weight, 0.0)
        tested = replace(sample, weight=weight, folds=folds)
        self.rest.fit(tested.take(np.arange(len(sample))))
        self.judged_ = self.rest.judged_
        self.free_ = free[self.judged_]
        self.answers_ = self.rest.oof_answers(np.flatnonzero(~self.free_))
        self.rest.keep_rows(np.flatnonzero(self.free_))
        judged = np.isin(self.choice.judged_, self.judged_)
        self.choice.keep_rows(np.flatnonzero(judged))

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts of the rest said out of fold."""
        return self.rest.tasks_

    def answers(self, table: Table) -> Answers:
        """Return what is said of the choice, and the laws of the rest."""
        return self.choice.answers(table), self.rest.law(table)

    def oof_answers(self, places: Rows | slice) -> Answers:
        """Return the same of some of the judged rows."""
        rows = np.arange(len(self.judged_))[places]
        of_rest = self.places_[rows[self.free_[rows]]]
        smooth = self.rest.law_of(self.rest.oof_answers(of_rest))
        return self.choice.oof_answers(rows), self._with_atoms(rows, smooth)

    def _law_as_new(self, places: Rows, y: Float64Array) -> Law:
        """Return laws whose smooth part misses y as that of new rows will."""
        free = self.free_[places]
        smooth = self.rest.law_as_new(self.places_[places[free]], y[free])
        said = self.choice.oof_answers(places), self._with_atoms(places, smooth)
        return self._law_of(said)

    def _law_of(self, answers: Answers) -> Law:
        """Return atoms beside the rest."""
        choice, smooth = answers
        masses = self.choice.law_of(choice).masses[:, 1:]
        return Law(smooth.curve, self.atoms, masses, self.widths_)

    def _with_atoms(self, rows: Rows, smooth: Law) -> Law:
        """Return the laws of judged rows, given those of the ones that take no atom."""
        free = self.free_[rows]
        at_atoms = self.rest.law_of(self.answers_).take(self.places_[rows[~free]])
        order = np.argsort(np.argsort(~free, kind="stable"))
        return append_laws([smooth, at_atoms]).take(order)

    def _keep_rows(self, places: Rows) -> None:
        """Let both parts keep it."""
        free = self.free_[places]
        self.rest.keep_rows(self.places_[places[free]])
        self.choice.keep_rows(places)
        self.places_, self.free_ = self.places_[places], free
        self.places_[free] = np.arange(np.sum(free))

    def _points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        values, p = self.rest.points(table)
        masses = self.choice.law(table).masses[:, 1:]
        reached = self.atoms <= values[:, :, None]
        held = (reached * masses[:, None, :]).sum(axis=2)
        return values, held + (1.0 - masses.sum(axis=1, keepdims=True)) * p

    def _choices(self) -> dict[str, Any]:
        """Return what both parts chose, and what the alternatives scored."""
        return {
            "atoms": self.atoms.tolist(),
            "choice": self.choice.choices(),
            **self.rest.choices(),
        }


@dataclass
class NearAtoms(Step):
    """Collect mass of smooth laws of all rows at values that are met often.

    Where heavy values are those that a smooth target is often rounded to, what is
    between them says as much of them as they do themselves. An atom takes that share
    of the mass around it that it has of the rows there.

    Parameters
    ----------
    atoms : ndarray of shape (A,)

    Attributes
    ----------
    borders_ : ndarray of shape (2 A,)
        Both ends of what is around each atom, increasing.
    shares_ : ndarray of shape (A,)
        Below 1.
    """

    atoms: Float64Array
    borders_: Float64Array = field(init=False)
    shares_: Float64Array = field(init=False)
    asks_smooth: ClassVar[bool] = True

    def fit(self, sample: Sample) -> None:
        """Look at what is around the atoms."""
        rest = ~np.isin(sample.y, self.atoms)
        y, weight = sample.y, sample.weight
        self.widths_ = atom_widths(self.atoms, y[rest], weight[rest])
        self.borders_, self.shares_ = _look_around(self.atoms, y, weight)

    def choices(self) -> dict[str, Any]:
        """Return the atoms."""
        return {"atoms": self.atoms.tolist()}

    def read(self, law: Law) -> Law:
        """Return the atoms beside the law that is left of a smooth one.

        Around an atom of share s the density is 1 - s times what it was, so that the
        CDF of what is left is a function H of F: straight, of slope 1 - s there and 1
        elsewhere, but for the factor that makes it end at 1. It is turned round from
        either side, so that both tails keep their digits.
        """
        borders = np.tile(self.borders_, (len(law), 1))
        below, above = law.cdf(borders), law.sf(borders)
        masses = self.shares_ * np.maximum(below[:, 1::2] - below[:, ::2], 0.0)
        slopes = np.ones(len(self.borders_) + 1)
        slopes[1::2] = 1.0 - self.shares_
        rest = 1.0 - masses.sum(axis=1, keepdims=True)
        curve = law.curve
        assert curve is not None
        g = curve.basis.greville
        p = _turn_round(below, slopes, rest * ndtr(g))
        q = _turn_round(above[:, ::-1], slopes[::-1], rest * ndtr(-g))
        u = np.maximum.accumulate(curve.coordinates(scores_of(p, q))[0], axis=1)
        left = read_curve(u, curve.low, curve.high, basis=curve.basis)
        return Law(left, self.atoms, masses, self.widths_)


def _look_around(
    atoms: Float64Array, y: Float64Array, weight: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the borders of what is around atoms, and their shares of what is there.

    It reaches as far to either side, half-way to the next atom at most, and holds
    twice the atom's own weight at most.
    """
    gaps = np.diff(atoms)
    most = 0.5 * np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    borders, shares = np.empty(2 * len(atoms)), np.empty(len(atoms))
    for k, atom in enumerate(atoms):
        away = np.abs(y - atom)
        order = np.argsort(away, kind="stable")
        upto = np.cumsum(weight[order])
        own = float(weight[away == 0.0].sum())
        enough = int(np.searchsorted(upto, _MOST_NEAR * own))
        farthest = away[order[min(enough, len(y) - 1)]]
        reach = min(most[k], float(farthest))
        borders[2 * k : 2 * k + 2] = atom - reach, atom + reach
        near = float(weight[away <= reach].sum())
        shares[k] = own / (max(near, own) + _LEAST_BESIDE)
    # Two that meet half-way may pass each other by rounding.
    return np.maximum.accumulate(borders), shares


def _turn_round(
    levels: Float64Array, slopes: Float64Array, wanted: Float64Array
) -> Float64Array:
    """Return the u (n, K) at which a broken line through 0 reaches what is wanted.

    Parameters
    ----------
    levels : ndarray of shape (n, B)
        Where the line breaks, increasing along a row.
    slopes : ndarray of shape (B + 1,)
        Of its pieces, positive.
    wanted : ndarray of shape (n, K)
    """
    starts = np.column_stack([np.zeros(len(levels)), levels])
    heights = np.cumsum(np.diff(starts, axis=1) * slopes[:-1], axis=1)
    heights = np.column_stack([np.zeros(len(levels)), heights])
    out = wanted / slopes[0]
    for k in range(1, len(slopes)):
        beyond = wanted > heights[:, k, None]
        along = starts[:, k, None] + (wanted - heights[:, k, None]) / slopes[k]
        out = np.where(beyond, along, out)
    return np.asarray(np.clip(out, 0.0, 1.0))
