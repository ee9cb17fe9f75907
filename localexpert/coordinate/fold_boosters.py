"""`FoldBoosters`: LightGBM regressions of the folds, stopped at one common round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import lightgbm as lgb
import numpy as np
from sklearn.utils.parallel import delayed

from calibration.typing import Float64Array
from localexpert.data.folds import Fold
from localexpert.data.threads import ask_each
from localexpert.progress import run_jobs

# A share of fewer rows may be none, which LightGBM refuses.
_LEAST_ROWS_TO_BAG = 10
_FIXED: dict[str, Any] = {
    "objective": "l2",
    "deterministic": True,
    "force_row_wise": True,
    # Threads of LightGBM's own wait spinning: where a core is busy with something
    # else they cost many times what they save. The folds share the cores instead.
    "num_threads": 1,
    "verbosity": -1,
}


class BoostedFold(NamedTuple):
    """The booster of a fold and its loss on the test part after every round."""

    booster: lgb.Booster
    curve: list[float]


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
        The first fold stops after so many rounds without gain, and the others where
        it does.
    n_jobs : int, optional
        Folds fitted at a time, in threads.
    """

    parameters: Mapping[str, Any]
    max_rounds: int
    patience: int = 50
    n_jobs: int | None = None

    def fit(
        self,
        table: Float64Array,
        target: Float64Array,
        folds: Sequence[Fold],
        w: Float64Array,
        first: BoostedFold | None = None,
    ) -> Float64Array:
        """Boost every fold and return the out-of-fold predictions, shape (n,).

        They are NaN in rows that no fold tests.
        `first` is the first fold's booster, where there is one already.
        """
        first = first or self.boost(table, target, folds[0], w)
        jobs = [
            delayed(self.boost)(table, target, fold, w, len(first.curve))
            for fold in folds[1:]
        ]
        rest = run_jobs(jobs, n_jobs=self.n_jobs, prefer="threads")
        fits = [first, *rest]
        self.models_ = [fit.booster for fit in fits]
        # A booster that can split no more stays as it is.
        longest = len(first.curve)
        # One number for all: a fold that stopped at its own best would have chosen it
        # by the rows that it predicts.
        curves = [np.pad(f.curve, (0, longest - len(f.curve)), "edge") for f in fits]
        mean = np.mean(curves, axis=0)
        self.n_rounds_ = int(np.argmin(mean)) + 1
        oof = np.full(len(target), np.nan)
        for model, (_, test) in zip(self.models_, folds, strict=True):
            oof[test] = self._ask(model, table[test])
        return oof

    def predict_each(self, table: Float64Array) -> Float64Array:
        """Return the predictions of the folds' models, shape (n_folds, n)."""
        answers = ask_each(
            lambda model: self._ask(model, table), self.models_, len(table), self.n_jobs
        )
        return np.array(answers)

    def boost(
        self,
        table: Float64Array,
        target: Float64Array,
        fold: Fold,
        w: Float64Array,
        n_rounds: int | None = None,
    ) -> BoostedFold:
        """Boost a fold for some rounds, or until its loss falls no more."""
        train, test = fold
        parameters = {**self.parameters, **_FIXED}
        if len(train) < _LEAST_ROWS_TO_BAG:
            parameters["bagging_fraction"] = 1.0
        data = lgb.Dataset(table[train], target[train], weight=w[train])
        held = lgb.Dataset(table[test], target[test], weight=w[test], reference=data)
        record: dict[str, Any] = {}
        callbacks = [lgb.record_evaluation(record)]
        if n_rounds is None:
            callbacks.append(lgb.early_stopping(self.patience, verbose=False))
        booster = lgb.train(
            parameters,
            data,
            n_rounds or self.max_rounds,
            valid_sets=[held],
            callbacks=callbacks,
        )
        return BoostedFold(booster, record["valid_0"]["l2"])

    def _ask(self, model: lgb.Booster, table: Float64Array) -> Float64Array:
        # Without a number LightGBM takes the last call's threads.
        answer = model.predict(table, num_iteration=self.n_rounds_, num_threads=1)
        return cast(Float64Array, answer)
