"""`DrawnFits`: fits of a regressor on draws of targets that are known in part."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localexpert.data.folds import Fold, make_folds
from localexpert.data.honest_rows import find_copies
from localexpert.data.table import Table, take_rows
from localexpert.law.join import gather_laws
from localexpert.law.law import Law
from localexpert.learn.settings import Effort, Settings
from localexpert.partial.draws import Draws, Outcomes
from localexpert.partial.linear import linear_law
from localexpert.partial.outcomes import nearest_ends

# The law of the residuals is enough for a round.
_ROUND = {"stacker": None, "recalibrate": None, "verbose": 0}


@dataclass(frozen=True, eq=False)
class DrawnFits:
    """Fits of one regressor on draws. All draws of a row are in the same fold.

    Parameters
    ----------
    model : LocalExpertRegressor
        Unfitted.
    given : array or data frame of shape (n, p)
    outcomes : Outcomes
        Of the n rows.
    groups : ndarray of shape (n,), optional
    settings : Settings
    """

    model: Any
    given: Any
    outcomes: Outcomes
    groups: NDArray[Any] | None
    settings: Settings

    @cached_property
    def folds(self) -> list[Fold]:
        """Folds of the n rows: the user's own, or those that `first_law` uses."""
        known = self.outcomes
        near = nearest_ends(known.lower, known.upper)
        held = near, self.groups, self.settings.seed, known.weight
        return make_folds(len(known), self.model.cv, *held)

    @cached_property
    def kept(self) -> NDArray[Any]:
        """Groups of rows that are dealt to one fold where rows come several times."""
        found, known = self.groups, self.outcomes
        if found is None:
            held = known.weight, self.model.cv, self.settings.seed
            found = find_copies(self.given, *held)
        return np.arange(len(known)) if found is None else found

    def first_law(self) -> Law:
        """Return laws of the n rows from a linear model that has not seen them."""
        table = Table.of(self.given, self.outcomes.weight)
        inputs = table.dense_inputs_of(self.outcomes.weight)
        return linear_law(self.outcomes, table.dense(inputs), self.folds)

    def fit(self, draws: Draws, **changes: Any) -> Any:
        """Return a copy of the regressor with changed parameters, fitted on draws."""
        model = copy(self.model)
        vars(model).update(changes)
        groups = self.kept if draws.repeats else self.groups
        if not isinstance(model.cv, str | Integral):
            model.cv, groups = draws.spread(self.folds), self.groups
        groups = None if groups is None else groups[draws.rows]
        given = take_rows(self.given, draws.rows) if draws.repeats else self.given
        model._fit(given, draws.y, draws.weight, groups)
        return model

    def forecast(self, draws: Draws, seed: int) -> Law:
        """Return the laws of the n rows from a cheap fit that has not seen them.

        Rows that the user's folds never test have laws from the fit on all rows.
        """
        level = "quick" if self.settings.effort.level == "quick" else "residuals"
        model = self.fit(draws, effort=Effort(level), random_state=seed, **_ROUND)
        judged, place = np.unique(draws.rows[model.fitted_rows_], return_index=True)
        law: Law = model.oof_distribution_.law.take(place)
        rest = np.setdiff1d(draws.rows, judged)
        if len(rest) == 0:
            return law
        table = model.reader_.read(take_rows(self.given, rest))
        others = model._correct(model._law(table)).law
        return gather_laws([law, others], [judged, rest])
