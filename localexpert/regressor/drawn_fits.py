"""`DrawnFits`: fits of a regressor on draws of targets that are known in part."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localexpert.data.folds import Fold, make_folds
from localexpert.data.honest_rows import find_copies
from localexpert.data.table import take_rows
from localexpert.law.join import append_laws
from localexpert.law.law import Law
from localexpert.learn.settings import Effort, Settings
from localexpert.partial.draws import Draws, Outcomes, nearest_ends

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
    settings : Settings
    groups : ndarray of shape (n,), optional
        Groups of the user.
    kept : ndarray of shape (n,)
        Rows that are dealt to one fold if rows come several times.
    folds : list of (train, test), optional
        The user's own folds of the n rows.
    """

    model: Any
    given: Any
    settings: Settings
    groups: NDArray[Any] | None
    kept: NDArray[Any]
    folds: list[Fold] | None

    @classmethod
    def deal(
        cls,
        model: Any,
        given: Any,
        outcomes: Outcomes,
        groups: NDArray[Any] | None,
        settings: Settings,
    ) -> Self:
        """Return fits whose folds are the same in every round."""
        n, weight, seed = len(outcomes), outcomes.weight, settings.seed
        folds, kept = None, groups
        if not isinstance(model.cv, str | Integral):
            near = nearest_ends(outcomes.lower, outcomes.upper)
            folds = make_folds(n, model.cv, near, groups, seed, weight)
        elif groups is None:
            kept = find_copies(given, weight, model.cv, seed)
        kept = np.arange(n) if kept is None else kept
        return cls(model, given, settings, groups, kept, folds)

    def fit(self, draws: Draws, **changes: Any) -> Any:
        """Return a copy of the regressor with changed parameters, fitted on draws."""
        model = copy(self.model)
        vars(model).update(changes)
        groups = self.kept if draws.repeats else self.groups
        if self.folds is not None:
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
        both = append_laws([law, model._correct(model._law(table)).law])
        order = np.argsort(np.concatenate([judged, rest]), kind="stable")
        return both.take(order)
