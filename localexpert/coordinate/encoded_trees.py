"""`EncodedTrees`: boosted trees that are told the target's mean in each category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import lightgbm as lgb
import numpy as np

from calibration.typing import Float64Array
from localexpert.coordinate.families import BoostedFold, BoostedTrees, FoldBoosters
from localexpert.data.folds import Fold
from localexpert.data.target_codes import TargetCodes

# Of fewer values a split or two tell all of them apart.
_FEWEST_VALUES = 3


class EncodedTrees(BoostedTrees):
    """Boosted trees on the means of the target where other trees read codes.

    Trees take codes as numbers, in an order that says nothing of y, and need many
    splits for a column of many values. The means are learned from the training part
    of each fold.

    Parameters
    ----------
    n_values : mapping of int to int
        Number of values of the columns that hold categories.
    random_state : int
    n_jobs : int, optional
    """

    def __init__(
        self, n_values: Mapping[int, int], *, random_state: int, n_jobs: int | None
    ):
        super().__init__(random_state=random_state, n_jobs=n_jobs)
        self.n_values = {j: k for j, k in n_values.items() if k >= _FEWEST_VALUES}

    def suits(self, y: Float64Array) -> bool:
        """Say whether there is a category of several values."""
        del y
        return bool(self.n_values)

    def _boosters(self, n: int, n_columns: int) -> FoldBoosters:
        made = super()._boosters(n, n_columns)
        codes = TargetCodes(self.n_values, self.random_state)
        return _EncodedBoosters(**vars(made), codes=codes)


@dataclass
class _EncodedBoosters(FoldBoosters):
    """One booster per fold, on codes that its training part has learned."""

    codes: TargetCodes = field(kw_only=True)

    def boost(
        self,
        table: Float64Array,
        target: Float64Array,
        fold: Fold,
        w: Float64Array,
        n_rounds: int | None = None,
    ) -> BoostedFold:
        train, test = fold
        codes = TargetCodes(self.codes.n_values, self.codes.seed)
        told = np.empty_like(table)
        told[train] = codes.fit_transform(table[train], target[train], w[train])
        told[test] = codes.transform(table[test])
        made = super().boost(told, target, fold, w, n_rounds)
        return BoostedFold(_EncodedBooster(made.booster, codes), made.curve)  # type: ignore[arg-type]


@dataclass
class _EncodedBooster:
    """A booster, and the means that it has learned from."""

    booster: lgb.Booster
    codes: TargetCodes

    def predict(self, X: Float64Array, **options: Any) -> Any:
        """Return the booster's predictions for rows of codes."""
        return self.booster.predict(self.codes.transform(X), **options)
