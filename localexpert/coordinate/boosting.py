"""`FoldBoosters`: LightGBM regressions of the folds, stopped at one common round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import lightgbm as lgb
import numpy as np

from calibration._kernels.types import Float64Array
from localexpert.folds import Fold


@dataclass
class FoldBoosters:
    """One booster per fold, all with the same number of rounds.

    The rounds are those with the least mean validation loss over folds, so that no
    fold's out-of-fold predictions are tuned on themselves alone.

    Parameters
    ----------
    parameters : mapping
        LightGBM parameters; deterministic ones are added.
    max_rounds : int
    patience : int
        A fold stops after so many rounds without gain.
    """

    parameters: Mapping[str, Any]
    max_rounds: int
    patience: int = 50

    def fit(
        self,
        table: Float64Array,
        target: Float64Array,
        folds: Sequence[Fold],
        w: Float64Array,
    ) -> Float64Array:
        """Boost every fold and return the out-of-fold predictions, shape (n,)."""
        fits = [self._boost(table, target, fold, w) for fold in folds]
        self.models_ = [model for model, _ in fits]
        shortest = min(len(curve) for _, curve in fits)
        mean = np.mean([curve[:shortest] for _, curve in fits], axis=0)
        self.n_rounds_ = int(np.argmin(mean)) + 1
        # Rows in no test part (of a screening on one fold) stay at zero.
        oof = np.zeros(len(target))
        for model, (_, test) in zip(self.models_, folds, strict=True):
            oof[test] = self._ask(model, table[test])
        return oof

    def predict_each(self, table: Float64Array) -> Float64Array:
        """Return the predictions of the folds' models, shape (n_folds, n)."""
        return np.array([self._ask(model, table) for model in self.models_])

    def _ask(self, model: lgb.Booster, table: Float64Array) -> Float64Array:
        # Without a number LightGBM takes the last call's, and waits spinning.
        answer = model.predict(
            table,
            num_iteration=self.n_rounds_,
            num_threads=self.parameters["num_threads"],
        )
        return cast(Float64Array, answer)

    def _boost(
        self, table: Float64Array, target: Float64Array, fold: Fold, w: Float64Array
    ) -> tuple[lgb.Booster, list[float]]:
        """Return a fold's booster and its validation curve."""
        train, test = fold
        fixed = {
            "objective": "l2",
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        data = lgb.Dataset(table[train], target[train], weight=w[train])
        held = lgb.Dataset(table[test], target[test], weight=w[test], reference=data)
        record: dict[str, Any] = {}
        model = lgb.train(
            {**self.parameters, **fixed},
            data,
            self.max_rounds,
            valid_sets=[held],
            callbacks=[
                lgb.record_evaluation(record),
                lgb.early_stopping(self.patience, verbose=False),
            ],
        )
        return model, record["valid_0"]["l2"]
